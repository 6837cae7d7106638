# SPDX-License-Identifier: GPL-3.0-or-later
"""Enable and disable the defect types of a project: `analysis_defect_type` [W4.5].

Actions: `defect_types`, `update_defect_type`. Defect types are part of the server and cannot be
created or deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...core.errors import not_found
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.plan import Plan
from ..client import Call
from ..resource import Ids, Objects, Resource, ResourceOperation
from ..responses import Record, flag, named
from ..service import SERVICE


@dataclass(frozen=True)
class AnalysisDefectTypeOptions:
    """The options of `analysis_defect_type`."""

    project: str
    code: str
    enabled: bool


@dataclass(frozen=True)
class DefectType(Resource):
    """A defect type, identified by project and code, which is its name."""

    noun: ClassVar[str] = "defect_type"
    option: ClassVar[str] = "defect_types"
    entry_type: ClassVar = AnalysisDefectTypeOptions
    name_fields: ClassVar = ("project", "code")
    in_project: ClassVar[bool] = True
    made: ClassVar[bool] = False

    @staticmethod
    def of(options: AnalysisDefectTypeOptions) -> DefectType:
        project, code = options.project, options.code
        title = f"the defect type '{code}' of the project '{project}'"
        desired = {"project": project, "code": code, "enabled": options.enabled}
        return DefectType(title, desired, code, project)

    @property
    def listing(self) -> Call:
        return Call("defect_types", {"project": self.project})

    @staticmethod
    def parse(records: Sequence[Record], project: str, ids: Ids) -> Objects:
        return {record["code"]: _state_of(project, record) for record in named(records, "code")}

    def call(self, plan: Plan) -> Call:
        if plan.action == "create":
            raise not_found(f"{self.title} does not exist and cannot be created")
        return Call(
            "update_defect_type",
            {"project": self.project, "code": self.name, "enabled": plan.after["enabled"]},
        )


class AnalysisDefectTypeOperation(ResourceOperation):
    """Enables or disables a defect type."""

    makes = DefectType
    descriptor: ClassVar = Descriptor(
        SERVICE,
        {"read": reads(), "update": writes(unforeseen=("change_project_settings",))},
        kind="defect_type",
        key=("project", "code"),
    )


def _state_of(project: str, record: Record) -> dict[str, Any]:
    state: dict[str, Any] = {"project": project, "code": record["code"]}
    if "enabled" in record:
        state["enabled"] = flag(record["enabled"])
    return state
