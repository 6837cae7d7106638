# SPDX-License-Identifier: GPL-3.0-or-later
"""Test many pages in a task, and reading pages."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.pages.wiki_page_info import (
    WikiPageInfoOperation,
    WikiPageInfoOptions,
)
from tests.unit.stub import Reply, Stub, connection_to
from tests.unit.wiki.running import Run, methods
from tests.unit.wiki.server import Wiki, page

THREE = [
    {"page_id": "7", "body": "<p>new</p>"},
    {"page_id": "8", "body": "<p>old</p>"},
    {"title": "New", "body": "<p>1</p>", "labels": []},
]


def test_every_page_gets_its_state(stub: Stub, wiki: Wiki) -> None:
    options: dict[str, Any] = {"space": "REL", "labels": ["a"], "pages": THREE}
    wiki.pages["7"]["labels"] = ["a"]
    checked, predicted = Run(stub, read_only=True, **options)()
    assert set(methods(stub)) == {"GET"}
    plan, result = Run(stub, **options)()
    assert (checked.before, checked.after) == (plan.before, plan.after)
    assert [(each["ok"], each["changed"], each["error"]) for each in result["pages"]] == [
        (True, True, None)
    ] * 3
    assert [each["changed"] for each in predicted["pages"]] == [True, True, True]
    assert [each["page"]["id"] for each in result["pages"]] == ["7", "8", "102"]
    assert [each["page"]["version"] for each in result["pages"]] == [4, 3, 1]
    assert [wiki.pages[name]["labels"] for name in ("7", "8", "102")] == [["a"], ["a"], []]
    again, result = Run(stub, **options)()
    assert not again.changed
    assert [each["changed"] for each in result["pages"]] == [False] * 3


def test_unchanged_pages_take_one_request_and_changed_pages_two(stub: Stub) -> None:
    run = Run(stub, pages=THREE[:2])
    run()
    assert sorted(methods(stub)) == ["GET", "GET", "PUT"]
    assert run.task.accounting.as_dict()["requests"] <= 3
    assert run.task.accounting.writes == 1


def test_server_rejects_expand_once_for_all_pages(stub: Stub, wiki: Wiki) -> None:
    wiki.expands = None
    Run(stub, pages=[{"page_id": "7", "title": "Notes"}, {"page_id": "8", "title": "X"}])()
    assert methods(stub) == ["GET", "GET", "GET", "PUT"]


def test_diff_names_the_different_pages(stub: Stub, wiki: Wiki) -> None:
    old, new = (
        "".join(f"<p>{line}</p>" for line in ("a", "b", word, "d", "e")) for word in ("c", "C")
    )
    wiki.pages["7"]["body"] = old
    plan, _result = Run(stub, space="REL", pages=[{"page_id": "7", "body": new}, THREE[2]])()
    assert plan.before == "the page 7\n...\n<p>b</p>\n<p>c</p>\n<p>d</p>\n...\n"
    assert plan.after == (
        "the page 7\n...\n<p>b</p>\n<p>C</p>\n<p>d</p>\n...\n"
        "the page 'New' in the space REL\ntitle: New\nlabels: -\n\n<p>1</p>\n"
    )


@pytest.mark.parametrize("read_only", [True, False])
def test_failed_page_does_not_stop_the_others(stub: Stub, wiki: Wiki, *, read_only: bool) -> None:
    wiki.pages["9"] = page(id="9", title="Third")
    listed = [
        {"page_id": "99", "body": "<p>x</p>"},
        {"page_id": "7", "body": "<p>new</p>"},
        {"page_id": "8", "body": "<p>new</p>", "expected_version": 1},
        {"page_id": "9", "body": "<p>old</p>"},
    ]
    run = Run(stub, pages=listed, read_only=read_only)
    error = run.fails()
    assert error.kind == "not_found"
    assert error.message.startswith("2 of 4 pages failed, the first: pages[0] ('the page 99'): ")
    assert "the page 8 has version 3, not 1" in error.result["pages"][2]["msg"]
    assert [each["ok"] for each in error.result["pages"]] == [False, True, False, True]
    assert [each["changed"] for each in error.result["pages"]] == [False, True, False, False]
    assert error.result["pages"][2]["error"]["kind"] == "conflict"
    assert error.result["changed"] is True
    assert wiki.pages["7"]["body"] == ("<p>old</p>" if read_only else "<p>new</p>")


def test_failed_write_does_not_stop_the_others(stub: Stub, wiki: Wiki) -> None:
    def response(seen: Any) -> Reply:
        forbidden = seen.method == "PUT" and seen.path.endswith("/7")
        return Reply(403, {"message": "No"}) if forbidden else wiki(seen)

    stub.response = response
    listed = [*({"page_id": name, "body": "<p>new</p>"} for name in ("7", "8"))]
    error = Run(stub, pages=listed).fails()
    assert (error.kind, error.status) == ("permission", 403)
    assert [each["changed"] for each in error.result["pages"]] == [False, True]
    assert wiki.pages["8"]["body"] == "<p>new</p>"


def test_finally_rejected_write_stops_the_others(stub: Stub, wiki: Wiki) -> None:
    stub.response = lambda seen: Reply(429) if seen.method == "PUT" else wiki(seen)
    listed = [*({"page_id": name, "body": "<p>new</p>"} for name in ("7", "8"))]
    error = Run(stub, pages=listed, parallel=1).fails()
    assert error.kind == "rate_limited"
    assert "nothing was changed" in error.result["pages"][0]["msg"]
    assert "the page 8 was not attempted" in error.result["pages"][1]["msg"]


@pytest.mark.parametrize(("reply", "kind"), [(Reply(401), "auth"), (Reply(cut=True), "network")])
def test_unavailable_server_is_asked_once(reply: Reply, kind: str) -> None:
    with Stub(response=lambda seen: reply) as stub:
        error = Run(stub, pages=THREE[:2]).fails()
    assert error.kind == kind
    assert error.message.startswith("2 of 2 pages failed")
    assert "the page 8 was not attempted" in error.result["pages"][1]["msg"]
    assert [each["error"]["kind"] for each in error.result["pages"]] == [kind, kind]
    assert methods(stub) == ["GET"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([{"body": ""}], "pages[0]: set page_id"),
        ([{"page_id": "7", "body": "<p>"}, {"page_id": "8", "body": "a & b"}], "pages[1]: body"),
        (
            [{"page_id": "7"}, {"page_id": "7"}],
            "pages[1] is 'the page 7', the same as pages[0]: list each object once",
        ),
        (
            [{"space": "REL", "title": "a"}, {"space": "rel", "title": " A"}],
            "pages[1] is 'the page 'A' in the space rel', the same as pages[0]",
        ),
    ],
)
def test_all_invalid_entries_are_reported_before_any_request(
    stub: Stub, given: list[dict[str, Any]], words: str
) -> None:
    error = Run(stub, pages=[*given]).fails()
    assert error.kind == "invalid"
    assert words in error.message
    assert stub.seen == []


def test_duplicate_page_is_rejected(stub: Stub, wiki: Wiki) -> None:
    by_id = {"page_id": "7", "body": "<p>new</p>"}
    by_title = {"space": "REL", "title": "notes", "body": "<p>other</p>"}
    error = Run(stub, pages=[by_id, by_title]).fails()
    assert error.kind == "invalid"
    assert "is the same page as the page 7" in error.message
    assert wiki.pages["7"]["body"] == "<p>new</p>"


def test_warnings_have_the_order_of_the_pages(stub: Stub, wiki: Wiki) -> None:
    for name in ("7", "8"):
        mark = '<ac:inline-comment-marker ac:ref="1">x</ac:inline-comment-marker>'
        wiki.pages[name]["body"] = f"<p>{mark}</p>"
    run = Run(stub, pages=THREE[:2], allow_orphaned_comments=True)
    run()
    assert [line[:10] for line in run.warnings] == ["the page 7", "the page 8"]


def test_empty_list_of_pages_is_unchanged(stub: Stub) -> None:
    run = Run(stub, pages=[])
    plan, result = run()
    assert (plan.changed, result) == (False, {"pages": []})
    assert run.warnings == ["pages is empty: nothing is managed"]
    assert stub.seen == []


# -- reading ---------------------------------------------------------------------------------------


def read(stub: Stub, **params: Any) -> dict[str, Any]:
    task = Task(connection_to(stub.url, "wiki"), lambda text: None, read_only=True)
    plan = WikiPageInfoOperation(task, WikiPageInfoOptions(**params)).plan()
    assert not plan.changed
    shown = plan.result["page"]
    assert isinstance(shown, dict)
    return shown


def test_page_is_read_with_its_body_in_one_request(stub: Stub, wiki: Wiki) -> None:
    expected = {
        "id": "7",
        "title": "Notes",
        "space": "REL",
        "version": 3,
        "url": f"{stub.url}/pages/viewpage.action?pageId=7",
        "parent_id": "1",
        "body": "<p>old</p>",
    }
    assert read(stub, page_id="7") == expected
    assert read(stub, space="REL", title=" notes") == expected
    assert methods(stub) == ["GET", "GET"]


@pytest.mark.parametrize(
    ("params", "kind", "words"),
    [
        ({"page_id": "99"}, "not_found", "No content found"),
        ({"space": "REL", "title": "None"}, "not_found", "does not exist, or is not visible"),
        ({"space": "REL"}, "invalid", "set page_id"),
        ({"page_id": "7", "title": "Notes"}, "invalid", "cannot be combined with page_id"),
    ],
)
def test_unreadable_page_is_an_error(
    stub: Stub, params: dict[str, Any], kind: str, words: str
) -> None:
    with pytest.raises(ToolchainError) as caught:
        read(stub, **params)
    assert caught.value.kind == kind
    assert words in caught.value.message


def test_missing_title_search_is_reported(stub: Stub, wiki: Wiki) -> None:
    wiki.finds = False
    with pytest.raises(ToolchainError, match=r"cannot find pages by title .* use page_id"):
        read(stub, space="REL", title="Notes")
    wiki.expands = frozenset({"version"})
    with pytest.raises(ToolchainError, match="does not send the body"):
        read(stub, page_id="7")
    wiki.pages["7"]["status"] = "trashed"
    shown = {"id": "7", "title": "x", "version": {"number": 1}, "status": "trashed"}
    shown["body"] = {"storage": {"value": ""}}
    stub.response = lambda seen: Reply(body=shown)
    with pytest.raises(ToolchainError, match="not visible"):
        read(stub, page_id="7")


NESTED = [
    {"title": "Top", "body": "<p>1</p>", "parent_title": "Other"},
    {"title": "Middle", "body": "<p>2</p>", "parent_title": " TOP"},
    {"page_id": "7", "parent_title": "Middle"},
]


def test_earlier_entry_creates_the_parent(stub: Stub, wiki: Wiki) -> None:
    options: dict[str, Any] = {"space": "REL", "pages": NESTED, "parallel": 3}
    checked, predicted = Run(stub, read_only=True, **options)()
    assert set(methods(stub)) == {"GET"}
    plan, result = Run(stub, **options)()
    assert (checked.before, checked.after) == (plan.before, plan.after)
    assert "parent: 'Middle'\n" in plan.after
    assert [each["changed"] for each in predicted["pages"]] == [True, True, True]
    top, middle, notes = (wiki.pages[each["page"]["id"]] for each in result["pages"])
    assert (top["parent"], middle["parent"], notes["parent"]) == ("8", top["id"], middle["id"])
    again, _result = Run(stub, **options)()
    assert not again.changed


def test_earlier_entry_renames_the_parent(stub: Stub, wiki: Wiki) -> None:
    renamed = {"page_id": "8", "title": "New name"}
    options: dict[str, Any] = {
        "space": "REL",
        "pages": [renamed, {"page_id": "7", "parent_title": "New name"}],
    }
    checked = Run(stub, read_only=True, **options)()[0]
    plan = Run(stub, **options)()[0]
    assert (checked.before, checked.after) == (plan.before, plan.after)
    assert wiki.pages["7"]["parent"] == "8"
    assert not Run(stub, **options)()[0].changed


@pytest.mark.parametrize("read_only", [True, False])
def test_later_entry_does_not_create_the_parent(stub: Stub, *, read_only: bool) -> None:
    pages = [NESTED[1], NESTED[0]]
    error = Run(stub, space="REL", pages=pages, read_only=read_only).fails()
    assert error.kind == "not_found"
    assert "there is no page 'TOP' in the space REL" in error.message


def test_parent_that_was_not_created_fails_the_pages_below(stub: Stub, wiki: Wiki) -> None:
    no = Reply(403, {"message": "No"})
    stub.response = lambda seen: no if seen.method == "POST" else wiki(seen)
    error = Run(stub, space="REL", pages=NESTED).fails()
    rows = error.result["pages"]
    assert [row["error"]["kind"] for row in rows] == ["permission", "not_found", "not_found"]
    assert "the page 'Top' does not exist, because its entry was not written" in rows[1]["msg"]
    assert wiki.pages["7"]["parent"] == "1"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {
                "space": "REL",
                "pages": [
                    {"title": "A", "body": "", "parent_title": "C"},
                    {"title": "B", "body": "", "parent_title": "a"},
                    {"title": "C", "body": "", "parent_title": "B"},
                    {"title": "D", "body": "", "parent_title": "A"},
                ],
            },
            "pages[0] below pages[2] below pages[1] below pages[0]",
        ),
        (
            {
                "pages": [
                    {"page_id": "7", "parent_id": "8"},
                    {"page_id": "8", "space": "REL", "title": "B", "parent_id": "7"},
                ],
            },
            "pages[0] below pages[1] below pages[0]",
        ),
        (
            {"space": "REL", "parent_title": "A", "pages": [{"title": "A"}, {"title": "B"}]},
            "pages[0] below pages[0]",
        ),
    ],
)
def test_page_below_itself_is_rejected_before_any_request(
    stub: Stub, options: dict[str, Any], words: str
) -> None:
    error = Run(stub, **options).fails()
    assert (error.kind, stub.seen) == ("invalid", [])
    assert words in error.message
    assert "parent_id or parent_title" in error.message


NEW = {"space": "REL", "title": "New", "body": "<p>1</p>"}


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(
    ("pages", "words"),
    [
        ([NEW, {"page_id": "7", "title": "new"}], "pages[0] and pages[1] both give a page the"),
        (
            [{"page_id": name, "title": "X"} for name in ("7", "8")],
            "pages[0] and pages[1] both give a page the title 'X' in the space REL",
        ),
        (
            [{"page_id": "7", "title": "Other"}, {"page_id": "8", "state": "absent"}],
            "the title 'Other', which the page 8 still has: rename or remove the page 8",
        ),
        (
            [{"page_id": "8", "title": "Older"}, {"page_id": "7", "title": "Other"}],
            "the title 'Other', which the page 8 still has",
        ),
        ([{"page_id": "7", "state": "absent"}, {**NEW, "parent_id": "7"}], "the parent 7: set"),
        ([{**NEW, "parent_title": "Notes"}, {"page_id": "7", "state": "absent"}], "the parent 7"),
    ],
)
def test_entries_that_contradict_each_other_are_rejected_before_any_write(
    stub: Stub, pages: list[dict[str, Any]], words: str, *, read_only: bool
) -> None:
    error = Run(stub, pages=pages, read_only=read_only).fails()
    assert (error.kind, set(methods(stub))) == ("invalid", {"GET"})
    assert words in error.message
