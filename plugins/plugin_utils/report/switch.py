# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the results of this run are reported: set by the callback, seen by the workers that its
process forks.
"""

from __future__ import annotations

#: The variable of ansible-core 2.21 and newer by which a result tells its arguments, as all results
#: did before. Without them a report knows neither the server nor the name of an object.
TOLD = "ansible_inject_invocation"
_reporting: set[str] = set()


def turn(on: bool) -> None:
    """Begin or end reporting."""
    if on:
        _reporting.add(TOLD)
    else:
        _reporting.clear()


def variables() -> dict[str, bool]:
    """The variables that the tasks of a reported run have besides their own."""
    return dict.fromkeys(_reporting, True)
