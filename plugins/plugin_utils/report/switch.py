# SPDX-License-Identifier: GPL-3.0-or-later
"""Switch that the callback turns on if it reports the run; forked workers inherit it."""

from __future__ import annotations

#: With this variable, results of ansible-core 2.21 and newer contain `invocation`, as results of
#: older releases do. A report takes the server and the name of an object from it.
INVOCATION = "ansible_inject_invocation"
_reporting: set[str] = set()


def turn(on: bool) -> None:
    """Turn reporting on or off."""
    if on:
        _reporting.add(INVOCATION)
    else:
        _reporting.clear()


def variables() -> dict[str, bool]:
    """Return the additional variables for tasks of a reported run."""
    return dict.fromkeys(_reporting, True)


def is_on() -> bool:
    """Return whether the run is reported."""
    return bool(_reporting)
