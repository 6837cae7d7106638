# SPDX-License-Identifier: GPL-3.0-or-later
"""Permissions of a space in the cloud, with a request for each operation [wiki-21].

Version 2 of the interface lists them, and version 1 changes them. Users are account ids. Roles, and
operations that servers do not have, are left alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core.address import path
from ...core.errors import ToolchainError, invalid, not_found, rejected
from ...core.json_text import as_text, member
from ..client import WikiClient

#: Operations of servers and of the cloud, if they differ.
_IN_CLOUD = {"space:restrict": "space:restrict_content", "space:delete_own": "space:delete"}
_ON_SERVERS = {cloud: server for server, cloud in _IN_CLOUD.items()}
#: Operation that all others require: it is granted first, and revoked last.
_READ = "space:read"
_ANONYMOUS = "anonymous"


class CloudPermissions:
    """Read and set the permissions of spaces.

    :param known: operations that are managed, such as `page:create`
    """

    def __init__(self, client: WikiClient, known: Sequence[str]) -> None:
        self._client, self._known = client, frozenset(known)
        #: Number of permissions that were granted or revoked.
        self.writes = 0
        #: Ids of groups by name.
        self._groups: dict[str, str] = {}

    def require(self, key: str, operations: Sequence[str]) -> None:
        """Raise `rejected` without version 2, `invalid` for an operation that only servers have."""
        if self._client.version != 2:
            raise rejected(
                f"reading the permissions of the space {key}: in the cloud they require version 2"
                " of the interface: set dialect to auto or cloud_v2"
            )
        if "space:delete_mail" in operations:
            raise invalid("permissions: the cloud has no operation space:delete_mail: leave it out")

    def require_reading(self, permissions: Mapping[str, Sequence[str]]) -> None:
        """Raise `invalid` for a subject with operations, but without that to read the space."""
        for subject, operations in permissions.items():
            if _READ not in operations:
                raise invalid(
                    f"permissions: {subject} has {', '.join(operations)} without {_READ}, which all"
                    f" others require in the cloud: add {_READ}"
                )

    def read(self, key: str) -> dict[str, list[str]]:
        """Return the sorted operations of each subject."""
        found: dict[str, set[str]] = {}
        for subject, operation in self._listed(key):
            found.setdefault(subject, set()).add(operation)
        return {subject: sorted(operations) for subject, operations in found.items()}

    def _listed(self, key: str) -> dict[tuple[str, str], str]:
        """Return the id of each permission, by subject and operation."""
        purpose = f"reading the permissions of the space {key}"
        found = {}
        for entry in self._client.space_permissions(purpose, key):
            pair = entry["operation"]
            operation = f"{pair['targetType']}:{pair['key']}"
            operation = _ON_SERVERS.get(operation, operation)
            subject = self._subject(entry.get("principal"))
            if subject is not None and operation in self._known:
                found[subject, operation] = str(entry["id"])
        return found

    def _subject(self, principal: Any) -> str | None:
        """Return the subject of a permission, or None for a role."""
        kind, number = member(principal, "type"), as_text(member(principal, "id"))
        if number in ("", _ANONYMOUS):
            return _ANONYMOUS
        if kind == "group":
            return f"group:{self._name_of(number)}"
        return f"user:{number}" if kind == "user" else None

    def _name_of(self, number: str) -> str:
        """Return the name of a group, or its id if the account may not read it."""
        known = next((name for name, group in self._groups.items() if group == number), None)
        if known is not None:
            return known
        query = {"id": number}
        purpose = f"reading the group {number}"
        response = self._client.ask(purpose, "rest/api/group/by-id", query, (200, 403, 404))
        name = member(response.json(), "name") if response.status == 200 else None
        self._groups[str(name or number)] = number
        return str(name or number)

    def require_group(self, name: str) -> str:
        """Return the id of a group. Raises `not_found` if there is no such group."""
        if name not in self._groups:
            purpose = f"searching for the group '{name}'"
            route, query = "rest/api/group/picker", {"query": name}
            for group in self._client.listing(purpose, route, query, "name", "id"):
                self._groups.setdefault(str(group["name"]), str(group["id"]))
            if name not in self._groups:
                raise not_found(f"{purpose}: there is no such group")
        return self._groups[name]

    def set(self, key: str, wanted: Mapping[str, Sequence[str]]) -> None:
        """Grant and revoke until each of the given subjects has exactly its operations."""
        listed = self._listed(key)
        for subject, operations in wanted.items():
            held = {operation for one, operation in listed if one == subject}
            for operation in sorted(set(operations) - held, key=_reading_first):
                self._grant(key, subject, operation)
                self.writes += 1
            for operation in sorted(held - set(operations), key=_reading_first, reverse=True):
                self._revoke(key, subject, operation, listed[subject, operation])
                self.writes += 1

    def _grant(self, key: str, subject: str, operation: str) -> None:
        kind, _colon, name = subject.partition(":")
        identifier = self.require_group(name) if kind == "group" else name or _ANONYMOUS
        target, _colon, action = _IN_CLOUD.get(operation, operation).partition(":")
        holder = {"type": "group" if kind == "group" else "user", "identifier": identifier}
        try:
            self._client.send(
                f"granting {operation} in the space {key} to {subject}",
                "POST",
                path("rest", "api", "space", key, "permission"),
                (200, 201, 204),
                json={"subject": holder, "operation": {"key": action, "target": target}},
                verify=lambda: (subject, operation) in self._listed(key),
                repeatable=True,
            )
        except ToolchainError as error:
            if error.status in (400, 404) and kind == "user":
                self._client.require_named(kind, name, "accountId")
            raise

    def _revoke(self, key: str, subject: str, operation: str, number: str) -> None:
        try:
            self._client.send(
                f"revoking {operation} in the space {key} from {subject}",
                "DELETE",
                path("rest", "api", "space", key, "permission", number),
                (200, 204),
                verify=lambda: (subject, operation) not in self._listed(key),
                repeatable=True,
            )
        except ToolchainError as error:
            # without the permission to read a space, the others are gone too
            if error.status != 404 or (subject, operation) in self._listed(key):
                raise


def _reading_first(operation: str) -> tuple[bool, str]:
    return operation != _READ, operation
