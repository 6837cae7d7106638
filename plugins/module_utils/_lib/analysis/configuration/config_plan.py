# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan all changes of `analysis_config` before the first write.

Protected objects are excluded, and objects that give the task's account its permissions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ...core.errors import invalid, listed, not_found, rejected
from ...core.globs import Patterns, has_wildcards
from ...core.operations.objects import Item
from ...core.plan import Change, unchanged
from .. import accounts
from ..accounts import OwnAccount
from ..resource import Objects, Reference, Resource, State, compare, hidden, refuse_impossible
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
    DesiredObjects,
    ObjectKind,
    names,
)

#: Kinds of objects that are deleted together with their project.
_INSIDE: tuple[ObjectKind, ...] = (MODULES, VIEWS, BUILDS)
#: Fields of a role assignment that name an object with which the assignment is deleted.
_PARENT_FIELDS = {PROJECTS: "project", ROLES: "name", USERS: "account", GROUPS: "account"}


@dataclass
class Protection:
    """The patterns of `protect`. `patterns` records which of them have matched."""

    patterns: Patterns
    catalogue: Catalogue

    def covers(self, kind: ObjectKind, state: State) -> bool:
        """Return whether a pattern matches an object by one of its names.

        These are the name in plans, the same without escapes, and the name inside the project. For
        a role assignment, they are also the role and the account.
        """
        fields = [part for part in kind.name_fields if part != "group"]
        plain = "/".join(str(state[part]) for part in fields if state.get(part) is not None)
        parts = [str(state[part]) for part in fields if part != "project"]
        return self.patterns.fits(kind.name_of(state), plain, *parts)

    def inside(self, kind: ObjectKind, state: State) -> str | None:
        """Return a protected object that would be deleted together with an object, or `None`.

        The return value is text for messages, for example `the module 'p/core'`.
        """
        if not self.patterns or kind not in _PARENT_FIELDS:
            return None
        for inner, one in self._contained(kind, state["name"]):
            if self.covers(inner, one):
                return f"the {inner.noun.replace('_', ' ')} '{inner.name_of(one)}'"
        return None

    def _contained(self, kind: ObjectKind, name: str) -> Iterator[tuple[ObjectKind, State]]:
        """Yield the contained objects; the role assignments are read last, if at all."""
        if kind is PROJECTS:
            self.catalogue.load([(inner, name) for inner in _INSIDE])
            for inner in _INSIDE:
                for one in self.catalogue.listed(inner, name).objects.values():
                    yield inner, one
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
                for state in self.catalogue.listed(kind, project).objects.values():
                    self.covers(kind, state)

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
            raise not_found(
                f"protect: no object has the name {named}: correct or remove the name (nothing was"
                " deleted)"
            )
        if self.patterns.hints:
            raise invalid(f"{self.patterns.hints[0]}; nothing was deleted")

    def _places(self, projects: Sequence[str]) -> Iterator[tuple[ObjectKind, str | None]]:
        known = self.catalogue.known()
        named = [pattern.partition("/")[0] for pattern in self.patterns.unused]
        for project in dict.fromkeys([*projects, *named]):
            if project in known:
                yield from ((kind, project) for kind in _INSIDE)


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
            raise rejected(f"purging {kind.option}: {listed.doubt}")
        found += [_absent(kind, state, catalogue) for state in removable]
    return found


def _absent(kind: ObjectKind, state: State, catalogue: Catalogue) -> Resource:
    named = {name: state[name] for name in (*kind.name_fields, "group") if name in state}
    resource = kind.of(kind.entry_type(**named, state="absent"))
    if isinstance(resource, RoleAssignment):
        return replace(resource, ids=catalogue.known())
    return resource


@dataclass(kw_only=True)
class PlannedObject(Item[Resource, State]):
    """A desired object, or an object to delete.

    :param pending: whether the object belongs to a project that the task imports first, so that its
        current state is unknown
    :param unseen: fields that the server omits
    :param unknown: all fields that cannot be compared
    """

    kind: ObjectKind
    pending: bool = False
    unseen: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Return the name, with "(group)" for the assignment of a role to a group."""
        is_group = (self.plan.before or self.plan.after).get("group") is True
        return f"{self.name} (group)" if is_group else self.name

    def shown(self) -> dict[str, Any]:
        """Return the object as an item of the return value `plan`."""
        return {
            "kind": self.kind.option,
            "name": self.name,
            "action": self.plan.action,
            "changes": [_shown(change) for change in self.plan.changes],
        }


def _shown(change: Change) -> dict[str, Any]:
    """Return a change for the result. Of a mapping only the items that differ are included."""
    before, after = change.before, change.after
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        differing = [name for name in after if before.get(name) != after[name]]
        before = {name: before.get(name) for name in differing}
        after = {name: after[name] for name in differing}
    return {"field": change.field, "before": before, "after": after}


@dataclass(frozen=True)
class DeletionLimits:
    """Limits for deletions.

    :param purge: options whose unlisted objects are deleted
    :param protect: patterns for names of objects that must not be deleted
    :param max_deletions: maximum number of deletions
    :param force: whether entries may remove objects of the task's account
    """

    purge: Collection[str]
    protect: Sequence[str]
    max_deletions: int
    force: bool


class ConfigPlanner:
    """Compares the desired objects with the objects on the server.

    :param account: name of the task's account
    """

    def __init__(
        self,
        desired: DesiredObjects,
        catalogue: Catalogue,
        limits: DeletionLimits,
        account: str | None,
    ) -> None:
        self.desired, self.catalogue, self.limits = desired, catalogue, limits
        self._own = own_in(catalogue, account)
        self._protection = Protection(Patterns("protect", limits.protect), catalogue)
        self.warnings: list[str] = []

    def plan(self) -> list[PlannedObject]:
        """Return the objects, also unchanged ones, in the order in which they must be written."""
        kinds = self.desired.lists
        self.catalogue.load((kind, place) for kind in kinds for place in self._places(kind))
        items = [self._compare(kind, resource) for kind, resource in self.desired]
        described = {id(item.state) for item in items}
        for kind in kinds:
            if kind.option in self.limits.purge:
                surplus = self._surplus(kind, described)
                items += [self._compare(kind, resource) for resource in surplus]
        deleted = [item for item in items if item.plan.action == "delete"]
        self._check_protection(deletes=bool(deleted))
        kept = [item for item in items if item.plan.action != "delete"]
        return [*kept, *sorted(deleted, key=lambda item: -KINDS.index(item.kind))]

    def require_references(self, items: Sequence[PlannedObject]) -> None:
        """Raise `not_found` for a referenced account or role that does not exist and is not
        created.
        """
        kinds = {kind.option: kind for kind in (USERS, GROUPS, ROLES)}
        created = {
            reference
            for kind, resource in self.desired
            if resource.desired is not None
            for reference in names(kind, resource)
        }

        def existing_names(reference: Reference) -> list[str]:
            kind = kinds[reference[0]]
            known = [str(obj["name"]) for obj in self.catalogue.listed(kind).objects.values()]
            predicted = accounts.predicted(self.catalogue.client, reference)
            return [*known, reference[1]] if predicted else known

        for item in items:
            if item.plan.action in ("create", "update"):
                newly = item.entry.needs_newly(item.plan) - created
                accounts.require(item.entry.title, newly, existing_names)

    def check_max_deletions(self, deleted: Sequence[str]) -> None:
        """Raise `invalid` if the plan deletes more than `max_deletions` objects.

        :param deleted: list and name of each deleted object
        """
        maximum = self.limits.max_deletions
        if len(deleted) > maximum:
            raise invalid(
                f"{len(deleted)} objects would be deleted ({listed(deleted)}), but max_deletions is"
                f" {maximum}: increase it or list more objects (nothing was changed)"
            )

    @cached_property
    def _projects(self) -> Mapping[str, str]:
        """Return the ids of the projects by name, if a kind of the options needs them."""
        global_kinds = (PROJECTS, ROLE_ASSIGNMENTS)
        needed = any(kind.in_project or kind in global_kinds for kind in self.desired.lists)
        return self.catalogue.known() if needed else {}

    @cached_property
    def _pending(self) -> frozenset[str]:
        """Return the names of the projects that the task imports."""
        return frozenset(
            project.target
            for project in self.desired.projects
            if project.source is not None and project.target not in self._projects
        )

    def _places(self, kind: ObjectKind) -> Sequence[str | None]:
        """Return the existing projects in which objects of a kind must be read.

        Returns `[None]` for a kind outside of projects.
        """
        places = self.desired.places(kind, exact=kind.option in self.limits.purge)
        return [place for place in places if place is None or place in self._projects]

    def _surplus(self, kind: ObjectKind, described: Collection[int]) -> list[Resource]:
        """Return the unlisted objects of a kind, which `purge` deletes.

        Raises `invalid` if a desired object refers to an unlisted object.
        """

        def keep(kind: ObjectKind, state: State) -> bool:
            return (
                self._protection.covers(kind, state)
                or self._own.includes(kind.option, state, doubtful=True)
                or self._holds_protected(kind, state)
            )

        found = surplus(kind, self._places(kind), self.catalogue, described, keeps=keep)
        needed = self.desired.needed
        for resource in found:
            for reference in names(kind, resource) & needed.keys():
                raise invalid(
                    f"purging {kind.option}: {resource.title} would be deleted, but"
                    f" {needed[reference].title} requires it: add it to {kind.option}"
                )
        return found

    def _compare(self, kind: ObjectKind, resource: Resource) -> PlannedObject:
        pending = resource.project in self._pending
        if isinstance(resource, RoleAssignment):
            resource = replace(resource, ids=self._projects)
        current = resource.find(self._objects(kind, resource))
        plan = compare(resource, current)
        state, unseen = plan.before or plan.after, tuple(hidden(resource, current))
        item = PlannedObject(
            resource,
            kind.name_of(state) if state else resource.title,
            state=current,
            plan=plan,
            kind=kind,
            pending=pending,
            unseen=unseen,
            unknown=(*unseen, *resource.unreadable(current)),
        )
        if not plan.changed:
            refuse_impossible(resource, plan)
            deleted = {project.name for project in self.desired.projects if project.desired is None}
            known = {*self._projects, *self._pending, *deleted}
            if kind.in_project and resource.project not in known:
                self.warnings.append(
                    f"{resource.title} counts as absent, because the project"
                    f" '{resource.project}' does not exist"
                )
            return item
        if pending and not kind.made:
            item.plan = plan = replace(plan, action="update")
        elif not pending and kind.in_project and resource.project not in self._projects:
            missing = f"the project '{resource.project}' does not exist"
            raise not_found(f"{resource.title}: {missing}")
        elif not pending:
            refuse_impossible(resource, plan)
        if not self.limits.force:
            self._own.refuse(kind.option, resource.title, plan)
        if plan.action == "delete" and self._must_stay(kind, resource, plan.before):
            item.plan = unchanged()
        return item

    def _objects(self, kind: ObjectKind, resource: Resource) -> Objects:
        place = resource.project if kind.in_project else None
        existing_names = place is None or place in self._projects
        return self.catalogue.listed(kind, place).objects if existing_names else {}

    def _must_stay(self, kind: ObjectKind, resource: Resource, current: State) -> bool:
        """Return whether an object must not be deleted, because a protected object would be deleted
        with it.

        Raises `invalid` if the object itself is protected, or would be if `*` matched slashes.
        """
        if self._protection.covers(kind, current):
            raise invalid(f"cannot delete {resource.title}, because protect contains it")
        doubt = self._protection.patterns.doubt(kind.name_of(current))
        if doubt:
            raise invalid(f"protect: {doubt}; nothing was deleted")
        return self._holds_protected(kind, current)

    def _holds_protected(self, kind: ObjectKind, state: State) -> bool:
        inner = self._protection.inside(kind, state)
        if inner is not None:
            noun = kind.noun.replace("_", " ")
            self.warnings.append(
                f"the {noun} '{kind.name_of(state)}' is not deleted, because {inner} is protected"
                " and would be deleted with it"
            )
        return inner is not None

    def _check_protection(self, *, deletes: bool) -> None:
        """Warn about patterns of `protect` without a match.

        Raises `not_found` for a name without a match if an object is deleted.
        """
        if not self.limits.protect or not (deletes or self.limits.purge):
            return
        kinds = self.desired.lists
        self._protection.read((kind, place) for kind in kinds for place in self._places(kind))
        if deletes:
            inside = [resource.project for kind, resource in self.desired if kind.in_project]
            named = [*inside, *(project.name for project in self.desired.projects)]
            self._protection.require_names([name for name in named if name is not None])
        self.warnings += self._protection.patterns.warnings("nothing that this task reads")
