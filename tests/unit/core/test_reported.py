# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that digests and authors belong to the finding of their object [C9]."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.finding import Finding
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.authorship import (
    Author,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.reported import (
    rows,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.sealing import (
    SealedChange,
)

FOUND = [
    Finding("a", action="create"),
    Finding("same"),
    Finding("b", action="update"),
    Finding("x", "group", "delete"),
    Finding("refused", action="update", error={"kind": "invalid", "msg": "no"}),
]


def rows_of(*changes: SealedChange, authors: list[Author] | None = None) -> list[dict[str, Any]]:
    sealing: Any = SimpleNamespace(changes=changes)
    return rows(FOUND, "user", sealing, authors or [])


def digests_of(*changes: SealedChange) -> dict[str, list[str]]:
    return {
        f"{row['kind']} {row['name']}": row["digests"]
        for row in rows_of(*changes)
        if "digests" in row
    }


def part(digest: str, name: str, kind: str = "") -> SealedChange:
    return SealedChange(digest, kind, name, True)


def test_change_belongs_to_its_object_in_any_order() -> None:
    changes = [part("1", "b"), part("2", "x", "group"), part("3", "a"), part("4", "b")]
    expected = {"user a": ["3"], "user b": ["1", "4"], "group x": ["2"]}
    assert digests_of(*changes) == expected
    # an operation whose objects have a kind that is not in its descriptor
    assert digests_of(part("1", "b"), part("2", "x")) == {"user b": ["1"], "group x": ["2"]}


def test_change_without_a_finding_belongs_to_the_last_object_that_differs() -> None:
    assert digests_of(part("1", "more"), part("2", "same")) == {"group x": ["1", "2"]}


def test_change_of_the_whole_task_belongs_to_every_object_that_differs() -> None:
    expected = {"user a": ["1"], "user b": ["1"], "group x": ["1"]}
    assert digests_of(SealedChange("1", "", "", False)) == expected


def test_author_belongs_to_the_object_of_the_change() -> None:
    changes = part("1", "b"), part("2", "a")
    found = rows_of(*changes, authors=[Author("bob", "now"), Author("al", "")])
    assert [row.get("changed_by") for row in found] == ["al", None, "bob", None, None]
    assert [row.get("changed_by") for row in rows_of(*changes, authors=[Author("bob")])] == [
        None
    ] * 5


def test_authors_of_a_whole_task_are_in_the_order_of_its_objects() -> None:
    whole = SealedChange("1", "", "", False)
    found = rows_of(whole, authors=[Author(name) for name in ("al", "bob", "eve")])
    assert [row.get("changed_by") for row in found] == ["al", None, "bob", "eve", None]


def test_object_with_the_changes_of_several_authors_has_none() -> None:
    changes = part("1", "b"), part("2", "b"), part("3", "a")
    found = rows_of(*changes, authors=[Author("bob"), Author("al"), Author("eve")])
    assert [row.get("changed_by") for row in found] == ["eve", None, None, None, None]


def test_unchanged_object_is_only_named() -> None:
    assert rows_of()[1] == {"kind": "user", "name": "same"}
