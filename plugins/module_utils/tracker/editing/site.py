# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads that edits share: the kind of server, accounts and current issues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.address import path
from ...core.connection.cloud import is_cloud
from ...core.errors import ToolchainError, invalid
from ...core.http.messages import json_or_none, unexpected_body
from ...core.module.task import Task
from ..client import TrackerClient, describe
from ..permissions import describe_missing, lacking

_KIND = "tracker.deployment"
_MAX_ACCOUNTS = 50


@dataclass(frozen=True)
class TrackerIssue:
    """An issue. `editable`: metadata of the fields that can be set, by id; None if unknown."""

    key: str
    fields: Mapping[str, Any]
    editable: Mapping[str, Any] | None = None


class Site:
    """Read issues and accounts of the server of a task.

    :param knows_cloud: whether to detect if the server is in the cloud
    """

    def __init__(self, task: Task, client: TrackerClient, *, knows_cloud: bool) -> None:
        self.task, self.client = task, client
        self.cloud = knows_cloud and self._is_cloud()
        #: Version 3 of the cloud's interface needs documents instead of strings [tracker-25].
        self.api = "rest/api/3" if self.cloud else "rest/api/2"
        self._accounts: dict[str, Mapping[str, str]] = {}
        self._own: Mapping[str, Any] | None = None

    def _is_cloud(self) -> bool:
        dialect = str(self.task.connection.settings["dialect"])
        if dialect != "auto" or is_cloud(self.task.connection):
            return dialect != "server"
        if _KIND not in self.client.memory:
            purpose = "detecting the type of the tracker"
            reported = self.client.read_optional(purpose, "rest/api/2/serverInfo")
            kind = reported.get("deploymentType") if isinstance(reported, Mapping) else None
            self.client.memory[_KIND] = str(kind)
        return bool(self.client.memory[_KIND] == "Cloud")

    def issue_route(self, key: str, *below: str) -> str:
        """Return the route of an issue or of a resource below the issue."""
        return f"{self.api}/issue/{path(key, *below)}"

    def issue(self, key: str, names: Sequence[str]) -> TrackerIssue:
        """Return an issue with the named fields. Raises `not_found` if it is not visible."""
        purpose = f"reading the issue '{key}'"
        query = {"fields": ",".join(names) or "key", "expand": "editmeta"}
        response = self.client.read(purpose, self.issue_route(key), query=query, expect=(200, 404))
        if response.status == 404:
            error_message = describe(response)
            message = (
                f"missing, or not visible to this account; the server returned 404: {error_message}"
            )
            raise response.error("not_found", message, error_message)
        found = issue_of(response.json())
        if found is None:
            raise unexpected_body(response, "an issue")
        return found

    def field(self, key: str, name: str) -> Any:
        """Return the current value of a field of an issue."""
        return self.issue(key, [name]).fields.get(name)

    def own(self) -> Mapping[str, Any]:
        """Return the account of the task [tracker-23]."""
        if self._own is None:
            response = self.client.read("reading the task's account", "rest/api/2/myself")
            reported = response.json()
            if not isinstance(reported, Mapping):
                raise unexpected_body(response, "an account")
            self._own = reported
        return self._own

    def account(self, name: str, place: str) -> Mapping[str, str]:
        """Return an account as the server expects it, for example `{"name": "anna"}`.

        Raises `not_found` if there is no such account, `invalid` if several have the name. In the
        cloud, `name` is an id, a display name or an email address [tracker-23].

        :param place: the option, for messages
        """
        if name not in self._accounts:
            self._accounts[name] = self._account(name, place)
        return self._accounts[name]

    def _account(self, name: str, place: str) -> Mapping[str, str]:
        purpose = f"searching for the account '{name}'"
        query = {"accountId" if self.cloud else "username": name}
        response = self.client.read(purpose, "rest/api/2/user", query=query, expect=(200, 400, 404))
        found = json_or_none(response.body)
        member = "accountId" if self.cloud else "name"
        if response.status == 200 and isinstance(found, Mapping):
            return {member: str(found.get(member, name))}
        ids = self._called(purpose, name, member)
        if len(ids) > 1:
            raise invalid(
                f"{place}: several accounts are called '{name}': use one of {', '.join(ids)}"
            )
        if not ids:
            raise response.error(
                "not_found", f"{place}: there is no such account", describe(response)
            )
        return {member: ids[0]}

    def _called(self, purpose: str, name: str, member: str) -> list[str]:
        """Return the ids of the accounts with a name. Display names only count in the cloud.

        :param member: member of an account that contains its id
        """
        query = {"query" if self.cloud else "username": name, "maxResults": _MAX_ACCOUNTS}
        route = "rest/api/2/user/search"
        response = self.client.read(purpose, route, query=query, expect=(200, 403, 404))
        records = json_or_none(response.body)
        names = ("displayName", "emailAddress") if self.cloud else ("name", "key")
        return sorted(
            str(record[member])
            for record in (records if response.status == 200 and isinstance(records, list) else [])
            if isinstance(record, Mapping)
            and name.casefold() in (str(record.get(label)).casefold() for label in names)
        )

    def explained(self, error: ToolchainError, *permissions: str, **where: str) -> ToolchainError:
        """Return the error of a write as `permission` if the account lacks a permission.

        Servers report a missing permission as an invalid field, or not at all [tracker-22,
        tracker-24, tracker-28].

        :param where: `issueKey` or `projectKey`
        """
        if error.kind not in ("rejected", "not_found", "auth"):
            return error
        missing = lacking(self.client, permissions, **where)
        if missing:
            error.kind = "permission"
            error.with_hint(describe_missing(missing))
        return error


def issue_of(record: Any) -> TrackerIssue | None:
    """Parse an issue. Return None if the object is not an issue."""
    if not isinstance(record, Mapping) or not isinstance(record.get("key"), str):
        return None
    fields, editable = record.get("fields"), record.get("editmeta")
    editable = editable.get("fields") if isinstance(editable, Mapping) else None
    return TrackerIssue(
        record["key"],
        fields if isinstance(fields, Mapping) else {},
        editable if isinstance(editable, Mapping) else None,
    )
