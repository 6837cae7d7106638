# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan all changes of `analysis_config` before the first write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...core.errors import ToolchainError, invalid
from ...core.paths.globs import Patterns
from ...core.plan import Change
from ..engine import references
from ..engine.accounts import OwnAccount
from ..engine.operation import ResourceWrite
from ..engine.resource import (
    Objects,
    Reference,
    Resource,
    State,
    compare,
    hidden,
    refuse_impossible,
)
from ..resources.analysis_role_assignment import RoleAssignment
from .deletions import Protection, own_in, surplus
from .desired_objects import DesiredObjects, names, project_of
from .object_kinds import (
    GROUPS,
    KINDS,
    PROJECTS,
    ROLE_ASSIGNMENTS,
    ROLES,
    USERS,
    Catalogue,
    ObjectKind,
)


@dataclass
class PlannedObject:
    """An object that the plan creates, updates or deletes.

    :param pending: whether the object belongs to a project that the task imports first, so that its
        current state is unknown
    """

    kind: ObjectKind
    write: ResourceWrite
    pending: bool = False

    @property
    def state(self) -> State:
        """Return the current state, or the desired state of an object that does not exist."""
        state: State = self.write.plan.before or self.write.plan.after
        return state

    @property
    def name(self) -> str:
        return self.kind.name_of(self.state)

    @property
    def label(self) -> str:
        """Return the name, with "(group)" for the assignment of a role to a group."""
        return f"{self.name} (group)" if self.state.get("group") is True else self.name

    def shown(self) -> dict[str, Any]:
        """Return the object as an item of the return value `plan`."""
        return {
            "kind": self.kind.option,
            "name": self.name,
            "action": self.write.plan.action,
            "changes": [_shown(change) for change in self.write.plan.changes],
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


@dataclass
class ConfigPlanner:
    """Compares the desired objects with the objects on the server.

    :param account: name of the task's account
    """

    desired: DesiredObjects
    catalogue: Catalogue
    limits: DeletionLimits
    account: str | None
    items: list[PlannedObject] = field(default_factory=list)
    unchanged: int = 0
    #: Number of objects for which the server omits a field, by option and field.
    unseen: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: Objects with fields that could not be compared: items of the return value `unknown`.
    unknown: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    _protection: Protection = field(init=False)
    _projects: Mapping[str, str] = field(default_factory=dict)
    _pending: frozenset[str] = frozenset()
    _described: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._protection = Protection(Patterns("protect", self.limits.protect), self.catalogue)

    def plan(self) -> list[PlannedObject]:
        """Return the objects that differ, in the order in which they must be written."""
        self._load()
        account = own_in(self.catalogue, self.account)
        for kind, resource in self.desired:
            self._compare(kind, resource, account)
        for kind in self.desired.lists:
            if kind.option in self.limits.purge:
                for resource in self._surplus(kind, account):
                    self._compare(kind, resource, account)
        self._check_protection()
        created = [item for item in self.items if item.write.plan.action != "delete"]
        deleted = [item for item in self.items if item.write.plan.action == "delete"]
        self.items = [*created, *sorted(deleted, key=lambda item: -KINDS.index(item.kind))]
        return self.items

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
            predicted = references.predicted(self.catalogue.client, reference)
            return [*known, reference[1]] if predicted else known

        for item in items:
            resource = item.write.resource
            if item.write.plan.action != "delete":
                newly = resource.needs_newly(item.write.plan) - created
                references.require(resource.title, newly, existing_names)

    def counts(self, items: Sequence[PlannedObject]) -> dict[str, int]:
        """Return the number of objects by action, and the number of unchanged objects."""
        found = Counter[str](item.write.plan.action for item in items)
        actions = ("create", "update", "delete")
        return {**{name: found[name] for name in actions}, "unchanged": self.unchanged}

    def check_max_deletions(self) -> None:
        """Raise `invalid` if the plan deletes more than `max_deletions` objects."""
        deletions, maximum = self.counts(self.items)["delete"], self.limits.max_deletions
        if deletions > maximum:
            raise invalid(
                f"{deletions} objects would be deleted, but max_deletions is {maximum}: increase it"
                " or list more objects (nothing was changed)"
            )

    def _load(self) -> None:
        """Read the objects of all kinds in the options."""
        kinds = self.desired.lists
        if any(kind.in_project or kind in (PROJECTS, ROLE_ASSIGNMENTS) for kind in kinds):
            self._projects = self.catalogue.known()
            self._pending = frozenset(
                project.target
                for project in self.desired.projects
                if project.source is not None and project.target not in self._projects
            )
        self.catalogue.load((kind, place) for kind in kinds for place in self._places(kind))

    def _places(self, kind: ObjectKind) -> Sequence[str | None]:
        """Return the existing projects in which objects of a kind must be read.

        Returns `[None]` for a kind outside of projects.
        """
        places = self.desired.places(kind, exact=kind.option in self.limits.purge)
        return [place for place in places if place is None or place in self._projects]

    def _surplus(self, kind: ObjectKind, account: OwnAccount) -> list[Resource]:
        """Return the unlisted objects of a kind, which `purge` deletes.

        Raises `invalid` if a desired object refers to an unlisted object.
        """

        def keep(kind: ObjectKind, state: State) -> bool:
            return (
                self._protection.covers(kind, state)
                or account.includes(kind.option, state, doubtful=True)
                or self._holds_protected(kind, state)
            )

        found = surplus(kind, self._places(kind), self.catalogue, self._described, keeps=keep)
        needed = self.desired.needed
        for resource in found:
            for reference in names(kind, resource) & needed.keys():
                raise invalid(
                    f"purging {kind.option}: {resource.title} would be deleted, but"
                    f" {needed[reference].title} requires it: add it to {kind.option}"
                )
        return found

    def _compare(self, kind: ObjectKind, resource: Resource, account: OwnAccount) -> None:
        project = project_of(resource)
        pending = project in self._pending
        if isinstance(resource, RoleAssignment):
            resource = replace(resource, ids=self._projects)
        current = resource.find(self._objects(kind, resource))
        self._described.add(id(current))
        plan = compare(resource, current)
        unseen = hidden(resource, current)
        self.unseen.update((kind.option, name) for name in unseen)
        fields = [*unseen, *resource.unreadable(current)]
        if fields and current is not None:
            entry = {"kind": kind.option, "name": kind.name_of(current), "fields": fields}
            self.unknown.append(entry)
        if not plan.changed:
            refuse_impossible(resource, plan)
            self._warn_of_missing_project(kind, resource)
            self.unchanged += 1
            return
        if pending and not kind.made:
            plan = replace(plan, action="update")
        elif not pending:
            if kind.in_project and project not in self._projects:
                raise ToolchainError(
                    "not_found", f"{resource.title}: the project '{project}' does not exist"
                )
            refuse_impossible(resource, plan)
        if not self.limits.force:
            account.refuse(kind.option, resource.title, plan)
        if plan.action == "delete" and self._must_stay(kind, resource, plan.before):
            self.unchanged += 1
            return
        self.items.append(PlannedObject(kind, ResourceWrite(resource, plan), pending))

    def _warn_of_missing_project(self, kind: ObjectKind, resource: Resource) -> None:
        """Warn that an object counts as absent because its project does not exist.

        There is no warning if the project should be absent too.
        """
        project = project_of(resource)
        deleted = {project.name for project in self.desired.projects if project.desired is None}
        if kind.in_project and project not in {*self._projects, *self._pending, *deleted}:
            self.warnings.append(
                f"{resource.title} counts as absent, because the project '{project}' does not exist"
            )

    def _objects(self, kind: ObjectKind, resource: Resource) -> Objects:
        place = project_of(resource) if kind.in_project else None
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
            noun = kind.makes.noun.replace("_", " ")
            self.warnings.append(
                f"the {noun} '{kind.name_of(state)}' is not deleted, because {inner} is protected"
                " and would be deleted with it"
            )
        return inner is not None

    def _check_protection(self) -> None:
        """Warn about patterns of `protect` without a match.

        Raises `not_found` for a name without a match if an object is deleted.
        """
        deletes = any(item.write.plan.action == "delete" for item in self.items)
        if not self.limits.protect or not (deletes or self.limits.purge):
            return
        kinds = self.desired.lists
        self._protection.read((kind, place) for kind in kinds for place in self._places(kind))
        if deletes:
            inside = [project_of(resource) for kind, resource in self.desired if kind.in_project]
            named = [*inside, *(project.name for project in self.desired.projects)]
            self._protection.require_names([name for name in named if name is not None])
        self.warnings += self._protection.patterns.warnings("nothing that this task reads")
