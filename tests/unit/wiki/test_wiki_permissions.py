# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the permissions of the account on a page, and the modules that request them."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.unit.stub import Stub
from tests.unit.wiki.running import Run
from tests.unit.wiki.server import Wiki

EVERYTHING = ("read", "update", "delete", "move", "purge")


def told(*names: str, target: str = "page") -> list[dict[str, str]]:
    return [{"operation": name, "targetType": target} for name in names]


def asked(stub: Stub) -> list[bool]:
    """Return for all requests whether they ask for the permissions of the account."""
    queries = [parse_qs(urlsplit(seen.target).query) for seen in stub.seen]
    return ["operations" in query.get("expand", [""])[0].split(",") for query in queries]


SAVED: dict[str, Any] = {"page_id": "7", "body": "<p>new</p>"}
LABELLED: dict[str, Any] = {"page_id": "7", "labels": ["x"]}
REMOVED: dict[str, Any] = {"page_id": "7", "state": "absent"}


@pytest.mark.parametrize(
    ("operations", "task", "denied"),
    [
        (told("read", "delete"), SAVED, "update"),
        (told("read", "delete"), LABELLED, "update"),
        (told("read", "update"), REMOVED, "delete"),
        (told(*EVERYTHING), SAVED, ""),
        (told(*EVERYTHING), REMOVED, ""),
        # a missing permission entry does not count as a denial
        (None, SAVED, ""),
        ([], SAVED, ""),
        ("read", SAVED, ""),
        ([None, "read", {"operation": "read"}], SAVED, ""),
        (told("administer", "export"), REMOVED, ""),
        (told("read", target="space"), SAVED, ""),
    ],
)
def test_check_mode_checks_the_operations_of_the_page(
    stub: Stub, wiki: Wiki, operations: Any, task: dict[str, Any], denied: str
) -> None:
    if operations is not None:
        wiki.operations = operations
    run = Run(stub, read_only=True, **task)
    if denied:
        error = run.fails()
        assert error.kind == "permission"
        assert error.message.endswith(
            f"the account is not allowed to {denied} the page 'Notes' (7)"
        )
    else:
        assert run()[0].changed is True
    assert {seen.method for seen in stub.seen} == {"GET"}
    assert asked(stub)[0] is True


def test_attachments_have_a_separate_permission(stub: Stub, wiki: Wiki, tmp_path: Path) -> None:
    wiki.operations = told("read")
    (tmp_path / "a.txt").write_text("a", encoding="utf-8")
    attachments = [{"src": str(tmp_path / "a.txt")}]
    assert Run(stub, read_only=True, page_id="7", attachments=attachments)()[0].changed is True


def test_run_does_not_check_permissions_first(stub: Stub, wiki: Wiki) -> None:
    wiki.operations = told("read")
    assert Run(stub, **SAVED)()[0].changed is True
    assert not any(asked(stub))


def test_unchanged_page_needs_no_permission(stub: Stub, wiki: Wiki) -> None:
    wiki.operations = told("read")
    assert Run(stub, read_only=True, page_id="7", body="<p>old</p>")()[0].changed is False
