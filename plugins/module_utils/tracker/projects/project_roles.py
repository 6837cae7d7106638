# SPDX-License-Identifier: GPL-3.0-or-later
"""Read and change the actors of a project role: its users and groups [tracker-30]."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...core.address import path
from ...core.errors import ToolchainError
from ...core.http.messages import Response, expected, unexpected_body
from ...core.json_text import as_text, member
from ...core.plan import Comparison, plan, unordered
from ..client import TrackerClient
from .project_objects import same_name

_API = "rest/api/2"
USERS, GROUPS = "users", "groups"
_TYPES = {"atlassian-user-role-actor": USERS, "atlassian-group-role-actor": GROUPS}
_QUERY = {USERS: "user", GROUPS: "group"}
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
                f" {', '.join(known)}",
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
