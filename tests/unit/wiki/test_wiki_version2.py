# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the requests of version 2 of the cloud, against given responses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
    error_text,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.secret import Secret
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki import version2
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.additions import (
    stored_of,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.client import WikiClient
from tests.unit.stub import Reply, Seen, Stub, connection_to

SPACES = Reply(body={"results": [{"id": "9", "key": "REL", "homepageId": "1"}]})
PAGE: dict[str, Any] = {
    "id": "7",
    "status": "current",
    "title": "Notes",
    "spaceId": "9",
    "parentId": "1",
    "version": {"number": 3},
    "body": {"storage": {"value": "<p>x</p>"}},
    "_links": {"webui": "/spaces/REL/pages/7", "base": "https://example.atlassian.net/wiki"},
}


def client(stub: Stub, *, dialect: str = "cloud_v2", url: str = "", **options: Any) -> WikiClient:
    login = {"username": "bot", "password": Secret("bot-token")}
    settings = {"dialect": dialect, "retries": 0}
    connection = connection_to(url or stub.url, "wiki", settings=settings, **login)
    return WikiClient(Task(connection, pytest.fail, read_only=True), **options)


def query_of(seen: Seen) -> dict[str, str]:
    return {name: one for name, (one,) in parse_qs(urlsplit(seen.target).query).items()}


def part(entry: str, following: str | None = None, **headers: str) -> Reply:
    links = {} if following is None else {"next": following}
    return Reply(body={"results": [{"name": entry}], "_links": links}, headers=headers)


@pytest.mark.parametrize(
    "following",
    [
        "/wiki/api/v2/pages/7/labels?limit=1&cursor=a%2Bb",
        "https://example.atlassian.net/wiki/api/v2/pages/7/labels?cursor=a%2Bb",
    ],
)
def test_next_page_is_read_at_the_base_url(following: str) -> None:
    with Stub(part("one", following), part("two")) as stub:
        found = client(stub).labels("reading", "7")
    assert [one["name"] for one in found] == ["one", "two"]
    assert {seen.path for seen in stub.seen} == {"/base/api/v2/pages/7/labels"}
    assert query_of(stub.seen[1]) == {"limit": "250", "cursor": "a+b"}


def test_next_link_may_be_a_header() -> None:
    link = (
        '</wiki/api/v2/x?cursor=ab>; rel="next", <https://example.atlassian.net/wiki>; rel="base"'
    )
    with Stub(part("one", Link=link), part("two")) as stub:
        assert len(client(stub).labels("reading", "7")) == 2
    assert query_of(stub.seen[1])["cursor"] == "ab"


def test_link_without_cursor_is_an_error() -> None:
    stub = Stub(response=lambda seen: part("one", "/wiki/api/v2/x?start=25"))
    with stub, pytest.raises(ToolchainError) as caught:
        client(stub).labels("reading", "7")
    assert caught.value.kind == "protocol"


def test_list_with_the_same_cursor_is_an_error() -> None:
    stub = Stub(response=lambda seen: part("one", "/wiki/api/v2/x?cursor=same"))
    with stub, pytest.raises(ToolchainError) as caught:
        client(stub).labels("reading", "7")
    assert caught.value.kind == "protocol"
    assert len(stub.seen) <= 2


def test_space_with_key_none_is_not_used_for_other_pages() -> None:
    named_none = Reply(body={"results": [{"id": "5", "key": "NONE"}]})
    with Stub(named_none, Reply(body=PAGE), SPACES) as stub:
        wiki = client(stub)
        wiki.require_space("NONE")
        assert wiki.require("reading", "7", None).space == "REL"
    assert query_of(stub.seen[-1]) == {"ids": "9"}


def test_page_contains_space_parent_and_url() -> None:
    with Stub(Reply(body=PAGE), SPACES, Reply(body=PAGE)) as stub:
        wiki = client(stub)
        page = wiki.require("reading", "7", None)
        wiki.require("reading", "7", None)
    assert (page.space, page.parent, page.shows_parent) == ("REL", "1", True)
    assert page.url == "https://example.atlassian.net/wiki/spaces/REL/pages/7"
    assert page.home is False
    assert query_of(stub.seen[1]) == {"ids": "9"}


def test_lists_in_a_page_count_only_if_complete() -> None:
    labels = {"results": [{"prefix": "global", "name": "x"}]}
    cut = {**labels, "meta": {"hasMore": True, "cursor": "c"}}
    with Stub(
        Reply(body={**PAGE, "labels": labels}), SPACES, Reply(body={**PAGE, "labels": cut})
    ) as stub:
        wiki = client(stub, labels=True)
        assert wiki.require("reading", "7", None).labels == ("x",)
        assert wiki.require("reading", "7", None).labels is None
    assert query_of(stub.seen[0])["include-labels"] == "true"


def test_page_with_another_title_is_not_found() -> None:
    other = {**PAGE, "title": "Notes 2"}
    with Stub(SPACES, Reply(body={"results": [other]})) as stub:
        assert client(stub).find("looking", "REL", "Notes") is None


def test_space_with_another_key_is_not_accepted() -> None:
    with Stub(SPACES, SPACES) as stub:
        wiki = client(stub)
        assert wiki.find("looking", "ARC", "Notes") is None
        with pytest.raises(ToolchainError, match="no space ARC"):
            wiki.require_space("ARC")


def test_address_without_wiki_is_an_error() -> None:
    with Stub(Reply(404, "<h1>none</h1>")) as stub, pytest.raises(ToolchainError) as caught:
        client(stub).find_by_id("reading", "7", None)
    assert "there is no wiki at this address" in str(caught.value)


@pytest.mark.parametrize(
    ("probe", "version"),
    [
        (Reply(body={"results": []}), 2),
        (Reply(403, {"message": "no"}), 2),
        (Reply(401, {"message": "Unauthorized; scope does not match"}), 2),
        (Reply(404, "none"), 1),
        (Reply(410, {"message": "gone"}), 1),
        (Reply(200, "<html>welcome</html>"), 1),
    ],
)
def test_cloud_is_asked_for_version_2_once(
    monkeypatch: pytest.MonkeyPatch, probe: Reply, version: int
) -> None:
    page = {**PAGE, "spaceId": None}
    with Stub(probe, Reply(body=page), Reply(body=page)) as stub:
        monkeypatch.setattr(
            "ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.exchange.is_cloud",
            lambda connection: True,
        )
        for _again in range(2):
            client(stub, dialect="auto").require("reading", "7", "REL")
    first, *reads = (seen.path for seen in stub.seen)
    assert first == "/base/api/v2/spaces"
    place = "/base/api/v2/pages/7" if version == 2 else "/base/rest/api/content/7"
    assert reads == [place, place]


@pytest.mark.parametrize(
    ("link", "path"),
    [
        ("/download/attachments/7/a.txt?v=1", "/base/download/attachments/7/a.txt?v=1"),
        ("/wiki/download/attachments/7/a.txt", "/base/download/attachments/7/a.txt"),
        (
            "https://example.atlassian.net/wiki/download/attachments/7/a.txt",
            "/base/download/attachments/7/a.txt",
        ),
        (
            "https://api.atlassian.com/ex/confluence/1-2/wiki/rest/api/x",
            "/base/rest/api/x",
        ),
    ],
)
def test_url_of_the_site_is_read_at_the_base_url(link: str, path: str) -> None:
    with Stub(Reply(body=b"bytes")) as stub:
        found = client(stub).download("reading", link, lambda body: b"".join(body.iter_content()))
    assert (found, stub.seen[0].target) == (b"bytes", path)


@pytest.mark.parametrize(
    ("link", "encoded"),
    [
        ("/download/7/a b.txt", "/download/7/a%20b.txt"),
        ("/download/7/é.txt", "/download/7/%C3%A9.txt"),
        ("/download/7/a%20b.txt?v=1&x=%2F", "/download/7/a%20b.txt?v=1&x=%2F"),
    ],
)
def test_link_of_an_attachment_may_be_encoded_or_not(link: str, encoded: str) -> None:
    assert stored_of({"id": "1", "_links": {"download": link}}).link == encoded


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"status": 404, "code": "NOT_FOUND", "title": "Gone", "detail": None}, "Gone"),
        ({"status": 400, "code": "BAD", "title": "Bad", "detail": "a is b"}, "Bad; a is b"),
        ({"status": 400, "code": "INVALID"}, "INVALID"),
    ],
)
def test_errors_of_version_2_are_parsed(entry: Mapping[str, Any], text: str) -> None:
    assert error_text(json.dumps({"errors": [entry]})) == text


@pytest.mark.parametrize(
    "odd",
    [
        [],
        "text",
        {"id": "7"},
        {**PAGE, "version": None},
        {**PAGE, "title": 7},
    ],
)
def test_malformed_page_is_a_protocol_error(odd: Any) -> None:
    def response(seen: Seen) -> Reply:
        return SPACES if "spaces" in seen.path else Reply(body=json.dumps(odd))

    with Stub(response=response) as stub, pytest.raises(ToolchainError) as caught:
        client(stub).require("reading", "7", None)
    assert caught.value.kind == "protocol"


@pytest.mark.parametrize(
    "odd",
    [
        {"_links": [], "labels": [], "properties": "x", "operations": 7},
        {"_links": None, "parentId": None, "body": []},
        {"labels": {"results": None}, "properties": {"results": [{}]}},
    ],
)
def test_malformed_members_are_ignored(odd: dict[str, Any]) -> None:
    with Stub(Reply(body={**PAGE, **odd}), SPACES) as stub:
        assert client(stub).require("reading", "7", None).id == "7"


def test_parents_are_resolved_through_folders_and_archive() -> None:
    entries: dict[str, Mapping[str, Any]] = {
        "4": {"parentId": "3", "type": "page"},
        "2": {"parentId": "1", "type": "folder"},
        "3": {"parentId": "2", "type": "page"},
        "5": {"parentId": "1", "type": "page", "status": "archived"},
        "6": {"parentId": "5", "type": "page", "status": "current"},
    }
    assert version2.parents_of(entries, "1") == [("3", "1"), ("6", "1"), ("4", "3")]


@pytest.mark.parametrize("missing", ["id", "title", "status"])
def test_found_page_without_a_needed_member_is_an_error(missing: str) -> None:
    entry = {name: value for name, value in PAGE.items() if name != missing}
    stub = Stub(SPACES, Reply(body={"results": [entry]}))
    with stub, pytest.raises(ToolchainError) as caught:
        client(stub).find("searching", "REL", "Notes")
    assert caught.value.kind == "protocol"
    assert f"without '{missing}'" in caught.value.message


@pytest.mark.parametrize("missing", ["id", "parentId", "depth"])
def test_descendant_without_a_needed_member_is_an_error(missing: str) -> None:
    entry = {"id": "8", "parentId": "7", "depth": 1, "type": "page", "status": "current"}
    del entry[missing]
    stub = Stub(Reply(body={"results": [entry]}))
    with stub, pytest.raises(ToolchainError) as caught:
        client(stub).descendants("listing", "7")
    assert caught.value.kind == "protocol"
    assert f"without '{missing}'" in caught.value.message


@pytest.mark.parametrize("dialect", ["server", "cloud_v2"])
@pytest.mark.parametrize("missing", ["id", "title", "version"])
def test_marked_page_without_a_needed_member_is_an_error(dialect: str, missing: str) -> None:
    """Without it the renamed page would not be found, and a second page would be written."""
    entry = {name: value for name, value in PAGE.items() if name != missing}
    listed = Reply(body={"results": [entry]})
    before = [] if dialect == "server" else [SPACES]
    with Stub(*before, listed) as stub, pytest.raises(ToolchainError) as caught:
        client(stub, dialect=dialect).possibly_renamed("searching", "REL", "x")
    assert caught.value.kind == "protocol"
    assert missing in caught.value.message
