# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan a complete configuration, and write it in the order of its dependencies: `analysis_config`
[C6.7].
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, ClassVar, Literal, TypeAlias

from ...core.errors import ToolchainError
from ...core.finding import Finding, of_row
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.sealing import PlannedChange
from ...core.module.task import Task
from ...core.module.typed_options import NotNegative, Positive
from ...core.object_names import object_name
from ...core.operations.objects import Item, failure_of
from ...core.plan import Action, Plan
from ..client import AnalysisClient
from ..resource import Reference, Resource, ResourceKind, State, Writes, compare, refuse_impossible
from ..resources.analysis_defect_type import AnalysisDefectTypeOptions
from ..resources.analysis_group import GroupEntry
from ..resources.analysis_module import AnalysisModuleOptions
from ..resources.analysis_project import AnalysisProjectOptions, hide_secrets
from ..resources.analysis_role import RoleEntry
from ..resources.analysis_role_assignment import RoleAssignment, RoleAssignmentEntry
from ..resources.analysis_user import UserEntry
from ..resources.analysis_view import AnalysisViewOptions
from ..service import SERVICE
from .config_plan import ConfigPlanner, DeletionLimits, PlannedObject
from .object_kinds import KINDS, Catalogue, ObjectKind, desired, names

#: Names of the options with lists of objects.
KindName: TypeAlias = Literal[
    "defect_types", "groups", "modules", "projects", "role_assignments", "roles", "users", "views"
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
    max_deletions: NotNegative = 10
    allow_empty: list[KindName] = field(default_factory=list)
    force: bool = False
    parallel: Positive = 4

    def entries(self) -> dict[str, Sequence[Any] | None]:
        """Return the entries by option name. The value is `None` for an option that is not set."""
        return {kind.option: getattr(self, kind.option) for kind in KINDS}


class AnalysisConfigOperation:
    """Plans and writes all objects of a configuration."""

    descriptor: ClassVar = Descriptor(
        SERVICE, {"read": reads(), **dict.fromkeys(("create", "update", "delete"), writes())}
    )

    def __init__(self, task: Task, options: AnalysisConfigOptions) -> None:
        if all(entries is None for entries in options.entries().values()):
            task.warn("nothing is managed, because no list is set: set at least one list")
        self._task, self._parallel, self._entries = task, options.parallel, options.entries()
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
            self._planner.check_max_deletions(
                [
                    f"{item.kind.option} {item.label}"
                    for item in items
                    if item.plan.action == "delete"
                ]
            )
        except ToolchainError as error:
            error.result = {name: found.result[name] for name in ("plan", "counts")}
            raise
        for warning in self._planner.warnings:
            self._task.warn(warning)
        unseen = Counter((item.kind.option, name) for item in items for name in item.unseen)
        for (option, name), number in sorted(unseen.items()):
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
                item.entry,
                item.plan.before,
                item.plan.after,
                group=item.name,
                kind=item.kind.noun,
            )
            for item in _changed(plan.data)
        ]

    def findings_of_failure(self, values: Mapping[str, Any]) -> list[Finding]:
        planned = {(row["kind"], row["name"]): row for row in values.get("plan", ())}
        unknown = {(one["kind"], one["name"]): one["fields"] for one in values.get("unknown", ())}
        errors = {
            (one["kind"], one["name"]): {"msg": one["error"]["msg"]}
            for one in values.get("applied", ())
            if not one["ok"]
        }
        described = [
            (kind.option, object_name(kind.name_fields, vars(entry)))
            for kind in KINDS
            for entry in self._entries[kind.option] or ()
        ]
        count = values["counts"]["unchanged"] if "counts" in values else 0
        # first those with unknown fields: a skipped object is described, too, and none of `count`
        named = dict.fromkeys([*unknown, *described])
        unchanged = [key for key in named if key not in planned][:count]
        # objects that stay, because they are protected
        unchanged += [("objects", str(number + 1)) for number in range(len(unchanged), count)]
        nouns = {"objects": "object", **{kind.option: kind.noun for kind in KINDS}}
        rows = {**planned, **{key: {"action": "unchanged"} for key in unchanged}}
        found = []
        for key, row in rows.items():
            more = {"error": errors.get(key), "unknown": unknown.get(key, ())}
            found.append(of_row({**row, **more}, key[1], nouns[key[0]]))
        return found

    def leave_out(self, plan: Plan, indexes: Collection[int]) -> Plan:
        """Return the plan without the changes at these indexes and those that depend on them."""
        items = [item for item in plan.data if not item.plan.changed]
        left_out: set[Reference] = set()
        for number, item in enumerate(_changed(plan.data)):
            if number not in indexes and _skip_error(item, left_out) is None:
                items.append(item)
            elif item.plan.action != "update" or item.entry.target != item.entry.name:
                left_out |= _blocked_references(item)
        return self._full_plan(items)

    def _full_plan(self, items: Sequence[PlannedObject]) -> Plan:
        changed = _changed(items)
        actions = Counter[str](item.plan.action for item in changed)
        counts = {name: actions[name] for name in ("create", "update", "delete")}
        result = {
            "plan": [item.shown() for item in changed],
            "counts": {**counts, "unchanged": len(items) - len(changed)},
            "unknown": [
                {"kind": item.kind.option, "name": item.name, "fields": list(item.unknown)}
                for item in items
                if item.unknown
            ],
            "applied": [],
        }
        action: Action = "update" if changed else "none"
        before, after = _diff(changed, "before"), _diff(changed, "after")
        return Plan(before, after, action, result=result, data=items)

    def preflight(self, plan: Plan) -> None:
        """Raise `not_found` if an account or role that the plan refers to does not exist."""
        try:
            self._planner.require_references(plan.data)
        except ToolchainError as error:
            error.result = dict(plan.result)
            raise

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        failed: set[Reference] = set()
        items = [replace(item) for item in _changed(plan.data)]
        for kind, phase in groupby(items, lambda item: (item.kind, item.plan.action == "delete")):
            same = list(phase)
            self._task.progress(f"{kind[0].option}: writing {len(same)}")
            self._write(same, failed)
        applied = [
            {
                **{name: item.shown()[name] for name in ("kind", "name", "action")},
                "ok": item.error is None,
                "error": item.error and {**item.error.as_dict(), "msg": str(item.error)},
            }
            for item in items
        ]
        failure = failure_of(items, "changes", {**plan.result, "applied": applied})
        if failure is not None:
            failure.result.pop("changed", None)
            reported = [item.error is None or item.error.result.get("changed") for item in items]
            if True in reported or None not in reported:  # else no verification read shows it
                failure.result["changed"] = True in reported
            raise failure
        return {"applied": applied}

    def _write(self, items: Sequence[PlannedObject], failed: set[Reference]) -> None:
        """Write objects of a kind, except those that depend on a failed object."""
        for item in items:
            item.error = _skip_error(item, failed)
        kind = ConfigKind(self._task, self._client, parallel=self._parallel)
        ready = [item for item in items if item.error is None]
        # a plan is made again if this task imported or renamed the project of the object
        moved = [item for item in ready if item.entry.project in self._changing_projects]
        catalogue = self._catalogue()
        for item in moved:
            with item.reporting():
                if isinstance(item.entry, RoleAssignment):
                    item.entry = replace(item.entry, ids=catalogue.projects())
        pending = [item for item in moved if item.pending and item.error is None]
        kind.read(pending)
        again = {}
        for item in pending:
            if item.error is not None:
                continue
            with item.reporting():
                left = compare(item.entry, item.state)
                refuse_impossible(item.entry, left)
                again[item.label] = left
        plans = [(item, again.get(item.label, item.plan)) for item in ready if item.error is None]
        kind.write_plans([Writes(item, (plan,)) for item, plan in plans if plan.changed])
        for item in items:
            if item.error is not None:
                failed |= _blocked_references(item)

    def _catalogue(self, **known: Any) -> Catalogue:
        return Catalogue(self._client, parallel=self._parallel, **known)


class ConfigKind(ResourceKind):
    """The objects of a configuration. Those of the same kind and project share a read."""

    def read(self, items: Sequence[Item[Resource, State]]) -> None:
        ids = next(
            (item.entry.ids for item in items if isinstance(item.entry, RoleAssignment)), None
        )
        catalogue = Catalogue(self.client, parallel=self.parallel, ids=ids)
        catalogue.load(dict.fromkeys(_place(item.entry) for item in items))
        for item in items:
            with item.reporting():
                item.state = item.entry.find(catalogue.listed(*_place(item.entry)).objects)


def _place(resource: Resource) -> tuple[ObjectKind, str | None]:
    """Return the kind of an object, and the project that contains it or `None`."""
    (kind,) = (kind for kind in KINDS if kind is type(resource))
    return kind, resource.project if kind.in_project else None


def _changed(items: Sequence[PlannedObject]) -> list[PlannedObject]:
    return [item for item in items if item.plan.changed]


def _blocked_references(item: PlannedObject) -> frozenset[Reference]:
    """Return the references of objects that must not be written if this change fails."""
    deletes = item.plan.action == "delete"
    return item.entry.needs if deletes else names(item.kind, item.entry)


def _skip_error(item: PlannedObject, failed: set[Reference]) -> ToolchainError | None:
    """Return the error for an object that must be skipped, or `None`.

    A change is skipped if a referenced object failed, a deletion if a referring object failed.
    """
    deletes = item.plan.action == "delete"
    causes = names(item.kind, item.entry) if deletes else item.entry.needs
    found = sorted(causes & failed)
    if not found:
        return None
    option, name = found[0]
    return ToolchainError(
        "failed", f"{item.entry.title} was skipped, because '{name}' in {option} failed"
    )


def _diff(items: Sequence[PlannedObject], name: str) -> dict[str, dict[str, Any]]:
    """Return the states of the planned objects by kind and object.

    :param name: `before` or `after`
    """
    found: dict[str, dict[str, Any]] = {}
    for item in items:
        found.setdefault(item.kind.option, {})[item.label] = getattr(item.plan, name)
    return found
