# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads that edits share: the kind of server, accounts and current issues."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...core.address import path
from ...core.errors import ToolchainError
from ...core.http.messages import unexpected_body
from ...core.json_text import as_text, member
from ...core.module.task import Task
from ...core.plan import Change
from ..accounts import Accounts, describe_missing, lacking, own_account
from ..client import TrackerClient, not_visible


@dataclass(frozen=True)
class TrackerIssue:
    """An issue. `editable`: metadata of the fields that can be set, by id; None if unknown."""

    key: str
    fields: Mapping[str, Any]
    editable: Mapping[str, Any] | None = None
    id: str = ""

    @property
    def project(self) -> str:
        return self.key.rpartition("-")[0]

    def is_same(self, record: Any) -> bool:
        """Return whether a record is about this issue. A key changes if the issue is moved."""
        number = as_text(member(record, "id"))
        if self.id and number:
            return self.id == number
        return as_text(member(record, "key")).upper() == self.key.upper()


def is_moved(before: TrackerIssue, now: TrackerIssue) -> bool:
    """Return whether an issue that was read with its status has another one now."""
    return "status" in now.fields and now.fields["status"] != before.fields.get("status")


class Site:
    """Read issues and accounts of the server of a task.

    :param knows_cloud: whether to detect if the server is in the cloud
    """

    def __init__(self, task: Task, client: TrackerClient, *, knows_cloud: bool) -> None:
        self.task, self.client = task, client
        self.cloud = knows_cloud and client.cloud
        #: Version 3 of the cloud's interface needs documents instead of strings [tracker-25].
        self.api = "rest/api/3" if self.cloud else "rest/api/2"
        self.accounts = Accounts(client, task.warn, cloud=self.cloud)
        self._named: dict[str, TrackerIssue] = {}

    def issue_route(self, key: str, *below: str) -> str:
        """Return the route of an issue or of a resource below the issue."""
        return f"{self.api}/issue/{path(key, *below)}"

    def issue(self, key: str, names: Sequence[str]) -> TrackerIssue:
        """Return an issue with the named fields. Raises `not_found` if it is not visible."""
        purpose = f"reading the issue '{key}'"
        query = {"fields": ",".join(names) or "key", "expand": "editmeta"}
        response = self.client.read(purpose, self.issue_route(key), query=query, expect=(200, 404))
        if response.status == 404:
            raise not_visible(response)
        found = issue_of(response.json())
        if found is None:
            raise unexpected_body(response, "an issue")
        return found

    def named(self, key: str) -> TrackerIssue:
        """Return the issue that an option names, with its present key [tracker-5].

        It is read once. Raises `not_found` if it is missing or not visible.
        """
        if key not in self._named:
            self._named[key] = self.issue(key, [])
        return self._named[key]

    def field(self, key: str, name: str) -> Any:
        """Return the current value of a field of an issue."""
        return self.issue(key, [name]).fields.get(name)

    @cached_property
    def own(self) -> Mapping[str, Any]:
        """Return the account of the task [tracker-23]."""
        return own_account(self.client)

    def write(
        self,
        purpose: str,
        method: str,
        route: str,
        *,
        needs: Sequence[str],
        issue: str,
        **parts: Any,
    ) -> None:
        """Send a write to an issue. Its error reports a missing permission.

        :param needs: required permissions
        :param issue: key of the issue
        """
        try:
            self.client.write(purpose, method, route, **parts)
        except ToolchainError as error:
            raise self.explained(error, *needs, issueKey=issue) from None

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
    fields, editable = record.get("fields"), member(record, "editmeta", "fields")
    return TrackerIssue(
        record["key"],
        fields if isinstance(fields, Mapping) else {},
        editable if isinstance(editable, Mapping) else None,
        as_text(record.get("id")),
    )


@dataclass(frozen=True)
class Edit:
    """A write to an issue, with its changes and the permissions that it needs.

    `comment`: the comment that the write adds, which a transition can add instead.
    """

    changes: tuple[Change, ...]
    write: Callable[[], None]
    needs: tuple[str, ...]
    comment: Mapping[str, Any] | None = None


class Part(ABC):
    """A managed part: fields, links, attachments, a comment, watchers or the status."""

    def __init__(self, site: Site) -> None:
        self._site = site

    @property
    def names(self) -> tuple[str, ...]:
        """Return the ids of the fields that the part compares."""
        return ()

    @property
    @abstractmethod
    def needs(self) -> tuple[str, ...]:
        """Return the permissions for creating an issue with this part [tracker-28]."""

    def differs(self, issue: TrackerIssue) -> bool:
        """Return whether the fields of an issue differ, or cannot show that they are equal."""
        return True

    @abstractmethod
    def edits(self, issue: TrackerIssue) -> list[Edit]:
        """Return the writes for an issue. Raises the errors that the server would return."""

    @abstractmethod
    def expected(self) -> tuple[Change, ...]:
        """Return the values for a new issue."""

    def unsaved(self, before: TrackerIssue, now: TrackerIssue) -> list[Change]:
        """Return the changes that the server accepted, but did not store.

        :param before: the issue for which the edits were planned
        :param now: the issue after the writes, with the fields in `names`
        """
        return [change for edit in self.edits(now) for change in edit.changes]
