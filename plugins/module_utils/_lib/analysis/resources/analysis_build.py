# SPDX-License-Identifier: GPL-3.0-or-later
"""Rename and delete builds of a project: `analysis_build` [W4.5].

Actions: `builds`, `update_build`, `delete_build`. Only analyses create builds. Server fact
[analysis-7]: `update_build` also accepts the project.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...core.errors import not_found
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.rules import Rule
from ...core.plan import Plan, without_none
from ..client import Call
from ..resource import Ids, Objects, Presence, Resource, ResourceOperation
from ..responses import Record, named
from ..service import SERVICE


@dataclass(frozen=True)
class AnalysisBuildOptions:
    """The options of `analysis_build`."""

    option_rules: ClassVar[tuple[Rule, ...]] = (Rule("state=absent", forbids="new_name"),)

    project: str
    name: str
    new_name: str | None = None
    state: Presence = "present"


@dataclass(frozen=True)
class Build(Resource):
    """A build, identified by project and name."""

    noun: ClassVar[str] = "build"
    option: ClassVar[str] = "builds"
    entry_type: ClassVar = AnalysisBuildOptions
    name_fields: ClassVar = ("project", "name")
    in_project: ClassVar[bool] = True
    made: ClassVar[bool] = False

    @staticmethod
    def of(options: AnalysisBuildOptions) -> Build:
        project, name, state = options.project, options.name, options.state
        title = f"the build '{name}' of the project '{project}'"
        desired = {"project": project, "name": options.new_name or name}
        return Build(title, None if state == "absent" else desired, name, project)

    @property
    def listing(self) -> Call:
        return Call("builds", {"project": self.project})

    @staticmethod
    def parse(records: Sequence[Record], project: str, ids: Ids) -> Objects:
        """Return builds by name, with `id`, `date` (epoch milliseconds) and `keepit`."""
        return {
            record["name"]: {
                "project": project,
                **without_none(record, ("name", "id", "date", "keepit")),
            }
            for record in named(records)
        }

    def call(self, plan: Plan) -> Call:
        if plan.action == "delete":
            return Call("delete_build", {"project": self.project, "name": self.name})
        if plan.action == "create":
            raise not_found(f"{self.title} does not exist; only an analysis can create it")
        names = {"name": plan.before["name"], "new_name": plan.after["name"]}
        return Call("update_build", names, {"project": self.project})


class AnalysisBuildOperation(ResourceOperation):
    """Renames or deletes a build."""

    makes = Build
    descriptor: ClassVar = Descriptor(
        SERVICE,
        {
            "read": reads(),
            "rename": writes(unforeseen=("change_project_settings",)),
            "delete": writes(unforeseen=("delete_build",)),
        },
        kind="build",
        key=("project", "name"),
    )
