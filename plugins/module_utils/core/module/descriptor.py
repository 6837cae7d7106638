# SPDX-License-Identifier: GPL-3.0-or-later
"""Describe a module in one place: its service, its object, its operations and their permissions.

Every `<Module>Operation` has a `descriptor`. Reports on the controller, the list of witnesses and
the fault and permission tests read it, so that they need no list of modules. Every task defines
these classes again: named tuples take an eighth of the time that dataclasses take.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Access(NamedTuple):
    """Permissions that an operation of a module needs, by the names that the server gives them.

    :param needs: permissions without which both check mode and the run fail
    :param unforeseen: permissions without which only the run fails, because no read shows that
        they are missing
    :param writes: whether the operation changes the server
    """

    needs: tuple[str, ...] = ()
    unforeseen: tuple[str, ...] = ()
    writes: bool = False


def reads(*needs: str) -> Access:
    """Return the access of an operation that changes nothing on the server."""
    return Access(needs)


def writes(*needs: str, unforeseen: tuple[str, ...] = ()) -> Access:
    """Return the access of an operation that changes the server."""
    return Access(needs, unforeseen, writes=True)


class Descriptor(NamedTuple):
    """The objects that a module works on.

    :param service: `None` if the module sends no request
    :param operations: name to access; the names are listed in docs/interfaces/witnesses.md
    :param kind: kind of the object in reports; empty if the module compares no single object
    :param name: format string over the options, and over the return value called `kind`, for the
        name of the object in reports
    :param listed: return value that lists objects with their `action`; `name` then also takes the
        values of an entry. `results` for modules with the option `entries`
    :param follows: the write completes writes of earlier tasks, as a restart does: a sealed plan
        does not list it
    """

    service: str | None
    operations: Mapping[str, Access]
    kind: str = ""
    name: str = ""
    listed: str = ""
    follows: bool = False

    @property
    def writes(self) -> bool:
        """Return whether any operation changes the server."""
        return any(access.writes for access in self.operations.values())
