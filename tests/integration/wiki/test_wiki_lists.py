# SPDX-License-Identifier: GPL-3.0-or-later
"""Test lists of a server that sends few entries in a page, and no link to the next page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.client import Sandbox
from tests.integration.wiki import test_wiki_exported_access, test_wiki_restriction
from tests.integration.wiki.test_wiki_tree import Tree

Fresh = Callable[[str], Sandbox]


@pytest.fixture
def cut(fresh: Fresh) -> Sandbox:
    sandbox = fresh("real")
    sandbox.settings("wiki", list_limit=5, next_links=False)
    return sandbox


def test_export_contains_all_pages(cut: Sandbox, tmp_path: Path) -> None:
    pages = [
        {"id": str(5000 + number), "space": "REL", "title": f"Part {number}", "parent": "1002"}
        for number in range(12)
    ]
    cut.seed({"wiki": {"pages": pages}})
    wiki = test_wiki_exported_access.Wiki(lambda flavour: cut, "server", tmp_path / "state")
    wiki.export()
    state = yaml.safe_load((tmp_path / "state/wiki.yml").read_text("utf-8"))
    titles = {entry["title"] for entry in state["restrictions"]}
    assert {f"Part {number}" for number in range(12)} <= titles


def test_prune_finds_all_pages(cut: Sandbox, tmp_path: Path) -> None:
    tree = Tree(cut, tmp_path / "docs")
    files = {f"part{number:02}.md": f"# Part {number}\n" for number in range(12)}
    tree.write({"index.md": "# Parts\n", **files})
    tree()
    tree.write(dict.fromkeys(files))
    for check in (True, False):
        changed, actions = tree(prune=True, max_deletions=12, check=check)
        assert changed
        assert {path for path, action in actions.items() if action == "deleted"} == set(files)
    assert not tree(prune=True)[0]


def test_all_groups_of_the_account_count(cut: Sandbox) -> None:
    cut.seed({"wiki": {"groups": {f"group-{number:02}": ["reporter"] for number in range(12)}}})
    restricted: Any = {"page_id": "1002", "update": {"groups": ["group-11"]}}
    assert test_wiki_restriction.run(cut, **restricted)[0].changed
