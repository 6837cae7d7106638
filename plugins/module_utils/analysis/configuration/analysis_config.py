# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan a complete configuration, and write it in the order of its dependencies: `analysis_config`
[C6.7].
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, ClassVar, Literal, TypeAlias

from ...core.errors import ToolchainError, invalid
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.task import Task
from ...core.plan import Plan
from ...core.plans.sealing import PlannedChange
from ..client import AnalysisClient
from ..engine.operation import carry_out
from ..engine.resource import Reference, Renameable, Resource, State
from ..resources.analysis_defect_type import AnalysisDefectTypeOptions
from ..resources.analysis_group import GroupEntry
from ..resources.analysis_module import AnalysisModuleOptions
from ..resources.analysis_project import AnalysisProjectOptions, hide_secrets
from ..resources.analysis_role import RoleEntry
from ..resources.analysis_role_assignment import RoleAssignment, RoleAssignmentEntry
from ..resources.analysis_user import UserEntry
from ..resources.analysis_view import AnalysisViewOptions
from .config_plan import ConfigPlanner, DeletionLimits, PlannedObject
from .desired_objects import desired, names, project_of
from .object_kinds import KINDS, Catalogue, ObjectKind

#: Names of the options with lists of objects.
KindName: TypeAlias = Literal[
    "defect_types",
    "groups",
    "modules",
    "projects",
    "role_assignments",
    "roles",
    "users",
    "views",
]


@dataclass(frozen=True)
class AnalysisConfigOptions:
    """The options of `analysis_config`. Entries have the options of the module for their kind."""

    users: list[UserEntry] | None = None
    groups: list[GroupEntry] | None = None
    projects: list[AnalysisProjectOptions] | None = None
    roles: list[RoleEntry] | None = None
    role_assignments: list[RoleAssignmentEntry] | None = None
    modules: list[AnalysisModuleOptions] | None = None
    views: list[AnalysisViewOptions] | None = None
    defect_types: list[AnalysisDefectTypeOptions] | None = None
    purge: list[KindName] = field(default_factory=list)
    protect: list[str] = field(default_factory=list)
    max_deletions: int = 10
    allow_empty: list[KindName] = field(default_factory=list)
    force: bool = False
    parallel: int = 4

    def entries(self) -> dict[str, Sequence[Any] | None]:
        """Return the entries by option name. The value is `None` for an option that is not set."""
        return {kind.option: getattr(self, kind.option) for kind in KINDS}


class AnalysisConfigOperation:
    """Plans and writes all objects of a configuration."""

    descriptor: ClassVar = Descriptor(
        "analysis", {"read": reads(), **dict.fromkeys(("create", "update", "delete"), writes())}
    )

    def __init__(self, task: Task, options: AnalysisConfigOptions) -> None:
        for name, number, minimum in (
            ("parallel", options.parallel, 1),
            ("max_deletions", options.max_deletions, 0),
        ):
            if number < minimum:
                raise invalid(f"{name} is {number}: set it to at least {minimum}")
        if all(entries is None for entries in options.entries().values()):
            task.warn("nothing is managed, because no list is set: set at least one list")
        self._task, self._parallel = task, options.parallel
        self._client = AnalysisClient(task, connections=self._parallel)
        wanted = desired(options.entries())
        hide_secrets(task, wanted.projects)
        catalogue = self._catalogue(renamed=wanted.renamed)
        wanted.refuse_empty({*options.purge} - {*options.allow_empty})
        limits = DeletionLimits(
            [kind.option for kind in KINDS if kind.made and kind.option in options.purge],
            options.protect,
            options.max_deletions,
            options.force,
        )
        self._planner = ConfigPlanner(wanted, catalogue, limits, task.connection.username)
        self._changing_projects = {
            project.target
            for project in wanted.projects
            if project.source is not None or project.target != project.name
        }

    def plan(self) -> Plan:
        items = self._planner.plan()
        found = self._full_plan(items)
        try:
            self._planner.check_max_deletions()
        except ToolchainError as error:
            error.result = {name: found.result[name] for name in ("plan", "counts")}
            raise
        for warning in self._planner.warnings:
            self._task.warn(warning)
        for (option, name), number in sorted(self._planner.unseen.items()):
            self._task.warn(
                f"cannot compare {name} of {number} {option.replace('_', ' ')}, because the server"
                " does not return them: they are only written together with other changes"
            )
        return found

    def parts(self, plan: Plan) -> list[PlannedChange]:
        """Return the changes of the plan, for a sealed plan."""
        return [
            PlannedChange(
                f"{item.kind.option} {item.label}",
                item.write.resource,
                item.write.plan.before,
                item.write.plan.after,
            )
            for item in plan.data
        ]

    def leave_out(self, plan: Plan, indexes: Collection[int]) -> Plan:
        """Return the plan without the changes at these indexes and those that depend on them."""
        items: list[PlannedObject] = []
        left_out: set[Reference] = set()
        for number, item in enumerate(plan.data):
            if number not in indexes and _skip_error(item, left_out) is None:
                items.append(item)
            elif item.write.plan.action != "update" or _renames(item.write.resource):
                left_out |= _blocked_references(item)
        return self._full_plan(items)

    def _full_plan(self, items: Sequence[PlannedObject]) -> Plan:
        before, after = _diff(items, "before"), _diff(items, "after")
        counts = self._planner.counts(items)
        result = {
            "plan": [item.shown() for item in items],
            "counts": counts,
            "unknown": self._planner.unknown,
            "applied": [],
        }
        return Plan(before, after, "update" if items else "none", result=result, data=items)

    def preflight(self, plan: Plan) -> None:
        """Raise `not_found` if an account or role that the plan refers to does not exist."""
        try:
            self._planner.require_references(plan.data)
        except ToolchainError as error:
            error.result = dict(plan.result)
            raise

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        failed: set[Reference] = set()
        items: list[PlannedObject] = plan.data
        for kind, phase in groupby(items, lambda item: (item.kind, _deletes(item))):
            same = list(phase)
            self._task.progress(f"{kind[0].option}: writing {len(same)}")
            self._carry_out(same, failed)
        applied = [_applied(item) for item in items]
        errors = [item.write.error for item in items if item.write.error is not None]
        if errors:
            first = errors[0]
            first.message = (
                f"{len(errors)} of {len(items)} changes failed, the first: {first.message}"
            )
            first.result = {**plan.result, "applied": applied, **_changed(items)}
            raise first
        return {"applied": applied}

    def _carry_out(self, items: Sequence[PlannedObject], failed: set[Reference]) -> None:
        """Write objects of a kind, except those that depend on a failed object."""
        for item in items:
            item.write.error = _skip_error(item, failed)
        ready = [item for item in items if item.write.error is None]
        self._compare_again(ready)
        carry_out(
            self._client, [item.write for item in ready], self._reader_of, parallel=self._parallel
        )
        for item in items:
            if item.write.error is not None:
                failed |= _blocked_references(item)

    def _compare_again(self, items: Sequence[PlannedObject]) -> None:
        """Read and compare objects again whose project was imported or renamed by this task."""
        moved = [
            item for item in items if project_of(item.write.resource) in self._changing_projects
        ]
        catalogue = self._catalogue()
        for item in moved:
            if isinstance(item.write.resource, RoleAssignment):
                try:
                    item.write.resource = replace(item.write.resource, ids=catalogue.projects())
                except ToolchainError as error:
                    item.write.error = error
        pending = [item.write for item in moved if item.pending and item.write.error is None]
        verify = self._reader_of([write.resource for write in pending])
        for write in pending:
            try:
                write.plan_again(verify(write.resource))
            except ToolchainError as error:
                write.error = error

    def _reader_of(self, resources: Sequence[Resource]) -> Callable[[Resource], State | None]:
        """Return a function that returns the current state of an object.

        Objects of the same kind and project share a request.
        """
        ids = next(
            (resource.ids for resource in resources if isinstance(resource, RoleAssignment)), None
        )
        catalogue = self._catalogue(ids=ids)
        catalogue.load({_place(resource): None for resource in resources})
        return lambda resource: resource.find(catalogue.listed(*_place(resource)).objects)

    def _catalogue(self, **known: Any) -> Catalogue:
        return Catalogue(self._client, parallel=self._parallel, **known)


def _place(resource: Resource) -> tuple[ObjectKind, str | None]:
    """Return the kind of an object, and the project that contains it or `None`."""
    (kind,) = (kind for kind in KINDS if kind.makes is type(resource))
    return kind, project_of(resource) if kind.in_project else None


def _deletes(item: PlannedObject) -> bool:
    return item.write.plan.action == "delete"


def _renames(resource: Resource) -> bool:
    return isinstance(resource, Renameable) and resource.target != resource.name


def _blocked_references(item: PlannedObject) -> frozenset[Reference]:
    """Return the references of objects that must not be written if this change fails."""
    resource = item.write.resource
    return frozenset(resource.needs if _deletes(item) else names(item.kind, resource))


def _skip_error(item: PlannedObject, failed: set[Reference]) -> ToolchainError | None:
    """Return the error for an object that must be skipped, or `None`.

    A change is skipped if a referenced object failed, a deletion if a referring object failed.
    """
    resource = item.write.resource
    causes = names(item.kind, resource) if _deletes(item) else resource.needs
    found = sorted(causes & failed)
    if not found:
        return None
    option, name = found[0]
    return ToolchainError(
        "failed", f"{resource.title} was skipped, because '{name}' in {option} failed"
    )


def _changed(items: Sequence[PlannedObject]) -> dict[str, bool]:
    """Return `changed` for a failed task, or {} if verification reads did not show it."""
    reported = [
        item.write.error is None or item.write.error.result.get("changed") for item in items
    ]
    return {} if True not in reported and None in reported else {"changed": True in reported}


def _applied(item: PlannedObject) -> dict[str, Any]:
    """Return an item of the return value `applied`."""
    error, shown = item.write.error, item.shown()
    return {
        **{name: shown[name] for name in ("kind", "name", "action")},
        "ok": error is None,
        "error": None if error is None else {**error.as_dict(), "msg": str(error)},
    }


def _diff(items: Sequence[PlannedObject], name: str) -> dict[str, dict[str, Any]]:
    """Return the states of the planned objects by kind and object.

    :param name: `before` or `after`
    """
    found: dict[str, dict[str, Any]] = {}
    for item in items:
        found.setdefault(item.kind.option, {})[item.label] = getattr(item.write.plan, name)
    return found
