# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole configuration: planned as one, written in the order of what depends on what.

Source: interface contract [C6.7].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from ...core.errors import ToolchainError, invalid
from ...core.module.task import Task
from ...core.plan import Plan
from ..client import AnalysisClient
from ..engine.operation import carry_out
from ..engine.resource import FORCE, Reference, Resource, State
from ..resources.analysis_project import hide_secrets
from ..resources.analysis_role_assignment import RoleAssignment
from .config_plan import ConfigPlanner, DeletionLimits, PlannedObject
from .desired_objects import desired, names, project_of
from .object_kinds import KINDS, Catalogue, ObjectKind

#: The options of C(analysis_config) without the connection.
OPTIONS: dict[str, dict[str, Any]] = {
    **{
        kind.option: {"type": "list", "elements": "dict", "options": kind.options} for kind in KINDS
    },
    "purge": {
        "type": "list",
        "elements": "str",
        "choices": sorted(kind.option for kind in KINDS),
        "default": [],
    },
    "protect": {"type": "list", "elements": "str", "default": []},
    "max_deletions": {"type": "int", "default": 10},
    "allow_empty": {
        "type": "list",
        "elements": "str",
        "choices": sorted(kind.option for kind in KINDS),
        "default": [],
    },
    **FORCE,
    "parallel": {"type": "int", "default": 4},
}


class ConfigOperation:
    """The task of C(analysis_config)."""

    def __init__(self, task: Task) -> None:
        options = task.params
        for name, least in (("parallel", 1), ("max_deletions", 0)):
            if options[name] < least:
                raise invalid(f"{name} must be at least {least}, not {options[name]}")
        self._task, self._parallel = task, options["parallel"]
        self._client = AnalysisClient(task, connections=self._parallel)
        wanted = desired(options)
        hide_secrets(task, wanted.projects)
        catalogue = self._catalogue(renamed=wanted.renamed)
        exact = [each.option for each in KINDS if each.made and each.option in options["purge"]]
        wanted.refuse_empty(set(options["purge"]) - set(options["allow_empty"]))
        guard = DeletionLimits(
            exact, options["protect"], options["max_deletions"], options["force"]
        )
        self._planner = ConfigPlanner(wanted, catalogue, guard, task.connection.username)
        self._moving = {
            each.target
            for each in wanted.projects
            if each.source is not None or each.target != each.name
        }

    def plan(self) -> Plan:
        items = self._planner.plan()
        counts = self._planner.counts()
        result = {"plan": [item.shown() for item in items], "counts": counts}
        try:
            self._planner.brake()
        except ToolchainError as error:
            error.result = result
            raise
        for warning in self._planner.warnings:
            self._task.warn(warning)
        for (option, name), number in sorted(self._planner.unseen.items()):
            self._task.warn(
                f"The server does not show {name} of {number} {option.replace('_', ' ')}: whether"
                " it differs is not known; it is written only together with other changes."
            )
        before, after = (
            _diff(items, lambda plan: plan.before),
            _diff(items, lambda plan: plan.after),
        )
        return Plan(before, after, "update" if items else "none", result={**result, "applied": []})

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        failed: set[Reference] = set()
        for kind, phase in groupby(self._planner.items, lambda item: (item.kind, _deletes(item))):
            items = list(phase)
            self._task.progress(f"{kind[0].option}: {len(items)} to write")
            self._carry_out(items, failed)
        items = self._planner.items
        applied = [_applied(item) for item in items]
        errors = [item.step.error for item in items if item.step.error is not None]
        if errors:
            first = errors[0]
            first.message = f"{len(errors)} of {len(items)} changes failed, first {first.message}"
            first.result = {**plan.result, "applied": applied, **_changed(items)}
            raise first
        return {"applied": applied}

    def _carry_out(self, items: Sequence[PlannedObject], failed: set[Reference]) -> None:
        """Write objects of one kind, without those that depend on what has failed."""
        for item in items:
            item.step.error = _blocked(item, failed)
        ready = [item for item in items if item.step.error is None]
        self._look_anew(ready)
        carry_out(
            self._client, [item.step for item in ready], self._looking, parallel=self._parallel
        )
        for item in items:
            if item.step.error is not None:
                resource = item.step.resource
                failed |= resource.needs if _deletes(item) else names(item.kind, resource)

    def _look_anew(self, items: Sequence[PlannedObject]) -> None:
        """Take what an import or a new name of a project has brought into account."""
        moved = [item for item in items if project_of(item.step.resource) in self._moving]
        catalogue = self._catalogue()
        for item in moved:
            if isinstance(item.step.resource, RoleAssignment):
                try:
                    item.step.resource = replace(item.step.resource, ids=catalogue.projects())
                except ToolchainError as error:
                    item.step.error = error
        pending = [item.step for item in moved if item.pending and item.step.error is None]
        look = self._looking([step.resource for step in pending])
        for step in pending:
            try:
                step.plan_anew(look(step.resource))
            except ToolchainError as error:
                step.error = error

    def _looking(self, resources: Sequence[Resource]) -> Callable[[Resource], State | None]:
        """The way to read these objects as they are now, with one read per kind and project."""
        ids = next((each.ids for each in resources if isinstance(each, RoleAssignment)), None)
        catalogue = self._catalogue(ids=ids)
        catalogue.load({_place(each): None for each in resources})
        return lambda each: each.find(catalogue.listed(*_place(each)).objects)

    def _catalogue(self, **known: Any) -> Catalogue:
        return Catalogue(self._client, parallel=self._parallel, **known)


def _place(resource: Resource) -> tuple[ObjectKind, str | None]:
    """The kind of an object, and the project where the kind is inside one."""
    (kind,) = (each for each in KINDS if each.makes is type(resource))
    return kind, project_of(resource) if kind.in_project else None


def _deletes(item: PlannedObject) -> bool:
    return item.step.plan.action == "delete"


def _blocked(item: PlannedObject, failed: set[Reference]) -> ToolchainError | None:
    """Why an object is not tried: what it refers to is not there, or (where it is to be deleted)
    what refers to it still is.
    """
    resource = item.step.resource
    causes = names(item.kind, resource) if _deletes(item) else resource.needs
    found = sorted(causes & failed)
    if not found:
        return None
    option, name = found[0]
    return ToolchainError("failed", f"{resource.title} was not tried: '{name}' of {option} failed")


def _changed(items: Sequence[PlannedObject]) -> dict[str, bool]:
    """Whether anything differs after a failure, where what was read back tells."""
    told = [item.step.error is None or item.step.error.result.get("changed") for item in items]
    return {} if True not in told and None in told else {"changed": True in told}


def _applied(item: PlannedObject) -> dict[str, Any]:
    """The entry of the return value C(applied)."""
    error, shown = item.step.error, item.shown()
    return {
        **{name: shown[name] for name in ("kind", "name", "action")},
        "ok": error is None,
        "error": None if error is None else {**error.as_dict(), "msg": str(error)},
    }


def _diff(items: Sequence[PlannedObject], side: Callable[[Plan], Any]) -> dict[str, dict[str, Any]]:
    """One side of the plan, by kind and object."""
    found: dict[str, dict[str, Any]] = {}
    for item in items:
        found.setdefault(item.kind.option, {})[item.label] = side(item.step.plan)
    return found
