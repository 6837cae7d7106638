# SPDX-License-Identifier: GPL-3.0-or-later
"""Test version 2 of the sandbox's wiki with a third-party client."""

from __future__ import annotations

from typing import Any

import pytest
from atlassian.confluence.cloud.cloud import ConfluenceCloud

from sandbox.client import Sandbox

LOGIN = ("reporter", "reporter-password")


@pytest.fixture
def client(sandbox: Sandbox) -> Any:
    settings = {"version_2": True, "version_1_pages": 410, "rewrite_on_save": False}
    sandbox.settings("wiki", deployment="Cloud", **settings)
    return ConfluenceCloud(sandbox.urls["wiki"], username=LOGIN[0], password=LOGIN[1], cloud=False)


def test_client_creates_reads_and_updates_a_page(client: Any) -> None:
    space = client.get_space_by_key("REL")
    made = client.create_page(space["id"], "New", "<p>one</p>", parent_id="1003")
    assert (made["spaceId"], made["parentId"]) == (space["id"], "1003")
    (found,) = client.get_page_by_title("REL", "New")["results"]
    assert found["body"]["storage"]["value"] == "<p>one</p>"
    client.update_page(made["id"], title="New", body="<p>two</p>", status="current", version=1)
    read = client.get_page_by_id(made["id"], body_format="storage")
    assert (read["version"]["number"], read["body"]["storage"]["value"]) == (2, "<p>two</p>")


def test_client_handles_properties_children_and_the_trash(client: Any) -> None:
    client.create_page_property("1002", "release.state", {"done": True})
    (shown,) = client.get_page_properties("1002")
    assert (shown["key"], shown["value"]) == ("release.state", {"done": True})
    below = list(client.get_child_pages("1001"))
    assert [page["id"] for page in below] == ["1002", "1003"]
    assert client.delete_page("1002")
    assert [page["id"] for page in client.get_child_pages("1001")] == ["1003"]


def test_client_reads_a_list_in_parts(client: Any) -> None:
    pages = client.get_pages(limit=1, body_format="storage")
    assert [page["id"] for page in pages] == ["1001", "1002", "1003", "1101"]
