# SPDX-License-Identifier: GPL-3.0-or-later
"""A switch that the callback turns on if it reports the run.

Forked workers inherit the switch and the findings that the run has collected so far.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .contents import Contents

#: Makes ansible-core 2.21 and newer return `invocation` in results, as older releases do. Reports
#: read the server and the name of an object from it.
INVOCATION = "ansible_inject_invocation"
_reporting: dict[str, Callable[[], Contents]] = {}
_listing: set[str] = set()


def turn_on(so_far: Callable[[], Contents]) -> None:
    """Turn reporting on.

    :param so_far: returns the current findings of the run, compared with the last run
    """
    _reporting[INVOCATION] = so_far


def turn_off() -> None:
    _reporting.clear()
    _listing.clear()


def list_findings() -> None:
    """Request a list of the findings at the end of the run."""
    _listing.add(INVOCATION)


def lists_findings() -> bool:
    """Return whether the findings are listed at the end of the run."""
    return bool(_listing)


def so_far() -> Contents | None:
    """Return the current findings of the run, or `None` if the run is not reported."""
    return _reporting[INVOCATION]() if _reporting else None


def variables() -> dict[str, bool]:
    """Return the variables that the tasks of a reported run need."""
    return dict.fromkeys(_reporting, True)


def is_on() -> bool:
    """Return whether the run is reported."""
    return bool(_reporting)
