# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that a page with a mark is found again after somebody renamed it."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.client import Sandbox
from tests.integration.wiki.test_wiki_cloud import CLOUD, Cloud

WANTED: dict[str, Any] = {
    "space": "REL",
    "title": "Release 1.0",
    "parent_id": "1003",
    "body": "<p>First notes</p>",
    "follow_renames": True,
}
SERVERS = pytest.mark.parametrize("settings", [{}, CLOUD], ids=["server", "cloud"])


@pytest.fixture
def wiki(fresh: Any, settings: dict[str, Any]) -> Cloud:
    sandbox: Sandbox = fresh("real")
    sandbox.settings("wiki", **settings)
    found = Cloud(sandbox)
    if not settings:
        found.connection = {}
    return found


def _renamed(wiki: Cloud) -> str:
    """Create the page, and rename it by hand. Return its id."""
    page_id: str = wiki.page(**WANTED)[1]["page"]["id"]
    assert wiki.page(page_id=page_id, title="Release 1.0 (final)")[0]
    return page_id


@SERVERS
def test_renamed_page_is_updated_and_gets_its_title_again(wiki: Cloud) -> None:
    page_id = _renamed(wiki)
    wanted = {**WANTED, "body": "<p>Second notes</p>"}
    changed, predicted = wiki.page(check=True, **wanted)
    assert (changed, predicted["page"]["id"]) == (True, page_id)
    changed, result = wiki.page(**wanted)
    assert (changed, result["page"]["id"], result["page"]["title"]) == (
        True,
        page_id,
        "Release 1.0",
    )
    assert result["mark"] == "Release 1.0"
    begin = wiki.sandbox.mark()
    assert not wiki.page(**wanted)[0]
    assert wiki.sandbox.requests(since=begin, writes=True) == []


@SERVERS
def test_page_of_a_user_is_marked_when_it_is_first_managed(wiki: Cloud) -> None:
    plain = {name: value for name, value in WANTED.items() if name != "follow_renames"}
    page_id = wiki.page(**plain)[1]["page"]["id"]
    begin = wiki.sandbox.mark()
    assert wiki.page(check=True, **WANTED)[0]
    assert wiki.page(**WANTED)[1]["page"]["version"] == 1
    (write,) = wiki.sandbox.requests(since=begin, writes=True)
    assert "/propert" in write["path"]
    wiki.page(page_id=page_id, title="Elsewhere")
    assert wiki.page(**WANTED)[1]["page"]["id"] == page_id


@SERVERS
def test_copy_and_page_of_another_title_are_not_found(wiki: Cloud) -> None:
    page_id = _renamed(wiki)
    mark = {"title": "Release 1.0", "page": page_id}
    copy = {"id": "1950", "space": "REL", "title": "Copy", "version": 2, "body": "<p>x</p>"}
    copy["properties"] = {"delivery-toolchain-page": mark}
    wiki.sandbox.seed({"wiki": {"pages": [copy]}})
    assert wiki.page(**WANTED)[1]["page"]["id"] == page_id
    other = wiki.page(**{**WANTED, "title": "Release 2.0"})[1]["page"]["id"]
    assert other not in (page_id, copy["id"])


@SERVERS
def test_two_marked_pages_are_a_conflict_before_any_write(wiki: Cloud) -> None:
    _renamed(wiki)
    second = wiki.page(**{**WANTED, "follow_renames": False})[1]["page"]["id"]
    assert wiki.page(**WANTED)[0]
    wiki.page(page_id=second, title="Other")
    begin = wiki.sandbox.mark()
    error = wiki.fails(**WANTED)
    assert error.kind == "conflict"
    assert "'Release 1.0 (final)'" in error.message
    assert error.message.endswith("are all marked as the page 'Release 1.0': set page_id")
    assert wiki.sandbox.requests(since=begin, writes=True) == []


@SERVERS
def test_pages_of_a_list_share_one_search(wiki: Cloud) -> None:
    page_id = _renamed(wiki)
    titles = ["New 1", "New 2", "Release 1.0"]
    pages = [{**WANTED, "title": title} for title in titles]
    begin = wiki.sandbox.mark()
    rows = wiki.page(pages=pages)[1]["pages"]
    assert [row["page"]["title"] for row in rows] == titles
    assert rows[2]["page"]["id"] == page_id
    searches = ("/content/page", "/pages")
    read = [each["path"] for each in wiki.sandbox.requests(since=begin, writes=False)]
    assert len([path for path in read if path.endswith(searches) and "space" in path]) == 1, read


@SERVERS
def test_renamed_page_is_not_removed(wiki: Cloud) -> None:
    page_id = _renamed(wiki)
    assert not wiki.page(**{**WANTED, "state": "absent"})[0]
    assert wiki.info(page_id=page_id)["title"] == "Release 1.0 (final)"
