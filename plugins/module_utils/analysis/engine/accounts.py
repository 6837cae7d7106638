# SPDX-License-Identifier: GPL-3.0-or-later
"""Groups with members, role assignments, and protection of the task's account.

No module removes the task's account, or the objects that give it its permissions, without `force`.
Sources: written interface [W4.5], interface contract [C1.6]. Server facts [analysis-9]: members are
listed with `list_users` only; `project` of an assignment is the id of a project.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from ...core.module.task import Task
from ...core.plan import Plan
from ..client import Call
from ..responses import Record, entries, flag, named, texts
from . import references
from .operation import ResourceOperation
from .resource import DOING, Resource, State, is_account, refusal

#: Maximum number of groups to request; without a limit, servers return at most 1000 [analysis-9].
_LIMIT = 100_000


def group_listing(parameters: Mapping[str, Any]) -> Call:
    """Return the read of groups with their members."""
    return Call("groups", parameters, {"list_users": True})


def groups(records: Sequence[Record]) -> dict[Hashable, State]:
    """Return groups by name.

    Servers omit empty lists. If any group has members in the response, groups without members are
    empty; if no group has members, they are unknown.
    """
    shown = any("users" in record for record in records)
    return {record["name"]: _group(record, shown) for record in named(records)}


def _group(record: Record, with_users: bool) -> dict[str, Any]:
    state: dict[str, Any] = {"name": record["name"]}
    if with_users:
        state["users"] = _members(record)
    if "readonly" in record:
        state["readonly"] = flag(record["readonly"])
    return state


def _members(record: Record) -> list[str]:
    """Return the names of the members, which may be strings or records (not documented)."""
    found = record.get("users")
    if isinstance(found, list) and any(isinstance(each, dict) for each in found):
        return [entry["name"] for entry in named(entries(record, "users"))]
    return texts(record, "users")


def ids_of(records: Sequence[Record]) -> dict[str, str]:
    """Map names of projects to ids; to the name itself if there is no id."""
    return {record["name"]: _id_of(record) for record in named(records)}


def _id_of(project: Record) -> str:
    """Return the id, which real servers send, otherwise the name."""
    return str(project["name"] if project.get("id") in (None, "") else project["id"])


def assignments(records: Sequence[Record], ids: Mapping[str, str]) -> dict[Hashable, State]:
    """Return assignments by role, account, project (`None` for all projects) and whether it is a
    group.

    A project with an unknown name is identified by its id.
    """
    names = {project_id: name for name, project_id in ids.items()}
    found: dict[Hashable, State] = {}
    for record in named(records):
        for entry in named(entries(record, "assignments")):
            project_id = entry.get("projectId")
            state: dict[str, Any] = {
                "name": record["name"],
                "account": entry["name"],
                "project": None
                if project_id in (None, "")
                else names.get(str(project_id), str(project_id)),
                "group": flag(entry.get("group")),
            }
            found[tuple(state.values())] = state
    return found


class OwnAccount:
    """Objects that belong to the task's account.

    They are read on first use, because few tasks remove anything. The account name is
    case-insensitive, as in the directory that many servers use.

    :param groups: reads all groups
    :param assignments: reads all role assignments
    """

    def __init__(
        self,
        account: str | None,
        groups: Callable[[], Iterable[State]],
        assignments: Callable[[], Iterable[State]],
    ) -> None:
        self._account = account
        self._read_groups, self._read_assignments = groups, assignments

    def includes(self, option: str, state: State, *, doubtful: bool = False) -> bool:
        """Return whether an object is the account, its role, the assignment of the role, or a group
        that has the role.

        :param option: list of `analysis_config` for this kind of object
        :param doubtful: count unknown cases too: not every server lists the members of groups
        """
        if option == "users":
            return self._is(state["name"])
        if option == "role_assignments":
            return self._holds(state, doubtful)
        if option == "roles":
            assignments = (
                assignment
                for assignment in self._assignments
                if assignment["name"] == state["name"]
            )
            return any(self._holds(record, doubtful) for record in assignments)
        return option == "groups" and self._is_in(state, doubtful) and self._gives(state)

    def refuse(self, option: str, title: str, plan: Plan) -> None:
        """Raise `invalid` for a plan that removes one of these objects, or removes the account from
        a group through which it has a role.
        """
        removes = plan.action == "delete"
        if option == "groups" and plan.action == "update":
            wanted = next(
                (change.after for change in plan.changes if change.field == "users"), None
            )
            removes = wanted is not None and not any(map(self._is, wanted))
        if removes and self.includes(option, plan.before):
            raise refusal(f"{DOING[plan.action]} {title}")

    def _is(self, name: str) -> bool:
        return is_account(name, self._account)

    def _holds(self, assignment: State, doubtful: bool) -> bool:
        """Return whether an assignment gives its role to the account."""
        if not assignment["group"]:
            return self._is(assignment["account"])
        there = (group for group in self._groups if group["name"] == assignment["account"])
        return any(self._is_in(record, doubtful) for record in there)

    def _is_in(self, group: State, doubtful: bool) -> bool:
        return any(map(self._is, group["users"])) if "users" in group else doubtful

    def _gives(self, group: State) -> bool:
        return any(
            assignment["group"] and assignment["account"] == group["name"]
            for assignment in self._assignments
        )

    @cached_property
    def _groups(self) -> list[State]:
        return list(self._read_groups())

    @cached_property
    def _assignments(self) -> list[State]:
        return list(self._read_assignments())


class GuardedOperation(ResourceOperation):
    """Operation on an object that may give the task's account its rights.

    `option` is the list of `analysis_config` for this kind of object.

    :param force: remove the object even so
    """

    option: ClassVar[str]

    def __init__(self, task: Task, resource: Resource, *, force: bool) -> None:
        super().__init__(task, resource)
        self._force = force

    def plan(self) -> Plan:
        found = super().plan()
        if not self._force:
            account = OwnAccount(self._task.connection.username, self._groups, self._assignments)
            account.refuse(self.option, self._resource.title, found)
        return found

    def preflight(self, plan: Plan) -> None:
        """Raise `not_found` if a referenced account or role does not exist."""
        if plan.action in ("create", "update"):
            there = references.names_on(self._client, _LIMIT)
            references.require(self._resource.title, self._resource.needs_newly(plan), there)

    def _groups(self) -> Iterable[State]:
        purpose = "reading the groups of the task's account"
        return groups(self._client.ask(purpose, group_listing({"limit": _LIMIT}))).values()

    def _assignments(self) -> Iterable[State]:
        purpose = "reading the roles of the task's account"
        return assignments(self._client.ask(purpose, Call("role_assignments")), {}).values()
