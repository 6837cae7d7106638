# SPDX-License-Identifier: GPL-3.0-or-later
"""What may be deleted so that a kind is exactly what its list says, and what never is."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import replace

from ..core.errors import ToolchainError
from .kinds import GROUPS, ROLE_ASSIGNMENTS, ROLES, USERS, Catalogue, Kind
from .resource import Resource, State
from .role_assignment import RoleAssignment


def matches(kind: Kind, state: State, patterns: Collection[str]) -> bool:
    """Whether a pattern fits the name of an object in plans, or its own name in its project; of an
    assignment, the role or the account.
    """
    parts = [str(state[part]) for part in kind.name if part != "project"]
    texts = [kind.name_of(state), *parts]
    return any(fnmatch.fnmatchcase(text, pattern) for text in texts for pattern in patterns)


class Own:
    """The account of the task and what gives it its rights: nothing of it is ever removed.

    What it holds is read when somebody asks, as few tasks remove anything. Its name counts in upper
    and lower case, as it does for the directory that many servers ask.
    """

    def __init__(self, account: str | None, catalogue: Catalogue) -> None:
        self._account, self._catalogue = (account or "").casefold(), catalogue
        self._held: frozenset[tuple[str, Hashable]] | None = None

    def includes(self, kind: Kind, state: State) -> bool:
        """Whether an object is the account, a role that it holds, an assignment that gives it one,
        or a group through which it holds one.
        """
        if self._account == "" or kind not in (USERS, GROUPS, ROLES, ROLE_ASSIGNMENTS):
            return False
        if kind is USERS:
            return self._is(state["name"])
        if self._held is None:
            self._held = frozenset(self._holdings())
        key = tuple(state.values()) if kind is ROLE_ASSIGNMENTS else state["name"]
        return (kind.option, key) in self._held

    def _is(self, name: str) -> bool:
        return name.casefold() == self._account

    def _holdings(self) -> Iterator[tuple[str, Hashable]]:
        self._catalogue.load([(GROUPS, None), (ROLE_ASSIGNMENTS, None)])
        groups = {
            state["name"]
            for state in self._catalogue.listed(GROUPS).objects.values()
            # Where a server does not show the members, any group may be the one.
            if "users" not in state or any(map(self._is, state["users"]))
        }
        for key, state in self._catalogue.listed(ROLE_ASSIGNMENTS).objects.items():
            account = state["account"]
            if account in groups if state["group"] else self._is(account):
                yield ROLE_ASSIGNMENTS.option, key
                yield ROLES.option, state["name"]
                if state["group"]:
                    yield GROUPS.option, account


def surplus(
    kind: Kind,
    places: Sequence[str | None],
    catalogue: Catalogue,
    wanted: Collection[int],
    *,
    protect: Collection[str],
    own: Own,
) -> list[Resource]:
    """The objects of a kind that nobody asks for, as absent.

    :param places: the projects to look into, C(None) for a kind that is in none
    :param wanted: identities of the states that entries have found
    """
    found: list[Resource] = []
    for place in places:
        listed = catalogue.listed(kind, place)
        removable = [
            state
            for state in listed.objects.values()
            if id(state) not in wanted
            and not state.get("readonly")
            and not matches(kind, state, protect)
            and not own.includes(kind, state)
        ]
        if removable and listed.doubt is not None:
            raise ToolchainError("rejected", f"purging {kind.option}: {listed.doubt}")
        found += [_absent(kind, state, catalogue) for state in removable]
    return found


def _absent(kind: Kind, state: State, catalogue: Catalogue) -> Resource:
    named = {name: state[name] for name in (*kind.name, "group") if name in state}
    resource = kind.wanted({**named, "state": "absent"})
    if isinstance(resource, RoleAssignment):
        return replace(resource, ids=catalogue.known())
    return resource
