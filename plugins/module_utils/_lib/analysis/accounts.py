# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse groups and role assignments, and protect the account that the task logs in with.

Without `force` no module removes this account or the objects that give it its permissions [C1.6].
Server facts [analysis-9]: groups contain members only with `list_users`, and `project` of an
assignment is the id of a project [W4.5].
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from ..core.errors import not_found
from ..core.operations.objects import Item
from ..core.plan import Plan
from ..core.verification import DOING
from .client import AnalysisClient, Call
from .resource import LIMIT, Reference, Resource, ResourceKind, State, is_account, refusal
from .responses import Record, entries, flag, named, texts

#: Noun for an object of a kind, for messages.
_NOUNS = {"users": "user", "groups": "group", "roles": "role"}


def require(
    title: str, references: Iterable[Reference], existing: Callable[[Reference], Collection[str]]
) -> None:
    """Raise `not_found` for the first reference that does not exist.

    References are not verified if the server lists no object of their kind. Account names are
    case-insensitive, as in the LDAP directories that many servers use.

    :param title: the referring object, for example `the group 'x'`
    :param existing: returns the names of all objects of a reference's kind
    """
    for reference in sorted(references):
        kind, name = reference
        if kind not in _NOUNS:
            continue
        known = existing(reference)
        exact = kind == "roles"
        found = name in known if exact else name.lower() in {other.lower() for other in known}
        if known and not found:
            raise not_found(f"{title}: the {_NOUNS[kind]} '{name}' does not exist")


def predicted(client: AnalysisClient, reference: Reference) -> bool:
    """Return whether an earlier task in check mode would create an account or a role."""
    kind, name = reference
    return client.predictions.get(_NOUNS.get(kind, kind), name) is not None


def names_on(client: AnalysisClient, limit: int) -> Callable[[Reference], Collection[str]]:
    """Return a function that returns the names of a reference's kind. It reads each kind once.

    :param limit: maximum number of users or groups to read
    """
    read: dict[str, list[str]] = {}

    def existing(reference: Reference) -> Collection[str]:
        kind, name = reference
        if kind not in read:
            parameters = {} if kind == "roles" else {"limit": limit}
            records = client.ask(f"reading the {kind}", Call(kind, parameters))
            read[kind] = [record["name"] for record in named(records)]
        if read[kind] and predicted(client, reference):
            return [*read[kind], name]
        return read[kind]

    return existing


def group_listing(parameters: Mapping[str, Any]) -> Call:
    """Return the call that reads groups with their members."""
    return Call("groups", parameters, {"list_users": True})


def groups(records: Sequence[Record]) -> dict[Hashable, State]:
    """Return groups by name.

    Servers omit empty lists of members. If at least one group has members in the response, groups
    without the list are empty. Otherwise the members of all groups are unknown.
    """
    members_known = any("users" in record for record in records)
    found: dict[Hashable, State] = {}
    for record in named(records):
        state: dict[str, Any] = {"name": record["name"]}
        if members_known:
            state["users"] = _members(record)
        if "readonly" in record:
            state["readonly"] = flag(record["readonly"])
        found[record["name"]] = state
    return found


def _members(record: Record) -> list[str]:
    """Return the names of the members. The server may send strings or records; neither is
    documented.
    """
    found = record.get("users")
    if isinstance(found, list) and any(isinstance(member, dict) for member in found):
        return [entry["name"] for entry in named(entries(record, "users"))]
    return texts(record, "users")


def ids_of(records: Sequence[Record]) -> dict[str, str]:
    """Return the ids of projects by name. A project without an id has its name as the id."""
    return {
        record["name"]: str(record["name"] if record.get("id") in (None, "") else record["id"])
        for record in named(records)
    }


def assignments(records: Sequence[Record], ids: Mapping[str, str]) -> dict[Hashable, State]:
    """Return role assignments by role, account, project and whether the account is a group.

    :param ids: project name to id; a project whose name is unknown is identified by its id

    The project is `None` for an assignment to all projects.
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
    """Recognizes objects without which the task's account would lose its permissions.

    Groups and assignments are read on first use, because few tasks remove objects. Account names
    are case-insensitive, as in the LDAP directories that many servers use.

    :param account: name of the task's account
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
        """Return whether an object is the account, one of its roles or role assignments, or a group
        that gives it a role.

        :param option: list of `analysis_config` for this kind of object
        :param doubtful: result for groups whose members the server does not list
        """
        if option == "users":
            return self._is_own(state["name"])
        if option == "role_assignments":
            return self._gives_role(state, doubtful)
        if option == "roles":
            assignments = (
                assignment
                for assignment in self._assignments
                if assignment["name"] == state["name"]
            )
            return any(self._gives_role(record, doubtful) for record in assignments)
        if option != "groups" or not self._contains_account(state, doubtful):
            return False
        return any(
            assignment["group"] and assignment["account"] == state["name"]
            for assignment in self._assignments
        )

    def refuse(self, option: str, title: str, plan: Plan) -> None:
        """Raise `invalid` for a plan that deletes one of these objects, or removes the account from
        a group that gives it a role.

        :param title: object for messages, for example `the role 'x'`
        """
        removes = plan.action == "delete"
        if option == "groups" and plan.action == "update":
            wanted = next(
                (change.after for change in plan.changes if change.field == "users"), None
            )
            removes = wanted is not None and not any(map(self._is_own, wanted))
        if removes and self.includes(option, plan.before):
            raise refusal(f"{DOING[plan.action]} {title}")

    def _is_own(self, name: str) -> bool:
        return is_account(name, self._account)

    def _gives_role(self, assignment: State, doubtful: bool) -> bool:
        """Return whether an assignment gives its role to the account, directly or by a group."""
        if not assignment["group"]:
            return self._is_own(assignment["account"])
        groups = (group for group in self._groups if group["name"] == assignment["account"])
        return any(self._contains_account(record, doubtful) for record in groups)

    def _contains_account(self, group: State, doubtful: bool) -> bool:
        return any(map(self._is_own, group["users"])) if "users" in group else doubtful

    @cached_property
    def _groups(self) -> list[State]:
        return list(self._read_groups())

    @cached_property
    def _assignments(self) -> list[State]:
        return list(self._read_assignments())


class GuardedKind(ResourceKind):
    """Objects that may give the task's account its permissions.

    The option `force` removes an object although the account may lose permissions.
    """

    def compare(self, item: Item[Resource, State]) -> Plan:
        found = super().compare(item)
        if not self.force:
            account = OwnAccount(self._task.connection.username, self._groups, self._assignments)
            account.refuse(f"{item.entry.noun}s", item.entry.title, found)
        return found

    def foresee(self, item: Item[Resource, State]) -> None:
        """Raise `not_found` if a referenced account or role does not exist."""
        if item.plan.action in ("create", "update"):
            names = names_on(self.client, LIMIT)
            require(item.entry.title, item.entry.needs_newly(item.plan), names)

    def _groups(self) -> Iterable[State]:
        purpose = "reading the groups of the task's account"
        return groups(self.client.ask(purpose, group_listing({"limit": LIMIT}))).values()

    def _assignments(self) -> Iterable[State]:
        purpose = "reading the roles of the task's account"
        return assignments(self.client.ask(purpose, Call("role_assignments")), {}).values()
