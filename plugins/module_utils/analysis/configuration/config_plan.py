# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan `analysis_config` as a whole: everything is read and compared before the first write."""

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
    """An object of the plan.

    :param pending: whether it is inside a project that the task imports, so it is read later
    """

    kind: ObjectKind
    write: ResourceWrite
    pending: bool = False

    @property
    def state(self) -> State:
        """Return the current object, or the wanted object if it does not exist."""
        state: State = self.write.plan.before or self.write.plan.after
        return state

    @property
    def name(self) -> str:
        return self.kind.name_of(self.state)

    @property
    def label(self) -> str:
        """Return the name, with "user" or "group" if both may have the same name."""
        return f"{self.name} (group)" if self.state.get("group") is True else self.name

    def shown(self) -> dict[str, Any]:
        """Return the entry of the return value `plan`."""
        return {
            "kind": self.kind.option,
            "name": self.name,
            "action": self.write.plan.action,
            "changes": [_shown(change) for change in self.write.plan.changes],
        }


def _shown(change: Change) -> dict[str, Any]:
    """Return a change; of a mapping only the entries that differ."""
    before, after = change.before, change.after
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        differing = [name for name in after if before.get(name) != after[name]]
        before = {name: before.get(name) for name in differing}
        after = {name: after[name] for name in differing}
    return {"field": change.field, "before": before, "after": after}


@dataclass(frozen=True)
class DeletionLimits:
    """Limits of deletions: kinds that are exact, protected patterns, and a maximum.

    :param force: entries may remove objects of the task's account
    """

    purge: Collection[str]
    protect: Sequence[str]
    max_deletions: int
    force: bool


@dataclass
class ConfigPlanner:
    """Compares the wanted objects with the existing objects.

    :param account: the account of the task
    """

    desired: DesiredObjects
    catalogue: Catalogue
    limits: DeletionLimits
    account: str | None
    items: list[PlannedObject] = field(default_factory=list)
    unchanged: int = 0
    #: Number of objects by kind and field that the server omits.
    unseen: Counter[tuple[str, str]] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)
    _protection: Protection = field(init=False)
    _projects: Mapping[str, str] = field(default_factory=dict)
    _pending: frozenset[str] = frozenset()
    _found: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._protection = Protection(Patterns("protect", self.limits.protect), self.catalogue)

    def plan(self) -> list[PlannedObject]:
        """Return the objects that differ, in the order of writing."""
        self._load()
        account = own_in(self.catalogue, self.account)
        for kind, resource in self.desired:
            self._compare(kind, resource, account)
        for kind in self.desired.lists:
            if kind.option in self.limits.purge:
                for resource in self._surplus(kind, account):
                    self._compare(kind, resource, account)
        self._check_protection()
        made = [item for item in self.items if item.write.plan.action != "delete"]
        deleted = [item for item in self.items if item.write.plan.action == "delete"]
        self.items = [*made, *sorted(deleted, key=lambda item: -KINDS.index(item.kind))]
        return self.items

    def require_references(self, items: Sequence[PlannedObject]) -> None:
        """Raise `not_found` for a referenced account or role that neither exists nor is
        in a list.
        """
        kinds = {kind.option: kind for kind in (USERS, GROUPS, ROLES)}
        made = {
            reference
            for kind, resource in self.desired
            if resource.desired is not None
            for reference in names(kind, resource)
        }

        def there(reference: Reference) -> list[str]:
            kind = kinds[reference[0]]
            known = [str(obj["name"]) for obj in self.catalogue.listed(kind).objects.values()]
            predicted = references.predicted(self.catalogue.client, reference)
            return [*known, reference[1]] if predicted else known

        for item in items:
            resource = item.write.resource
            if item.write.plan.action != "delete":
                newly = resource.needs_newly(item.write.plan) - made
                references.require(resource.title, newly, there)

    def counts(self, items: Sequence[PlannedObject]) -> dict[str, int]:
        """Return the numbers of objects to create, update and delete, and of unchanged objects."""
        found = Counter[str](item.write.plan.action for item in items)
        actions = ("create", "update", "delete")
        return {**{name: found[name] for name in actions}, "unchanged": self.unchanged}

    def brake(self) -> None:
        """Raise `invalid` for more deletions than allowed."""
        deletions, most = self.counts(self.items)["delete"], self.limits.max_deletions
        if deletions > most:
            raise invalid(
                f"{deletions} objects would be deleted, but max_deletions is {most}: nothing was"
                " changed"
            )

    def _load(self) -> None:
        """Read all requested kinds, by project if necessary."""
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
        """Return the places where a kind is read; projects that do not exist are left out."""
        places = self.desired.places(kind, exact=kind.option in self.limits.purge)
        return [place for place in places if place is None or place in self._projects]

    def _surplus(self, kind: ObjectKind, account: OwnAccount) -> list[Resource]:
        """Return the objects to delete. Raises `invalid` if a list lacks an object that another
        object needs.
        """

        def keeps(kind: ObjectKind, state: State) -> bool:
            return (
                self._protection.covers(kind, state)
                or account.includes(kind.option, state, doubtful=True)
                or self._holds_protected(kind, state)
            )

        found = surplus(kind, self._places(kind), self.catalogue, self._found, keeps=keeps)
        needed = self.desired.needed
        for resource in found:
            for reference in names(kind, resource) & needed.keys():
                raise invalid(
                    f"purging {kind.option}: {resource.title} would be deleted, but"
                    f" {needed[reference].title} needs it"
                )
        return found

    def _compare(self, kind: ObjectKind, resource: Resource, account: OwnAccount) -> None:
        project = project_of(resource)
        pending = project in self._pending
        if isinstance(resource, RoleAssignment):
            resource = replace(resource, ids=self._projects)
        current = resource.find(self._objects(kind, resource))
        self._found.add(id(current))
        plan = compare(resource, current)
        self.unseen.update((kind.option, name) for name in hidden(resource, current))
        if not plan.changed:
            refuse_impossible(resource, plan)
            self._note_unknown_project(kind, resource)
            self.unchanged += 1
            return
        if pending and not kind.made:
            plan = replace(plan, action="update")
        elif not pending:
            if kind.in_project and project not in self._projects:
                raise ToolchainError(
                    "not_found", f"{resource.title}: there is no project '{project}'"
                )
            refuse_impossible(resource, plan)
        if not self.limits.force:
            account.refuse(kind.option, resource.title, plan)
        if plan.action == "delete" and self._stays(kind, resource, plan.before):
            self.unchanged += 1
            return
        self.items.append(PlannedObject(kind, ResourceWrite(resource, plan), pending))

    def _note_unknown_project(self, kind: ObjectKind, resource: Resource) -> None:
        """Note an absent object in a missing project, unless the project should be absent too."""
        project = project_of(resource)
        gone = {each.name for each in self.desired.projects if each.desired is None}
        if kind.in_project and project not in {*self._projects, *self._pending, *gone}:
            self.warnings.append(
                f"{resource.title} counts as absent, because there is no project '{project}'."
            )

    def _objects(self, kind: ObjectKind, resource: Resource) -> Objects:
        place = project_of(resource) if kind.in_project else None
        there = place is None or place in self._projects
        return self.catalogue.listed(kind, place).objects if there else {}

    def _stays(self, kind: ObjectKind, resource: Resource, current: State) -> bool:
        """Return whether an object is kept for its protected content. Raises `invalid` if it is
        protected itself, or would be if `*` matched slashes.
        """
        if self._protection.covers(kind, current):
            raise invalid(f"cannot delete {resource.title}: it is listed in protect")
        doubt = self._protection.patterns.doubt(kind.name_of(current))
        if doubt:
            raise invalid(f"protect: {doubt}; nothing was deleted")
        return self._holds_protected(kind, current)

    def _holds_protected(self, kind: ObjectKind, state: State) -> bool:
        inner = self._protection.inside(kind, state)
        if inner is not None:
            noun = kind.makes.noun.replace("_", " ")
            self.warnings.append(
                f"The {noun} '{kind.name_of(state)}' is kept, because {inner} is protected and"
                " would be deleted with it."
            )
        return inner is not None

    def _check_protection(self) -> None:
        """Warn about patterns without a match. Raises `not_found` for names without a match, if
        something is deleted.
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
