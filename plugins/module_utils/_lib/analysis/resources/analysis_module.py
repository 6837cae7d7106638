# SPDX-License-Identifier: GPL-3.0-or-later
"""Manage modules, which divide the source code of a project: `analysis_module` [W4.5].

Actions: `modules`, `create_module`, `update_module`, `delete_module`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...core.errors import invalid
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.rules import Rule
from ...core.plan import Comparison, Plan, unordered
from ..client import Call
from ..resource import Ids, Objects, Presence, Resource, ResourceOperation, without_escapes
from ..responses import Record, flag, named, texts
from ..service import SERVICE


@dataclass(frozen=True)
class AnalysisModuleOptions:
    """The options of `analysis_module`."""

    option_rules: ClassVar[tuple[Rule, ...]] = (Rule("state=absent", forbids="new_name"),)

    project: str
    name: str
    new_name: str | None = None
    allow_all: bool | None = None
    paths: list[str] | None = None
    state: Presence = "present"


@dataclass(frozen=True)
class Module(Resource):
    """A module, identified by project and name."""

    noun: ClassVar[str] = "module"
    option: ClassVar[str] = "modules"
    entry_type: ClassVar = AnalysisModuleOptions
    name_fields: ClassVar = ("project", "name")
    in_project: ClassVar[bool] = True
    comparisons: ClassVar[Mapping[str, Comparison]] = {"paths": unordered}

    @staticmethod
    def of(options: AnalysisModuleOptions) -> Module:
        project, name, state = options.project, options.name, options.state
        title = f"the module '{name}' of the project '{project}'"
        desired = {
            "project": project,
            "name": options.new_name or name,
            "allow_all": options.allow_all,
            "paths": options.paths,
        }
        return Module(title, None if state == "absent" else desired, name, project)

    @property
    def listing(self) -> Call:
        return Call("modules", {"project": self.project})

    @staticmethod
    def parse(records: Sequence[Record], project: str, ids: Ids) -> Objects:
        """Return the modules of a project by name.

        Servers omit empty lists. If at least one module has paths in the response, modules without
        the list have none. Otherwise the paths of all modules are unknown.
        """
        paths_known = any("paths" in record for record in records)
        return {
            record["name"]: _state_of(project, record, paths_known) for record in named(records)
        }

    def call(self, plan: Plan) -> Call:
        if plan.action == "delete":
            return Call("delete_module", {"project": self.project, "name": self.name})
        fields = {change.field: change.after for change in plan.changes}
        if plan.action == "create":
            if not fields.get("paths"):
                raise invalid(f"creating {self.title}: set paths, which a new module requires")
            return Call("create_module", {"project": self.project, **fields})
        if "name" in fields:
            fields["new_name"] = fields.pop("name")
        return Call(
            "update_module", {"project": self.project, "name": plan.before["name"], **fields}
        )

    def again(self, done: Plan, left: Plan) -> tuple[Plan, ...]:
        return without_escapes(left)


class AnalysisModuleOperation(ResourceOperation):
    """Manages a module of a project."""

    makes = Module
    descriptor: ClassVar = Descriptor(
        SERVICE,
        {
            "read": reads(),
            **dict.fromkeys(("create", "update", "delete"), writes(unforeseen=("manage_modules",))),
        },
        kind="module",
        key=("project", "name"),
    )


def _state_of(project: str, record: Record, with_paths: bool) -> dict[str, Any]:
    """Convert a record to fields that are named like the options.

    Server fact [analysis-8]: some servers omit `allowAll`.
    """
    state: dict[str, Any] = {"project": project, "name": record["name"]}
    if "allowAll" in record:
        state["allow_all"] = flag(record["allowAll"])
    if with_paths:
        state["paths"] = texts(record, "paths")
    return state
