# SPDX-License-Identifier: GPL-3.0-or-later
"""Module `tracker_project_role`: manage the users and groups of project roles [tracker-30]."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from ...core.address import path
from ...core.errors import ToolchainError, invalid, quoted
from ...core.http.messages import Response, expected, unexpected_body
from ...core.json_text import as_text, member
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.operations.objects import Item, Objects, entries_of
from ...core.plan import Comparison, Plan, plan, remaining, unordered
from ..client import TrackerClient
from ..editing.site import Site, own_account
from ..permissions import lacking
from ..service import SERVICE
from .project_kind import ProjectKind
from .project_objects import same_name

_API = "rest/api/2"
USERS, GROUPS = "users", "groups"
_TYPES = {"atlassian-user-role-actor": USERS, "atlassian-group-role-actor": GROUPS}
_QUERY = {USERS: "user", GROUPS: "group"}
#: Number of groups that a search returns at most.
_MAX_GROUPS = 1000
#: Default id and name of the role of administrators.
_ADMINISTRATORS = ("10002", "administrators")


@dataclass(frozen=True)
class ProjectRole:
    """A role of a project. `others`: names of actors of other types, which plugins define."""

    id: str
    name: str
    users: tuple[str, ...]
    groups: tuple[str, ...]
    others: Mapping[str, list[str]]

    @property
    def administers(self) -> bool:
        """Return whether this is the role of the project's administrators."""
        return self.id == _ADMINISTRATORS[0] or self.name.casefold() == _ADMINISTRATORS[1]

    def actors(self) -> dict[str, list[str]]:
        """Return the sorted users and groups."""
        return {USERS: sorted(self.users), GROUPS: sorted(self.groups)}


def same_actor(kind: str, name: str, other: str) -> bool:
    """Return whether two names are equal. User names are compared case-insensitively."""
    return name.casefold() == other.casefold() if kind == USERS else name == other


def actor_in(kind: str, name: str, actors: Iterable[str]) -> bool:
    return any(same_actor(kind, name, actor) for actor in actors)


class ProjectRoles:
    """Read and write the roles of a project."""

    def __init__(self, client: TrackerClient, project: str) -> None:
        self._client, self._project = client, project

    def ids(self) -> dict[str, str]:
        """Return the ids of the roles by name. Raises `not_found` for a missing project."""
        purpose = f"reading the roles of the project '{self._project}'"
        response = self._client.read(purpose, f"{_API}/project/{path(self._project)}/role")
        reported = expected(response, dict, "a mapping of roles")
        return {str(name): str(address).rpartition("/")[2] for name, address in reported.items()}

    def named(self, name: str, known: Mapping[str, str]) -> ProjectRole:
        """Read a role by its name. Raises `not_found` if it is not among the known roles.

        :param known: ids of the roles by name
        """
        number = next((known[role] for role in known if same_name(role, name)), None)
        if number is None:
            raise ToolchainError(
                "not_found",
                f"the project '{self._project}' has no role '{name}'; its roles are"
                f" {quoted(known, len(known))}",
            )
        return self.read(name, number)

    def read(self, name: str, number: str) -> ProjectRole:
        """Read a role by its id. `name`: for messages."""
        purpose = f"reading the role '{name}' of the project '{self._project}'"
        response = self._client.read(purpose, self._route(number))
        return _role(response)

    def replace(self, role: ProjectRole, wanted: Mapping[str, list[str]]) -> None:
        """Replace all users and groups with a single request."""
        actors = {category: wanted[kind] for category, kind in _TYPES.items()}
        self._client.write(
            self._changing(role),
            "PUT",
            self._route(role.id),
            json={"id": int(role.id), "categorisedActors": {**role.others, **actors}},
            verify=lambda: (
                not plan(self.read(role.name, role.id).actors(), wanted, COMPARISONS).changed
            ),
            repeatable=True,
        )

    def add(self, role: ProjectRole, kind: str, names: list[str]) -> None:
        """Add users or groups. It is no error if another user has added them meanwhile."""

        def done() -> bool:
            now = self.read(role.name, role.id).actors()[kind]
            return all(actor_in(kind, name, now) for name in names)

        try:
            self._client.write(
                self._changing(role),
                "POST",
                self._route(role.id),
                json={_QUERY[kind]: names},
                verify=done,
            )
        except ToolchainError as error:
            if error.status != 400 or not done():
                raise

    def remove(self, role: ProjectRole, kind: str, name: str) -> None:
        """Remove a user or a group."""

        def done() -> bool:
            return not actor_in(kind, name, self.read(role.name, role.id).actors()[kind])

        self._client.write(
            self._changing(role),
            "DELETE",
            self._route(role.id),
            query={_QUERY[kind]: name},
            verify=done,
            repeatable=True,
        )

    def _changing(self, role: ProjectRole) -> str:
        return f"changing the role '{role.name}' of the project '{self._project}'"

    def _route(self, number: str) -> str:
        return f"{_API}/project/{path(self._project)}/role/{path(number)}"


def _same_users(current: Any, desired: Any) -> tuple[bool, Any]:
    return sorted(map(str.casefold, current)) == sorted(map(str.casefold, desired)), desired


#: Comparisons of the actors of a role by their kind.
COMPARISONS: Mapping[str, Comparison] = {USERS: _same_users, GROUPS: unordered}


def _role(response: Response) -> ProjectRole:
    actors, reported = expected(response, list, "a role", "actors"), response.json()
    if "id" not in reported:
        raise unexpected_body(response, "a role")
    found: dict[str, list[str]] = {USERS: [], GROUPS: []}
    for actor in actors:
        if not isinstance(actor, Mapping):
            raise unexpected_body(response, "a role")
        category, name = str(actor.get("type")), _name(actor)
        if not name:
            raise unexpected_body(response, "a role whose actors have names")
        found.setdefault(_TYPES.get(category, category), []).append(name)
    users, groups = tuple(found.pop(USERS)), tuple(found.pop(GROUPS))
    return ProjectRole(str(reported["id"]), str(reported.get("name", "")), users, groups, found)


def _name(actor: Mapping[str, Any]) -> str:
    """Return the name of an actor. For a user in the cloud, it is the account id."""
    account, group = member(actor, "actorUser", "accountId"), member(actor, "actorGroup", "name")
    return as_text(account or group or actor.get("name") or actor.get("displayName"))


@dataclass(frozen=True)
class ProjectRoleEntry:
    """Options of a project role."""

    option_rules: ClassVar[tuple[Rule, ...]] = (Rule(requires=("users", "groups")),)

    project: str
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


class ProjectRoleKind(ProjectKind[ProjectRoleEntry, "Mapping[str, str]"]):
    """Project roles as entries. A project takes a request, and a role another request."""

    noun = "role"

    def name(self, entry: ProjectRoleEntry) -> str:
        return f"{entry.project}/{entry.role}"

    def read_project(self, key: str) -> Mapping[str, str]:
        return ProjectRoles(self._client, key).ids()

    def compare(self, item: Item[ProjectRoleEntry, Mapping[str, str]]) -> Plan:
        entry = item.entry
        role = ProjectRoles(self._client, entry.project).named(entry.role, item.state or {})
        before = role.actors()
        wanted = {
            kind: self._wanted(role, kind, names, entry.mode)
            for kind, names in ((USERS, entry.users), (GROUPS, entry.groups))
            if names is not None
        }
        found = plan(before, wanted)
        if not entry.force and role.administers and _loses(before, found.after):
            self._require_account(entry, before, found.after)
        return found.with_result(role={"name": role.name, **found.after}).with_data(role)

    def _wanted(self, role: ProjectRole, kind: str, names: list[str], mode: str) -> list[str]:
        """Return the actors after the task, with the server's names."""
        current = role.actors()[kind]
        if mode == "remove":
            removed = [self._actor(kind, name, current, must=False) for name in names]
            return [actor for actor in current if not actor_in(kind, actor, removed)]
        actors = [self._actor(kind, name, current) for name in names]
        kept = current
        if mode != "add":
            kept = [actor for actor in current if actor_in(kind, actor, actors)]
        added = [actor for actor in actors if not actor_in(kind, actor, current)]
        return sorted({*kept, *added})

    def _actor(self, kind: str, name: str, current: list[str], *, must: bool = True) -> str:
        """Return the server's name of an actor. For a user in the cloud, it is the account id.

        :param must: whether to raise `not_found` for an account that does not exist
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
        found = self._client.read_optional(purpose, f"{_API}/groups/picker", query=query)
        groups, total = member(found, "groups"), member(found, "total")
        if not isinstance(groups, list) or not isinstance(total, int) or total > len(groups):
            return
        names = [as_text(member(group, "name")) for group in groups]
        if name not in names and not lacking(self._client, ["USER_PICKER"]):
            raise ToolchainError("not_found", f"groups: there is no group '{name}'")

    def _require_account(
        self, entry: ProjectRoleEntry, before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> None:
        """Raise `invalid` if the task's account would no longer be an administrator."""
        own = own_account(self._client, expand="groups")
        groups = member(own, "groups", "items") or ()
        account = {
            USERS: [str(own[name]) for name in ("accountId", "name", "key") if own.get(name)],
            GROUPS: [as_text(member(group, "name")) for group in groups],
        }
        if _has(before, account) and not _has(after, account):
            raise invalid(
                f"the task's account {account[USERS][-1]} would no longer be in the role"
                f" '{entry.role}' of the project '{entry.project}': keep {account[USERS][-1]} in"
                f" users, or a group of it in groups ({quoted(account[GROUPS])}), or set force"
            )

    def write(self, item: Item[ProjectRoleEntry, Mapping[str, str]]) -> None:
        role: ProjectRole = item.plan.data
        roles = ProjectRoles(self._client, item.entry.project)
        if item.entry.mode == "exact":
            roles.replace(role, item.plan.after)
            return
        for change in item.plan.changes:
            kind = change.field
            added = [name for name in change.after if not actor_in(kind, name, change.before)]
            if added:
                roles.add(role, kind, added)
            for name in change.before:
                if not actor_in(kind, name, change.after):
                    roles.remove(role, kind, name)

    def left(self, item: Item[ProjectRoleEntry, Mapping[str, str]]) -> Plan:
        role: ProjectRole = item.plan.data
        now = ProjectRoles(self._client, item.entry.project).read(role.name, role.id)
        item.returned = {"role": {"name": now.name, **now.actors()}}
        return remaining(item.plan, now.actors(), COMPARISONS)


class TrackerProjectRoleOperation(Objects[ProjectRoleEntry, Mapping[str, str]]):
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


def _loses(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    return any(set(before[kind]) - set(after[kind]) for kind in (USERS, GROUPS))


def _has(actors: Mapping[str, Any], names: Mapping[str, list[str]]) -> bool:
    return any(
        actor_in(kind, name, actors[kind]) for kind in (USERS, GROUPS) for name in names[kind]
    )
