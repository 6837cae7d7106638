# SPDX-License-Identifier: GPL-3.0-or-later
"""What may be deleted so that a kind is exactly what its list says, and what never is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from ...core.errors import ToolchainError
from ..engine.own_account import OwnAccount
from ..engine.resource import Resource, State
from ..resources.analysis_role_assignment import RoleAssignment
from .object_kinds import GROUPS, ROLE_ASSIGNMENTS, Catalogue, ObjectKind


def own_in(catalogue: Catalogue, account: str | None) -> OwnAccount:
    """What belongs to the account, of what a whole configuration reads anyway."""

    def listed(kind: ObjectKind) -> Iterable[State]:
        catalogue.load([(GROUPS, None), (ROLE_ASSIGNMENTS, None)])
        return catalogue.listed(kind).objects.values()

    return OwnAccount(account, lambda: listed(GROUPS), lambda: listed(ROLE_ASSIGNMENTS))


def surplus(
    kind: ObjectKind,
    places: Sequence[str | None],
    catalogue: Catalogue,
    wanted: Collection[int],
    *,
    keeps: Callable[[ObjectKind, State], bool],
) -> list[Resource]:
    """The objects of a kind that nobody asks for, as absent.

    :param places: the projects to look into, C(None) for a kind that is in none
    :param wanted: identities of the states that entries have found
    :param keeps: whether an object stays whatever the lists say
    """
    found: list[Resource] = []
    for place in places:
        listed = catalogue.listed(kind, place)
        removable = [
            state
            for state in listed.objects.values()
            if id(state) not in wanted and not state.get("readonly") and not keeps(kind, state)
        ]
        if removable and listed.doubt is not None:
            raise ToolchainError("rejected", f"purging {kind.option}: {listed.doubt}")
        found += [_absent(kind, state, catalogue) for state in removable]
    return found


def _absent(kind: ObjectKind, state: State, catalogue: Catalogue) -> Resource:
    named = {name: state[name] for name in (*kind.name, "group") if name in state}
    resource = kind.wanted({**named, "state": "absent"})
    if isinstance(resource, RoleAssignment):
        return replace(resource, ids=catalogue.known())
    return resource
