# SPDX-License-Identifier: GPL-3.0-or-later
"""Select the objects that `purge` of `analysis_config` deletes [C1.6].

Protected objects are excluded, and objects that give the task's account its permissions.
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

#: Kinds of objects that are deleted together with their project.
_INSIDE = (MODULES, VIEWS, BUILDS)
#: Fields of a role assignment that name an object with which the assignment is deleted.
_PARENT_FIELDS = {PROJECTS: "project", ROLES: "name", USERS: "account", GROUPS: "account"}


@dataclass
class Protection:
    """The patterns of `protect`. `patterns` records which of them have matched."""

    patterns: Patterns
    catalogue: Catalogue

    def covers(self, kind: ObjectKind, state: State) -> bool:
        """Return whether a pattern matches an object by one of its names.

        These are the name in plans, and the name inside the project. For a role assignment, they
        are also the role and the account.
        """
        parts = [str(state[part]) for part in kind.name if part != "project"]
        return self.patterns.fits(kind.name_of(state), *parts)

    def inside(self, kind: ObjectKind, state: State) -> str | None:
        """Return a protected object that would be deleted together with an object, or `None`.

        The return value is text for messages, for example `the module 'p/core'`.
        """
        if not self.patterns or kind not in _PARENT_FIELDS:
            return None
        for inner_kind, inner in self._contained(kind, state["name"]):
            if self.covers(inner_kind, inner):
                noun = inner_kind.makes.noun.replace("_", " ")
                return f"the {noun} '{inner_kind.name_of(inner)}'"
        return None

    def _contained(self, kind: ObjectKind, name: str) -> Iterator[tuple[ObjectKind, State]]:
        if kind is PROJECTS:
            self.catalogue.load([(inner, name) for inner in _INSIDE])
            for inner in _INSIDE:
                for obj in self.catalogue.listed(inner, name).objects.values():
                    yield inner, obj
        for assignment in self.catalogue.listed(ROLE_ASSIGNMENTS).objects.values():
            is_same_kind = kind not in (USERS, GROUPS) or assignment["group"] is (kind is GROUPS)
            if is_same_kind and assignment[_PARENT_FIELDS[kind]] == name:
                yield ROLE_ASSIGNMENTS, assignment

    def read(self, places: Iterable[tuple[ObjectKind, str | None]]) -> None:
        """Match the objects of some lists with the patterns until every pattern has a match.

        :param places: kinds of objects, with the project that contains them or `None`
        """
        for kind, project in places:
            if self.patterns.unused:
                self._match(kind, project)

    def require_names(self, projects: Sequence[str]) -> None:
        """Raise an error for a pattern that was probably mistyped.

        Raises `not_found` for a name without wildcards that no object has, and `invalid` for a
        pattern that would only match an object if `*` matched slashes.

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
                f"protect: no object has the name {named}: correct or remove the name (nothing was"
                " deleted)",
            )
        if self.patterns.hints:
            raise invalid(f"{self.patterns.hints[0]}; nothing was deleted")

    def _places(self, projects: Sequence[str]) -> Iterator[tuple[ObjectKind, str | None]]:
        known = self.catalogue.known()
        named = [pattern.partition("/")[0] for pattern in self.patterns.unused]
        for project in dict.fromkeys([*projects, *named]):
            if project in known:
                yield from ((kind, project) for kind in _INSIDE)

    def _match(self, kind: ObjectKind, project: str | None) -> None:
        for state in self.catalogue.listed(kind, project).objects.values():
            self.covers(kind, state)


def own_in(catalogue: Catalogue, account: str | None) -> OwnAccount:
    """Return the check for objects of an account, with groups and roles from the catalogue."""

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
    """Return the objects of a kind that no entry describes, with the desired state "absent".

    Raises `rejected` if the list from the server may be incomplete.

    :param places: projects to read; `None` for a kind outside of projects
    :param wanted: `id()` of the objects that entries describe
    :param keeps: returns whether an object must not be deleted
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
    resource = kind.makes.of(kind.options(**named, state="absent"))
    if isinstance(resource, RoleAssignment):
        return replace(resource, ids=catalogue.known())
    return resource
