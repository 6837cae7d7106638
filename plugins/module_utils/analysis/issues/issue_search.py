# SPDX-License-Identifier: GPL-3.0-or-later
"""Search issues, and detect incomplete results [W4.5].

Server facts [analysis-15]: `summary=true` appends a record with the number of matches and the
warnings. The default limit is not documented. Without `grouping:off` in the query, a record may be
a group of issues; `issueIds` then contains their ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ...core.errors import ToolchainError, shorten
from ...core.json_text import as_text
from ...core.module.task import Task
from ...core.module.typed_options import Positive
from .. import responses
from .. import search_text as query
from ..client import AnalysisClient, Call
from ..responses import Record

#: Limit that exceeds the number of issues in any project.
_NO_LIMIT = 1_000_000
_SUMMARY, _GROUPING = "summary", "grouping"
#: Maximum number of characters of a query in a message.
_MAX_QUERY_LENGTH = 200
#: Members that have the same value in many issues.
_SHARED_MEMBERS = frozenset(
    {
        "status",
        "severity",
        "state",
        "code",
        "title",
        "owner",
        "taxonomyName",
        "file",
        "supportLevel",
    }
)
#: Member of the summary with the number of matches, and members that may exceed the list.
_TOTAL, _COUNTS = "total", ("total", "item_count")


@dataclass(frozen=True)
class SearchOptions:
    """Search options that modules and the lookup `analysis_query` share."""

    project: str
    query: str | None = None
    view: str | None = None
    limit: Positive | None = None


@dataclass(frozen=True)
class SearchRequest:
    """A search request.

    :param limit: maximum number of records; `None` means all
    :param summary: whether to request the record with the number of matches
    """

    project: str
    query: str | None = None
    view: str | None = None
    limit: int | None = None
    summary: bool = True

    def __post_init__(self) -> None:
        query.require_one_build(self.query or "")
        query.require_values(self.query or "")

    @property
    def purpose(self) -> str:
        query_text = (
            f" with the query '{shorten(self.query, _MAX_QUERY_LENGTH)}'" if self.query else ""
        )
        return f"searching for issues of the project '{self.project}'{query_text}"

    @property
    def call(self) -> Call:
        parameters = {"project": self.project, "query": self.query, "view": self.view}
        summary = True if self.summary else None
        return Call("search", {**parameters, "limit": self.limit, _SUMMARY: summary})


@dataclass
class SearchResult:
    """Result of a search. `summary` is `None` if the server did not send it."""

    request: SearchRequest
    issues: list[Record] = field(default_factory=list)
    summary: Record | None = None

    @property
    def total(self) -> int | None:
        """Return the number of matching issues, or `None` if the server does not report it."""
        return self._number(_TOTAL)

    @property
    def fills_limit(self) -> bool:
        """Return whether the list is as long as a limit, and its total may be that of the list."""
        return any(len(self.issues) >= limit for limit in self._limits)

    @property
    def complete(self) -> bool:
        """Return whether the result contains all matches.

        A list without a total is complete if it is shorter than its limit. A count that exceeds the
        list contradicts that; a count below its length is no total.
        """
        received, total = len(self.issues), self.total
        below_limit = not self.fills_limit if self._limits else not received
        # it is not documented whether counts are those of groups or of single issues
        most = sum(map(count, self.issues)) if below_limit else received
        if any((self._number(name) or 0) > most for name in _COUNTS):
            return False
        return below_limit or (total is not None and total >= received)

    @property
    def _limits(self) -> list[int]:
        """Return the limit of the request, and the limit that the server reports. 0 is no limit."""
        limits = (self.request.limit, self._number("limit"))
        return [limit for limit in limits if limit]

    def _number(self, name: str) -> int | None:
        text = as_text((self.summary or {}).get(name))
        return int(text) if text.isdecimal() else None

    @property
    def warnings(self) -> list[str]:
        """Return the server's warnings about the query, for example about an unknown keyword."""
        return responses.warnings(self.summary or {})

    @property
    def folded(self) -> bool:
        """Return whether a record represents several issues."""
        return any(count(issue) > 1 for issue in self.issues)


def count(issue: Record) -> int:
    """Return the number of issues in a record."""
    members = issue.get("issueIds")
    return len(members) if isinstance(members, list) and members else 1


class IssueSearch:
    """Sends the searches of a task."""

    def __init__(self, task: Task, client: AnalysisClient) -> None:
        self._task, self._client = task, client

    def read(self, request: SearchRequest) -> SearchResult:
        """Return the result of a search.

        Without a limit in the request, a truncated result is read again with a higher limit. Raises
        `not_found` if the result is empty because the build in the query does not exist.
        """
        found = self._send(request)
        if request.limit is None and (found.fills_limit or not found.complete):
            # only a list that is shorter than its limit is certainly complete
            more = (found.total or 0) > len(found.issues)
            found = self._send(
                replace(request, limit=(found.total or 0) + 1 if more else _NO_LIMIT)
            )
        if not found.issues:
            self._require_build(request)
        return found

    def read_ungrouped(self, request: SearchRequest) -> SearchResult:
        """Return the result of `read`, with a record per issue if the server supports that."""
        found = self.read(request)
        if not found.folded or query.has_keyword(request.query or "", _GROUPING):
            return found
        text = query.joined(f"{_GROUPING}:off", request.query)
        return self.read(replace(request, query=text))

    def warn(self, found: SearchResult) -> None:
        """Pass the server's warnings about the query to the user."""
        for warning in dict.fromkeys(found.warnings):
            self._task.warn(f"{found.request.purpose}: {warning}")

    def _send(self, request: SearchRequest) -> SearchResult:
        def take(records: Iterator[Record]) -> SearchResult:
            found = SearchResult(request)
            strings: dict[str, str] = {}
            for record in records:
                summary = record.get(_SUMMARY)
                if "id" not in record:
                    if not isinstance(summary, dict):
                        raise _not_an_issue(request)
                    found.summary = summary
                else:
                    found.issues.append(_with_shared_strings(record, strings))
            return found

        result = self._client.stream(request.purpose, request.call, take)
        if not result.issues and result.summary is None:
            self._client.require_service()
        return result

    def _require_build(self, request: SearchRequest) -> None:
        """Raise `not_found` if the build in the query does not exist.

        The server returns an empty result for it without a warning.
        """
        names = query.builds_of(request.query or "")
        if not names:
            return
        builds = self._client.ask(
            f"reading the builds of the project '{request.project}'",
            Call("builds", {"project": request.project}),
        )
        if not query.names_build(names[0], builds):
            raise ToolchainError(
                "not_found",
                f"{request.purpose}: the build {query.build_name(names[0])} does not exist",
            )


def _not_an_issue(request: SearchRequest) -> ToolchainError:
    message = "the response contains an object that is no issue, so it may be of another program"
    return ToolchainError("protocol", f"{request.purpose}: {message}: check url")


def _with_shared_strings(issue: Record, strings: dict[str, str]) -> Record:
    """Return the issue with its names and frequent values replaced by shared strings, which saves
    memory.
    """
    return {
        strings.setdefault(name, name): strings.setdefault(value, value)
        if name in _SHARED_MEMBERS and isinstance(value, str)
        else value
        for name, value in issue.items()
    }


def issues(task: Task, options: SearchOptions) -> list[Record]:
    """Return the matching issues for the lookup `analysis_query`."""
    search = IssueSearch(task, AnalysisClient(task))
    found = search.read(SearchRequest(options.project, options.query, options.view, options.limit))
    search.warn(found)
    if not found.complete:
        task.warn(cut(found))
    return found.issues


def cut(found: SearchResult) -> str:
    """Return the error message for an incomplete list of issues."""
    total = "" if found.total is None else f" of {found.total}"
    return f"{found.request.purpose}: the list may be incomplete: {len(found.issues)}{total} issues"
