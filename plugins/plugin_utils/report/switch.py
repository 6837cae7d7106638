# SPDX-License-Identifier: GPL-3.0-or-later
"""Switch that the callback turns on if it reports the run; forked workers inherit it, and with it
what the run has found so far.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ansible_collections.delivery.toolchain.plugins.plugin_utils.report.contents import (
        Contents,
    )

#: With this variable, results of ansible-core 2.21 and newer contain `invocation`, as results of
#: older releases do. A report takes the server and the name of an object from it.
INVOCATION = "ansible_inject_invocation"
_reporting: dict[str, Callable[[], Contents]] = {}
_listing: set[str] = set()


def turn_on(so_far: Callable[[], Contents]) -> None:
    """Turn reporting on.

    :param so_far: returns the findings of the run, compared with the last run
    """
    _reporting[INVOCATION] = so_far


def turn_off() -> None:
    """Turn reporting off."""
    _reporting.clear()
    _listing.clear()


def list_findings() -> None:
    """Note that the end of the run lists its findings."""
    _listing.add(INVOCATION)


def lists_findings() -> bool:
    """Return whether the end of the run lists its findings."""
    return bool(_listing)


def so_far() -> Contents | None:
    """Return the findings of the run, or `None` if it is not reported."""
    return _reporting[INVOCATION]() if _reporting else None


def variables() -> dict[str, bool]:
    """Return the additional variables for tasks of a reported run."""
    return dict.fromkeys(_reporting, True)


def is_on() -> bool:
    """Return whether the run is reported."""
    return bool(_reporting)
