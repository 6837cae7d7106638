# SPDX-License-Identifier: GPL-3.0-or-later
"""Test who changed an object last: only what a server says counts."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.authorship import (
    MOST,
    UNKNOWN,
    Author,
    author,
    authors_of,
    last_of,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.page import (
    author_of,
    page_of,
)


@pytest.mark.parametrize(
    ("by", "at", "expected"),
    [
        (["", None, 7, "alice"], "2026-11-27T06:00:00.000+0100", ("alice", "2026-11-27T05:00:00")),
        (["alice"], "2026-11-27T05:00:00Z", ("alice", "2026-11-27T05:00:00")),
        # a time without a zone is unknown
        (["alice"], "2026-11-27T05:00:00", ("alice", "")),
        (["alice"], "2026-11-27_05-00-00", ("alice", "")),
        ([{"name": "alice"}], 1764219600000, ("", "")),
        ([], "yesterday+0100", ("", "")),
    ],
)
def test_only_complete_values_are_known(by: list[Any], at: Any, expected: tuple[str, str]) -> None:
    found = author(by, at)
    assert (found.by, found.at.removesuffix(".000Z")) == expected


def test_last_entry_is_the_latest() -> None:
    days = [{"at": f"2026-11-{day}T05:00:00Z"} for day in ("09", "27", "10")]
    assert last_of([*days, {"at": "x"}, "y", {}], "at") == days[1]
    others: list[Any] = [[], None, {"at": 1}, "x"]
    assert [last_of(entries, "at", 7) for entries in others] == [None] * 4
    # a part of a list that begins with the oldest entry may lack the latest
    oldest_first, newest_first = [days[0], days[2], days[1]], [days[1], days[2], days[0]]
    assert last_of(oldest_first, "at", 3) == days[1]
    assert last_of(oldest_first, "at", 4) is None
    assert last_of(newest_first, "at", 4) == days[1]


def test_object_that_cannot_be_read_is_unknown() -> None:
    def read(name: str) -> Author:
        if name == "b":
            raise ToolchainError("permission", "no")
        return Author(name)

    assert authors_of(read, ["a", "b", "c"]) == [Author("a"), UNKNOWN, Author("c")]
    assert authors_of(read, ["a"] * (MOST + 1)) == []


@pytest.mark.parametrize("kind", ["auth", "network", "timeout"])
def test_unavailable_server_is_not_asked_again(kind: Any) -> None:
    asked = []

    def read(name: str) -> Author:
        asked.append(name)
        raise ToolchainError(kind, "no")

    assert authors_of(read, ["a", "b", "c"], parallel=1) == [UNKNOWN] * 3
    assert asked == ["a"]


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (
            {"by": {"username": "alice", "displayName": "Alice"}, "when": "2026-11-27T05:00:00Z"},
            ("alice", "2026-11-27T05:00:00.000Z"),
        ),
        ({"by": {"displayName": "Alice", "accountId": "1"}}, ("Alice", "")),
        ({"authorId": "712020:x", "createdAt": "2026-11-27T05:00:00Z"}, ("712020:x",)),
        ({"by": {"type": "anonymous"}}, ("", "")),
    ],
)
def test_version_of_a_page_names_its_author(
    version: dict[str, Any], expected: tuple[str, ...]
) -> None:
    shown = {"id": "7", "title": "A", "version": {"number": 2, **version}}
    page = page_of(shown, "REL", "https://wiki.example.com")
    assert author_of(page)[: len(expected)] == expected
    assert author_of(None) == UNKNOWN
