# SPDX-License-Identifier: GPL-3.0-or-later
"""Test labels and attachments: writes, and content that stays unchanged."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki import additions
from tests.unit.stub import Reply, Seen, Stub
from tests.unit.wiki.running import Run, methods
from tests.unit.wiki.server import Wiki

CONTENT = b"one\r\n\x00--two"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "plan.txt"
    path.write_bytes(CONTENT)
    return path


def file(path: Path, **fields: Any) -> list[dict[str, Any]]:
    return [{"src": str(path), **fields}]


# -- labels ----------------------------------------------------------------------------------------


def test_existing_labels_take_no_further_request(stub: Stub, wiki: Wiki) -> None:
    wiki.pages["7"]["labels"] = ["b", "a"]
    plan, result = Run(stub, page_id="7", body="<p>old</p>", labels=["A", "b", "a"])()
    assert not plan.changed
    assert result["labels"] == ["a", "b"]
    assert methods(stub) == ["GET"]
    assert "metadata.labels" in stub.seen[0].target.replace("%2C", ",")
    assert Run(stub, page_id="7", body="<p>old</p>")()[1].get("labels") is None
    assert "metadata.labels" not in stub.seen[1].target


@pytest.mark.parametrize("shown", [True, False])
def test_labels_are_added_and_removed(stub: Stub, wiki: Wiki, *, shown: bool) -> None:
    wiki.shows_labels = shown
    wiki.pages["7"]["labels"] = ["keep", "old"]
    options: dict[str, Any] = {"page_id": "7", "labels": ["keep", "New", "more"]}
    checked, predicted = Run(stub, read_only=True, **options)()
    plan, result = Run(stub, **options)()
    assert (checked.before, checked.after) == (plan.before, plan.after)
    assert predicted == result
    assert "labels: keep, old\n" in plan.before
    assert "labels: keep, more, new\n" in plan.after
    assert wiki.pages["7"]["labels"] == ["keep", "more", "new"]
    assert result["page"]["version"] == 3
    assert methods(stub)[-3:] == ["POST", "DELETE", "GET"]
    assert "PUT" not in methods(stub)
    assert not Run(stub, **options)()[0].changed


def test_empty_list_removes_all_labels(stub: Stub, wiki: Wiki) -> None:
    wiki.pages["7"]["labels"] = ["a"]
    plan, _result = Run(stub, page_id="7", labels=[])()
    assert wiki.pages["7"]["labels"] == []
    assert "labels: -\n" in plan.after


def test_new_page_gets_its_labels(stub: Stub, wiki: Wiki) -> None:
    plan, result = Run(stub, space="REL", title="New", body="<p>1</p>", labels=["a"])()
    assert plan.action == "create"
    assert wiki.pages[result["page"]["id"]]["labels"] == ["a"]
    assert methods(stub) == ["GET", "GET", "POST", "POST", "GET"]


@pytest.mark.parametrize(
    ("before", "wanted", "ignored"),
    [([], ["a", "b"], "POST"), (["a", "b"], [], "DELETE"), (["a", "b"], ["c"], "DELETE")],
)
def test_label_that_the_server_does_not_store_is_rejected(
    stub: Stub, wiki: Wiki, before: list[str], wanted: list[str], ignored: str
) -> None:
    wiki.pages["7"]["labels"] = list(before)
    accepted = Reply(200, {"results": []})
    stub.response = lambda seen: accepted if seen.method == ignored else wiki(seen)
    error = Run(stub, page_id="7", labels=wanted).fails()
    assert error.kind == "rejected"
    assert "did not save labels (a, b)" in error.message
    assert methods(stub)[-1] == "GET"


@pytest.mark.parametrize("entry", [{"prefix": "global"}, {"prefix": "my", "name": None}])
def test_label_without_a_name_is_an_error(stub: Stub, wiki: Wiki, entry: dict[str, Any]) -> None:
    wiki.shows_labels = False
    listed = Reply(body={"results": [{"prefix": "global", "name": "a"}, entry]})
    stub.response = lambda seen: listed if seen.path.endswith("/label") else wiki(seen)
    error = Run(stub, page_id="7", labels=["a"]).fails()
    assert error.kind == "protocol"
    assert "a list entry without 'name'" in error.message


def test_lost_response_to_a_label_is_verified(stub: Stub, wiki: Wiki) -> None:
    wiki.lost = 1
    Run(stub, page_id="7", labels=["a"])()
    assert methods(stub) == ["GET", "POST", "GET", "GET"]
    stub.response = lambda seen: wiki(seen) if seen.method == "GET" else Reply(cut=True)
    error = Run(stub, page_id="7", labels=[]).fails()
    assert error.kind == "network"
    assert "removing the label a" in error.message
    assert methods(stub).count("DELETE") == 1


@pytest.mark.parametrize(
    "label", ["", "two words", " x", "tab\tbed", *"()!#&*,.:;<>?@[]^", "x,y", "v1.2", "x" * 256]
)
def test_invalid_label_is_rejected(stub: Stub, label: str) -> None:
    error = Run(stub, page_id="7", labels=["fine", label]).fails()
    assert error.kind == "invalid"
    assert error.message.startswith("labels[1]: ")
    assert stub.seen == []


@pytest.mark.parametrize("title", ["two\nlines", "a\ttab", "x" * 256, "a\u2028b", "\x1b[2J"])
@pytest.mark.parametrize("named", [{"page_id": "7"}, {"space": "REL"}])
def test_invalid_title_is_rejected(stub: Stub, title: str, named: dict[str, Any]) -> None:
    error = Run(stub, **named, title=title, body="<p>x</p>").fails()
    assert error.kind == "invalid"
    assert error.message.startswith("title: the title ")
    assert stub.seen == []


def test_line_break_after_a_title_is_removed(stub: Stub, wiki: Wiki) -> None:
    title = wiki.pages["7"]["title"]
    assert not Run(stub, page_id="7", title=f" {title}\n", body="<p>old</p>")()[0].changed


def test_failed_labels_report_the_saved_page(stub: Stub, wiki: Wiki) -> None:
    no = Reply(403, {"message": "No"})
    stub.response = lambda seen: no if seen.method == "POST" else wiki(seen)
    run = Run(stub, page_id="7", body="<p>new</p>", labels=["a"])
    error = run.fails()
    assert error.kind == "permission"
    assert error.result["page"]["version"] == 4
    assert run.task.failure(error)["changed"] is True


def test_server_without_labels_and_attachments_is_reported(
    stub: Stub, wiki: Wiki, source: Path
) -> None:
    wiki.shows_labels = False
    known = ("/content/7", "/content")
    stub.response = lambda seen: (
        wiki(seen) if seen.path.endswith(known) else Reply(404, "Not Found")
    )
    wanted: list[dict[str, Any]] = [{"labels": ["a"]}, {"attachments": file(source)}]
    for options in wanted:
        error = Run(stub, page_id="7", body="<p>new</p>", **options).fails()
        assert error.kind == "not_found"
        assert "has neither labels nor attachments" in error.message
    assert set(methods(stub)) == {"GET"}


@pytest.mark.parametrize("count", [{}, {"totalSize": 2}])
def test_list_that_repeats_its_page_is_an_error(
    stub: Stub, wiki: Wiki, source: Path, count: dict[str, int]
) -> None:
    found: list[Any] = [{"id": "1", "title": "x"}]
    again = Reply(body={"results": found, "_links": {"next": "/x"}, **count})
    stub.response = lambda seen: again if "/child/" in seen.path else wiki(seen)
    run = Run(stub, page_id="7", attachments=file(source), read_only=True)
    assert run.fails().kind == "protocol"
    assert len(stub.seen) <= 3


@pytest.mark.parametrize("missing", ["id", "title"])
def test_attachment_without_id_or_title_is_an_error(
    stub: Stub, wiki: Wiki, source: Path, missing: str
) -> None:
    entry = {"id": "1", "title": "plan.txt"}
    del entry[missing]
    listed = Reply(body={"results": [entry]})
    stub.response = lambda seen: listed if "/child/" in seen.path else wiki(seen)
    error = Run(stub, page_id="7", attachments=file(source)).fails()
    assert error.kind == "protocol"
    assert f"a list entry without '{missing}'" in error.message
    assert set(methods(stub)) == {"GET"}


# -- attachments -----------------------------------------------------------------------------------


def test_file_is_uploaded_once(stub: Stub, wiki: Wiki, source: Path) -> None:
    options: dict[str, Any] = {"page_id": "7", "attachments": file(source, comment="Steps")}
    checked, predicted = Run(stub, read_only=True, **options)()
    plan, result = Run(stub, **options)()
    assert (checked.before, checked.after) == (plan.before, plan.after)
    assert predicted == result
    digest = hashlib.sha256(CONTENT).hexdigest()
    assert result["attachments"] == [
        {"name": "plan.txt", "size": len(CONTENT), "sha256": digest, "action": "uploaded"}
    ]
    comment = f"Steps (sha256 {digest}, version 1)"
    assert wiki.pages["7"]["files"] == {"plan.txt": (1, CONTENT, comment)}
    assert stub.seen[-1].headers["Content-Length"] == str(len(stub.seen[-1].body))
    seen = len(stub.seen)
    again, result = Run(stub, **options)()
    assert not again.changed
    assert again.before == again.after
    assert result["attachments"][0]["action"] == "unchanged"
    assert [request.method for request in stub.seen[seen:]] == ["GET", "GET"]


def test_different_content_becomes_a_new_version(stub: Stub, wiki: Wiki, source: Path) -> None:
    options: dict[str, Any] = {"page_id": "7", "attachments": file(source, name="x.txt")}
    Run(stub, **options)()
    source.write_bytes(CONTENT.swapcase())
    plan, result = Run(stub, **options)()
    assert result["attachments"][0]["action"] == "updated"
    assert result["page"]["version"] == 3
    assert plan.before != plan.after
    assert wiki.pages["7"]["files"]["x.txt"][:2] == (2, CONTENT.swapcase())


@pytest.mark.parametrize(
    "case",
    [
        (CONTENT, "by hand", "unchanged", 1),
        (CONTENT.swapcase(), "by hand", "updated", 1),
        (CONTENT + b"x", "by hand", "updated", 0),
        # different content with the digest of an earlier version
        (CONTENT.swapcase(), "(sha256 {digest}, version 1)", "updated", 1),
        (CONTENT, "(sha256 {digest}, version 2)", "unchanged", 0),
    ],
)
def test_stored_digest_counts_only_for_its_version(
    stub: Stub, wiki: Wiki, source: Path, case: tuple[bytes, str, str, int]
) -> None:
    stored, comment, action, downloads = case
    comment = comment.format(digest=hashlib.sha256(CONTENT).hexdigest())
    wiki.pages["7"]["files"] = {"a": (1, b"a", ""), "plan.txt": (2, stored, comment)}
    plan, result = Run(stub, page_id="7", attachments=file(source))()
    assert result["attachments"][0]["action"] == action
    assert plan.changed is (action != "unchanged")
    assert (plan.before == plan.after) is not plan.changed
    assert len([request for request in stub.seen if "/download/" in request.path]) == downloads
    assert wiki.pages["7"]["files"]["a"] == (1, b"a", "")
    assert wiki.pages["7"]["files"]["plan.txt"][1] == CONTENT


@pytest.mark.parametrize(
    "reply",
    [
        Reply(302, headers={"Location": "/login.action"}),
        Reply(404),
        Reply(403),
        # a failed login: the body is not the content, even if it is equal
        Reply(body=CONTENT, headers={"X-Seraph-LoginReason": "AUTHENTICATED_FAILED"}),
    ],
)
def test_undownloadable_file_is_uploaded(
    stub: Stub, wiki: Wiki, source: Path, reply: Reply
) -> None:
    wiki.pages["7"]["files"] = {"plan.txt": (1, CONTENT, "by hand")}
    stub.response = lambda seen: reply if "/download/" in seen.path else wiki(seen)
    assert Run(stub, page_id="7", attachments=file(source))()[0].changed
    assert not Run(stub, page_id="7", attachments=file(source))()[0].changed


def test_truncated_download_is_restarted(stub: Stub, wiki: Wiki, source: Path) -> None:
    wiki.pages["7"]["files"] = {"plan.txt": (1, CONTENT, "by hand")}
    broken = [Reply(body=CONTENT, truncate=3)]

    def response(seen: Seen) -> Reply:
        return broken.pop() if broken and "/download/" in seen.path else wiki(seen)

    stub.response = response
    run = Run(stub, retries=1, page_id="7", attachments=file(source))
    assert not run()[0].changed
    assert run.task.accounting.as_dict()["retries"] == 1


def test_server_error_is_not_different_content(stub: Stub, wiki: Wiki, source: Path) -> None:
    wiki.pages["7"]["files"] = {"plan.txt": (1, CONTENT, "by hand")}
    stub.response = lambda seen: Reply(500) if "/download/" in seen.path else wiki(seen)
    assert Run(stub, page_id="7", attachments=file(source)).fails().kind == "server"


def test_lost_response_to_an_upload_is_verified(stub: Stub, wiki: Wiki, source: Path) -> None:
    wiki.lost = 1
    Run(stub, page_id="7", attachments=file(source))()
    assert wiki.pages["7"]["files"]["plan.txt"][0] == 1
    assert methods(stub) == ["GET", "GET", "POST", "GET"]
    source.write_bytes(b"other")
    stub.response = lambda seen: wiki(seen) if seen.method == "GET" else Reply(cut=True)
    assert Run(stub, page_id="7", attachments=file(source)).fails().kind == "network"
    assert methods(stub).count("POST") == 2


def test_partial_upload_is_an_error(stub: Stub, wiki: Wiki, source: Path) -> None:
    short = Reply(body={"results": [{"id": "att1", "extensions": {"fileSize": 3}}]})
    stub.response = lambda seen: short if seen.method == "POST" else wiki(seen)
    error = Run(stub, page_id="7", attachments=file(source)).fails()
    assert error.kind == "failed"
    assert f"stored 3 bytes, but {len(CONTENT)} were sent" in error.message


def test_new_page_gets_its_files_without_a_listing(stub: Stub, wiki: Wiki, source: Path) -> None:
    options: dict[str, Any] = {"space": "REL", "title": "New", "body": "<p>1</p>"}
    _plan, result = Run(stub, attachments=file(source), **options)()
    assert "plan.txt" in wiki.pages[result["page"]["id"]]["files"]
    assert methods(stub) == ["GET", "GET", "POST", "POST"]


def test_file_attached_concurrently_is_accepted(stub: Stub, wiki: Wiki, source: Path) -> None:
    def response(seen: Seen) -> Reply:
        reply = wiki(seen)
        if seen.method != "POST":
            return reply
        message = "Cannot add a new attachment with same file name as an existing attachment"
        return Reply(400, {"statusCode": 400, "message": message})

    stub.response = response
    assert Run(stub, page_id="7", attachments=file(source))()[0].changed
    wiki.pages["7"]["files"].clear()
    stub.response = lambda seen: Reply(400) if seen.method == "POST" else wiki(seen)
    assert Run(stub, page_id="7", attachments=file(source)).fails().kind == "rejected"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": "../x"}, "not a valid attachment name"),
        ({"name": "a\\b"}, "not a valid attachment name"),
        ({"name": ".."}, "not a valid attachment name"),
        ({"name": "a\nb"}, "not a valid attachment name"),
        ({"name": 'a "b"'}, "not a valid attachment name"),
        ({"name": " a"}, "not a valid attachment name"),
        ({"comment": "c" * 161}, "161 characters"),
        ({"src": "/nowhere/x"}, "cannot read"),
        ({"src": "/"}, "not a valid attachment name"),
        ({"src": "/tmp"}, "cannot read"),
    ],
)
def test_invalid_attachments_are_rejected(
    stub: Stub, source: Path, fields: dict[str, Any], words: str
) -> None:
    error = Run(stub, page_id="7", attachments=file(source, **fields)).fails()
    assert error.kind == "invalid"
    assert words in error.message
    twice = [*file(source), *file(source)]
    assert "used twice" in Run(stub, page_id="7", attachments=twice).fails().message
    assert stub.seen == []


def test_deleted_page_needs_no_files(stub: Stub, wiki: Wiki) -> None:
    gone = [{"src": "/nowhere/x"}]
    Run(stub, page_id="7", state="absent", attachments=gone, labels=["a b"])()
    assert wiki.pages["7"]["status"] == "trashed"


@pytest.mark.parametrize("body", [b"", b"OK", b"{}", b'{"results": []}', b"[1]"])
def test_any_response_to_an_upload_is_accepted(body: bytes) -> None:
    assert additions._size_in(body) is None
