# SPDX-License-Identifier: GPL-3.0-or-later
"""Search for issues: read line by line, and known to be whole or cut [W4.5].

Server facts [analysis-15]: C(summary=true) appends a record with the number of matches and the
warnings; how many issues a server shows without C(limit) is not published; issues may be folded
into one record, whose C(issueIds) name them all, unless the query has C(grouping:off).
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

#: More issues than any project has: a list that is shorter is whole.
_WHOLE = 1_000_000
_SUMMARY, _GROUPING = "summary", "grouping"
#: Most characters of a query in a message.
_SHOWN = 200
#: What many issues have in common.
_ALIKE = frozenset(
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
#: Servers name the number of matches in one of these ways.
_TOTALS = ("total", "item_count")


@dataclass(frozen=True)
class SearchOptions:
    """The options of a search, in modules and in the lookup."""

    project: str
    query: str | None = None
    view: str | None = None
    limit: int | None = None


@dataclass(frozen=True)
class SearchRequest:
    """What is searched for; C(limit) C(None) is everything.

    :param summary: whether to ask for the record that tells how many issues match
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
    def what(self) -> str:
        asked = f" with the query '{shorten(self.query, _SHOWN)}'" if self.query else ""
        return f"searching for issues of the project '{self.project}'{asked}"

    @property
    def call(self) -> Call:
        parameters = {"project": self.project, "query": self.query, "view": self.view}
        summary = True if self.summary else None
        return Call("search", {**parameters, "limit": self.limit, _SUMMARY: summary})


@dataclass
class SearchResult:
    """The issues of a search, and the server's own summary where it gives one."""

    request: SearchRequest
    issues: list[Record] = field(default_factory=list)
    summary: Record | None = None

    @property
    def total(self) -> int | None:
        """How many issues match, C(None) where the server does not say it."""
        told = (str((self.summary or {}).get(name)) for name in _TOTALS)
        return next((int(text) for text in told if text.isdecimal()), None)

    @property
    def complete(self) -> bool:
        """Whether this is every match; a list as long as its limit may be cut."""
        limit = self.request.limit
        short = not self.issues if limit is None else len(self.issues) < limit
        if self.total is None:
            return short
        # Whether a server counts folded issues once or one by one is not documented.
        one_by_one = sum(map(count, self.issues))
        return len(self.issues) >= self.total or (short and one_by_one == self.total)

    @property
    def warnings(self) -> list[str]:
        """What the server says about the query, as that it does not know a keyword."""
        return responses.warnings(self.summary or {})

    @property
    def folded(self) -> bool:
        """Whether a record stands for several issues."""
        return any(count(issue) > 1 for issue in self.issues)


def count(issue: Record) -> int:
    """How many issues a record stands for."""
    members = issue.get("issueIds")
    return len(members) if isinstance(members, list) and members else 1


class IssueSearch:
    """Searches of one task, with the builds of a project to check what they are limited to."""

    def __init__(self, task: Task, client: AnalysisClient) -> None:
        self._task, self._client = task, client

    def read(self, request: SearchRequest) -> SearchResult:
        """The answer; without a limit of its own the request is asked again for what a server
        left out. C(not_found) where nothing was found because there is no such build.
        """
        found = self._once(request)
        if request.limit is None and not found.complete:
            # Where no total is told, a list that is shorter than its limit is known to be whole.
            found = self._once(replace(request, limit=found.total or _WHOLE))
        if not found.issues:
            self._require_build(request)
        return found

    def read_ungrouped(self, request: SearchRequest) -> SearchResult:
        """As :meth:`read`, with a record for each issue where the server can do that."""
        found = self.read(request)
        if not found.folded or query.has_keyword(request.query or "", _GROUPING):
            return found
        text = query.joined(f"{_GROUPING}:off", request.query)
        return self.read(replace(request, query=text))

    def warn(self, found: SearchResult) -> None:
        """Hand on what the server says about the query."""
        for warning in dict.fromkeys(found.warnings):
            self._task.warn(f"{found.request.what}: {warning}")

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

        return self._client.stream(request.what, request.call, take)

    def _require_build(self, request: SearchRequest) -> None:
        """A search by a build that is not there finds nothing, and says nothing."""
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
                f"{request.what}: the project has no build {query.build_name(named[0])}",
            )


def _sharing(issue: Record, words: dict[str, str]) -> Record:
    """The issue, with names and often repeated values once for all issues instead of once each."""
    return {
        words.setdefault(name, name): words.setdefault(value, value)
        if name in _ALIKE and isinstance(value, str)
        else value
        for name, value in issue.items()
    }


def issues(task: Task, options: SearchOptions) -> list[Record]:
    """The answer of the lookup C(analysis_query)."""
    search = IssueSearch(task, AnalysisClient(task))
    found = search.read(SearchRequest(options.project, options.query, options.view, options.limit))
    search.warn(found)
    if not found.complete:
        task.warn(cut(found))
    return found.issues


def cut(found: SearchResult) -> str:
    """The words for a list that is not, or need not be, every match."""
    of = "" if found.total is None else f" of {found.total}"
    return f"{found.request.what}: the list is cut, or may be: {len(found.issues)}{of} issues"
