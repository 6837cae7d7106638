# SPDX-License-Identifier: GPL-3.0-or-later
"""Test tasks of a run while lookups by title lag behind what the run has written [wiki-3]."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import run_folder
from tests.unit.stub import Reply, Stub
from tests.unit.wiki.running import Run
from tests.unit.wiki.server import Wiki, page

NEW = {"space": "REL", "title": "New", "body": "<p>new</p>"}
OLD = {"space": "REL", "title": "Notes", "body": "<p>old</p>"}


class LateWiki(Wiki):
    """A wiki whose lookup by title never shows a write after its start."""

    def __init__(self, *pages: dict[str, Any]) -> None:
        super().__init__(*pages)
        self._indexed = copy.deepcopy(self.pages)

    def _find(self, query: dict[str, str]) -> Reply:
        now, self.pages = self.pages, self._indexed
        try:
            return super()._find(query)
        finally:
            self.pages = now

    def _create(self, content: dict[str, Any]) -> Any:
        titles = [one["title"] for one in self.pages.values() if one["status"] == "current"]
        assert content["title"] not in titles
        return super()._create(content)

    @property
    def shown(self) -> list[tuple[str, str, int]]:
        """Return title, body and version of all pages that are not in the trash."""
        pages = [one for one in self.pages.values() if one["status"] == "current"]
        return [(one["title"], one["body"], one["version"]) for one in pages]


@pytest.fixture
def wiki() -> LateWiki:
    return LateWiki(page())


@pytest.fixture
def stub(wiki: LateWiki, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    monkeypatch.setenv(run_folder.VARIABLE, str(tmp_path))
    with Stub(response=wiki) as running:
        yield running


def run(stub: Stub, **options: Any) -> bool:
    plan, _result = Run(stub, dialect="cloud_v1", **options)()
    return plan.changed


def test_new_page_is_found(wiki: LateWiki, stub: Stub) -> None:
    assert run(stub, **NEW)
    before = len(stub.seen)
    assert not run(stub, **NEW)
    assert len(stub.seen) == before + 1
    assert run(stub, **{**NEW, "body": "<p>newer</p>"})
    assert run(stub, space="REL", title="New", state="absent")
    assert not run(stub, space="REL", title="New", state="absent")
    assert run(stub, **NEW)
    assert wiki.shown == [("Notes", "<p>old</p>", 3), ("New", "<p>new</p>", 1)]


def test_changed_page_is_compared_as_it_is_now(wiki: LateWiki, stub: Stub) -> None:
    assert run(stub, **{**OLD, "body": "<p>changed</p>"})
    assert run(stub, **OLD)
    assert wiki.shown == [("Notes", "<p>old</p>", 5)]


def test_renamed_page_has_no_longer_its_title(wiki: LateWiki, stub: Stub) -> None:
    assert run(stub, page_id="7", title="Renamed", body="<p>old</p>")
    assert not run(stub, **{**OLD, "title": "Renamed"})
    assert run(stub, **{**OLD, "body": "<p>other</p>"})
    assert wiki.shown == [("Renamed", "<p>old</p>", 4), ("Notes", "<p>other</p>", 1)]


def test_removed_page_is_gone(wiki: LateWiki, stub: Stub) -> None:
    assert run(stub, space="REL", title="Notes", state="absent")
    assert not run(stub, space="REL", title="Notes", state="absent")
    assert run(stub, **OLD)
    assert wiki.shown == [("Notes", "<p>old</p>", 1)]
