# SPDX-License-Identifier: GPL-3.0-or-later
"""Test searches that are read page by page from simulated servers, some of which misbehave."""

from __future__ import annotations

import itertools
import math
import threading
import tracemalloc
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.pagination import (
    FoundIssues,
    OffsetPages,
    SearchRange,
    read_by_token,
)

Ask = Callable[[int, int], Mapping[str, Any]]


def issues_of(*numbers: int) -> list[dict[str, Any]]:
    return [{"id": str(number), "key": f"REL-{number}"} for number in numbers]


def numbers(found: FoundIssues) -> list[int]:
    return [int(issue["id"]) for issue in found.issues]


class Server:
    """Pages of a list; `cap` is the largest page, `short` makes every page but the first shorter.

    `before` is called with the number of each request (from 1) and may change `matches`.
    """

    def __init__(
        self,
        count: int,
        *,
        cap: int = 1000,
        totals: bool = True,
        short: int = 0,
        before: Callable[[int, list[int]], None] = lambda number, matches: None,
    ) -> None:
        self.matches = list(range(1, count + 1))
        self.cap, self.totals, self.short, self.before = cap, totals, short, before
        self.asked: list[tuple[int, int]] = []
        self._lock = threading.Lock()

    def __call__(self, start: int, size: int) -> dict[str, Any]:
        with self._lock:
            self.asked.append((start, size))
            self.before(len(self.asked), self.matches)
            page = min(size, self.cap)
            if len(self.asked) > 1 and page > 1:
                page = max(1, page - self.short)
            response: dict[str, Any] = {"issues": issues_of(*self.matches[start : start + page])}
            if self.totals:
                response |= {"startAt": start, "maxResults": page, "total": len(self.matches)}
            return response


def read_pages(
    ask: Ask, *, start: int = 0, count: int | None = None, page_size: int = 100, parallel: int = 4
) -> FoundIssues:
    return OffsetPages(ask, SearchRange(start, count, page_size), parallel, "searching").read()


@given(
    count=st.integers(0, 60),
    cap=st.integers(1, 30),
    page_size=st.integers(1, 30),
    short=st.integers(0, 3),
    start=st.integers(0, 70),
    wanted=st.none() | st.integers(0, 70),
    parallel=st.integers(1, 5),
    totals=st.booleans(),
)
def test_every_search_returns_the_requested_range_in_order(
    *,
    count: int,
    cap: int,
    page_size: int,
    short: int,
    start: int,
    wanted: int | None,
    parallel: int,
    totals: bool,
) -> None:
    server = Server(count, cap=cap, totals=totals, short=short)
    found = read_pages(server, start=start, count=wanted, page_size=page_size, parallel=parallel)
    expected = server.matches[start:][:wanted]
    assert numbers(found) == expected
    assert found.total == (count if totals else None)
    everything = start + len(expected) >= count
    if totals:
        assert found.complete is everything
    else:
        assert found.complete in (False, everything)
        assert found.complete or wanted is not None
    if short == 0:
        step = min(cap, page_size)
        assert len(server.asked) <= math.ceil(len(expected) / step) + 2
    assert found.warnings == []


@pytest.mark.parametrize(("page_size", "cap"), [(100, 1000), (1000, 100), (1000, 1000)])
def test_fifty_thousand_issues_take_one_request_per_page(page_size: int, cap: int) -> None:
    server = Server(50_000, cap=cap)
    found = read_pages(server, page_size=page_size)
    assert numbers(found) == server.matches
    assert found.complete
    assert len(server.asked) <= 50_000 / min(page_size, cap)


def test_memory_holds_the_result_and_a_few_pages() -> None:
    def ask(start: int, size: int) -> dict[str, Any]:
        page = issues_of(*range(start, start + size))
        padding = {f"field{number}": "x" * 50 + str(start) for number in range(5)}
        page = [{**issue, "fields": dict(padding)} for issue in page]
        return {"issues": page, "startAt": start, "total": 50_000, "other": str(start) * 50_000}

    ask(0, 100)
    tracemalloc.start()
    try:
        found = read_pages(ask, page_size=100)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found.issues) == 50_000
    assert peak < kept * 1.25  # the marks of known issues, and the pages in transit


def test_parallel_pages_have_the_size_of_the_first_response() -> None:
    server = Server(250, cap=40)
    found = read_pages(server, page_size=100)
    assert numbers(found) == list(range(1, 251))
    assert server.asked[0] == (0, 100)
    assert sorted(server.asked[1:]) == [
        *((start, 40) for start in range(40, 240, 40)),
        (240, 10),
    ]


@given(
    removals=st.lists(st.lists(st.integers(0, 39), max_size=3), min_size=1, max_size=12),
    page_size=st.integers(2, 12),
)
def test_removed_matches_are_complete_or_give_a_warning(
    removals: list[list[int]], page_size: int
) -> None:
    def shrink(number: int, matches: list[int]) -> None:
        for index in removals[number - 2] if 2 <= number <= len(removals) + 1 else []:
            if index < len(matches):
                del matches[index]

    server = Server(40, before=shrink)
    found = read_pages(server, page_size=page_size, parallel=1)
    lost = set(server.matches) - set(numbers(found))
    assert not (found.complete and lost)
    assert found.complete or found.warnings


def test_issue_shifted_across_a_page_border_is_read() -> None:
    def shrink(number: int, matches: list[int]) -> None:
        if number == 2:
            matches.remove(3)

    server = Server(25, before=shrink)
    found = read_pages(server, page_size=10, parallel=1)
    assert sorted(numbers(found)) == list(range(1, 26))
    assert found.complete
    assert found.total == 24
    assert len(server.asked) <= 4


@pytest.mark.parametrize("parallel", [1, 4])
def test_reading_ends_if_the_number_of_matches_was_wrong(parallel: int) -> None:
    server = Server(25)

    def ask(start: int, size: int) -> dict[str, Any]:
        page = server(start, size)
        return page if start else {**page, "total": 10**30}

    found = read_pages(ask, page_size=10, parallel=parallel)
    assert sorted(numbers(found)) == list(range(1, 26))
    assert len(server.asked) <= 12


def test_issue_created_while_reading_is_read_once() -> None:
    def grow(number: int, matches: list[int]) -> None:
        if number == 3:
            matches.append(26)

    found = read_pages(Server(25, before=grow), page_size=10, parallel=1)
    assert numbers(found) == list(range(1, 27))
    assert found.total == 26
    assert found.complete


def test_duplicates_make_the_result_incomplete() -> None:
    pages = {0: issues_of(1, 2), 2: issues_of(2, 3), 4: issues_of(5)}
    found = read_pages(lambda start, size: {"issues": pages[start], "total": 5}, page_size=2)
    assert numbers(found) == [1, 2, 3, 5]
    assert not found.complete
    assert any("5 matches" in line for line in found.warnings)


@pytest.mark.parametrize("start", [0, 2])
def test_empty_page_before_the_total_is_an_error(start: int) -> None:
    def ask(start: int, size: int) -> dict[str, Any]:
        return {"issues": issues_of(1, 2)[start:], "total": 10}

    with pytest.raises(
        ToolchainError, match="10 matches, but sends none after the first 2"
    ) as caught:
        read_pages(ask, page_size=2, start=start)
    assert caught.value.kind == "protocol"


def test_too_small_total_does_not_end_reading() -> None:
    server = Server(130)

    def ask(start: int, size: int) -> dict[str, Any]:
        return {**server(start, size), "total": 5}

    found = read_pages(ask)
    assert numbers(found) == list(range(1, 131))
    assert (found.total, found.complete) == (None, True)


def test_issues_without_id_are_distinguished_by_key() -> None:
    page: list[dict[str, Any]] = [{"id": None, "key": key} for key in ("REL-1", "REL-2", "REL-1")]
    found = read_pages(lambda start, size: {"issues": page[start : start + size], "total": 3})
    assert [issue["key"] for issue in found.issues] == ["REL-1", "REL-2"]


def test_ids_may_be_numbers_or_malformed() -> None:
    page: list[dict[str, Any]] = [{"id": 1}, {"id": "1"}, {"id": [1]}, {"id": {}, "key": "REL-4"}]
    found = read_pages(lambda start, size: {"issues": page[start : start + size], "total": 4})
    assert found.issues == [{"id": 1}, {"id": [1]}, {"id": {}, "key": "REL-4"}]


@pytest.mark.parametrize("totals", [{"total": 9}, {}])
def test_server_without_paging_is_an_error(totals: dict[str, int]) -> None:
    with pytest.raises(ToolchainError, match="the same") as caught:
        read_pages(lambda start, size: {"issues": issues_of(1, 2, 3), **totals}, page_size=3)
    assert caught.value.kind == "protocol"


def test_repeating_short_page_is_not_complete() -> None:
    found = read_pages(lambda start, size: {"issues": issues_of(1, 2, 3)}, page_size=100)
    assert numbers(found) == [1, 2, 3]
    assert not found.complete
    assert found.warnings


@pytest.mark.parametrize("totals", [True, False])
def test_endless_search_is_an_error(totals: bool) -> None:
    def ask(start: int, size: int) -> dict[str, Any]:
        more = {"total": start + 2 * size} if totals else {}
        return {"issues": issues_of(*range(start, start + size)), **more}

    with pytest.raises(ToolchainError) as caught:
        read_pages(ask, page_size=2)
    assert caught.value.kind == "protocol"


def test_rejected_page_is_an_error() -> None:
    def ask(start: int, size: int) -> Mapping[str, Any]:
        if start + size > 20:
            raise ToolchainError("server", "Search limit exceeded", status=500)
        return server(start, size)

    server = Server(30)
    with pytest.raises(ToolchainError, match="limit exceeded"):
        read_pages(ask, page_size=10)


def test_warnings_of_all_pages_are_kept() -> None:
    def ask(start: int, size: int) -> dict[str, Any]:
        page = issues_of(*range(start, min(start + size, 4)))
        return {"issues": page, "total": 4, "warningMessages": [f"from {start}"]}

    assert read_pages(ask, page_size=2).warnings == ["from 0", "from 2"]


def by_token(
    pages: Mapping[str | None, Mapping[str, Any]],
    *,
    start: int = 0,
    count: int | None = None,
    page_size: int = 2,
) -> FoundIssues:
    def ask(token: str | None, size: int) -> Mapping[str, Any]:
        return pages[token]

    return read_by_token(ask, SearchRange(start, count, page_size), "searching")


THREE_PAGES: dict[str | None, dict[str, Any]] = {
    None: {"issues": issues_of(1, 2), "nextPageToken": "b", "isLast": False},
    "b": {"issues": issues_of(2, 3), "nextPageToken": "c"},
    "c": {"issues": issues_of(4), "isLast": True},
}


def test_token_pages_are_read_to_the_end() -> None:
    found = by_token(THREE_PAGES)
    assert numbers(found) == [1, 2, 3, 4]
    assert found.complete
    assert found.total is None


@pytest.mark.parametrize(
    ("start", "count", "expected", "complete"),
    [
        (1, None, [2, 3, 4], True),
        (1, 2, [2, 3], False),
        (0, 4, [1, 2, 3, 4], True),
        (0, 2, [1, 2], False),
        (0, 0, [], False),
        (9, None, [], True),
    ],
)
def test_range_of_token_pages(
    start: int, count: int | None, expected: list[int], complete: bool
) -> None:
    found = by_token(THREE_PAGES, start=start, count=count)
    assert numbers(found) == expected
    assert found.complete is complete


def test_repeated_page_token_is_an_error() -> None:
    pages = {**THREE_PAGES, "c": {"issues": issues_of(4), "nextPageToken": "b"}}
    with pytest.raises(ToolchainError, match="same page token twice"):
        by_token(pages)


def test_page_token_may_be_a_number() -> None:
    pages: dict[str | None, dict[str, Any]] = {
        None: {"issues": issues_of(1), "nextPageToken": 2},
        "2": {"issues": issues_of(2)},
    }
    assert numbers(by_token(pages)) == [1, 2]


def test_empty_token_pages_are_skipped_up_to_a_limit() -> None:
    pages: dict[str | None, dict[str, Any]] = {
        None: {"issues": issues_of(1), "nextPageToken": "b"},
        "b": {"issues": [], "nextPageToken": "c"},
        "c": {"issues": issues_of(2)},
    }
    assert numbers(by_token(pages)) == [1, 2]
    tokens = itertools.count()

    def ask(token: str | None, size: int) -> dict[str, Any]:
        return {"issues": [], "nextPageToken": str(next(tokens))}

    with pytest.raises(ToolchainError, match="without new issues"):
        read_by_token(ask, SearchRange(0, None, 2), "searching")


@pytest.mark.parametrize("last", [{}, {"isLast": True}, {"isLast": False}])
@pytest.mark.parametrize("empty", [False, True])
def test_total_above_the_received_issues_is_an_error(last: dict[str, bool], empty: bool) -> None:
    end = {"nextPageToken": "c", "isLast": True} if empty else last
    pages: dict[str | None, dict[str, Any]] = {
        None: {"issues": issues_of(1, 2), "nextPageToken": "b"},
        "b": {"issues": [], "total": 250, **end},
    }
    with pytest.raises(ToolchainError, match="reports 250 matches, but sent 2") as caught:
        by_token(pages)
    assert caught.value.kind == "protocol"


def test_total_above_the_requested_issues_is_incomplete() -> None:
    found = by_token({None: {"issues": issues_of(1, 2), "total": 250}}, count=2)
    assert numbers(found) == [1, 2]
    assert not found.complete
    assert by_token({None: {"issues": issues_of(1, 2), "total": 2}}).complete


def test_warnings_of_newer_sites_are_kept() -> None:
    page = {"issues": issues_of(1), "warnings": [{"type": "LIMIT", "message": "cut"}, "b", {}]}
    assert by_token({None: page}).warnings == ["cut", "b"]


def test_last_page_without_token_is_incomplete_if_not_marked_last() -> None:
    found = by_token({None: {"issues": issues_of(1), "isLast": False}})
    assert not found.complete
    assert found.warnings
