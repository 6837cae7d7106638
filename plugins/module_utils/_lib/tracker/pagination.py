# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the pages of a search by offset or by token.

A page may have fewer issues than requested, so positions follow from the issues received.
`core.http.paged_list` reads no ranges, not in parallel, and does not notice that entries move from
one page to another while it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.concurrency import bounded
from ..core.errors import ToolchainError, protocol
from ..core.http.messages import Response, unexpected_body
from ..core.json_text import member

Issue = dict[str, Any]

#: Maximum number of pages after the announced ones: a guard against an endless result.
_MAX_PAGES = 10_000
#: Maximum number of consecutive pages without new issues.
_MAX_EMPTY = 3
_REPEATED = "the server sends the same issues for every page"


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


@dataclass
class FoundIssues:
    """The issues of a search in the server's order, without duplicates.

    :param first: position of the first issue to keep
    :param last: position after the last issue to keep; None means all
    :param take: receives the issues instead of the list `issues`
    :param seen: number of issues received, kept or not
    :param total: number of matches; None if the server does not send it
    """

    first: int = 0
    last: int | None = None
    take: Callable[[Issue], None] | None = None
    issues: list[Issue] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    seen: int = 0
    total: int | None = None
    complete: bool = False
    _identities: set[str] = field(default_factory=set)

    @property
    def count(self) -> int:
        """Return the number of issues in `issues` or passed to `take`."""
        end = self.seen if self.last is None else min(self.last, self.seen)
        return max(0, end - self.first)

    def add(self, response: Mapping[str, Any]) -> int:
        """Add the issues and warnings of a page. Return the number of new issues."""
        before, keep = self.seen, self.take or self.issues.append
        for issue in response["issues"]:
            # some servers send no ids
            identity = issue.get("key") if issue.get("id") is None else issue["id"]
            if identity is None or str(identity) not in self._identities:
                self._identities.add(str(identity))
                if self.first <= self.seen and (self.last is None or self.seen < self.last):
                    keep(issue)
                self.seen += 1
        for name in ("warningMessages", "warnings"):  # strings, or objects [tracker-11]
            listed = response.get(name)
            for entry in listed if isinstance(listed, list) else []:
                message = entry.get("message") if isinstance(entry, Mapping) else entry
                self.warnings += [str(message)] if message else []
        return self.seen - before


@dataclass(frozen=True)
class OffsetPage:
    """A page and its position in the result.

    `total`: the reported number of matches; None if it is missing or too small.
    """

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
        total = self.response.get("total")
        known = isinstance(total, int) and not (self.issues and self.end > total)
        return total if known else None


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
        self._found = FoundIssues(last=asked.count, take=take)
        #: The latest number of matches, and whether issues may have been skipped.
        self._total, self._lost = 0, False

    def read(self) -> FoundIssues:
        asked, found = self._asked, self._found
        first = self._page(asked.start, asked.size_at(asked.start))
        self._take(first)
        if first.total is None:
            found.complete = asked.count != 0 and (not first.issues or self._one_by_one(first))
            return found
        last, seen, repeated = first, found.seen, False
        for page in self._in_order(first):
            self._reread_moved(last, page)
            self._take(page)
            repeated |= page.issues[:1] == first.issues[:1]
            last = page
        if repeated and found.seen == seen:
            raise self._error(_REPEATED)
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
        found.total = self._total
        found.complete = asked.start + found.count >= self._total and not self._lost
        return found

    def _error(self, message: str) -> ToolchainError:
        return protocol(f"{self._purpose}: {message}")

    def _page(self, start: int, size: int) -> OffsetPage:
        page = OffsetPage(start, self._ask(start, size))
        if not page.issues and size > 0 and (page.total or 0) > start:
            raise self._error(
                f"the server reports {page.total} matches, but sends none after the first {start}"
            )
        return page

    def _take(self, page: OffsetPage) -> int:
        self._total = self._total if page.total is None else page.total
        return self._found.add(page.response)

    def _end(self) -> int:
        """Return the end of the last page, by the latest number of matches."""
        return self._total if self._asked.end is None else min(self._total, self._asked.end)

    def _in_order(self, first: OffsetPage) -> Iterator[OffsetPage]:
        """Yield the pages after the first up to the reported total, which may grow meanwhile."""
        end, step = self._end(), len(first.issues)
        if not step:
            return
        chunks = ((begin, min(begin + step, end)) for begin in range(first.end, end, step))
        for pages in bounded(self._parallel, self._chunk, chunks):
            yield from pages
            if not pages[-1].issues:  # the number of matches has fallen
                return
        for _number in range(_MAX_PAGES):
            if self._end() <= end:
                return
            pages = self._chunk((end, min(end + step, self._end())))
            yield from pages
            if not pages[-1].issues:
                return
            end = pages[-1].end
        raise self._error("the number of matches grows faster than it is read")

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

    def _one_by_one(self, page: OffsetPage) -> bool:
        """Read until a page is empty. Return whether the end was reached.

        Used if the number of matches is not known.
        """
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
                raise self._error(_REPEATED)
            self._found.warnings.append(f"{_REPEATED}, and no total: the result may be incomplete")
            return False
        raise self._error(f"the server still has issues after {_MAX_PAGES} pages")


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
        raise protocol(f"{purpose}: {'; '.join(found.warnings)}")
    return found.issues


def read_by_token(
    ask: Callable[[str | None, int], Mapping[str, Any]],
    asked: SearchRange,
    purpose: str,
    take: Callable[[Issue], None] | None = None,
) -> FoundIssues:
    """Read pages that contain the token of the next page [tracker-11].

    The last page has no token; `isLast` is not always correct. Some servers send a token with an
    empty page, or the same token again.

    :param ask: reads a page by token and size; the token of the first page is None
    :param take: receives each issue; otherwise they are collected in a list
    """
    found, empty = FoundIssues(asked.start, asked.end, take), 0
    token: str | None = None
    tokens: set[str] = set()
    for _number in range(_MAX_PAGES):
        # There is no offset, so issues before the start are read too.
        left = asked.page_size if asked.end is None else asked.end - found.seen
        response = ask(token, max(1, min(asked.page_size, left)))
        empty = 0 if found.add(response) else empty + 1
        following = response.get("nextPageToken")
        if not following or (not response["issues"] and response.get("isLast") is True):
            found.complete = _is_end(response, found, purpose)
            return found
        token = str(following)
        problem = ""
        if token in tokens:
            problem = "the server sent the same page token twice"
        elif empty == _MAX_EMPTY:
            problem = "the server continues with pages without new issues"
        if problem:
            raise protocol(f"{purpose}: {problem}")
        if found.last is not None and found.seen >= found.last:
            return found
        tokens.add(token)
    message = f"{purpose}: the server still has issues after {_MAX_PAGES} pages"
    raise protocol(message)


def _is_end(response: Mapping[str, Any], found: FoundIssues, purpose: str) -> bool:
    """Return whether the result ends with a page without a token. Warn if `isLast` denies it.

    Raises `protocol` if the server reports more matches than it has sent.
    """
    total, last = response.get("total"), found.last
    if isinstance(total, int) and total > found.seen:
        if last is not None and found.seen >= last:
            return False
        raise protocol(
            f"{purpose}: the server reports {total} matches, but sent {found.seen} and no token for"
            " the next page"
        )
    if response.get("isLast") is False:
        found.warnings.append("the server reports more issues, but sends no page token")
        return False
    return last is None or found.seen <= last
