# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads a search page by page, by offset or by token. What the server sent counts, not what was
asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.concurrency import bounded
from ..core.errors import ToolchainError

Issue = dict[str, Any]

#: Pages beyond those that the server announced; a server that never ends is broken.
_MOST_PAGES = 10_000
#: Empty pages in a row that still have a successor.
_MOST_EMPTY = 3
_MOST_REREADS = 3


@dataclass(frozen=True)
class SearchRange:
    """The issues to read: C(count) of them (C(None): all) from C(start) on, C(page_size) a page."""

    start: int
    count: int | None
    page_size: int

    @property
    def end(self) -> int | None:
        return None if self.count is None else self.start + self.count

    def size_at(self, position: int) -> int:
        """How many issues to ask for at C(position)."""
        return self.page_size if self.end is None else min(self.page_size, self.end - position)


@dataclass(frozen=True)
class FoundIssues:
    """All issues of a search; C(total) is C(None) where the server does not tell it.

    C(count): how many they are, also where they were handed on and C(issues) is empty.
    """

    issues: list[Issue]
    count: int
    total: int | None
    complete: bool
    warnings: list[str]


def identity_of(issue: Issue) -> str | None:
    """What tells an issue from all others: its id, or its key where a server sends no ids."""
    identity = issue.get("key") if issue.get("id") is None else issue["id"]
    return None if identity is None else str(identity)


@dataclass
class CollectedIssues:
    """Issues in the order of the server, each one once: those from C(first) up to C(last) (C(None):
    the end) are kept, or handed on to C(take).
    """

    first: int = 0
    last: int | None = None
    take: Callable[[Issue], None] | None = None
    issues: list[Issue] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    #: How many issues there were, whether they are kept or not.
    seen: int = 0
    _identities: set[str | None] = field(default_factory=set)

    @property
    def count(self) -> int:
        """How many issues were kept or handed on."""
        end = self.seen if self.last is None else min(self.last, self.seen)
        return max(0, end - self.first)

    def add(self, response: Mapping[str, Any]) -> int:
        """Add the issues of a page; returns how many of them are new."""
        before = self.seen
        keep = self.take or self.issues.append
        for issue in response["issues"]:
            identity = identity_of(issue)
            if identity is None or identity not in self._identities:
                self._identities.add(identity)
                if self.first <= self.seen and (self.last is None or self.seen < self.last):
                    keep(issue)
                self.seen += 1
        said = response.get("warningMessages")
        lines = [said] if isinstance(said, str) else said
        self.warnings += map(str, lines) if isinstance(lines, list) else []
        return self.seen - before


@dataclass(frozen=True)
class OffsetPage:
    """An answer and its position in the result."""

    start: int
    response: Mapping[str, Any]

    @property
    def count(self) -> int:
        return len(self.response["issues"])

    @property
    def end(self) -> int:
        return self.start + self.count

    @property
    def total(self) -> int | None:
        """How many issues match; C(None) where the page itself holds more than that."""
        told = _number(self.response, "total")
        return None if told is not None and self.count and self.end > told else told

    def begins_like(self, other: OffsetPage) -> bool:
        mine, others = self.response["issues"][:1], other.response["issues"][:1]
        return bool(mine) and list(map(identity_of, mine)) == list(map(identity_of, others))


def _number(response: Mapping[str, Any], name: str) -> int | None:
    """A number that a server may send as text; C(None) where it is no number, or negative."""
    text = str(response.get(name))
    return int(text) if text.isdecimal() else None


def _broken(what: str, message: str) -> ToolchainError:
    return ToolchainError("protocol", f"{what}: {message}")


class OffsetPages:
    """Pages by offset: in parallel where the server says how many issues match, else one by one.

    :param ask: reads the page with a start and a size
    :param take: gets each issue, in place of a list of all
    """

    def __init__(
        self,
        ask: Callable[[int, int], Mapping[str, Any]],
        asked: SearchRange,
        parallel: int,
        what: str,
        take: Callable[[Issue], None] | None = None,
    ) -> None:
        self._ask, self._asked, self._parallel, self._what = ask, asked, parallel, what
        self._found = CollectedIssues(last=asked.count, take=take)
        self._total: int | None = None
        self._lost = False

    def read(self) -> FoundIssues:
        asked = self._asked
        first = self._page(asked.start, asked.size_at(asked.start))
        self._take(first)
        if asked.count == 0:
            return self._result(False)
        if first.total is None:
            return self._result(first.count == 0 or self._one_by_one(first))
        if first.count > 0:
            self._read_announced(first)
        missing = self._end() - asked.start - self._found.seen
        if missing > 0:
            self._found.warnings.append(
                f"the server says that {self._total} issues match, but gave {missing} fewer than"
                " that: the result is not complete"
            )
        return self._result(not self._lost)

    def _result(self, at_end: bool) -> FoundIssues:
        """C(at_end): the last page was read; a known number of matches counts instead."""
        found = self._found
        reached = self._asked.start + found.count
        complete = at_end if self._total is None else reached >= self._total and not self._lost
        return FoundIssues(found.issues, found.count, self._total, complete, found.warnings)

    def _page(self, start: int, size: int) -> OffsetPage:
        response = self._ask(start, size)
        page, echo = OffsetPage(start, response), _number(response, "startAt")
        if echo not in (None, start) and page.count > 0:
            raise _broken(
                self._what, f"the server was asked for issues from {start} on and gave {echo}"
            )
        if page.count == 0 and size > 0 and (page.total or 0) > start:
            raise _broken(
                self._what,
                f"the server says that {page.total} issues match, but gives none from {start} on",
            )
        return page

    def _take(self, page: OffsetPage) -> int:
        self._total = self._total if page.total is None else page.total
        return self._found.add(page.response)

    # -- the number of matches is known ------------------------------------------------------

    def _end(self) -> int:
        """Where the last page ends, by the number of matches that the server told last."""
        total = self._total or 0
        return total if self._asked.end is None else min(total, self._asked.end)

    def _read_announced(self, first: OffsetPage) -> None:
        """Read what is left of the announced issues, and what came to them meanwhile."""
        step, end = first.count, self._end()
        starts = range(first.end, end, step)
        chunks = ((start, min(start + step, end)) for start in starts)
        last, new, again = first, 0, False
        for page in self._in_order(chunks, end, step):
            self._read_slipped(last, page)
            new += self._take(page)
            again |= page.begins_like(first)
            last = page
        if again and new == 0:
            raise _broken(
                self._what,
                f"the server says that {self._total} issues match, but gives the same"
                f" {first.count} for every page",
            )

    def _in_order(
        self, chunks: Iterable[tuple[int, int]], end: int, step: int
    ) -> Iterator[OffsetPage]:
        left = end + _MOST_PAGES
        for pages in bounded(self._parallel, self._chunk, chunks):
            left -= len(pages)
            yield from pages
        while self._end() > end:
            pages = self._chunk((end, min(end + step, self._end())))
            left -= len(pages)
            yield from pages
            if pages[-1].count == 0:
                return
            if left < 0:
                raise _broken(self._what, "the number of matches grows faster than it is read")
            end = pages[-1].end

    def _chunk(self, chunk: tuple[int, int]) -> list[OffsetPage]:
        """One page, or several where the server gives less than it was asked for."""
        start, end = chunk
        pages: list[OffsetPage] = []
        while start < end:
            page = self._page(start, end - start)
            pages.append(page)
            start = page.end
            if page.count == 0 or (page.total is not None and start >= page.total):
                break
        return pages

    def _read_slipped(self, before: OffsetPage, after: OffsetPage) -> None:
        """Read again what slipped over the border of two pages.

        Where issues ceased to match between two pages, all later ones move up, and as many are
        neither on the one page nor on the other.
        """
        newest = after.total
        for _attempt in range(_MOST_REREADS):
            if before.total is None or newest is None or newest >= before.total:
                return
            start = max(self._asked.start, after.start - (before.total - newest))
            seen = newest
            for page in self._chunk((start, min(after.start, newest))):
                self._take(page)
                seen = seen if page.total is None else min(seen, page.total)
            if seen == newest:
                return
            newest = seen
        self._lost = True
        self._found.warnings.append(
            "issues ceased to match while the pages were read: some of the others may be missing"
        )

    # -- the server does not say how many match ----------------------------------------------

    def _one_by_one(self, page: OffsetPage) -> bool:
        """Read until a page is empty; whether the end was seen."""
        repeated = 0
        for _number in range(_MOST_PAGES):
            if self._asked.end is not None and page.end >= self._asked.end:
                return False
            size = self._asked.size_at(page.end)
            page = self._page(page.end, size)
            if page.count == 0:
                return True
            repeated = 0 if self._take(page) else repeated + 1
            if repeated and page.count < size:
                self._found.warnings.append(
                    "the server gives the same issues for every page and does not say how many"
                    " match: there may be more"
                )
                return False
            if repeated == _MOST_EMPTY:
                raise _broken(self._what, "the server gives the same issues for every page")
        raise _broken(self._what, f"the server still has issues after {_MOST_PAGES} pages")


class TokenPages:
    """Pages of which each names its successor; the server never says how many issues match.

    :param ask: reads the page of a token (C(None): the first page) with a size
    :param take: gets each issue, in place of a list of all
    """

    def __init__(
        self,
        ask: Callable[[str | None, int], Mapping[str, Any]],
        asked: SearchRange,
        what: str,
        take: Callable[[Issue], None] | None = None,
    ) -> None:
        self._ask, self._asked, self._what = ask, asked, what
        self._found = CollectedIssues(asked.start, asked.end, take)

    def read(self) -> FoundIssues:
        complete, found = self._to_the_end(), self._found
        cut = self._asked.end is not None and found.seen > self._asked.end
        return FoundIssues(found.issues, found.count, None, complete and not cut, found.warnings)

    def _to_the_end(self) -> bool:
        """Read what was asked for; whether that was the last page."""
        token: str | None = None
        seen: set[str] = set()
        empty = 0
        for _number in range(_MOST_PAGES):
            size = max(1, self._size())
            response = self._ask(token, size)
            empty = 0 if self._found.add(response) else empty + 1
            token = response.get("nextPageToken")
            if not token or (not response["issues"] and response.get("isLast") is True):
                return self._is_end(response)
            if isinstance(token, (dict, list)):
                raise _broken(self._what, "what the server gave for the next page is no token")
            token = str(token)
            if token in seen:
                raise _broken(self._what, "the server gave the same page token twice")
            if empty == _MOST_EMPTY:
                raise _broken(self._what, "the server goes on with pages that bring nothing new")
            if self._asked.end is not None and self._found.seen >= self._asked.end:
                return False
            seen.add(token)
        raise _broken(self._what, f"the server still has issues after {_MOST_PAGES} pages")

    def _size(self) -> int:
        """Issues before the start have to be read, too: there is no offset."""
        end = self._asked.end
        left = None if end is None else end - self._found.seen
        return self._asked.page_size if left is None else min(self._asked.page_size, left)

    def _is_end(self, response: Mapping[str, Any]) -> bool:
        """Without a token there is no next page, even where the server says that there is one."""
        total = _number(response, "total")
        more = response.get("isLast") is False or (total or 0) > self._found.seen
        if more:
            self._found.warnings.append(
                "the server says that there are more issues, but gives no token to read them with"
            )
        return not more
