# SPDX-License-Identifier: GPL-3.0-or-later
"""Assign roles to accounts, in all projects or a single project: `analysis_role_assignment` [W4.5].

Actions: `role_assignments`, `update_role_assignment`. Server fact [analysis-10]: the parameter
`project` is the id of a project. Renaming a project does not change its id.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from ...core.errors import not_found
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.plan import Plan
from ..accounts import GuardedKind, assignments, ids_of
from ..client import Call
from ..resource import Ids, Objects, Presence, Reference, Resource, ResourceOperation
from ..responses import Record
from ..service import SERVICE


@dataclass(frozen=True)
class RoleAssignmentEntry:
    """Entry of the option `role_assignments` of `analysis_config`."""

    name: str
    account: str
    project: str | None = None
    group: bool = False
    state: Presence = "present"


@dataclass(frozen=True)
class AnalysisRoleAssignmentOptions(RoleAssignmentEntry):
    """The options of `analysis_role_assignment`."""

    force: bool = False


@dataclass(frozen=True)
class RoleAssignment(Resource):
    """The assignment of a role to a user or group.

    :param ids: project name to project id
    """

    noun: ClassVar[str] = "role_assignment"
    option: ClassVar[str] = "role_assignments"
    entry_type: ClassVar = RoleAssignmentEntry
    name_fields: ClassVar = ("name", "account", "project", "group")

    account: str = ""
    group: bool = False
    ids: Ids = field(default_factory=dict)

    @property
    def key(self) -> Hashable:
        return (self.name, self.account, self.project, self.group)

    @staticmethod
    def of(entry: RoleAssignmentEntry) -> RoleAssignment:
        name, account, project, group = entry.name, entry.account, entry.project, entry.group
        kind = "group" if group else "user"
        project_suffix = "" if project is None else f" in the project '{project}'"
        title = f"the assignment of the role '{name}' to the {kind} '{account}'{project_suffix}"
        desired = {"name": name, "account": account, "project": project, "group": group}
        absent = entry.state == "absent"
        found = None if absent else desired
        return RoleAssignment(title, found, name, project, account=account, group=group)

    @property
    def listing(self) -> Call:
        """Return the call that lists the assignments of roles whose names contain `name`."""
        search = None if self.name.startswith("+") else self.name
        return Call("role_assignments", {"search": search})

    @property
    def needs(self) -> frozenset[Reference]:
        kind = "groups" if self.group else "users"
        return super().needs | {("roles", self.name), (kind, self.account)}

    def objects(self, records: Sequence[Record]) -> Objects:
        return self.parse(records, "", self.ids)

    @staticmethod
    def parse(records: Sequence[Record], project: str, ids: Ids) -> Objects:
        return assignments(records, ids)

    def call(self, plan: Plan) -> Call:
        missing = self.project is not None and self.project not in self.ids
        if missing and plan.action == "create":
            raise not_found(f"{self.title}: the project '{self.project}' does not exist")
        project = None if self.project is None else self.ids.get(self.project, self.project)
        parameters = {
            "name": self.name,
            "account": self.account,
            "project": project,
            "group": self.group,
            "remove": True if plan.action == "delete" else None,
        }
        return Call("update_role_assignment", parameters)


class RoleAssignmentKind(GuardedKind):
    """Role assignments, which name their project by its id."""

    def complete(self, resource: Resource) -> Resource:
        if not isinstance(resource, RoleAssignment) or resource.project is None:
            return resource
        records = self.client.ask(f"reading {resource.title}", Call("projects"))
        return replace(resource, ids=ids_of(records))


class AnalysisRoleAssignmentOperation(ResourceOperation):
    """Creates or deletes a role assignment."""

    makes = RoleAssignment
    descriptor: ClassVar = Descriptor(
        SERVICE,
        {
            "read": reads(),
            "create": writes(unforeseen=("assign_role",)),
            "delete": writes(unforeseen=("assign_role",)),
        },
        kind="role_assignment",
        key=("name", "account", "project", "group"),
    )
    kind = RoleAssignmentKind
