# SPDX-License-Identifier: GPL-3.0-or-later
"""Manage roles: `analysis_role` [W4.5].

Actions: `roles`, `create_role`, `update_role_permissions`, `delete_role`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from ansible.module_utils.parsing.convert_bool import boolean

from ...core.errors import excerpt, invalid
from ...core.json_text import as_text
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.typed_options import Option
from ...core.plan import Comparison, Plan, unordered
from ..accounts import GuardedKind
from ..client import Call
from ..resource import Ids, Objects, Presence, Resource, ResourceOperation, State
from ..responses import Record, entries, flag, named
from ..service import SERVICE

_TRANSITIONS = "allowed_status_transitions"
#: Permissions that are options themselves, because the interface description has them.
_PERMISSION_OPTIONS = ("create_project", "manage_roles", "change_issue_status")
#: Parameter of a permission to its name in records and in the user interface [analysis-10].
PERMISSIONS: dict[str, str] = {
    "create_project": "Create project",
    "manage_roles": "Manage roles",
    "manage_users": "Manage users",
    "access_source_files": "Access source files",
    "assign_role": "Assign roles",
    "change_project_settings": "Change project settings",
    "create_build": "Create build",
    "delete_build": "Delete build",
    "delete_project": "Delete project",
    "manage_modules": "Manage modules",
    "use_local_configuration": "Use local configuration",
    "change_issue_status": "Change issue status",
    "webapi_access": "Web API access",
    "execute_kwxsync": "Perform cross-project synchronization",
    "create_stream": "Create stream",
    "delete_stream": "Delete stream",
}


def _key(name: str) -> str:
    return re.sub(r"[^0-9a-z]+", "", name.lower())


_PERMISSION_PARAMETERS = {
    _key(text): name for name, label in PERMISSIONS.items() for text in (name, label)
}


def permission_parameter(name: str) -> str:
    """Return the parameter of a permission, given as `Create project` or `create_project`."""
    known = _PERMISSION_PARAMETERS.get(_key(name))
    return known or re.sub(r"[^0-9a-z]+", "_", name.lower()).strip("_")


@dataclass(frozen=True)
class StatusTransition:
    """A change of an issue's status that a role allows."""

    from_: Annotated[str, Option(name="from")]
    to: str


@dataclass(frozen=True)
class RoleEntry:
    """Entry of the option `roles` of `analysis_config`."""

    name: str
    permissions: Annotated[dict[str, Any] | None, Option(values="json")] = None
    create_project: bool | None = None
    manage_roles: bool | None = None
    change_issue_status: bool | None = None
    allowed_status_transitions: list[StatusTransition] | None = None
    state: Presence = "present"


@dataclass(frozen=True)
class AnalysisRoleOptions(RoleEntry):
    """The options of `analysis_role`."""

    force: bool = False


def _compare_permissions(current: Any, desired: Any) -> tuple[bool, Any]:
    """Compare the desired permissions. A permission that the server omits is not granted.

    Returns whether they are equal, and the permissions after the change.
    """
    before: Mapping[str, bool] = current or {}
    differing = {name: value for name, value in desired.items() if before.get(name, False) != value}
    return not differing, {**before, **differing}


@dataclass(frozen=True)
class Role(Resource):
    """A role, identified by its name."""

    noun: ClassVar[str] = "role"
    option: ClassVar[str] = "roles"
    entry_type: ClassVar = RoleEntry
    comparisons: ClassVar[Mapping[str, Comparison]] = {
        "permissions": _compare_permissions,
        _TRANSITIONS: unordered,
    }

    @staticmethod
    def of(entry: RoleEntry) -> Role:
        """Return the role that an entry describes. Raises `invalid` for contradictory options."""
        title, allowed = f"the role '{entry.name}'", entry.allowed_status_transitions
        transitions = (
            None
            if allowed is None
            # the server removes blanks around the commas and semicolons of the parameter
            else [{"from": each.from_.strip(), "to": each.to.strip()} for each in allowed]
        )
        _pairs(transitions or [])
        permissions: dict[str, bool] = {}
        single = {name: getattr(entry, name) for name in _PERMISSION_OPTIONS}
        for name, value in [*(entry.permissions or {}).items(), *single.items()]:
            if value is None:
                continue
            try:
                enabled = bool(boolean(value))
            except TypeError:
                raise invalid(
                    f"permissions.{name} is {excerpt(value)}: set it to true or false"
                ) from None
            parameter = permission_parameter(name)
            if permissions.setdefault(parameter, enabled) != enabled:
                raise invalid(f"the permission '{parameter}' is set to both true and false")
        desired = {
            "name": entry.name,
            "permissions": permissions or None,
            _TRANSITIONS: transitions,
        }
        return Role(title, None if entry.state == "absent" else desired, entry.name)

    @property
    def listing(self) -> Call:
        """Return the call that lists roles whose names contain the name of this role.

        The syntax of `search` is not documented. Real servers interpret a leading `+` as an exact
        match, so all roles are listed for a name that begins with `+`.
        """
        search = None if self.name.startswith("+") else self.name
        return Call("roles", {"search": search})

    @staticmethod
    def parse(records: Sequence[Record], project: str, ids: Ids) -> Objects:
        """Return the roles by name.

        Servers omit empty lists. If at least one role has lists in the response, lists that other
        roles lack are empty. Otherwise they are unknown.
        """
        lists_known = any(
            "permissions" in record or "statusPermissions" in record for record in records
        )
        return {record["name"]: _state_of(record, lists_known) for record in named(records)}

    def find(self, objects: Objects) -> State | None:
        state = super().find(objects)
        self._reject_unknown((state or {}).get("permissions", {}))
        return state

    def call(self, plan: Plan) -> Call:
        if plan.action == "delete":
            return Call("delete_role", {"name": self.name})
        parameters: dict[str, Any] = {"name": self.name}
        for change in plan.changes:
            if change.field == "permissions":
                before = change.before or {}
                parameters |= {
                    name: value
                    for name, value in change.after.items()
                    if name not in before or before[name] != value
                }
            elif change.field == _TRANSITIONS:
                parameters[_TRANSITIONS] = _pairs(change.after)
        action = "create_role" if plan.action == "create" else "update_role_permissions"
        return Call(action, parameters)

    def _reject_unknown(self, granted: Mapping[str, bool]) -> None:
        known = {*PERMISSIONS, *granted}
        named = ((self.desired or {}).get("permissions") or {}).keys()
        unknown = sorted(named - known)
        if unknown:
            raise invalid(
                f"{self.title}: the permission '{unknown[0]}' does not exist: use"
                f" {', '.join(sorted(known))}"
            )


class AnalysisRoleOperation(ResourceOperation):
    """Manages a role."""

    makes = Role
    kind = GuardedKind
    descriptor: ClassVar = Descriptor(
        SERVICE,
        {
            "read": reads(),
            **dict.fromkeys(("create", "update", "delete"), writes(unforeseen=("manage_roles",))),
        },
        kind="role",
        name="{name}",
    )


def _state_of(record: Record, with_lists: bool) -> dict[str, Any]:
    state: dict[str, Any] = {"name": record["name"]}
    if with_lists:
        state["permissions"] = {
            permission_parameter(as_text(entry.get("name"))): flag(entry.get("enabled"))
            for entry in entries(record, "permissions")
        }
        state[_TRANSITIONS] = [
            {"from": entry.get("from"), "to": entry.get("to")}
            for entry in entries(record, "statusPermissions")
        ]
    if "readonly" in record:
        state["readonly"] = flag(record["readonly"])
    return state


def _pairs(transitions: Iterable[Mapping[str, str]]) -> str:
    """Return status transitions as `from,to;from,to`.

    Raises `invalid` for a status with a comma or semicolon.
    """
    for status in (transition[end] for transition in transitions for end in ("from", "to")):
        if "," in status or ";" in status:
            raise invalid(
                f"{_TRANSITIONS}: the status '{status}' must not contain a comma or semicolon"
            )
    return ";".join(f"{transition['from']},{transition['to']}" for transition in transitions)
