# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a search page by page, by offset or by token. The pages are counted as received, not as
requested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.concurrency import bounded
from ..core.errors import ToolchainError

Issue = dict[str, Any]

#: Maximum number of pages beyond the announced pages, so that an endless result ends.
_MOST_PAGES = 10_000
#: Maximum number of consecutive empty pages with a successor.
_MOST_EMPTY = 3
_MOST_REREADS = 3


@dataclass(frozen=True)
class SearchRange:
    """Issues to read: `count` issues (`None`: all) from `start`, `page_size` per page."""

    start: int
    count: int | None
    page_size: int

    @property
    def end(self) -> int | None:
        return None if self.count is None else self.start + self.count

    def size_at(self, position: int) -> int:
        """Return the number of issues to request at `position`."""
        return self.page_size if self.end is None else min(self.page_size, self.end - position)


@dataclass(frozen=True)
class FoundIssues:
    """Issues of a search. `total` is `None` if the server does not send it.

    `count` is their number, also if they were passed on and `issues` is empty.
    """

    issues: list[Issue]
    count: int
    total: int | None
    complete: bool
    warnings: list[str]


def identity_of(issue: Issue) -> str | None:
    """Return the identity of an issue: its id, or its key if the server sends no ids."""
    identity = issue.get("key") if issue.get("id") is None else issue["id"]
    return None if identity is None else str(identity)


@dataclass
class CollectedIssues:
    """Issues in the order of the server without duplicates. Those from `first` to `last` (`None`:
    the end) are kept, or passed to `take`.
    """

    first: int = 0
    last: int | None = None
    take: Callable[[Issue], None] | None = None
    issues: list[Issue] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    #: Number of issues received, kept or not.
    seen: int = 0
    _identities: set[str | None] = field(default_factory=set)

    @property
    def count(self) -> int:
        """Return the number of issues that were kept or passed on."""
        end = self.seen if self.last is None else min(self.last, self.seen)
        return max(0, end - self.first)

    def add(self, response: Mapping[str, Any]) -> int:
        """Add the issues of a page; return the number of new issues."""
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
    """A page and its position in the result."""

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
        """Return the number of matches; `None` if the page itself has more issues."""
        told = _number(self.response, "total")
        return None if told is not None and self.count and self.end > told else told

    def begins_like(self, other: OffsetPage) -> bool:
        mine, others = self.response["issues"][:1], other.response["issues"][:1]
        return bool(mine) and list(map(identity_of, mine)) == list(map(identity_of, others))


def _number(response: Mapping[str, Any], name: str) -> int | None:
    """Return a number that may be a string; `None` for anything else, or a negative number."""
    text = str(response.get(name))
    return int(text) if text.isdecimal() else None


def _broken(what: str, message: str) -> ToolchainError:
    return ToolchainError("protocol", f"{what}: {message}")


class OffsetPages:
    """Read pages by offset: concurrently if the server sends the number of matches, otherwise in
    sequence.

    :param ask: reads a page by start and size
    :param take: receives the issues one by one, instead of a list of all
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
        """Return the result. `at_end`: the last page was read; a known number of matches takes
        precedence.
        """
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

    # -- known number of matches -----------------------------------------------------------------

    def _end(self) -> int:
        """Return the end of the last page, by the latest number of matches."""
        total = self._total or 0
        return total if self._asked.end is None else min(total, self._asked.end)

    def _read_announced(self, first: OffsetPage) -> None:
        """Read the remaining announced issues, and issues that were added meanwhile."""
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
        """Return the page, or several pages if the server returns fewer issues than requested."""
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
        """Read issues again that moved across a page boundary.

        If issues stop matching between two pages, all later issues move up, and as many are on
        neither page.
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

    # -- unknown number of matches ---------------------------------------------------------------

    def _one_by_one(self, page: OffsetPage) -> bool:
        """Read until a page is empty; return whether the end was reached."""
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
    """Read pages that contain the token of the next page, without a number of matches.

    :param ask: reads a page by token (`None`: the first page) and size
    :param take: receives the issues one by one, instead of a list of all
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
        """Read the requested issues; return whether the last page was reached."""
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
        """Return the page size. Issues before the start are read as well: there is no offset."""
        end = self._asked.end
        left = None if end is None else end - self._found.seen
        return self._asked.page_size if left is None else min(self._asked.page_size, left)

    def _is_end(self, response: Mapping[str, Any]) -> bool:
        """Return whether the result ends without a token; warn if the server announces
        more issues.
        """
        total = _number(response, "total")
        more = response.get("isLast") is False or (total or 0) > self._found.seen
        if more:
            self._found.warnings.append(
                "the server says that there are more issues, but gives no token to read them with"
            )
        return not more
