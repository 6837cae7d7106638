# SPDX-License-Identifier: GPL-3.0-or-later
"""Module `tracker_issue_info`: read issues by their keys [W4.2, C4.2]."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from ...core.address import path
from ...core.concurrency import first_alone
from ...core.http.messages import Response, unexpected_body
from ...core.http.paged_list import is_whole
from ...core.json_text import member
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.module.typed_options import Option, Positive, Segment
from ...core.plan import Plan, ReadOnly, unchanged
from ..client import TrackerClient, not_visible
from ..service import SERVICE

Issue = dict[str, Any]

#: Lists that a search may truncate: the member of the issue, and the member with the entries.
_LISTS = (("comment", "comments"), ("worklog", "worklogs"), ("changelog", "histories"))
#: Maximum length of such a list in the cloud, which does not always send the total.
_MAX_ENTRIES = 20
#: Maximum number of keys of issues in a warning.
_MAX_KEYS = 10
#: Members of an issue that are not in `fields`.
_NOT_FIELDS = frozenset({"key", "id", "self"})
#: Maximum number of missing issues in a message.
_MAX_NAMED = 50


@dataclass(frozen=True)
class TrackerIssueInfoOptions:
    """Options of `tracker_issue_info`."""

    issue: Segment | None = None
    issues: Annotated[list[str] | None, Option(aliases=("keys",), segment=True)] = None
    fields: list[str] | None = None
    expand: list[str] | None = None
    parallel: Positive = 4

    constraints: ClassVar[dict[str, Any]] = {
        "mutually_exclusive": [("issue", "issues")],
        "required_one_of": [("issue", "issues")],
    }

    @property
    def keys(self) -> list[str]:
        """Return the keys without duplicates."""
        listed = self.issues or []
        return list(dict.fromkeys(listed if self.issue is None else [self.issue]))

    @property
    def query(self) -> dict[str, str]:
        """Return the query parameters of a read. Without `fields` the server sends all fields."""
        query = {}
        if self.fields is not None:
            # An empty list would select the default fields. The key is always returned.
            query["fields"] = ",".join(self.fields) or "key"
        if self.expand:
            query["expand"] = ",".join(self.expand)
        return query


class MissingParts:
    """Find requested fields that no issue has, and lists that the search has truncated.

    A field that no issue has is usually a typo [C1.6]. A search truncates long lists in issues
    [tracker-11].

    :param asked: names of the requested fields; None means the default fields
    :param by_keys: whether they are keys of fields, which responses do not contain
    """

    def __init__(self, asked: Iterable[str] | None, *, by_keys: bool = False) -> None:
        asked = [] if by_keys else asked or []
        named = [name for name in asked if not name.startswith(("*", "-"))]
        #: Requested fields that no issue has so far.
        self._left = {name for name in named if name not in _NOT_FIELDS}
        #: Keys of the issues with truncated lists, by name of the list.
        self._cut: dict[str, list[str]] = {}

    def through(self, take: Callable[[Issue], None] | None) -> Callable[[Issue], None] | None:
        """Return a function that checks each issue before it calls `take`. None without `take`."""
        if take is None:
            return None

        def check_and_take(issue: Issue) -> None:
            self._check(issue)
            take(issue)

        return check_and_take

    def _check(self, issue: Issue) -> None:
        fields = issue.get("fields")
        members = {**fields} if isinstance(fields, Mapping) else {}
        self._left.difference_update(members)
        members["changelog"] = issue.get("changelog")
        for name, entries in _LISTS:
            shown = members.get(name)
            found = member(shown, entries)
            if not isinstance(found, list):
                continue
            limited = len(found) >= _MAX_ENTRIES and not isinstance(member(shown, "total"), int)
            if limited or not is_whole(shown, found):
                self._cut.setdefault(name, []).append(str(issue.get("key") or issue.get("id")))

    def unseen(self, count: int, issues: Iterable[Issue]) -> list[str]:
        """Check further issues. Return a warning if no issue has a requested field.

        :param count: number of all issues
        """
        for issue in issues:
            self._check(issue)
        if not count or not self._left:
            return []
        names = ", ".join(sorted(self._left))
        return [f"fields: no issue in the result has {names} (use ids, not names)"]

    def warnings(self, count: int, issues: Iterable[Issue]) -> list[str]:
        """Check further issues. Return warnings about fields and each kind of truncated list."""
        found = self.unseen(count, issues)
        for name, keys in self._cut.items():
            more = f" and {len(keys) - _MAX_KEYS} more" if len(keys) > _MAX_KEYS else ""
            found.append(
                f"{name}: a search truncates long lists, so {', '.join(keys[:_MAX_KEYS])}{more} may"
                f" have more entries; rest/api/2/issue/KEY/{name} returns all of them"
            )
        return found


class TrackerIssueInfoOperation(ReadOnly):
    """Read issues in the order of their keys in the options."""

    descriptor: ClassVar = Descriptor(SERVICE, {"read": reads("browse")})

    def __init__(self, task: Task, options: TrackerIssueInfoOptions) -> None:
        self._task, self._options = task, options
        self._client = TrackerClient(task, connections=options.parallel)

    def plan(self) -> Plan:
        options = self._options
        if not options.keys:
            self._task.warn("issues is empty: no issue is read")
        found = read_issues(self._client, options.keys, options.query, options.parallel)
        for warning in MissingParts(options.fields).unseen(len(found), found):
            self._task.warn(warning)
        return unchanged({"issues": found})


def read_issues(
    client: TrackerClient, keys: Sequence[str], query: Mapping[str, str], parallel: int
) -> list[Issue]:
    """Return each issue once, with the keys that lead to it in the member `requested`.

    Raises `not_found`, which reports all missing keys. Server fact [tracker-5]: the ID and former
    keys of an issue also lead to it, and letter case does not matter.
    """
    responses = _responses(client, keys, query, parallel)
    missing = {key: response for key, response in responses.items() if response.status == 404}
    if missing:
        names = list(missing)
        more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
        raise not_visible(missing[names[0]], f"{', '.join(names[:_MAX_NAMED])}{more}")
    found: dict[str, Issue] = {}
    for key, response in responses.items():
        issue = _issue(response)
        identity = str(issue.get("id") or issue.get("key") or key)
        found.setdefault(identity, {**issue, "requested": []})["requested"].append(key)
    return list(found.values())


def existing_issues(
    client: TrackerClient, keys: Sequence[str], query: Mapping[str, str], parallel: int
) -> dict[str, Issue]:
    """Return the issues that exist and are visible, by the requested key."""
    responses = _responses(client, keys, query, parallel)
    return {key: _issue(response) for key, response in responses.items() if response.status != 404}


def _responses(
    client: TrackerClient, keys: Sequence[str], query: Mapping[str, str], parallel: int
) -> dict[str, Response]:
    """Read the issues. Server fact [tracker-5]: a 404 also reports an issue that is not visible."""

    def read(key: str) -> Response:
        path_of_issue = f"rest/api/2/issue/{path(key)}"
        return client.read(
            f"reading the issue '{key}'", path_of_issue, query=query, expect=(200, 404)
        )

    # The first request is sent alone: several rejected logins could lock the account.
    return dict(zip(keys, first_alone(parallel, read, keys), strict=True))


def _issue(response: Response) -> Issue:
    decoded = response.json()
    if not isinstance(decoded, dict) or not isinstance(decoded.get("fields", {}), dict):
        raise unexpected_body(response, "an issue")
    if not {"key", "id", "fields"} & set(decoded):
        raise unexpected_body(response, "an issue")
    return decoded
