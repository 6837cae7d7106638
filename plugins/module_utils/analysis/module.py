# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules of a project, the parts of its source code (written interface, 4.5).

Actions: C(modules), C(create_module), C(update_module), C(delete_module).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ..core.errors import ToolchainError, invalid
from ..core.plan import Comparison, Plan, unordered
from ..core.task import Task
from .answers import Record, flag, texts
from .client import Call
from .resource import Resource, ResourceOperation, State, require_names


@dataclass(frozen=True)
class Module(Resource):
    """A module by project and name; C(name) is the old one where it is renamed."""

    noun: ClassVar[str] = "module"
    comparisons: ClassVar[Mapping[str, Comparison]] = {"paths": unordered}

    project: str
    name: str

    @property
    def listing(self) -> Call:
        return Call("modules", {"project": self.project})

    def select(self, records: Sequence[Record]) -> State | None:
        by_name = {record.get("name"): record for record in records}
        target = self.name if self.desired is None else self.desired["name"]
        if target != self.name and target in by_name and self.name in by_name:
            raise ToolchainError(
                "conflict",
                f"renaming {self.title} to '{target}': there is a module of that name already",
            )
        found = by_name.get(self.name) or by_name.get(target)
        return None if found is None else state_of(self.project, found)

    def call(self, plan: Plan) -> Call:
        if plan.action == "delete":
            return Call("delete_module", {"project": self.project, "name": self.name})
        fields = {change.field: change.after for change in plan.changes}
        if plan.action == "create":
            if "paths" not in fields:
                raise invalid(f"creating {self.title}: it is not there yet, and needs paths")
            return Call("create_module", {"project": self.project, **fields})
        if "name" in fields:
            fields["new_name"] = fields.pop("name")
        return Call(
            "update_module", {"project": self.project, "name": plan.before["name"], **fields}
        )


class ModuleOperation(ResourceOperation):
    """The task of C(analysis_module)."""

    def __init__(self, task: Task) -> None:
        super().__init__(task, wanted(task.params))


def wanted(options: Mapping[str, Any]) -> Module:
    """The module that the options of C(analysis_module) ask for."""
    require_names(options, "project", "name", "new_name")
    project, name, new_name = options["project"], options["name"], options.get("new_name")
    title = f"the module '{name}' of the project '{project}'"
    if options.get("state") == "absent":
        if new_name is not None:
            raise invalid(f"{title}: new_name contradicts the state absent")
        return Module(title, None, project, name)
    desired = {
        "project": project,
        "name": name if new_name is None else new_name,
        "allow_all": options.get("allow_all"),
        "paths": options.get("paths"),
    }
    return Module(title, desired, project, name)


def state_of(project: str, record: Record) -> dict[str, Any]:
    """A module in the words of the options; some servers do not show C(allowAll) (server fact)."""
    state: dict[str, Any] = {"project": project, "name": record["name"]}
    if "allowAll" in record:
        state["allow_all"] = flag(record["allowAll"])
    if "paths" in record:
        state["paths"] = texts(record, "paths")
    return state
