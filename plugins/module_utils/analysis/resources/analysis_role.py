# SPDX-License-Identifier: GPL-3.0-or-later
"""Roles of the code analysis server [W4.5].

Actions: C(roles), C(create_role), C(update_role_permissions), C(delete_role).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...core.errors import invalid
from ...core.module.task import Task
from ...core.plan import Comparison, Plan, unordered
from ..answers import Record, entries, flag, named
from ..client import Call
from ..engine.own_account import GuardedOperation
from ..engine.resource import STATE, Objects, Resource, State, require_names
from . import permissions

_TRANSITIONS = "allowed_status_transitions"
_TRANSITION = {"from": {"type": "str", "required": True}, "to": {"type": "str", "required": True}}
#: The options of C(analysis_role) without the connection.
OPTIONS: dict[str, dict[str, Any]] = {
    "name": {"type": "str", "required": True},
    "permissions": {"type": "dict", "values": "json"},
    **{name: {"type": "bool"} for name in permissions.WRITTEN},
    _TRANSITIONS: {"type": "list", "elements": "dict", "options": _TRANSITION},
    "state": STATE,
}


@dataclass(frozen=True)
class Role(Resource):
    """A role by its name."""

    noun: ClassVar[str] = "role"
    comparisons: ClassVar[Mapping[str, Comparison]] = {
        "permissions": permissions.compare,
        _TRANSITIONS: unordered,
    }

    name: str

    @property
    def key(self) -> Hashable:
        return self.name

    @property
    def listing(self) -> Call:
        """Names that contain the text: what C(search) means is not written down.

        Real servers take a leading C(+) for "exactly", others need not; the role itself is found
        by all of them in this way. A name that begins with C(+) cannot be searched for.
        """
        search = None if self.name.startswith("+") else self.name
        return Call("roles", {"search": search})

    def objects(self, records: Sequence[Record]) -> Objects:
        return objects(records)

    def find(self, objects: Objects) -> State | None:
        state = super().find(objects)
        self._refuse_unknown((state or {}).get("permissions", {}))
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
                parameters[_TRANSITIONS] = pairs(change.after)
        action = "create_role" if plan.action == "create" else "update_role_permissions"
        return Call(action, parameters)

    def _refuse_unknown(self, shown: Mapping[str, bool]) -> None:
        known = {*permissions.NAMES, *shown}
        named = ((self.desired or {}).get("permissions") or {}).keys()
        unknown = sorted(named - known)
        if unknown:
            raise invalid(
                f"{self.title}: there is no permission '{unknown[0]}', only "
                f"{', '.join(sorted(known))}"
            )


class RoleOperation(GuardedOperation):
    """The task of C(analysis_role)."""

    option = "roles"

    def __init__(self, task: Task) -> None:
        super().__init__(task, wanted(task.params))


def wanted(options: Mapping[str, Any]) -> Role:
    """The role that the options of C(analysis_role) ask for."""
    require_names(options, "name")
    name = options["name"]
    written = {each: options.get(each) for each in permissions.WRITTEN}
    granted = permissions.wanted((options.get("permissions"), written))
    transitions = options.get(_TRANSITIONS)
    if transitions is not None:
        pairs(transitions)
    desired = {"name": name, "permissions": granted or None, _TRANSITIONS: transitions}
    absent = options.get("state") == "absent"
    return Role(f"the role '{name}'", None if absent else desired, name)


def objects(records: Sequence[Record]) -> dict[Hashable, State]:
    """Roles by their names."""
    return {record["name"]: _state_of(record) for record in named(records)}


def _state_of(record: Record) -> dict[str, Any]:
    """A role in the words of the options, without the lists where the server shows neither."""
    state: dict[str, Any] = {"name": record["name"]}
    if "permissions" in record or "statusPermissions" in record:
        state["permissions"] = {
            permissions.parameter(str(entry.get("name"))): flag(entry.get("enabled"))
            for entry in entries(record, "permissions")
        }
        state[_TRANSITIONS] = [
            {"from": entry.get("from"), "to": entry.get("to")}
            for entry in entries(record, "statusPermissions")
        ]
    if "readonly" in record:
        state["readonly"] = flag(record["readonly"])
    return state


def pairs(transitions: Iterable[Mapping[str, str]]) -> str:
    """C(from,to;from,to); C(invalid) for a status that this cannot carry."""
    for status in (each[end] for each in transitions for end in ("from", "to")):
        if status == "" or "," in status or ";" in status:
            raise invalid(
                f"the status '{status}' in {_TRANSITIONS} must be a name without comma or semicolon"
            )
    return ";".join(f"{each['from']},{each['to']}" for each in transitions)
