# SPDX-License-Identifier: GPL-3.0-or-later
"""Module `tracker_project_role`: manage the users and groups of project roles [tracker-30]."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from ...core.address import path
from ...core.errors import ToolchainError, invalid, not_found, quoted
from ...core.http.messages import expected, unexpected_body
from ...core.json_text import as_text, member
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.operations.objects import Item, Objects, entries_of
from ...core.plan import Plan, plan, remaining, unordered
from ..accounts import lacking, own_account
from ..editing.site import Site
from ..service import SERVICE
from .project_objects import API, ProjectEntry, ProjectKind, same_name

USERS, GROUPS = "users", "groups"
_TYPES = {"atlassian-user-role-actor": USERS, "atlassian-group-role-actor": GROUPS}
_QUERY = {USERS: "user", GROUPS: "group"}
#: Number of groups that a search returns at most.
_MAX_GROUPS = 1000
#: Default id and name of the role of administrators.
_ADMINISTRATORS = ("10002", "administrators")


@dataclass(frozen=True)
class ProjectRoleEntry(ProjectEntry):
    """Options of a project role."""

    option_rules: ClassVar[tuple[Rule, ...]] = (Rule(requires=("users", "groups")),)

    role: str
    # pylint on Python 3.14 rejects an alias of this type
    users: Annotated[list[str] | None, Option(empty=True, single=True)] = None
    groups: Annotated[list[str] | None, Option(empty=True, single=True)] = None
    mode: Literal["exact", "add", "remove"] = "exact"
    force: bool = False


@dataclass(frozen=True)
class TrackerProjectRoleOptions(ProjectRoleEntry):
    """The options of `tracker_project_role`."""

    entries: Annotated[list[ProjectRoleEntry] | None, Option(empty=False)] = None


@dataclass(frozen=True)
class ProjectRole:
    """A role of a project.

    :param actors: the sorted users and groups, by the name of the option
    :param others: names of actors of other types, which plugins define, by type
    """

    id: str
    name: str
    actors: dict[str, list[str]]
    others: Mapping[str, list[str]]


def actor_in(kind: str, name: str, actors: Iterable[str]) -> bool:
    """Return whether a user or group is among others. User names are case-insensitive."""
    if kind == GROUPS:
        return name in actors
    return name.casefold() in map(str.casefold, actors)


#: Ids of the roles of a project by name.
RoleIds: TypeAlias = "Mapping[str, str]"
RoleItem: TypeAlias = "Item[ProjectRoleEntry, RoleIds]"


class ProjectRoleKind(ProjectKind[ProjectRoleEntry, RoleIds]):
    """Project roles as entries. A project takes a request, and a role another request."""

    noun = "role"
    comparisons: ClassVar = {
        USERS: lambda current, desired: (
            sorted(map(str.casefold, current)) == sorted(map(str.casefold, desired)),
            desired,
        ),
        GROUPS: unordered,
    }

    def name(self, entry: ProjectRoleEntry) -> str:
        return f"{entry.project}/{entry.role}"

    def read_project(self, key: str) -> RoleIds:
        """Return the ids of the roles by name. Raises `not_found` for a missing project."""
        purpose = f"reading the roles of the project '{key}'"
        response = self._client.read(purpose, f"{API}/project/{path(key)}/role")
        reported = expected(response, dict, "a mapping of roles")
        return {str(name): str(address).rpartition("/")[2] for name, address in reported.items()}

    def read(self, project: str, name: str, number: str) -> ProjectRole:
        """Read a role by its id. `name`: for messages."""
        purpose = f"reading the role '{name}' of the project '{project}'"
        response = self._client.read(purpose, _route(project, number))
        listed, reported = expected(response, list, "a role", "actors"), response.json()
        if not as_text(reported.get("id")).isdecimal():
            raise unexpected_body(response, "a role")
        found: dict[str, list[str]] = {USERS: [], GROUPS: []}
        for one in listed:
            if not isinstance(one, Mapping):
                raise unexpected_body(response, "a role")
            # in the cloud, the name of a user is the account id
            account = member(one, "actorUser", "accountId") or member(one, "actorGroup", "name")
            actor = as_text(account or one.get("name") or one.get("displayName"))
            if not actor:
                raise unexpected_body(response, "a role whose actors have names")
            category = str(one.get("type"))
            found.setdefault(_TYPES.get(category, category), []).append(actor)
        actors = {kind: sorted(found.pop(kind)) for kind in (USERS, GROUPS)}
        return ProjectRole(str(reported["id"]), str(reported.get("name", "")), actors, found)

    def compare(self, item: RoleItem) -> Plan:
        entry, known = item.entry, item.state or {}
        name = next((role for role in known if same_name(role, entry.role)), None)
        if name is None:
            raise not_found(
                f"the project '{entry.project}' has no role '{entry.role}'; its roles are"
                f" {quoted(known, len(known))}"
            )
        role = self.read(entry.project, entry.role, known[name])
        wanted = {
            kind: self._wanted(kind, names, role.actors[kind], entry.mode)
            for kind, names in ((USERS, entry.users), (GROUPS, entry.groups))
            if names is not None
        }
        found = plan(role.actors, wanted)
        administers = role.id == _ADMINISTRATORS[0] or role.name.casefold() == _ADMINISTRATORS[1]
        loses = any(set(role.actors[kind]) - set(found.after[kind]) for kind in (USERS, GROUPS))
        if administers and loses and not entry.force:
            self._require_account(entry, found)
        return found.with_result(role={"name": role.name, **found.after}).with_data(role)

    def _wanted(self, kind: str, names: list[str], current: list[str], mode: str) -> list[str]:
        """Return the actors after the task, with the server's names."""
        if mode == "remove":
            removed = [self._actor(kind, name, current, must=False) for name in names]
            return [actor for actor in current if not actor_in(kind, actor, removed)]
        actors = [self._actor(kind, name, current, must=True) for name in names]
        kept = [actor for actor in current if mode == "add" or actor_in(kind, actor, actors)]
        added = [actor for actor in actors if not actor_in(kind, actor, current)]
        return sorted({*kept, *added})

    def _actor(self, kind: str, name: str, current: list[str], *, must: bool) -> str:
        """Return the server's name of an actor. For a user in the cloud, it is the account id.

        :param must: whether to raise `not_found` for an account or group that does not exist
        """
        if actor_in(kind, name, current):
            return name
        if kind == GROUPS:
            if must:
                self._require_group(name)
            return name
        try:
            site = Site(self._task, self._client, knows_cloud=True)
            return site.accounts.id_of(name, USERS)
        except ToolchainError as error:
            if must or error.kind != "not_found":
                raise
            return name

    def _require_group(self, name: str) -> None:
        """Raise `not_found` for a group that does not exist.

        Server fact [tracker-30]: without the permission to browse users, the list is empty.
        """
        query = {"query": name, "maxResults": _MAX_GROUPS}
        purpose = f"searching for the group '{name}'"
        found = self._client.read_optional(purpose, f"{API}/groups/picker", query=query)
        groups, total = member(found, "groups"), member(found, "total")
        if not isinstance(groups, list) or not isinstance(total, int) or total > len(groups):
            return
        names = [as_text(member(group, "name")) for group in groups]
        if name not in names and not lacking(self._client, ["USER_PICKER"]):
            raise not_found(f"groups: there is no group '{name}'")

    def _require_account(self, entry: ProjectRoleEntry, found: Plan) -> None:
        """Raise `invalid` if the task's account would no longer be an administrator."""
        own = own_account(self._client, expand="groups")
        groups = member(own, "groups", "items") or ()
        account = {
            USERS: [str(own[name]) for name in ("accountId", "name", "key") if own.get(name)],
            GROUPS: [as_text(member(group, "name")) for group in groups],
        }

        def is_in(actors: Mapping[str, list[str]]) -> bool:
            return any(
                actor_in(kind, name, actors[kind]) for kind in account for name in account[kind]
            )

        if is_in(found.before) and not is_in(found.after):
            raise invalid(
                f"the task's account {account[USERS][-1]} would no longer be in the role"
                f" '{entry.role}' of the project '{entry.project}': keep {account[USERS][-1]} in"
                f" users, or a group of it in groups ({quoted(account[GROUPS])}), or set force"
            )

    def write(self, item: RoleItem) -> None:
        """Replace all actors with a single request, or add and remove single actors."""
        role: ProjectRole = item.plan.data
        if item.entry.mode == "exact":
            actors = {category: item.plan.after[kind] for category, kind in _TYPES.items()}
            body = {"id": int(role.id), "categorisedActors": {**role.others, **actors}}
            self._send(
                item,
                "PUT",
                lambda: not plan(self._now(item).actors, item.plan.after, self.comparisons).changed,
                json=body,
            )
            return
        for change in item.plan.changes:
            kind = change.field
            added = [name for name in change.after if not actor_in(kind, name, change.before)]
            if added:
                self._add(item, kind, added)
            for name in change.before:
                if not actor_in(kind, name, change.after):
                    done = partial(self._has, item, kind, [name], present=False)
                    self._send(item, "DELETE", done, query={_QUERY[kind]: name})

    def _add(self, item: RoleItem, kind: str, names: list[str]) -> None:
        """Add users or groups. It is no error if another user has added them meanwhile."""
        done = partial(self._has, item, kind, names, present=True)
        try:
            self._send(item, "POST", done, json={_QUERY[kind]: names}, repeatable=False)
        except ToolchainError as error:
            if error.status != 400 or not done():
                raise

    def _send(
        self,
        item: RoleItem,
        method: str,
        verify: Callable[[], bool],
        *,
        repeatable: bool = True,
        **parts: Any,
    ) -> None:
        role, project = item.plan.data, item.entry.project
        purpose = f"changing the role '{role.name}' of the project '{project}'"
        route = _route(project, role.id)
        self._client.write(purpose, method, route, verify=verify, repeatable=repeatable, **parts)

    def _now(self, item: RoleItem) -> ProjectRole:
        return self.read(item.entry.project, item.plan.data.name, item.plan.data.id)

    def _has(self, item: RoleItem, kind: str, names: list[str], *, present: bool) -> bool:
        """Return whether all of the actors are, or are not, `present` in the role."""
        actors = self._now(item).actors[kind]
        return all(actor_in(kind, name, actors) == present for name in names)

    def left(self, item: RoleItem) -> Plan:
        now = self._now(item)
        item.returned = {"role": {"name": now.name, **now.actors}}
        return remaining(item.plan, now.actors, self.comparisons)


def _route(project: str, number: str) -> str:
    return f"{API}/project/{path(project)}/role/{path(number)}"


class TrackerProjectRoleOperation(Objects[ProjectRoleEntry, RoleIds]):
    """Manage the users and groups of project roles. Raises `invalid`."""

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {
            "read": reads("administer"),
            **dict.fromkeys(("replace", "add", "remove"), writes("administer")),
        },
        kind="role",
        name="{project}/{role}",
        listed="results",
    )

    def __init__(self, task: Task, options: TrackerProjectRoleOptions) -> None:
        super().__init__(ProjectRoleKind(task), *entries_of(options, ProjectRoleEntry))
