# SPDX-License-Identifier: GPL-3.0-or-later
"""Search issues: read line by line, and detect incomplete results [W4.5].

Server facts [analysis-15]: `summary=true` appends a record with the number of matches and the
warnings. The default limit is not published. Without `grouping:off` in the query, a record may be
a group of issues that has their ids in `issueIds`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ...core.errors import ToolchainError, invalid, shorten
from ...core.module.task import Task
from .. import responses
from .. import search_text as query
from ..client import AnalysisClient, Call
from ..responses import Record

#: More issues than any project has: a shorter list is complete.
_WHOLE = 1_000_000
_SUMMARY, _GROUPING = "summary", "grouping"
#: Maximum characters of a query in a message.
_SHOWN = 200
#: Members whose values many issues share.
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
#: Names of the number of matches on different servers.
_TOTALS = ("total", "item_count")


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search, in modules and in the lookup."""

    project: str
    query: str | None = None
    view: str | None = None
    limit: int | None = None


@dataclass(frozen=True)
class SearchRequest:
    """A search; with `limit` `None` all matches are wanted.

    :param summary: whether to request the record with the number of matches
    """

    project: str
    query: str | None = None
    view: str | None = None
    limit: int | None = None
    summary: bool = True

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise invalid(f"limit is {self.limit}, but must be at least 1")
        query.require_one_build(self.query or "")

    @property
    def purpose(self) -> str:
        asked = f" with the query '{shorten(self.query, _SHOWN)}'" if self.query else ""
        return f"searching for issues of the project '{self.project}'{asked}"

    @property
    def call(self) -> Call:
        parameters = {"project": self.project, "query": self.query, "view": self.view}
        summary = True if self.summary else None
        return Call("search", {**parameters, "limit": self.limit, _SUMMARY: summary})


@dataclass
class SearchResult:
    """The issues of a search, and the server's summary if there is any."""

    request: SearchRequest
    issues: list[Record] = field(default_factory=list)
    summary: Record | None = None

    @property
    def total(self) -> int | None:
        """Return the number of matches; `None` if the server omits it."""
        reported = (str((self.summary or {}).get(name)) for name in _TOTALS)
        return next((int(text) for text in reported if text.isdecimal()), None)

    @property
    def complete(self) -> bool:
        """Return whether the result has every match; a list as long as its limit may be
        truncated.
        """
        limit = self.request.limit
        short = not self.issues if limit is None else len(self.issues) < limit
        if self.total is None:
            return short
        # Whether a server counts grouped issues once or individually is not documented.
        one_by_one = sum(map(count, self.issues))
        return len(self.issues) >= self.total or (short and one_by_one == self.total)

    @property
    def warnings(self) -> list[str]:
        """Return the server's warnings about the query, for instance an unknown keyword."""
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
    """Searches of a task, with the builds of a project to verify filters by build."""

    def __init__(self, task: Task, client: AnalysisClient) -> None:
        self._task, self._client = task, client

    def read(self, request: SearchRequest) -> SearchResult:
        """Return the result; without a limit in the request, search again for truncated issues.
        Raises `not_found` if the result is empty because the build does not exist.
        """
        found = self._once(request)
        if request.limit is None and not found.complete:
            # Without a total, a list shorter than its limit is known to be complete.
            found = self._once(replace(request, limit=found.total or _WHOLE))
        if not found.issues:
            self._require_build(request)
        return found

    def read_ungrouped(self, request: SearchRequest) -> SearchResult:
        """Return the result as :meth:`read`, with one record per issue if the server
        supports that.
        """
        found = self.read(request)
        if not found.folded or query.has_keyword(request.query or "", _GROUPING):
            return found
        text = query.joined(f"{_GROUPING}:off", request.query)
        return self.read(replace(request, query=text))

    def warn(self, found: SearchResult) -> None:
        """Pass the server's warnings about the query to the user."""
        for warning in dict.fromkeys(found.warnings):
            self._task.warn(f"{found.request.purpose}: {warning}")

    def _once(self, request: SearchRequest) -> SearchResult:
        def take(records: Iterator[Record]) -> SearchResult:
            found = SearchResult(request)
            words: dict[str, str] = {}
            for record in records:
                summary = record.get(_SUMMARY)
                if isinstance(summary, dict) and "id" not in record:
                    found.summary = summary
                else:
                    found.issues.append(_sharing(record, words))
            return found

        return self._client.stream(request.purpose, request.call, take)

    def _require_build(self, request: SearchRequest) -> None:
        """Raise `not_found` for a missing build: the search would silently find nothing."""
        named = query.builds_of(request.query or "")
        if not named:
            return
        builds = self._client.ask(
            f"reading the builds of the project '{request.project}'",
            Call("builds", {"project": request.project}),
        )
        if not query.names_build(named[0], builds):
            raise ToolchainError(
                "not_found",
                f"{request.purpose}: the project has no build {query.build_name(named[0])}",
            )


def _sharing(issue: Record, words: dict[str, str]) -> Record:
    """Return the issue with shared strings for names and frequent values, to save memory."""
    return {
        words.setdefault(name, name): words.setdefault(value, value)
        if name in _SHARED_MEMBERS and isinstance(value, str)
        else value
        for name, value in issue.items()
    }


def issues(task: Task, options: SearchOptions) -> list[Record]:
    """Return the result of the lookup `analysis_query`."""
    search = IssueSearch(task, AnalysisClient(task))
    found = search.read(SearchRequest(options.project, options.query, options.view, options.limit))
    search.warn(found)
    if not found.complete:
        task.warn(cut(found))
    return found.issues


def cut(found: SearchResult) -> str:
    """Return the message for a list that may be incomplete."""
    of = "" if found.total is None else f" of {found.total}"
    return (
        f"{found.request.purpose}: the list is or may be incomplete: {len(found.issues)}{of} issues"
    )
