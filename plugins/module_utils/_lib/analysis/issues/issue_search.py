# SPDX-License-Identifier: GPL-3.0-or-later
"""Search issues, and detect incomplete results [W4.5].

Server facts [analysis-15]: `summary=true` appends a record with the number of matches and the
warnings. The default limit is not documented. Without `grouping:off` in the query, a record may be
a group of issues; `issueIds` then contains their ids.

Server facts [analysis-16]: a search matches one of the values of a keyword, and all keywords. No
blank follows the colon. A value with blanks is quoted. Quotation marks cannot be escaped, so a
value cannot contain both kinds. The server only warns about unknown keywords.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from ...core.errors import excerpt, invalid, not_found, protocol, shorten
from ...core.json_text import as_text
from ...core.module import input_check
from ...core.module.task import Task
from ...core.module.typed_options import Positive
from .. import responses
from ..client import AnalysisClient, Call
from ..responses import Record

#: Values without quotation marks. The asterisk is a wildcard.
_PLAIN = re.compile(r"[\w.*/\\-]+")
_KEYWORD = re.compile(r"[A-Za-z]\w*", re.ASCII)
_TERM = re.compile(r"""(?:[^\s'"]|'[^']*'|"[^"]*")+""")
_QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""")
_VALUE = re.compile(r"""(?:[^,'"]|'[^']*'|"[^"]*")+""")
_BUILD, _BUILD_EXACT, _TEXT = "build", "build_exact", "text"
#: Values of `build` with a special meaning [analysis-16].
_ANY_BUILD = frozenset({"any", "last"})


def build(clauses: Any) -> str:
    """Return the search query for a dict of keywords and values.

    Raises `invalid` for several builds, an empty value, or a value with both kinds of quotation
    marks.

    :param clauses: keyword to a value, a list of alternatives, or `None` to omit the keyword;
        additional keywords are `build_exact` and `text` (full-text search)
    """
    if not isinstance(clauses, Mapping):
        raise invalid(f"the query must be a dict of keywords and values, not {excerpt(clauses)}")
    terms: list[str] = []
    # words after a keyword could be taken for a part of its value
    for keyword, value in sorted(clauses.items(), key=lambda clause: str(clause[0]) != _TEXT):
        if value is not None:
            terms += _terms(str(keyword), value)
    if not terms:
        raise invalid("the query is empty and would match every issue: omit it")
    text = " ".join(terms)
    require_one_build(text)
    return text


def exact_build(name: str) -> str:
    """Return the search term that matches only the build with this name."""
    return f"{_BUILD}:+{_quoted(_BUILD, name)}"


def joined(*parts: str | None) -> str | None:
    """Join queries that must all match. Return `None` without queries."""
    return " ".join(part for part in parts if part) or None


def has_keyword(text: str, keyword: str) -> bool:
    return any(name == keyword for name, value in _pairs(text))


def builds_of(text: str) -> list[str]:
    """Return the values of the keyword `build` in a query, unchanged."""
    values = (value for name, value in _pairs(text) if name == _BUILD)
    return [item.strip() for value in values for item in _VALUE.findall(value)]


def require_one_build(text: str) -> None:
    """Raise `invalid` for a query with several builds, which servers do not support."""
    found = builds_of(text)
    if len(found) > 1:
        raise invalid(f"the query has {len(found)} builds; use only one: {', '.join(found)}")


def require_exact_build(text: str) -> None:
    """Raise `invalid` for a build that is not named exactly: `build:x` may match other builds."""
    for value in builds_of(text):
        if not value.startswith("+"):
            name = build_name(value)
            raise invalid(
                f"the query contains build:{value}, which may match other builds or none: set build"
                f" to '{name}', or write {exact_build(name)}"
            )


def require_values(text: str) -> None:
    """Raise `invalid` for a keyword without a value, as in `severity: 1` and `severity :1`."""
    for term in _TERM.findall(text):
        keyword, colon, value = term.partition(":")
        values = _QUOTED.sub(lambda quoted: quoted[0][1:-1].replace(",", " "), value).split(",")
        if colon and not keyword and value:
            raise invalid(
                f"the query contains '{term}' without a keyword: write it directly before the"
                " colon, as in severity:1,2"
            )
        is_keyword = _KEYWORD.fullmatch(keyword) or not keyword
        if colon and is_keyword and not all(item.strip(" +") for item in values):
            raise invalid(
                f"the query contains '{term}' without a value: write the value directly after the"
                " colon, as in severity:1,2"
            )


def require_quoted_values(text: str) -> None:
    """Raise `invalid` for a word after a term, as in `status:Not a Problem`, and for a quotation
    mark without its pair.
    """
    if _TERM.sub("", text).strip():
        raise invalid(f"the query has a quotation mark without its pair: {text}")
    terms = _TERM.findall(text)
    for number, term in enumerate(terms):
        is_word: Callable[[str], bool] = lambda word: ":" not in word and word[0] not in "'\""  # noqa: E731
        words = " ".join(takewhile(is_word, terms[number + 1 :])) if ":" in term else ""
        if words:
            keyword, plus, value = re.split(r":(\+?)", term, maxsplit=1)
            raise invalid(
                f"the query contains '{term} {words}': quote a value with blanks, as in"
                f" {keyword}:{plus}'{value} {words}', and write other words before the first"
                " keyword"
            )


def names_build(value: str, builds: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a value of `build` matches a build of the project.

    :param builds: records of the project's builds
    """
    text = build_name(value).casefold()
    names = [as_text(record.get("name")).casefold() for record in builds]
    if value.startswith("+"):
        return text in names
    numbers = [as_text(record.get("id")) for record in builds]
    if text in _ANY_BUILD or text in numbers:
        return True
    pattern = re.compile(".*".join(map(re.escape, text.split("*"))))
    return any(pattern.search(name) for name in names)


def build_name(value: str) -> str:
    """Return the build name in a search value such as `+'release 1'`."""
    text = value.removeprefix("+")
    quoted = len(text) > 1 and text[0] in "'\"" and text[0] == text[-1]
    return text[1:-1] if quoted else text


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield the keyword, in lower case, and the value of each term."""
    for term in _TERM.findall(text):
        keyword, colon, value = term.partition(":")
        if colon and _KEYWORD.fullmatch(keyword):
            yield keyword.lower(), value


def _terms(keyword: str, value: Any) -> list[str]:
    if _KEYWORD.fullmatch(keyword) is None:
        raise invalid(f"'{keyword}' is not a search keyword: it must be one word")
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    if not values:
        raise invalid(f"the list of {keyword} is empty: omit it to match all")
    if keyword == _TEXT:
        return [_quoted(keyword, _text_of(keyword, item)) for item in values]
    if keyword == _BUILD_EXACT:
        return [exact_build(_text_of(keyword, item)) for item in values]
    values = [_quoted(keyword, _text_of(keyword, item)) for item in values]
    plain = [item for item in values if _PLAIN.fullmatch(item)]
    quoted = [item for item in values if item not in plain]
    # repeat the keyword for quoted values, because lists of quoted values are not documented
    return [f"{keyword}:{item}" for item in [*([",".join(plain)] if plain else []), *quoted]]


def _text_of(keyword: str, value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return input_check.text(value, input_check.Place(keyword))


def _quoted(keyword: str, text: str) -> str:
    """Return a value for a query, with quotation marks if necessary."""
    if any(character < " " or character == "\x7f" for character in text):
        raise invalid(f"the value of {keyword} contains a line break or another control character")
    if _PLAIN.fullmatch(text):
        return text
    for mark in "'\"":
        if mark not in text:
            return f"{mark}{text}{mark}"
    raise invalid(
        f"the value of {keyword} contains both kinds of quotation marks; use only one: {text}"
    )


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
        require_one_build(self.query or "")
        require_values(self.query or "")

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
        names = builds_of(request.query or "")
        if names and not found.issues:  # as for a build that does not exist, without a warning
            purpose = f"reading the builds of the project '{request.project}'"
            builds = self._client.ask(purpose, Call("builds", {"project": request.project}))
            if not names_build(names[0], builds):
                missing = f"the build {build_name(names[0])} does not exist"
                raise not_found(f"{request.purpose}: {missing}")
        return found

    def read_ungrouped(self, request: SearchRequest) -> SearchResult:
        """Return the result of `read`, with a record per issue if the server supports that."""
        found = self.read(request)
        if not found.folded or has_keyword(request.query or "", _GROUPING):
            return found
        text = joined(f"{_GROUPING}:off", request.query)
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
                if as_text(record.get("id")).isdecimal() and "code" in record:
                    # equal names and frequent values share a string, which saves memory
                    issue = {
                        strings.setdefault(name, name): strings.setdefault(value, value)
                        if name in _SHARED_MEMBERS and isinstance(value, str)
                        else value
                        for name, value in record.items()
                    }
                    found.issues.append(issue)
                elif isinstance(summary, dict):
                    found.summary = summary
                else:
                    raise protocol(
                        f"{request.purpose}: the response contains an object that is no issue"
                        f" ({shorten(str(record), 120)}), so it may be of another program: check"
                        " url"
                    )
            return found

        result = self._client.stream(request.purpose, request.call, take)
        if not result.issues and result.summary is None:
            self._client.require_service()
        return result


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
