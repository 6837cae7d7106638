# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the pages of a search by offset or by token.

A page may have fewer issues than requested, so positions follow from the issues received.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.concurrency import bounded
from ..core.errors import ToolchainError
from ..core.http.messages import Response, unexpected_body
from ..core.json_text import member

Issue = dict[str, Any]

#: Maximum number of pages after the announced ones: a guard against an endless result.
_MAX_PAGES = 10_000
#: Maximum number of consecutive pages without new issues.
_MAX_EMPTY = 3


@dataclass(frozen=True)
class SearchRange:
    """The issues to read: `count` issues from `start`, in pages of `page_size`.

    `count`: None means all.
    """

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
    """The issues of a search.

    `count`: number of issues, also if they were passed to `take` and `issues` is empty.
    `total`: number of matches; None if the server does not send it.
    """

    issues: list[Issue]
    count: int
    total: int | None
    complete: bool
    warnings: list[str]


def identity_of(issue: Issue) -> str | None:
    """Return the id of an issue, or its key if the server sends no ids."""
    identity = issue.get("key") if issue.get("id") is None else issue["id"]
    return None if identity is None else str(identity)


@dataclass
class CollectedIssues:
    """Collect issues in the server's order, without duplicates.

    `first`, `last`: range of positions to keep; `last` None means all. `take`: receives the issues
    instead of `issues`.
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
        """Return the number of issues in `issues` or passed to `take`."""
        end = self.seen if self.last is None else min(self.last, self.seen)
        return max(0, end - self.first)

    def add(self, response: Mapping[str, Any]) -> int:
        """Add the issues of a page. Return the number of new issues."""
        before = self.seen
        keep = self.take or self.issues.append
        for issue in response["issues"]:
            identity = identity_of(issue)
            if identity is None or identity not in self._identities:
                self._identities.add(identity)
                if self.first <= self.seen and (self.last is None or self.seen < self.last):
                    keep(issue)
                self.seen += 1
        self.warnings += _warnings(response)
        return self.seen - before


def _warnings(response: Mapping[str, Any]) -> list[str]:
    """Return the warnings of a page: strings, or objects of the newer cloud [tracker-11]."""
    found: list[str] = []
    for name in ("warningMessages", "warnings"):
        listed = response.get(name)
        for entry in listed if isinstance(listed, list) else []:
            message = entry.get("message") if isinstance(entry, Mapping) else entry
            found += [str(message)] if message else []
    return found


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
        """Return the reported number of matches, or None if it is missing or too small."""
        total = self.response.get("total")
        known = isinstance(total, int) and not (self.issues and self.end > total)
        return total if known else None


def _broken(purpose: str, message: str) -> ToolchainError:
    return ToolchainError("protocol", f"{purpose}: {message}")


class OffsetPages:
    """Read pages by offset: in parallel if the server reports the number of matches [tracker-9].

    :param ask: reads a page by start and size
    :param take: receives each issue; otherwise they are collected in a list
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
        """Read the other pages up to the reported total, which may grow meanwhile."""
        last, seen, repeated = first, self._found.seen, False
        for page in self._in_order(first.end, len(first.issues)):
            self._reread_moved(last, page)
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
        """Read the issues from start to end, with more requests if a page is shorter."""
        start, end = chunk
        pages: list[OffsetPage] = []
        while start < end:
            page = self._page(start, end - start)
            pages.append(page)
            start = page.end
            if not page.issues or (page.total is not None and start >= page.total):
                break
        return pages

    def _reread_moved(self, before: OffsetPage, after: OffsetPage) -> None:
        """Read issues that moved from the page `after` to the page `before`.

        If N issues stop matching between the two reads, all later issues move up by N positions. N
        issues are then on neither page.
        """
        if before.total is None or after.total is None or after.total >= before.total:
            return
        start = max(self._asked.start, after.start - (before.total - after.total))
        for page in self._chunk((start, min(after.start, after.total))):
            self._take(page)
            self._lost |= page.total is not None and page.total < after.total

    # -- unknown number of matches ---------------------------------------------------------------

    def _one_by_one(self, page: OffsetPage) -> bool:
        """Read until a page is empty. Return whether the end was reached."""
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


def entries_of(response: Response, name: str) -> Mapping[str, Any]:
    """Return a page of a list with its entries as `issues`. Raises `protocol` for another body.

    :param name: member that contains the entries
    """
    page = response.json()
    entries = member(page, name)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise unexpected_body(response, f"a list of {name}")
    return page if name == "issues" else {**page, "issues": entries}


def read_all(
    read: Callable[..., Response], purpose: str, route: str, name: str, page_size: int, **more: str
) -> list[Issue]:
    """Return a whole list. Raises `protocol` if the server does not send all of it.

    :param read: sends a read
    :param name: member of the responses that contains the entries
    :param more: other parameters of the requests
    """

    def ask(start: int, size: int) -> Mapping[str, Any]:
        query = {"startAt": start, "maxResults": size, **more}
        return entries_of(read(purpose, route, query=query), name)

    found = OffsetPages(ask, SearchRange(0, None, page_size), 1, purpose).read()
    if not found.complete:
        raise _broken(purpose, "; ".join(found.warnings))
    return found.issues


class TokenPages:
    """Read pages that contain the token of the next page [tracker-11].

    :param ask: reads a page by token and size; the token of the first page is None
    :param take: receives each issue; otherwise they are collected in a list
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
        """Read the requested issues. Return whether the last page was reached.

        The last page has no token; `isLast` is not always correct. Some servers send a token with
        an empty page, or the same token again.
        """
        asked, found = self._asked, self._found
        token: str | None = None
        seen: set[str] = set()
        empty = 0
        for _number in range(_MAX_PAGES):
            # There is no offset, so issues before the start are read too.
            left = asked.page_size if asked.end is None else asked.end - found.seen
            response = self._ask(token, max(1, min(asked.page_size, left)))
            empty = 0 if found.add(response) else empty + 1
            if not response.get("nextPageToken"):
                return self._is_end(response)
            token = str(response["nextPageToken"])
            if not response["issues"] and response.get("isLast") is True:
                return self._is_end(response)
            if token in seen:
                raise _broken(self._purpose, "the server sent the same page token twice")
            if empty == _MAX_EMPTY:
                raise _broken(self._purpose, "the server continues with pages without new issues")
            if asked.end is not None and found.seen >= asked.end:
                return False
            seen.add(token)
        raise _broken(self._purpose, f"the server still has issues after {_MAX_PAGES} pages")

    def _is_end(self, response: Mapping[str, Any]) -> bool:
        """Return whether a page without a token is the last one. Warn if `isLast` denies it.

        Raises `protocol` if the server reports more matches than it has sent.
        """
        total, seen, end = response.get("total"), self._found.seen, self._asked.end
        if isinstance(total, int) and total > seen:
            if end is not None and seen >= end:
                return False
            raise _broken(
                self._purpose,
                f"the server reports {total} matches, but sent {seen} and no token for the next"
                " page",
            )
        if response.get("isLast") is not False:
            return True
        self._found.warnings.append("the server reports more issues, but sends no page token")
        return False
