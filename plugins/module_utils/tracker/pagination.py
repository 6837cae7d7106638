# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a search page by page, by offset or by token. The pages are counted as received, not as
requested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.concurrency import bounded
from ..core.errors import ToolchainError

Issue = dict[str, Any]

#: Maximum number of pages beyond the announced pages, so that an endless result ends.
_MAX_PAGES = 10_000
#: Maximum number of consecutive empty pages with a successor.
_MAX_EMPTY = 3


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

    `count` is the number of issues, even if they were passed on and `issues` is empty.
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
        messages = response.get("warningMessages")
        self.warnings += map(str, messages) if isinstance(messages, list) else []
        return self.seen - before


@dataclass(frozen=True)
class OffsetPage:
    """A page and its position in the result."""

    start: int
    response: Mapping[str, Any]

    @property
    def issues(self) -> list[Issue]:
        found: list[Issue] = self.response["issues"]
        return found

    @property
    def end(self) -> int:
        return self.start + len(self.issues)

    @property
    def total(self) -> int | None:
        """Return the number of matches; `None` if it is missing, or if the page itself has more
        issues.
        """
        total = self.response.get("total")
        known = isinstance(total, int) and not (self.issues and self.end > total)
        return total if known else None


def _broken(purpose: str, message: str) -> ToolchainError:
    return ToolchainError("protocol", f"{purpose}: {message}")


class OffsetPages:
    """Read pages by offset [tracker-9]: concurrently if the server sends the number of matches,
    otherwise in sequence.

    :param ask: reads a page by start and size
    :param take: receives the issues one by one, instead of a list of all
    """

    def __init__(
        self,
        ask: Callable[[int, int], Mapping[str, Any]],
        asked: SearchRange,
        parallel: int,
        purpose: str,
        take: Callable[[Issue], None] | None = None,
    ) -> None:
        self._ask, self._asked, self._parallel, self._purpose = ask, asked, parallel, purpose
        self._found = CollectedIssues(last=asked.count, take=take)
        #: The latest number of matches.
        self._total = 0
        self._lost = False

    def read(self) -> FoundIssues:
        asked, found = self._asked, self._found
        first = self._page(asked.start, asked.size_at(asked.start))
        self._take(first)
        if first.total is None:
            at_end = asked.count != 0 and (not first.issues or self._one_by_one(first))
            return FoundIssues(found.issues, found.count, None, at_end, found.warnings)
        if first.issues:
            self._read_announced(first)
        missing = self._end() - asked.start - found.seen
        if missing > 0:
            found.warnings.append(
                f"the server reports {self._total} matches, but sent {missing} fewer: the result"
                " is incomplete"
            )
        if self._lost:
            found.warnings.append(
                "some issues stopped matching while the pages were read: other issues may be"
                " missing"
            )
        complete = asked.start + found.count >= self._total and not self._lost
        return FoundIssues(found.issues, found.count, self._total, complete, found.warnings)

    def _page(self, start: int, size: int) -> OffsetPage:
        page = OffsetPage(start, self._ask(start, size))
        if not page.issues and size > 0 and (page.total or 0) > start:
            raise _broken(
                self._purpose,
                f"the server reports {page.total} matches, but sends none after the first {start}",
            )
        return page

    def _take(self, page: OffsetPage) -> int:
        self._total = self._total if page.total is None else page.total
        return self._found.add(page.response)

    # -- known number of matches -----------------------------------------------------------------

    def _end(self) -> int:
        """Return the end of the last page, by the latest number of matches."""
        return self._total if self._asked.end is None else min(self._total, self._asked.end)

    def _read_announced(self, first: OffsetPage) -> None:
        """Read the remaining announced issues, and issues that were added meanwhile."""
        last, seen, repeated = first, self._found.seen, False
        for page in self._in_order(first.end, len(first.issues)):
            self._read_slipped(last, page)
            self._take(page)
            repeated |= page.issues[:1] == first.issues[:1]
            last = page
        if repeated and self._found.seen == seen:
            raise _broken(self._purpose, "the server sends the same issues for every page")

    def _in_order(self, start: int, step: int) -> Iterator[OffsetPage]:
        end = self._end()
        chunks = ((begin, min(begin + step, end)) for begin in range(start, end, step))
        for pages in bounded(self._parallel, self._chunk, chunks):
            yield from pages
        for _number in range(_MAX_PAGES):
            if self._end() <= end:
                return
            pages = self._chunk((end, min(end + step, self._end())))
            yield from pages
            if not pages[-1].issues:
                return
            end = pages[-1].end
        raise _broken(self._purpose, "the number of matches grows faster than it is read")

    def _chunk(self, chunk: tuple[int, int]) -> list[OffsetPage]:
        """Return the page, or several pages if the server returns fewer issues than requested."""
        start, end = chunk
        pages: list[OffsetPage] = []
        while start < end:
            page = self._page(start, end - start)
            pages.append(page)
            start = page.end
            if not page.issues or (page.total is not None and start >= page.total):
                break
        return pages

    def _read_slipped(self, before: OffsetPage, after: OffsetPage) -> None:
        """Read issues again that moved across a page boundary.

        If issues stop matching between two pages, all later issues move up, and as many are on
        neither page.
        """
        if before.total is None or after.total is None or after.total >= before.total:
            return
        start = max(self._asked.start, after.start - (before.total - after.total))
        for page in self._chunk((start, min(after.start, after.total))):
            self._take(page)
            self._lost |= page.total is not None and page.total < after.total

    # -- unknown number of matches ---------------------------------------------------------------

    def _one_by_one(self, page: OffsetPage) -> bool:
        """Read until a page is empty; return whether the end was reached."""
        for _number in range(_MAX_PAGES):
            if self._asked.end is not None and page.end >= self._asked.end:
                return False
            size = self._asked.size_at(page.end)
            page = self._page(page.end, size)
            if not page.issues:
                return True
            if self._take(page):
                continue
            if len(page.issues) == size:
                raise _broken(self._purpose, "the server sends the same issues for every page")
            self._found.warnings.append(
                "the server sends the same issues for every page, and no total: the result may be"
                " incomplete"
            )
            return False
        raise _broken(self._purpose, f"the server still has issues after {_MAX_PAGES} pages")


class TokenPages:
    """Read pages that contain the token of the next page, without a number of matches
    [tracker-11].

    :param ask: reads a page by token (`None`: the first page) and size
    :param take: receives the issues one by one, instead of a list of all
    """

    def __init__(
        self,
        ask: Callable[[str | None, int], Mapping[str, Any]],
        asked: SearchRange,
        purpose: str,
        take: Callable[[Issue], None] | None = None,
    ) -> None:
        self._ask, self._asked, self._purpose = ask, asked, purpose
        self._found = CollectedIssues(asked.start, asked.end, take)

    def read(self) -> FoundIssues:
        complete, found = self._to_the_end(), self._found
        cut = self._asked.end is not None and found.seen > self._asked.end
        return FoundIssues(found.issues, found.count, None, complete and not cut, found.warnings)

    def _to_the_end(self) -> bool:
        """Read the requested issues; return whether the last page was reached.

        The token ends the result: `isLast` is not always correct. A token with an empty page, and
        a repeated token, occur.
        """
        asked, found = self._asked, self._found
        token: str | None = None
        seen: set[str] = set()
        empty = 0
        for _number in range(_MAX_PAGES):
            # Issues before the start are read as well: there is no offset.
            left = asked.page_size if asked.end is None else asked.end - found.seen
            response = self._ask(token, max(1, min(asked.page_size, left)))
            empty = 0 if found.add(response) else empty + 1
            if not response.get("nextPageToken"):
                return self._is_end(response)
            token = str(response["nextPageToken"])
            if not response["issues"] and response.get("isLast") is True:
                return True
            if token in seen:
                raise _broken(self._purpose, "the server sent the same page token twice")
            if empty == _MAX_EMPTY:
                raise _broken(self._purpose, "the server continues with pages without new issues")
            if asked.end is not None and found.seen >= asked.end:
                return False
            seen.add(token)
        raise _broken(self._purpose, f"the server still has issues after {_MAX_PAGES} pages")

    def _is_end(self, response: Mapping[str, Any]) -> bool:
        """Return whether a page without a token is the last; warn if the server denies it."""
        if response.get("isLast") is not False:
            return True
        self._found.warnings.append("the server announces more issues, but sends no page token")
        return False
