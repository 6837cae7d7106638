# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that a list is read up to its certain end, and that a list that was cut is an error."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.messages import (
    Request,
    Response,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.paged_list import (
    Page,
    PagedList,
    is_whole,
    read_all,
)

RESPONSE = Response(200, {}, b"{}", Request("reading", "GET", "http://x", reads=True), "http://x")


def entries(*numbers: int) -> list[dict[str, Any]]:
    return [{"id": number, "name": f"n{number}"} for number in numbers]


def read(listed: PagedList, *pages: tuple[dict[str, Any], list[Any], bool]) -> tuple[int, int]:
    """Add pages until the list ends. Return the number of entries and of pages read."""
    for number, (shown, found, follows) in enumerate(pages, 1):
        if not listed.add(RESPONSE, shown, found, follows=follows):
            return len(listed.entries), number
    raise AssertionError("the list does not end")


FIVE, MORE, LAST = entries(1, 2, 3, 4, 5), entries(6, 7, 8, 9, 10), entries(11, 12)


@pytest.mark.parametrize(
    ("pages", "found"),
    [
        # a full page without a link is followed, by the limit of the response
        (
            [({"limit": 5}, FIVE, False), ({"limit": 5}, MORE, False), ({"limit": 5}, LAST, False)],
            12,
        ),
        ([({"maxResults": 5}, FIVE, False), ({"maxResults": 5}, [], False)], 5),
        # without a reported limit, the requested one counts
        ([({}, FIVE, False)], 5),
        ([({"total": 7}, FIVE, False), ({"total": 7}, entries(6, 7), False)], 7),
        # an empty page with a link is not the end
        ([({}, FIVE, True), ({}, [], True), ({}, LAST, False)], 7),
        # known entries are skipped
        ([({}, FIVE, True), ({}, entries(5, 6), True), ({}, entries(7), False)], 7),
        ([({}, FIVE, True), ({}, entries(4, 5), True), ({}, [], False)], 5),
        # a count proves that a repeated page hides nothing
        ([({"total": 5}, FIVE, True), ({"total": 5}, FIVE, True)], 5),
    ],
)
def test_list_is_read_to_its_end(pages: list[Any], found: int) -> None:
    assert read(PagedList(100), *pages) == (found, len(pages))


@pytest.mark.parametrize(
    ("requested", "pages"),
    [
        (100, [({}, FIVE, True), ({}, FIVE, True)]),
        (100, [({}, FIVE, True), ({}, FIVE, False)]),
        (None, [({}, FIVE, True), ({}, MORE, True), ({}, MORE, False)]),
        # two cursors in a circle
        (None, [({}, FIVE, True), *[({}, MORE, True), ({}, FIVE, True)] * 6]),
        (100, [({}, FIVE, True), *[({}, [], True)] * 10]),
        # a server that ignores the offset
        (100, [({"limit": 5}, FIVE, False), ({"limit": 5}, FIVE, False)]),
    ],
)
def test_list_that_repeats_its_pages_is_an_error(requested: int | None, pages: list[Any]) -> None:
    with pytest.raises(ToolchainError, match="entries may be missing") as caught:
        read(PagedList(requested), *pages)
    assert caught.value.kind == "protocol"


@pytest.mark.parametrize("name", ["total", "totalSize", "totalCount"])
def test_list_that_a_count_proves_to_be_cut_is_an_error(name: str) -> None:
    for pages in (
        [({name: 12}, FIVE, False), ({name: 12}, FIVE, False)],
        [({name: 12}, FIVE, True), ({name: 12}, FIVE, True)],
    ):
        with pytest.raises(ToolchainError, match="reports 12 entries, but sent 5") as caught:
            read(PagedList(100), *pages)
        assert caught.value.kind == "protocol"
    with pytest.raises(ToolchainError, match="reports 12 entries"):
        read(PagedList(), ({name: 12}, FIVE, False))


def test_list_with_cursors_ends_without_a_cursor() -> None:
    assert read(PagedList(), ({}, FIVE, False)) == (5, 1)


def test_next_page_starts_after_the_received_entries() -> None:
    listed = PagedList(5)
    listed.add(RESPONSE, {}, FIVE)
    assert listed.start == 5
    listed.add(RESPONSE, {}, entries(5), follows=True, start=25)
    assert (listed.start, len(listed.entries)) == (25, 5)


def test_endless_list_is_an_error() -> None:
    listed = PagedList(50_000)
    assert listed.add(RESPONSE, {}, list(range(100_000)), follows=True)
    with pytest.raises(ToolchainError, match="does not end after 100001 entries"):
        listed.add(RESPONSE, {}, [-1], follows=True)


@pytest.mark.parametrize(
    ("shown", "whole"),
    [
        ({"limit": 25, "size": 2}, True),
        ({"limit": 2, "size": 2}, False),
        ({"limit": 25, "_links": {"next": "/x"}}, False),
        ({"meta": {"hasMore": True}}, False),
        ({"total": 3}, False),
        ({"total": 2, "maxResults": 2}, True),
        ({}, True),
        (None, False),
    ],
)
def test_embedded_list_is_whole_if_nothing_is_missing(shown: Any, *, whole: bool) -> None:
    assert is_whole(shown, entries(1, 2)) is whole


def test_pages_are_asked_by_offset_and_cursor() -> None:
    asked: list[tuple[int, Any]] = []

    def ask(start: int, cursor: Any) -> Page:
        asked.append((start, cursor))
        entries_of_page, following = {None: (FIVE, "b"), "b": (MORE, "c"), "c": (LAST, None)}[
            cursor
        ]
        return Page(RESPONSE, {}, entries_of_page, following)

    assert len(read_all(ask)) == 12
    assert asked == [(0, None), (5, "b"), (10, "c")]
    asked.clear()
    assert len(read_all(ask, most=3)) == 5
    assert asked == [(0, None)]


def test_offset_of_a_link_is_used() -> None:
    pages = {0: Page(RESPONSE, {"limit": 5}, FIVE, "next", 7), 7: Page(RESPONSE, {}, LAST)}
    assert read_all(lambda start, _cursor: pages[start], 5) == [*FIVE, *LAST]


def test_long_list_in_a_single_page_is_complete() -> None:
    many = entries(*range(100_001))
    assert len(read_all(lambda _start, _cursor: Page(RESPONSE, {}, many))) == 100_001
    with pytest.raises(ToolchainError, match="does not end"):
        read_all(lambda _start, _cursor: Page(RESPONSE, {}, many, "more"))
