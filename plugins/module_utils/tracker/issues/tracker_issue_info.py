# SPDX-License-Identifier: GPL-3.0-or-later
"""The module C(tracker_issue_info): single issues by their keys [W4.2, C4.2]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...core.address import path
from ...core.concurrency import first_alone
from ...core.errors import ToolchainError, invalid
from ...core.http.messages import Response, unexpected_body
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.plan import Plan, ReadOnly, unchanged
from ..client import TrackerClient, describe
from ..search.seen_fields import SeenFields

Issue = dict[str, Any]

#: Missing issues that a message names, so that it stays a sentence.
_MOST_NAMED = 50


@dataclass(frozen=True)
class TrackerIssueInfoOptions:
    """The options of C(tracker_issue_info)."""

    issue: str | None = None
    issues: list[str] | None = None
    fields: list[str] | None = None
    expand: list[str] | None = None
    parallel: int = 4

    constraints: ClassVar[dict[str, Any]] = {
        "mutually_exclusive": [("issue", "issues")],
        "required_one_of": [("issue", "issues")],
    }

    @property
    def keys(self) -> list[str]:
        """The issues to read, each once."""
        listed = self.issues or []
        return list(dict.fromkeys(listed if self.issue is None else [self.issue]))

    @property
    def query(self) -> dict[str, str]:
        """What to read of an issue. Without C(fields) the server sends all fields of one issue."""
        query = {}
        if self.fields is not None:
            # No name at all would mean the default; the key is not a field and comes anyway.
            query["fields"] = ",".join(self.fields) or "key"
        if self.expand:
            query["expand"] = ",".join(self.expand)
        return query


class TrackerIssueInfoOperation(ReadOnly):
    """Reads C(issues) in the order in which they were asked for."""

    descriptor: ClassVar = Descriptor("tracker", {"read": reads()})

    def __init__(self, task: Task, options: TrackerIssueInfoOptions) -> None:
        require_parallel(options.parallel)
        self._task, self._options = task, options
        self._client = TrackerClient(task, connections=options.parallel)

    def plan(self) -> Plan:
        options = self._options
        found = read_issues(self._client, options.keys, options.query, options.parallel)
        for warning in SeenFields(options.fields).unseen(found):
            self._task.warn(warning)
        return unchanged({"issues": found})


def require_parallel(parallel: int) -> None:
    """C(invalid) where the option C(parallel) is not positive."""
    if parallel < 1:
        raise invalid(f"parallel is {parallel}, but must be at least 1")


def read_issues(
    client: TrackerClient, keys: Sequence[str], query: Mapping[str, str], parallel: int
) -> list[Issue]:
    """All issues, or C(not_found) that names every missing one."""
    responses = _answers(client, keys, query, parallel)
    missing = {key: response for key, response in responses.items() if response.status == 404}
    if missing:
        raise _not_found(missing)
    return [_issue(response) for response in responses.values()]


def existing_issues(
    client: TrackerClient, keys: Sequence[str], query: Mapping[str, str], parallel: int
) -> dict[str, Issue]:
    """Those issues that are there and visible, by the key by which each was asked for."""
    responses = _answers(client, keys, query, parallel)
    return {key: _issue(response) for key, response in responses.items() if response.status != 404}


def _answers(
    client: TrackerClient, keys: Sequence[str], query: Mapping[str, str], parallel: int
) -> dict[str, Response]:
    """Server fact [tracker-5]: the server answers the same, 404, for an issue that the account may
    not see.
    """

    def ask(key: str) -> Response:
        path_of_issue = f"rest/api/2/issue/{path(key)}"
        return client.read(
            f"reading the issue '{key}'", path_of_issue, query=query, expect=(200, 404)
        )

    # The first one alone: a login that is refused must not count several times towards a lock.
    return dict(zip(keys, first_alone(parallel, ask, keys), strict=True))


def _issue(response: Response) -> Issue:
    decoded = response.json()
    if not isinstance(decoded, dict) or not isinstance(decoded.get("fields", {}), dict):
        raise unexpected_body(response, "an issue")
    if not {"key", "id", "fields"} & set(decoded):
        raise unexpected_body(response, "an issue")
    return decoded


def _not_found(missing: Mapping[str, Response]) -> ToolchainError:
    names, responses = list(missing), list(missing.values())
    said = describe(responses[0])
    named = ", ".join(names[:_MOST_NAMED])
    if len(names) > _MOST_NAMED:
        named += f" and {len(names) - _MOST_NAMED} more"
    return responses[0].error(
        "not_found",
        f"missing, or not visible to this account: {named}; the server returned 404: {said}",
        said,
    )
