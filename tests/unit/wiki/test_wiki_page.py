# SPDX-License-Identifier: GPL-3.0-or-later
"""Test pages on the wire: requests, their number, and the preservation of other writers' work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.pages.wiki_page import (
    WikiPageOptions,
)
from tests.helpers.options import build
from tests.unit.stub import Reply, Seen, Stub, Waits
from tests.unit.wiki.running import Run, methods
from tests.unit.wiki.server import CONTENT, Wiki, page

LOCK = Reply(409, {"message": "org.x.OptimisticLockException: Row was updated"})


def test_unchanged_page_takes_one_request(stub: Stub, wiki: Wiki) -> None:
    plan, result = Run(stub, page_id="7", body="<p>old</p>\n", title=" Notes ", parent_id="1")()
    assert not plan.changed
    assert plan.before == plan.after
    assert result["page"] == {
        "id": "7",
        "title": "Notes",
        "space": "REL",
        "version": 3,
        "url": f"{stub.url}/pages/viewpage.action?pageId=7",
    }
    assert result["ignored_differences"] == ["whitespace between blocks (1)"]
    assert methods(stub) == ["GET"]


def test_changed_page_takes_two_requests(stub: Stub, wiki: Wiki) -> None:
    plan, result = Run(stub, page_id="7", body="<p>new</p>")()
    assert plan.changed
    assert (plan.before, plan.after) == (
        "title: Notes\n\n<p>old</p>\n",
        "title: Notes\n\n<p>new</p>\n",
    )
    assert result["page"]["version"] == 4
    assert methods(stub) == ["GET", "PUT"]
    assert wiki.written == [
        {
            "id": "7",
            "type": "page",
            "title": "Notes",
            "space": {"key": "REL"},
            "body": {"storage": {"value": "<p>new</p>", "representation": "storage"}},
            "version": {"number": 4},
        }
    ]
    assert stub.seen[1].headers["Content-Type"] == "application/json"


def test_check_mode_predicts_and_writes_nothing(stub: Stub, wiki: Wiki) -> None:
    options: dict[str, Any] = {
        "page_id": "7",
        "body": "<p>new</p>",
        "title": "Renamed",
        "parent_id": "8",
    }
    checked, predicted = Run(stub, read_only=True, **options)()
    assert methods(stub) == ["GET", "GET", "GET"]
    done, result = Run(stub, **options)()
    assert (checked.before, checked.after) == (done.before, done.after)
    assert predicted == result
    assert wiki.pages["7"]["parent"] == "8"
    assert done.after == "title: Renamed\nparent: 8\n\n<p>new</p>\n"


def test_version_comment_is_sent(stub: Stub, wiki: Wiki) -> None:
    Run(stub, page_id="7", body="<p>new</p>", version_comment="why", minor_edit=True)()
    assert wiki.written[0]["version"] == {"number": 4, "message": "why", "minorEdit": True}


def test_rename_keeps_the_body_of_the_server(stub: Stub, wiki: Wiki) -> None:
    wiki.pages["7"]["body"] = '<p local-id="1">old<br></br></p>'
    plan, _result = Run(stub, page_id="7", title="Renamed", body="<p>old<br/></p>")()
    assert [change.field for change in plan.changes] == ["title"]
    assert wiki.pages["7"]["title"] == "Renamed"
    assert wiki.pages["7"]["body"] == '<p local-id="1">old<br></br></p>'
    assert "ancestors" not in wiki.written[0]


def test_exact_comparison_compares_strings(stub: Stub, wiki: Wiki) -> None:
    wiki.pages["7"]["body"] = "<p>old<br /></p>"
    plan, result = Run(stub, page_id="7", body="<p>old<br/></p>", compare="exact")()
    assert plan.changed
    assert plan.before != plan.after
    assert result["ignored_differences"] == []
    assert not Run(stub, page_id="7", body="<p>old<br/></p>", compare="exact")()[0].changed


def test_body_is_read_from_a_file(stub: Stub, wiki: Wiki, tmp_path: Path) -> None:
    source = tmp_path / "page.xml"
    source.write_bytes("\ufeff<p>ä</p>\r\n".encode())
    Run(stub, page_id="7", src=str(source))()
    assert wiki.pages["7"]["body"] == "<p>ä</p>\r\n"
    source.write_bytes(b"\xff")
    assert Run(stub, page_id="7", src=str(source)).fails().kind == "invalid"
    assert Run(stub, page_id="7", src=str(tmp_path / "none")).fails().kind == "invalid"


# -- finding, creating, removing -------------------------------------------------------------------


def test_page_is_found_by_title_in_one_request(stub: Stub, wiki: Wiki) -> None:
    plan, result = Run(stub, space="REL", title=" notes", body="<p>old</p>")()
    assert [change.field for change in plan.changes] == ["title"]
    assert result["page"]["title"] == "notes"
    assert not Run(stub, space="REL", title="notes ", body="<p>old</p>")()[0].changed
    assert methods(stub) == ["GET", "PUT", "GET"]


def test_title_search_without_bodies_is_followed_by_a_read(stub: Stub, wiki: Wiki) -> None:
    def bare(seen: Any) -> Reply:
        reply = wiki(seen)
        if seen.path.endswith("/content"):
            assert isinstance(reply.body, dict)
            results = [{"id": "7", "title": "Notes", "version": {"number": 3}}]
            return Reply(body={**reply.body, "results": results})
        return reply

    stub.response = bare
    plan, result = Run(stub, space="REL", title="Notes", body="<p>old</p>")()
    assert not plan.changed
    assert methods(stub) == ["GET", "GET"]
    assert result["page"]["version"] == 3


def test_missing_page_is_created(stub: Stub, wiki: Wiki) -> None:
    options: dict[str, Any] = {
        "space": "REL",
        "title": " New ",
        "body": "<p>1</p>",
        "parent_id": "7",
        "version_comment": "first",
    }
    checked, predicted = Run(stub, read_only=True, **options)()
    assert predicted["page"] == {
        "id": None,
        "title": "New",
        "space": "REL",
        "version": 1,
        "url": None,
    }
    plan, result = Run(stub, **options)()
    assert (checked.before, checked.after) == (plan.before, plan.after)
    assert plan.after == "title: New\nparent: 7\n\n<p>1</p>\n"
    assert result["page"]["id"] == "102"
    assert wiki.written == [
        {
            "type": "page",
            "title": "New",
            "space": {"key": "REL"},
            "body": {"storage": {"value": "<p>1</p>", "representation": "storage"}},
            "ancestors": [{"id": "7"}],
            "version": {"number": 1, "message": "first"},
        }
    ]
    assert not Run(stub, **options)()[0].changed
    assert methods(stub) == ["GET"] * 4 + ["POST", "GET"]


@pytest.mark.parametrize("address", [{"page_id": "7"}, {"space": "REL", "title": "Notes"}])
def test_parent_is_found_by_its_title(stub: Stub, wiki: Wiki, address: dict[str, Any]) -> None:
    options = {**address, "parent_title": " OTHER "}
    checked = Run(stub, read_only=True, **options)()[0]
    assert checked.after == "title: Notes\nparent: 8\n\n<p>old</p>\n"
    assert Run(stub, **options)()[0].changed
    assert wiki.pages["7"]["parent"] == "8"
    assert not Run(stub, **options)()[0].changed


@pytest.mark.parametrize("blank", ["", " ", "\n"])
def test_blank_parent_title_is_invalid_before_any_request(stub: Stub, blank: str) -> None:
    error = Run(stub, page_id="7", parent_title=blank).fails()
    assert (error.kind, error.message) == ("invalid", "parent_title: the title is empty")
    assert methods(stub) == []


def test_new_page_is_created_below_a_title(stub: Stub, wiki: Wiki) -> None:
    new: dict[str, Any] = {
        "space": "REL",
        "title": "New",
        "body": "<p>1</p>",
        "parent_title": "Other",
    }
    result = Run(stub, **new)()[1]
    assert wiki.pages[result["page"]["id"]]["parent"] == "8"
    below = {"title": "Below", "body": "<p>1</p>", "parent_title": "Notes"}
    options = build(WikiPageOptions, space="REL", parent_id="8", pages=[below])
    (entry,) = map(options.entry, options.pages or ())
    assert (entry.parent_id, entry.parent_title) == (None, "Notes")


def test_page_is_created_once_although_the_response_is_lost(stub: Stub, wiki: Wiki) -> None:
    wiki.lost = 1
    _plan, result = Run(stub, space="REL", title="New", body="<p>1</p>")()
    assert result["page"]["id"] == "102"
    assert methods(stub) == ["GET", "GET", "POST", "GET"]


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"space": "NO", "title": "New"}, "not_found", "no space NO"),
        (
            {"space": "REL", "title": "New", "parent_id": "99"},
            "not_found",
            "the parent page 99 does not exist",
        ),
        (
            {"space": "DOC", "title": "New", "parent_id": "7"},
            "conflict",
            "is in the space REL",
        ),
        ({"page_id": "7", "parent_id": "99"}, "not_found", "the parent page 99 does not exist"),
        ({"page_id": "7", "parent_id": "7"}, "rejected", "is the page itself"),
        (
            {"space": "REL", "title": "New", "parent_title": "none"},
            "not_found",
            "parent_title: there is no page 'none' in the space REL",
        ),
        ({"page_id": "7", "parent_title": "Notes"}, "rejected", "is the page itself"),
    ],
)
def test_missing_parent_or_space_is_reported_before_any_write(
    stub: Stub, read_only: bool, options: dict[str, Any], kind: str, words: str
) -> None:
    error = Run(stub, read_only=read_only, body="<p>1</p>", **options).fails()
    assert error.kind == kind
    assert words in error.message
    assert set(methods(stub)) == {"GET"}


@pytest.mark.parametrize("there", ["M\u00fcll", "Mu\u0308ll"])
@pytest.mark.parametrize("given", ["M\u00fcll", "Mu\u0308ll"])
def test_decomposed_umlaut_creates_no_second_page(
    stub: Stub, wiki: Wiki, there: str, given: str
) -> None:
    wiki.pages["9"] = page("<p>1</p>", id="9", title=there)
    _plan, result = Run(stub, space="REL", title=given, body="<p>1</p>")()
    assert result["page"]["id"] == "9"
    assert set(methods(stub)) == {"GET"}


@pytest.mark.parametrize("read_only", [True, False])
def test_parent_below_the_page_is_rejected_before_any_write(
    stub: Stub, wiki: Wiki, read_only: bool
) -> None:
    wiki.pages["9"] = page(id="9", title="Below", parent="7")
    error = Run(stub, read_only=read_only, page_id="7", parent_id="9").fails()
    assert error.kind == "rejected"
    assert "or below it" in error.message
    assert set(methods(stub)) == {"GET"}


@pytest.mark.parametrize("state", ["present", "absent"])
def test_malformed_title_search_is_not_an_empty_result(stub: Stub, state: str) -> None:
    stub.response = lambda seen: Reply(body={"results": ["New"], "size": 1})
    error = Run(stub, space="REL", title="New", body="<p>1</p>", state=state).fails()
    assert error.kind == "protocol"
    assert methods(stub) == ["GET"]


def test_page_created_concurrently_is_accepted(stub: Stub, wiki: Wiki) -> None:
    options: dict[str, Any] = {"space": "REL", "title": "New", "body": "<p>1</p>"}
    other = page("<p>1</p>", id="50", title="New", parent=None, version=1)

    def response(seen: Seen) -> Reply:
        if seen.method != "POST":
            return wiki(seen)
        wiki.pages["50"] = other
        message = "A page with this title already exists: A page already exists with the title New"
        return Reply(400, {"statusCode": 400, "message": message})

    stub.response = response
    assert Run(stub, **options)()[1]["page"]["id"] == "50"
    del wiki.pages["50"]
    other = page("<p>2</p>", id="50", title="New", parent=None, version=1)
    assert Run(stub, **options).fails().kind == "conflict"


def test_equal_concurrent_save_is_accepted(stub: Stub, wiki: Wiki) -> None:
    wiki.puts = [lambda found: found.edit(body="<p>new</p>")]
    assert Run(stub, page_id="7", body="<p>new</p>")()[1]["page"]["version"] == 4
    wiki.puts = [lambda found: found.edit(body="<p>other</p>")]
    assert Run(stub, page_id="7", body="<p>newer</p>").fails().kind == "conflict"


@pytest.mark.parametrize(
    ("body", "warned"),
    [
        ("# Release\n\nText", True),
        ("See [the notes](https://x.example/)", True),
        ("- one\n- two", True),
        ("| a | b |\n|---|---|", True),
        ("```\ncode\n```", True),
        ("It is **new**.", True),
        ("<p># 1 and **2**</p>", False),
        ("Plain text - with a dash", False),
        ("", False),
    ],
)
def test_markdown_as_storage_format_gives_a_warning(stub: Stub, body: str, warned: bool) -> None:
    run = Run(stub, page_id="7", body=body)
    run()
    assert any("looks like Markdown" in warning for warning in run.warnings) is warned


def test_failed_creation_is_not_retried(stub: Stub, wiki: Wiki) -> None:
    stub.response = lambda seen: Reply(cut=True) if seen.method == "POST" else wiki(seen)
    error = Run(stub, space="REL", title="New", body="<p>1</p>").fails()
    assert error.kind == "network"
    assert methods(stub).count("POST") == 1


def test_page_is_moved_to_the_trash_once(stub: Stub, wiki: Wiki) -> None:
    plan, result = Run(stub, page_id="7", state="absent")()
    assert (plan.action, plan.after) == ("delete", "")
    assert result["page"]["id"] == "7"
    assert wiki.pages["7"]["status"] == "trashed"
    ways: list[dict[str, Any]] = [{"page_id": "7"}, {"space": "REL", "title": "Notes"}]
    for options in ways:
        plan, result = Run(stub, state="absent", **options)()
        assert not plan.changed
        assert result["page"] is None
    # by title, the space is checked, too
    assert methods(stub) == ["GET", "DELETE", "GET", "GET", "GET"]


@pytest.mark.parametrize("shown", [True, False])
def test_important_page_is_deleted_only_with_force(stub: Stub, wiki: Wiki, shown: bool) -> None:
    if not shown:
        wiki.expands = frozenset({"body.storage", "version", "space", "ancestors"})
    wiki.home = "7"
    error = Run(stub, page_id="7", state="absent").fails()
    assert (error.kind, "home page of the space REL" in error.message) == ("invalid", True)
    wiki.home = "1"
    wiki.pages["8"] = page(id="8", title="Below", parent="7")
    error = Run(stub, page_id="7", state="absent").fails()
    assert (error.kind, "it has child pages" in error.message) == ("invalid", True)
    error = Run(stub, pages=[{"page_id": "7", "state": "absent"}]).fails()
    assert error.kind == "invalid"
    assert "DELETE" not in methods(stub)
    Run(stub, page_id="7", state="absent", force=True)()
    assert wiki.pages["7"]["status"] == "trashed"


def test_unknown_space_or_server_is_not_absent(stub: Stub, wiki: Wiki) -> None:
    error = Run(stub, space="TYPO", title="Notes", state="absent").fails()
    assert (error.kind, "no space TYPO" in error.message) == ("not_found", True)
    assert len(stub.seen) <= 2
    stub.response = lambda seen: Reply(404, "<html><h1>Not here</h1></html>")
    ways: list[dict[str, Any]] = [{"page_id": "7"}, {"space": "REL", "title": "Notes"}]
    for options in ways:
        assert Run(stub, state="absent", **options).fails().kind == "not_found"


def test_absent_section_does_not_remove_its_page(stub: Stub, wiki: Wiki) -> None:
    address: dict[str, Any] = {"page_id": "7", "section": "Changes", "state": "absent"}
    ways: list[dict[str, Any]] = [address, {"pages": [address]}]
    for options in ways:
        error = Run(stub, **options).fails()
        assert (error.kind, "section: state=absent" in error.message) == ("invalid", True)
    assert stub.seen == []


def test_pattern_as_absent_title_is_rejected(stub: Stub, wiki: Wiki) -> None:
    error = Run(stub, space="REL", title="Notes *", state="absent").fails()
    assert (error.kind, "wildcard" in error.message) == ("invalid", True)


def test_terse_404_of_a_wiki_means_absent(stub: Stub, wiki: Wiki) -> None:
    listed = Reply(body={"results": []})
    stub.response = lambda seen: Reply(404, {}) if "/content/9" in seen.path else listed
    assert not Run(stub, page_id="9", state="absent")()[0].changed


def test_lost_response_to_deletion_is_verified(stub: Stub, wiki: Wiki) -> None:
    wiki.lost = 1
    Run(stub, page_id="7", state="absent")()
    assert methods(stub) == ["GET", "DELETE", "GET"]


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"page_id": "99", "body": ""}, "not_found", "99"),
        ({"page_id": "7", "space": "OPS", "body": ""}, "conflict", "in the space REL, not in OPS"),
        ({"page_id": "7", "body": "", "expected_version": 2}, "conflict", "version 3, not 2"),
        ({"space": "REL", "title": "None"}, "not_found", "body or src"),
        (
            {"space": "REL", "title": "None", "body": "", "section": "A"},
            "not_found",
            "leave out section",
        ),
        (
            {"space": "REL", "title": "None", "body": "", "expected_version": 1},
            "conflict",
            "does not exist",
        ),
        (
            {"page_id": "7", "body": "", "section": "Nowhere"},
            "not_found",
            "(7) has no heading 'Nowhere'",
        ),
    ],
)
def test_impossible_change_is_rejected_before_any_write(
    stub: Stub, options: dict[str, Any], kind: str, words: str
) -> None:
    error = Run(stub, **options).fails()
    assert (error.kind, words in error.message) == (kind, True), error.message
    assert methods(stub) == ["GET"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"space": "REL", "body": ""}, "page_id, or space and title"),
        ({"page_id": "7", "section": "A"}, "section requires its content"),
        ({"page_id": "7", "must_keep": "A"}, "must_keep requires the new content"),
        ({"page_id": "7", "body": "", "must_keep": "("}, "must_keep is not a regular expression"),
        ({"page_id": "7", "body": "<p>R & D</p>"}, "line 1, column 6"),
    ],
)
def test_invalid_options_are_rejected_before_any_request(
    stub: Stub, options: dict[str, Any], words: str
) -> None:
    error = Run(stub, **options).fails()
    assert error.kind == "invalid"
    assert words in error.message
    assert stub.seen == []


@pytest.mark.parametrize("status", ["draft", "trashed"])
def test_page_that_is_not_current_is_a_conflict(stub: Stub, wiki: Wiki, status: str) -> None:
    content = {
        "id": "7",
        "type": "page",
        "status": status,
        "title": "Notes",
        "version": {"number": 1},
    }
    stub.response = lambda seen: Reply(body=content)
    assert Run(stub, page_id="7", body="<p>new</p>").fails().kind == "conflict"
    assert methods(stub) == ["GET"]


# -- missing information in responses --------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 404])
def test_server_rejecting_expand_is_asked_without_it_from_then_on(
    stub: Stub, wiki: Wiki, status: int
) -> None:
    wiki.expands, wiki.refusal = None, Reply(status, "<html><h1>Oh no</h1></html>")
    assert Run(stub, page_id="7", body="<p>new</p>")()[0].changed
    assert not Run(stub, page_id="7", body="<p>new</p>")()[0].changed
    assert methods(stub) == ["GET", "GET", "PUT", "GET"]
    assert ["expand" in seen.target for seen in stub.seen] == [True, False, False, False]


def test_missing_page_is_requested_once(stub: Stub, wiki: Wiki) -> None:
    assert Run(stub, page_id="9", body="").fails().kind == "not_found"
    assert methods(stub) == ["GET"]


def test_only_writable_fields_are_sent_if_expand_is_ignored(stub: Stub, wiki: Wiki) -> None:
    wiki.expands = frozenset({"body.storage"})
    Run(stub, page_id="7", body="<p>new</p>")()
    assert [seen.target for seen in stub.seen if seen.method == "PUT"] == [f"{CONTENT}/7"]
    assert wiki.written == [
        {
            "id": "7",
            "type": "page",
            "title": "Notes",
            "space": {"key": "REL"},
            "body": {"storage": {"value": "<p>new</p>", "representation": "storage"}},
            "version": {"number": 4},
        }
    ]


@pytest.mark.parametrize(
    "links", [{"base": 5, "webui": "/x"}, {"base": None, "webui": "/x"}, {"webui": 5}, [], 5]
)
def test_links_of_any_shape_are_accepted(stub: Stub, wiki: Wiki, links: Any) -> None:
    content = {"id": 7, "title": "Notes", "version": {"number": 3}, "_links": links}
    stub.replies = [Reply(body=content)]
    _plan, result = Run(stub, page_id="7", title="Notes")()
    assert result["page"]["url"].startswith(f"{stub.url}/")


def test_title_search_may_return_only_id_and_title(stub: Stub, wiki: Wiki) -> None:
    bare = {"id": "7", "type": "page", "status": "current", "title": "Notes"}
    stub.replies = [Reply(body={"results": [bare]})]
    assert Run(stub, space="REL", title="notes", body="<p>new</p>")()[0].changed
    assert methods(stub) == ["GET", "GET", "PUT"]
    assert wiki.pages["7"]["title"] == "notes"


def test_version_may_be_a_string(stub: Stub, wiki: Wiki) -> None:
    content = {"id": 7, "title": "Notes", "version": {"number": "3"}}
    stub.replies = [Reply(body=content)]
    _plan, result = Run(stub, page_id="7", space="REL", body="<p>new</p>", expected_version=3)()
    assert wiki.written[0]["version"] == {"number": 4}
    assert wiki.written[0]["space"] == {"key": "REL"}
    assert result["page"]["version"] == 4


def test_space_key_is_case_insensitive(stub: Stub, wiki: Wiki) -> None:
    assert not Run(stub, page_id="7", space="rel", body="<p>old</p>")()[0].changed


LOGIN_PAGE = Reply(body='<html><form><input type="password" name="os_password"></form></html>')


def test_login_page_in_response_to_a_save_is_an_auth_error(stub: Stub, wiki: Wiki) -> None:
    wiki.puts = [lambda wiki: LOGIN_PAGE]
    error = Run(stub, page_id="7", body="<p>new</p>").fails()
    assert (error.kind, error.status, error.method) == ("auth", 200, "PUT")
    shown = Reply(body={"id": "7", "title": "Notes", "version": {"number": 3}})
    stub.replies = [shown, LOGIN_PAGE]
    error = Run(stub, page_id="7", state="absent", force=True).fails()
    assert (error.kind, error.method) == ("auth", "DELETE")
    stub.replies = [shown, LOGIN_PAGE]
    error = Run(stub, page_id="7", state="absent").fails()
    assert (error.kind, error.method) == ("auth", "GET")


def test_removed_interface_names_its_successor(stub: Stub, wiki: Wiki) -> None:
    stub.response = lambda seen: Reply(
        410, {"message": "This deprecated endpoint has been removed"}
    )
    error = Run(stub, page_id="7", body="").fails()
    assert (error.kind, error.status) == ("not_found", 410)
    assert "deprecated endpoint has been removed; its successor is api/v2/pages" in error.message


def test_missing_body_is_not_an_empty_body(stub: Stub, wiki: Wiki) -> None:
    wiki.expands = frozenset({"version", "space"})
    wiki.pages["7"]["body"] = ""
    plan, _result = Run(stub, page_id="7", body="")()
    assert plan.changed
    assert "does not send the body" in plan.before
    assert Run(stub, page_id="7", title="Renamed").fails().kind == "protocol"
    assert Run(stub, page_id="7", body="", section="A").fails().kind == "protocol"
    assert Run(stub, page_id="7", body="", must_keep="A").fails().kind == "protocol"
    assert not Run(stub, page_id="7", title="Notes")()[0].changed


def test_hidden_parent_causes_no_new_version(stub: Stub, wiki: Wiki) -> None:
    wiki.expands = frozenset({"body.storage", "version", "space"})
    run = Run(stub, page_id="7", body="<p>old</p>", parent_id="1")
    plan, _result = run()
    assert not plan.changed
    (warning,) = run.warnings
    assert "does not show the parent" in warning
    assert Run(stub, page_id="7", body="<p>new</p>", parent_id="1")()[0].changed
    assert wiki.written[0]["ancestors"] == [{"id": "1"}]
    assert not Run(stub, page_id="7", body="<p>new</p>", parent_id="1")()[0].changed


def test_server_without_title_search_is_reported(stub: Stub, wiki: Wiki) -> None:
    wiki.finds = False
    error = Run(stub, space="REL", title="Notes", body="").fails()
    assert error.kind == "not_found"
    assert "use page_id" in error.message


@pytest.mark.parametrize("body", [b"", b"null", b'{"id": "7"}', b"<html><h1>Hello</h1></html>"])
def test_response_without_page_is_an_error(body: bytes) -> None:
    with Stub(Reply(body=body)) as stub:
        assert Run(stub, page_id="7", body="").fails().kind == "protocol"


@pytest.mark.parametrize("reply", [Reply(), Reply(body=b"{}"), Reply(body=b"OK"), Reply(204)])
def test_response_to_a_save_may_have_any_shape(stub: Stub, wiki: Wiki, reply: Reply) -> None:
    def saved(_wiki: Wiki) -> Reply:
        wiki.store_last()
        return reply

    wiki.puts = [saved]
    _plan, result = Run(stub, page_id="7", title="Renamed", body="<p>new</p>")()
    assert (result["page"]["version"], result["page"]["title"]) == (4, "Renamed")


# -- conflicts -------------------------------------------------------------------------------------


def test_concurrent_edit_is_not_overwritten(stub: Stub, wiki: Wiki) -> None:
    wiki.puts = [lambda wiki: wiki.edit(body="<p>theirs</p>")]
    error = Run(stub, page_id="7", body="<p>new</p>").fails()
    assert (error.kind, error.status) == ("conflict", 409)
    assert "version 3 was read, but the page now has version 4" in error.message
    assert "Version must be incremented" in str(error.detail)
    assert wiki.pages["7"]["body"] == "<p>theirs</p>"
    assert methods(stub) == ["GET", "PUT", "GET"]


def test_concurrent_edit_of_the_title_is_merged_on_request(stub: Stub, wiki: Wiki) -> None:
    wiki.puts = [lambda wiki: wiki.edit(title="Theirs")]
    options: dict[str, Any] = {"page_id": "7", "body": "<p>new</p>"}
    assert Run(stub, **options).fails().kind == "conflict"
    wiki.puts = [lambda wiki: wiki.edit(title="Theirs again"), lambda wiki: wiki.edit()]
    _plan, result = Run(stub, on_conflict="retry", **options)()
    assert wiki.pages["7"]["body"] == "<p>new</p>"
    assert wiki.pages["7"]["title"] == "Theirs again"
    assert result["page"]["version"] == wiki.pages["7"]["version"] == 7


def test_concurrent_edit_of_the_body_is_a_conflict(stub: Stub, wiki: Wiki) -> None:
    wiki.puts = [lambda wiki: wiki.edit(body="<p>theirs</p>")]
    error = Run(stub, page_id="7", body="<p>new</p>", on_conflict="retry").fails()
    assert error.kind == "conflict"
    assert wiki.pages["7"]["body"] == "<p>theirs</p>"


@pytest.mark.parametrize("listed", [False, True])
def test_refused_save_of_what_another_run_has_saved_is_unchanged(
    stub: Stub, wiki: Wiki, *, listed: bool
) -> None:
    page = {"page_id": "7", "body": "<p>new</p>"}
    wiki.puts = [lambda wiki: wiki.edit(body="<p>new</p>")]
    run = Run(stub, **({"pages": [page]} if listed else page))
    _plan, result = run()
    assert result["changed"] is False
    assert wiki.pages["7"]["version"] == 4
    assert "the server refused the save" in run.warnings[0]
    shown = result["pages"][0]["page"] if listed else result["page"]
    assert shown["version"] == 4


@pytest.mark.parametrize("message", ["Version must be incremented on update.", ""])
def test_version_conflict_that_the_page_does_not_show_is_retried(
    stub: Stub, wiki: Wiki, message: str
) -> None:
    body: Any = {"message": message} if message else ""
    wiki.puts = [lambda wiki: Reply(409, body)]
    options: dict[str, Any] = {"page_id": "7", "body": "<p>new</p>"}
    assert Run(stub, **options).fails().kind == "conflict"
    wiki.puts = [lambda wiki: Reply(409, body)]
    _plan, result = Run(stub, on_conflict="retry", **options)()
    assert result["page"]["version"] == wiki.pages["7"]["version"] == 4
    wiki.puts = [lambda wiki: Reply(409, body)] * 9
    options["body"] = "<p>newer</p>"
    assert Run(stub, on_conflict="retry", **options).fails().kind == "conflict"


def test_expected_version_disables_merging(stub: Stub, wiki: Wiki) -> None:
    wiki.puts = [lambda wiki: wiki.edit(title="Theirs")]
    options: dict[str, Any] = {"on_conflict": "retry", "expected_version": 3}
    assert Run(stub, page_id="7", body="<p>n</p>", **options).fails().kind == "conflict"
    assert methods(stub) == ["GET", "PUT", "GET"]


def test_save_completed_behind_a_gateway_timeout_is_not_a_conflict(stub: Stub, wiki: Wiki) -> None:
    def late(wiki: Wiki) -> None:
        wiki.store_last()

    wiki.puts = [lambda wiki: Reply(504, {"message": "Transaction rolled back"}), late]
    _plan, result = Run(stub, page_id="7", body="<p>new</p>")()
    assert result["page"]["version"] == wiki.pages["7"]["version"] == 4
    assert "changed" not in result
    assert methods(stub) == ["GET", "PUT", "GET", "GET", "PUT", "GET"]


def test_retries_are_limited(stub: Stub, wiki: Wiki) -> None:
    wiki.puts = [lambda wiki: wiki.edit()] * 9
    assert Run(stub, page_id="7", body="<p>n</p>", on_conflict="retry").fails().kind == "conflict"
    assert methods(stub).count("PUT") == 4


@pytest.mark.parametrize(
    "reply",
    [
        LOCK,
        Reply(409, {"message": "Transaction rolled back"}),
        Reply(409, {"message": "StaleStateException: Batch update returned another row count"}),
        Reply(409, {"message": "Lock wait timeout exceeded"}),
        Reply(409, {"message": "org.springframework.dao.CannotAcquireLockException"}),
        Reply(500, {"message": "A deadlock was detected"}),
        Reply(501, {"message": "The page is unreconciled"}),
    ],
)
def test_lock_on_an_unchanged_page_is_awaited(
    stub: Stub, wiki: Wiki, waits: Waits, reply: Reply
) -> None:
    wiki.puts = [lambda wiki: reply] * 2
    _plan, result = Run(stub, page_id="7", body="<p>new</p>")()
    assert result["page"]["version"] == 4
    assert [record["version"]["number"] for record in wiki.written] == [4, 4, 4]
    assert waits == [0.2, 0.4]
    wiki.puts = [lambda wiki: reply] * 9
    error = Run(stub, page_id="7", body="<p>newer</p>").fails()
    assert error.status == reply.status
    assert wiki.pages["7"]["version"] == 4


def test_lock_with_a_concurrent_edit_is_a_conflict(stub: Stub, wiki: Wiki) -> None:
    def locked(wiki: Wiki) -> Reply:
        wiki.edit(body="<p>theirs</p>")
        return LOCK

    wiki.puts = [locked]
    assert Run(stub, page_id="7", body="<p>new</p>").fails().kind == "conflict"
    assert wiki.pages["7"]["body"] == "<p>theirs</p>"


def test_rejection_other_than_a_lock_is_not_retried(stub: Stub, wiki: Wiki) -> None:
    wiki.puts = [lambda wiki: Reply(409, {"message": "Content 7 is a draft"})] * 2
    error = Run(stub, page_id="7", body="<p>new</p>", on_conflict="retry").fails()
    assert error.kind == "conflict"
    assert "is a draft" in error.message
    assert methods(stub).count("PUT") == 1


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_save_that_may_still_complete_is_not_retried(stub: Stub, wiki: Wiki, status: int) -> None:
    wiki.puts = [lambda wiki: Reply(status, "<html><h1>Out of order</h1></html>")] * 2
    error = Run(stub, page_id="7", body="<p>new</p>", on_conflict="retry").fails()
    assert (error.kind, error.status) == ("server", status)
    assert "still has version 3" in error.message
    assert "; nothing was changed;" in error.message
    assert methods(stub) == ["GET", "PUT", "GET", "GET"]


@pytest.mark.parametrize("status", [400, 409, 500])
def test_title_in_use_is_a_conflict(stub: Stub, wiki: Wiki, status: int) -> None:
    message = "A page with this title already exists: Other in the space with key REL"
    wiki.puts = [lambda wiki: Reply(status, {"message": message})] * 2
    error = Run(stub, page_id="7", title="Other").fails()
    assert error.kind == "conflict"
    assert methods(stub) == ["GET", "PUT", *(["GET"] if status == 500 else [])]
    stub.seen.clear()
    reported = [
        Run(stub, read_only=True, page_id="7", title="other").fails(),
        Run(stub, read_only=True, pages=[{"page_id": "7", "title": "Other"}]).fails(),
    ]
    assert [each.kind for each in reported] == ["conflict", "conflict"]
    assert "the page 8 in the space REL already has the title 'Other'" in reported[0].message
    assert methods(stub) == ["GET", "GET"] * 2


def test_lost_response_to_a_save_is_verified(stub: Stub, wiki: Wiki) -> None:
    wiki.lost = 1
    _plan, result = Run(stub, page_id="7", body="<p>new</p>")()
    assert result["page"]["version"] == 4
    assert methods(stub) == ["GET", "PUT", "GET"]


def test_save_with_error_response_is_verified(stub: Stub, wiki: Wiki) -> None:
    def saved(wiki: Wiki) -> Reply:
        wiki.store_last()
        return Reply(502, "<html><h1>Bad gateway</h1></html>")

    wiki.puts = [saved]
    _plan, result = Run(stub, page_id="7", body="<p>new</p>")()
    assert result["page"]["version"] == 4
    assert methods(stub) == ["GET", "PUT", "GET"]


def test_lost_save_is_never_retried(stub: Stub, wiki: Wiki) -> None:
    wiki.puts = [lambda wiki: Reply(cut=True)] * 2
    error = Run(stub, page_id="7", body="<p>new</p>", on_conflict="retry").fails()
    assert error.kind == "network"
    assert "still has version 3" in error.message
    assert methods(stub) == ["GET", "PUT", "GET", "GET"]


def test_deleted_page_is_not_restored(stub: Stub, wiki: Wiki) -> None:
    def trashed(wiki: Wiki) -> Reply:
        wiki.pages["7"]["status"] = "trashed"
        return LOCK

    wiki.puts = [trashed]
    error = Run(stub, page_id="7", body="<p>new</p>").fails()
    assert error.kind == "conflict"
    assert "removed meanwhile" in error.message


def test_page_moved_to_another_space_is_not_restored(stub: Stub, wiki: Wiki) -> None:
    def moved(wiki: Wiki) -> Reply:
        wiki.pages["7"]["space"] = "OPS"
        return LOCK

    wiki.puts = [moved]
    error = Run(stub, page_id="7", body="<p>new</p>", on_conflict="retry").fails()
    assert error.kind == "conflict"
    assert "moved to the space OPS" in error.message
    assert methods(stub).count("PUT") == 1


def test_read_only_page_is_reported(stub: Stub, wiki: Wiki) -> None:
    wiki.puts = [lambda wiki: Reply(404, {"message": "No content found"})]
    error = Run(stub, page_id="7", body="<p>new</p>").fails()
    assert error.kind == "not_found"
    assert "the account may read but not edit it" in error.message


# -- after the save --------------------------------------------------------------------------------


def test_page_moved_by_the_server_is_an_error(stub: Stub, wiki: Wiki) -> None:
    wiki.puts = [lambda wiki: wiki.pages["7"].update(parent=None)]
    error = Run(stub, page_id="7", body="<p>new</p>").fails()
    assert error.kind == "failed"
    assert error.result["changed"] is True
    assert error.result["page"]["version"] == 4
    assert "below 1" in error.message


def test_parent_is_verified_if_the_response_omits_it(stub: Stub, wiki: Wiki) -> None:
    def silent(wiki: Wiki) -> Reply:
        wiki.store_last()
        wiki.pages["7"]["parent"] = None
        return Reply(body={"id": "7", "title": "Notes", "version": {"number": 4}})

    wiki.puts = [silent]
    error = Run(stub, page_id="7", body="<p>new</p>").fails()
    assert error.kind == "failed"
    assert "the server moved it below the top of the space" in error.message
    assert methods(stub) == ["GET", "PUT", "GET"]


def test_unexpected_body_change_by_the_server_gives_a_warning(stub: Stub, wiki: Wiki) -> None:
    def robbed(wiki: Wiki) -> None:
        content = wiki.written[-1]["body"]["storage"]
        content["value"] = content["value"].replace(' class="x"', "")

    wiki.puts = [robbed]
    run = Run(stub, page_id="7", body='<p class="x">new</p>')
    run()
    assert len(run.warnings) == 1
    assert "stored body differs" in run.warnings[0]


MARK = '<ac:inline-comment-marker ac:ref="{}">{}</ac:inline-comment-marker>'


@pytest.mark.parametrize("read_only", [False, True])
def test_inline_comments_keep_their_place(stub: Stub, wiki: Wiki, *, read_only: bool) -> None:
    marks = MARK.format("1", "a") + MARK.format("1", "b") + MARK.format("2", "c")
    wiki.pages["7"]["body"] = f"<p>{marks}</p>"
    assert not Run(stub, page_id="7", body="<p>abc</p>")()[0].changed
    error = Run(stub, page_id="7", body="<p>new</p>", read_only=read_only).fails()
    assert error.kind == "conflict"
    assert "2 inline comments" in error.message
    assert "allow_orphaned_comments" in error.message
    assert wiki.written == []
    run = Run(
        stub, page_id="7", body="<p>new</p>", read_only=read_only, allow_orphaned_comments=True
    )
    assert run()[0].changed
    assert ["2 inline comments" in line for line in run.warnings] == [True]


def test_comments_marked_in_the_new_body_are_kept(stub: Stub, wiki: Wiki) -> None:
    wiki.pages["7"]["body"] = f"<p>{MARK.format('1', 'a')}</p>"
    run = Run(stub, page_id="7", body=f"<p>{MARK.format('1', 'a')} and more</p>")
    assert run()[0].changed
    assert run.warnings == []


def test_comments_outside_of_the_section_and_with_a_rename_are_kept(stub: Stub, wiki: Wiki) -> None:
    body = f"<h2>A</h2><p>a</p><h2>B</h2><p>{MARK.format('1', 'b')}</p>"
    wiki.pages["7"]["body"] = body
    assert Run(stub, page_id="7", section="A", body="<p>new</p>")()[0].changed
    assert Run(stub, page_id="7", title="Renamed")()[0].changed
    assert MARK.format("1", "b") in wiki.pages["7"]["body"]
    assert Run(stub, page_id="7", section="B", body="<p>c</p>").fails().kind == "conflict"


@pytest.mark.parametrize("read_only", [True, False])
def test_text_that_must_be_kept_is_kept(stub: Stub, wiki: Wiki, *, read_only: bool) -> None:
    keys = "".join(f"<td>REL-{number}</td>" for number in range(1, 9))
    wiki.pages["7"]["body"] = f"<h2>A</h2><p>REL-99</p><h2>B</h2><table><tr>{keys}</tr></table>"
    options: dict[str, Any] = {"page_id": "7", "must_keep": r"REL-\d+", "read_only": read_only}
    error = Run(stub, **options, section="B", body="<p>REL-3, REL-4</p>").fails()
    assert error.kind == "conflict"
    assert "the section 'B' contains REL-1, REL-2, REL-5, REL-6, REL-7 and 1 more" in error.message
    error = Run(stub, **options, body="<p>none</p>").fails()
    assert "the page contains REL-99, REL-1, REL-2, REL-3, REL-4 and 4 more" in error.message
    assert wiki.written == []
    for body, warned in ((f"<p>{keys}</p>", False), ("<p>none</p>", True)):
        wiki.pages["7"]["body"] = f"<h2>B</h2><p>{'' if warned else 'REL-1'}</p>"
        run = Run(stub, **options, section="B", body=body)
        assert run()[0].changed
        assert [one for one in run.warnings if "must_keep" in one] == run.warnings
        assert bool(run.warnings) is warned


def test_section_is_managed_and_the_rest_kept(stub: Stub, wiki: Wiki) -> None:
    head, tail = "<p>a&nbsp;&ndash;</p>\r\n<h2 >Log</h2>", "<h2>End</h2><p>b<br></br></p>"
    wiki.pages["7"]["body"] = f"{head}\n<p>old</p>{tail}"
    options: dict[str, Any] = {"page_id": "7", "section": "Log"}
    assert not Run(stub, body="<p>old</p>", **options)()[0].changed
    assert Run(stub, body="<p>new</p>", **options)()[0].changed
    assert wiki.pages["7"]["body"] == f"{head}<p>new</p>{tail}"
    assert not Run(stub, body="<p>new</p>\n", **options)()[0].changed
    error = Run(stub, body="<p>x</p><h2>y</h2>", **options).fails()
    assert error.kind == "invalid"


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (Reply(401, "<html><title>Unauthorized</title></html>"), "auth", "Unauthorized"),
        (Reply(body=b"", headers={"X-Seraph-LoginReason": "AUTHENTICATED_FAILED"}), "auth", "FAIL"),
        (Reply(404, {"message": "x"}, {"X-AUSERNAME": "anonymous"}), "auth", "anonymous"),
        (Reply(403, {"message": "XSRF check failed"}), "permission", "XSRF"),
        (
            Reply(
                400,
                {
                    "message": "com.x.api.BadRequestException: Error parsing xhtml",
                    "data": {"errors": [{"message": {"translation": "Unexpected close tag"}}]},
                },
            ),
            "rejected",
            "400: BadRequestException: Error parsing xhtml; Unexpected close tag",
        ),
    ],
)
def test_error_message_of_the_server_is_shown(
    stub: Stub, wiki: Wiki, reply: Reply, kind: str, words: str
) -> None:
    wiki.puts = [lambda wiki: reply]
    error = Run(stub, page_id="7", body="<p>new</p>").fails()
    assert error.kind == kind
    assert words in error.message
    assert "updating the page 'Notes' (7)" in error.message
    assert "reporter-password" not in error.message + json.dumps(error.as_dict())
    assert methods(stub) == ["GET", "PUT"]
