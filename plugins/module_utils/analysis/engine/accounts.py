# SPDX-License-Identifier: GPL-3.0-or-later
"""Groups with their members, the roles that accounts hold, and the account of the task itself.

No module removes the account of the task, or what gives it its rights, unless it is told to.
Sources: written interface [W4.5], interface contract [C1.6]. Server facts [analysis-9]: members are
listed with C(list_users) only; C(project) of an assignment is the id of a project.
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

#: Most groups that are asked for; untold, servers give at most 1000 [analysis-9].
_LIMIT = 100_000


def group_listing(parameters: Mapping[str, Any]) -> Call:
    """The read of groups with their members."""
    return Call("groups", parameters, {"list_users": True})


def groups(records: Sequence[Record]) -> dict[Hashable, State]:
    """Groups by their names.

    Servers leave out lists without entries: where one group shows its members, those that do not
    have none; where no group does, the server does not tell.
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
    """The names of the members; whether they are names or records is not documented."""
    found = record.get("users")
    if isinstance(found, list) and any(isinstance(each, dict) for each in found):
        return [each["name"] for each in named(entries(record, "users"))]
    return texts(record, "users")


def ids_of(records: Sequence[Record]) -> dict[str, str]:
    """Name to id of the projects that these records are; the name itself where there is no id."""
    return {each["name"]: _id_of(each) for each in named(records)}


def _id_of(project: Record) -> str:
    """The id, which real servers show, else the name."""
    return str(project["name"] if project.get("id") in (None, "") else project["id"])


def assignments(records: Sequence[Record], ids: Mapping[str, str]) -> dict[Hashable, State]:
    """Assignments by role, account, project (C(None) for all projects) and whether it is a group.

    A project whose name is not known is shown by its id.
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
    """What belongs to the account of the task.

    What it holds is read when somebody asks, as few tasks remove anything. Its name counts in upper
    and lower case, as it does for the directory that many servers ask.

    :param groups: reads all groups
    :param assignments: reads all assignments of roles
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
        """Whether an object is the account, a role that it holds, an assignment that gives it one,
        or a group through which it holds one.

        :param option: the list of C(analysis_config) that has such objects
        :param doubtful: what may be so counts as well: not every server shows the members of groups
        """
        if option == "users":
            return self._is(state["name"])
        if option == "role_assignments":
            return self._holds(state, doubtful)
        if option == "roles":
            given = (each for each in self._assignments if each["name"] == state["name"])
            return any(self._holds(each, doubtful) for each in given)
        return option == "groups" and self._is_in(state, doubtful) and self._gives(state)

    def refuse(self, option: str, title: str, plan: Plan) -> None:
        """C(invalid) for a plan that removes what belongs to the account, or takes it out of a
        group by which it holds a role.
        """
        removes = plan.action == "delete"
        if option == "groups" and plan.action == "update":
            wanted = next((each.after for each in plan.changes if each.field == "users"), None)
            removes = wanted is not None and not any(map(self._is, wanted))
        if removes and self.includes(option, plan.before):
            raise refusal(f"{DOING[plan.action]} {title}")

    def _is(self, name: str) -> bool:
        return is_account(name, self._account)

    def _holds(self, assignment: State, doubtful: bool) -> bool:
        """Whether an assignment gives its role to the account."""
        if not assignment["group"]:
            return self._is(assignment["account"])
        there = (each for each in self._groups if each["name"] == assignment["account"])
        return any(self._is_in(each, doubtful) for each in there)

    def _is_in(self, group: State, doubtful: bool) -> bool:
        return any(map(self._is, group["users"])) if "users" in group else doubtful

    def _gives(self, group: State) -> bool:
        return any(each["group"] and each["account"] == group["name"] for each in self._assignments)

    @cached_property
    def _groups(self) -> list[State]:
        return list(self._read_groups())

    @cached_property
    def _assignments(self) -> list[State]:
        return list(self._read_assignments())


class GuardedOperation(ResourceOperation):
    """One object that may be what gives the account of the task its rights.

    C(option) is the list of C(analysis_config) that has such objects.

    :param force: whether it may be removed all the same
    """

    option: ClassVar[str]

    def __init__(self, task: Task, resource: Resource, *, force: bool) -> None:
        super().__init__(task, resource)
        self._force = force

    def plan(self) -> Plan:
        found = super().plan()
        if not self._force:
            own = OwnAccount(self._task.connection.username, self._groups, self._assignments)
            own.refuse(self.option, self._resource.title, found)
        return found

    def preflight(self, plan: Plan) -> None:
        """Accounts and roles that it would refer to have to be there."""
        if plan.action in ("create", "update"):
            there = references.names_on(self._client, _LIMIT)
            references.require(self._resource.title, self._resource.needs_newly(plan), there)

    def _groups(self) -> Iterable[State]:
        what = "reading the groups of the account of this task"
        return groups(self._client.ask(what, group_listing({"limit": _LIMIT}))).values()

    def _assignments(self) -> Iterable[State]:
        what = "reading the roles of the account of this task"
        return assignments(self._client.ask(what, Call("role_assignments")), {}).values()
