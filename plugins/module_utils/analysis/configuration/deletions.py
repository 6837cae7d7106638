# SPDX-License-Identifier: GPL-3.0-or-later
"""Select the objects that `purge` of `analysis_config` deletes, without protected objects and those
of the task's account.

Source: interface contract [C1.6].
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ...core.errors import ToolchainError, invalid
from ...core.paths.globs import Patterns, has_wildcards
from ..engine.accounts import OwnAccount
from ..engine.resource import Resource, State
from ..resources.analysis_role_assignment import RoleAssignment
from .object_kinds import (
    BUILDS,
    GROUPS,
    KINDS,
    MODULES,
    PROJECTS,
    ROLE_ASSIGNMENTS,
    ROLES,
    USERS,
    VIEWS,
    Catalogue,
    ObjectKind,
)

#: Kinds that are deleted with a project, and the field of an assignment that names its parent.
_INSIDE = (MODULES, VIEWS, BUILDS)
_HELD_BY = {PROJECTS: "project", ROLES: "name", USERS: "account", GROUPS: "account"}


@dataclass
class Protection:
    """The patterns of `protect`, and the patterns that have matched."""

    patterns: Patterns
    catalogue: Catalogue

    def covers(self, kind: ObjectKind, state: State) -> bool:
        """Return whether a pattern matches the name of an object in plans, or its name within its
        project; for an assignment, the role or the account.
        """
        parts = [str(state[part]) for part in kind.name if part != "project"]
        return self.patterns.fits(kind.name_of(state), *parts)

    def inside(self, kind: ObjectKind, state: State) -> str | None:
        """Return a protected object that would be deleted together with the object, as `the module
        'p/core'`.
        """
        if not self.patterns or kind not in _HELD_BY:
            return None
        for inner, each in self._held(kind, state["name"]):
            if self.covers(inner, each):
                noun = inner.makes.noun.replace("_", " ")
                return f"the {noun} '{inner.name_of(each)}'"
        return None

    def _held(self, kind: ObjectKind, name: str) -> Iterator[tuple[ObjectKind, State]]:
        if kind is PROJECTS:
            self.catalogue.load([(inner, name) for inner in _INSIDE])
            for inner in _INSIDE:
                for obj in self.catalogue.listed(inner, name).objects.values():
                    yield inner, obj
        for each in self.catalogue.listed(ROLE_ASSIGNMENTS).objects.values():
            mine = kind not in (USERS, GROUPS) or each["group"] is (kind is GROUPS)
            if mine and each[_HELD_BY[kind]] == name:
                yield ROLE_ASSIGNMENTS, each

    def read(self, places: Iterable[tuple[ObjectKind, str | None]]) -> None:
        """Compare objects with the patterns until every pattern has a match."""
        for kind, project in places:
            if self.patterns.unused:
                self._look_at(kind, project)

    def require_names(self, projects: Sequence[str]) -> None:
        """Raise `not_found` for a name without wildcards that nothing has, and `invalid` for a
        pattern that would protect an object if `*` matched slashes.

        :param projects: projects in which objects may be deleted
        """
        global_kinds = [kind for kind in KINDS if not kind.in_project]
        places = [*((kind, None) for kind in global_kinds), *self._places(projects)]
        self.read(places)
        names = [pattern for pattern in self.patterns.unused if not has_wildcards(pattern)]
        if names:
            named = ", ".join(f"'{name}'" for name in names)
            raise ToolchainError(
                "not_found",
                f"protect: no object is named {named}, so nothing was deleted; correct the name or"
                " remove it",
            )
        if self.patterns.hints:
            raise invalid(f"{self.patterns.hints[0]}; nothing was deleted")

    def _places(self, projects: Sequence[str]) -> Iterator[tuple[ObjectKind, str | None]]:
        known = self.catalogue.known()
        named = [pattern.partition("/")[0] for pattern in self.patterns.unused]
        for project in dict.fromkeys([*projects, *named]):
            if project in known:
                yield from ((kind, project) for kind in _INSIDE)

    def _look_at(self, kind: ObjectKind, project: str | None) -> None:
        for state in self.catalogue.listed(kind, project).objects.values():
            self.covers(kind, state)


def own_in(catalogue: Catalogue, account: str | None) -> OwnAccount:
    """Return the objects that belong to an account, from lists that are read anyway."""

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
    """Return the objects of a kind that are in no list, with the wanted state "absent".

    :param places: the projects to read, `None` for a kind outside of projects
    :param wanted: identities of the states that entries have matched
    :param keeps: whether an object is always kept
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
    resource = kind.wanted(kind.options(**named, state="absent"))
    if isinstance(resource, RoleAssignment):
        return replace(resource, ids=catalogue.known())
    return resource
