# SPDX-License-Identifier: GPL-3.0-or-later
"""Test attachments, complete or not at all, against servers that misbehave in every known form."""

from __future__ import annotations

import os
import threading
import time
import tracemalloc
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.issues.tracker_attachment import (
    TrackerAttachmentOperation,
    TrackerAttachmentOptions,
)
from tests.helpers.options import build
from tests.unit.stub import Reply, Seen, Stub
from tests.unit.tracker.running import BASIC, TOKEN, Run

CREATED = "2026-01-06T10:14:00.500+0100"
CREATED_SECONDS = 1767690840
LOGIN_PAGE = '<html><body><form><input type="password" name="os_password"></form></body></html>'
PAGE = "<html><head><title>Oops</title></head><body><h1>Try later</h1></body></html>"


class Tracker:
    """An issue with attachments; with `written`, described as in the written interface.

    `answers` holds replies to the path of a content, which are used up first.
    """

    def __init__(self, contents: Mapping[str, bytes], *, written: bool = False) -> None:
        self.written = written
        self.items: list[dict[str, Any]] = [
            {"id": str(number), "filename": name, "bytes": content, "created": CREATED}
            for number, (name, content) in enumerate(contents.items(), 501)
        ]
        self.changes: dict[str, dict[str, Any]] = {}
        self.answers: dict[str, list[Reply]] = {}
        self.issue: Reply | None = None
        self._lock = threading.Lock()

    def path(self, item: Mapping[str, Any]) -> str:
        return f"/base/secure/attachment/{item['id']}/{quote(item['filename'], safe='')}"

    def described(self, item: Mapping[str, Any], url: str) -> dict[str, Any]:
        content = f"{url.removesuffix('/base')}{self.path(item)}"
        short = {"id": item["id"], "content": content, **self.changes.get(item["id"], {})}
        if self.written:
            return short
        known = {"filename": item["filename"], "created": item["created"]}
        return {**known, "size": len(item["bytes"]), "mimeType": "text/plain", **short}

    def __call__(self, seen: Seen, url: str) -> Reply:
        if seen.path == "/base/rest/api/2/issue/REL-2":
            if self.issue is not None:
                return self.issue
            items = [self.described(item, url) for item in self.items]
            return Reply(body={"key": "REL-2", "fields": {"attachment": items}})
        with self._lock:
            for item in self.items:
                if seen.path == self.path(item):
                    waiting = self.answers.get(item["id"])
                    return waiting.pop(0) if waiting else Reply(body=item["bytes"])
        return Reply(404, "<html>Page not found</html>")


@pytest.fixture
def servers() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def serve(servers: ExitStack, tracker: Tracker) -> Stub:
    stub: Stub = servers.enter_context(Stub(response=lambda seen: tracker(seen, stub.url)))
    return stub


def run(
    stub: Stub,
    dest: Path,
    login: Mapping[str, Any] = BASIC,
    settings: Mapping[str, Any] | None = None,
    **params: Any,
) -> Run:
    options = build(TrackerAttachmentOptions, **{"issue": "REL-2", "dest": str(dest), **params})
    return Run(stub, TrackerAttachmentOperation, options, login, **(settings or {}))


def actions(result: Mapping[str, Any]) -> list[str]:
    return [entry["action"] for entry in result["attachments"]]


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


def fetched(stub: Stub) -> list[str]:
    return [seen.path for seen in stub.seen if "/issue/" not in seen.path]


TWO = {"a.txt": b"first\n", "größe & maß.csv": b"a;b\n"}


def test_missing_files_are_downloaded(servers: ExitStack, tmp_path: Path) -> None:
    stub, dest = serve(servers, Tracker(TWO)), tmp_path / "deep" / "er"
    task = run(stub, dest)
    result = task()
    assert result["changed"] is True
    assert result["attachments"] == [
        {
            "id": "501",
            "filename": "a.txt",
            "path": str(dest / "a.txt"),
            "size": 6,
            "action": "downloaded",
        },
        {
            "id": "502",
            "filename": "größe & maß.csv",
            "path": str(dest / "größe & maß.csv"),
            "size": 4,
            "action": "downloaded",
        },
    ]
    assert files(dest) == TWO
    assert stub.seen[0].target.endswith("/issue/REL-2?fields=attachment")
    assert stub.seen[1].headers["Accept"] == "*/*"
    assert stub.seen[1].headers["Accept-Encoding"] == "identity"
    assert task.plan is not None
    assert task.plan.before == {}
    assert task.plan.after == {
        str(dest / "a.txt"): {"size": 6, "id": "501"},
        str(dest / "größe & maß.csv"): {"size": 4, "id": "502"},
    }


def test_check_mode_lists_the_downloads(servers: ExitStack, tmp_path: Path) -> None:
    stub, dest = serve(servers, Tracker(TWO)), tmp_path / "dest"
    result = run(stub, dest)(check=True)
    assert result["changed"] is True
    assert actions(result) == ["downloaded", "downloaded"]
    assert [entry["size"] for entry in result["attachments"]] == [6, 4]
    assert not dest.exists()
    assert fetched(stub) == []


def test_second_run_takes_one_request(servers: ExitStack, tmp_path: Path) -> None:
    stub = serve(servers, Tracker(TWO))
    run(stub, tmp_path)()
    before = len(stub.seen)
    result = run(stub, tmp_path)()
    assert result["changed"] is False
    assert actions(result) == ["unchanged", "unchanged"]
    assert len(stub.seen) == before + 1
    assert int((tmp_path / "a.txt").stat().st_mtime) == CREATED_SECONDS


@pytest.mark.parametrize(
    ("there", "action"), [(b"first\n", "unchanged"), (b"FIRST\n", "downloaded")]
)
def test_file_with_different_time_is_compared_by_content(
    servers: ExitStack, tmp_path: Path, there: bytes, action: str
) -> None:
    stub = serve(servers, Tracker({"a.txt": b"first\n"}))
    (tmp_path / "a.txt").write_bytes(there)
    assert actions(run(stub, tmp_path)(check=True)) == [action]
    assert (tmp_path / "a.txt").read_bytes() == there
    result = run(stub, tmp_path)()
    assert result["changed"] is (action == "downloaded")
    assert files(tmp_path) == {"a.txt": b"first\n"}


def test_different_size_means_different_content(servers: ExitStack, tmp_path: Path) -> None:
    stub = serve(servers, Tracker({"a.txt": b"first\n"}))
    (tmp_path / "a.txt").write_bytes(b"x")
    task = run(stub, tmp_path)
    assert actions(task()) == ["downloaded"]
    assert len(fetched(stub)) == 1
    assert task.plan is not None
    assert task.plan.before == {str(tmp_path / "a.txt"): {"size": 1}}


@pytest.mark.parametrize("created", [None, "yesterday", "2026-01-06T10:14:00", 5])
def test_file_without_known_time_is_compared_by_content(
    servers: ExitStack, tmp_path: Path, created: Any
) -> None:
    tracker = Tracker({"a.txt": b"first\n"})
    tracker.items[0]["created"] = created
    stub = serve(servers, tracker)
    assert actions(run(stub, tmp_path)()) == ["downloaded"]
    (tmp_path / "a.txt").write_bytes(b"first\n")
    assert actions(run(stub, tmp_path)()) == ["unchanged"]
    assert len(fetched(stub)) == 2
    (tmp_path / "a.txt").write_bytes(b"FIRST\n")
    assert actions(run(stub, tmp_path)()) == ["downloaded"]
    assert files(tmp_path) == {"a.txt": b"first\n"}


def test_downloaded_file_is_recognized_without_time(servers: ExitStack, tmp_path: Path) -> None:
    tracker = Tracker({"a.txt": b"first\n"})
    tracker.items[0]["created"] = None
    stub = serve(servers, tracker)
    run(stub, tmp_path)()
    assert abs((tmp_path / "a.txt").stat().st_mtime - time.time()) < 600
    assert actions(run(stub, tmp_path)()) == ["unchanged"]
    assert len(fetched(stub)) == 1
    tracker.items[0].update(id="777", bytes=b"other\n")  # uploaded again: equal in name and size
    assert actions(run(stub, tmp_path)()) == ["downloaded"]
    assert files(tmp_path) == {"a.txt": b"other\n"}


@pytest.mark.parametrize("created", ["2026-01-06T09:14:00Z", "2026-01-06T09:14:00.000000+00:00"])
def test_times_are_parsed_in_other_formats(
    servers: ExitStack, tmp_path: Path, created: str
) -> None:
    tracker = Tracker({"a.txt": b"first\n"})
    tracker.items[0]["created"] = created
    run(serve(servers, tracker), tmp_path)()
    assert (tmp_path / "a.txt").stat().st_mtime == CREATED_SECONDS


def test_time_within_the_same_second_is_equal(servers: ExitStack, tmp_path: Path) -> None:
    tracker = Tracker({"a.txt": b"first\n"})
    tracker.items[0]["created"] = "2026-01-06T09:14:00.999999+00:00"
    stub = serve(servers, tracker)
    assert actions(run(stub, tmp_path)()) == ["downloaded"]
    assert actions(run(stub, tmp_path)()) == ["unchanged"]
    assert len(fetched(stub)) == 1


# -- as in the written interface: no name, no size, no time ----------------------------------------


def test_id_and_content_url_are_sufficient(servers: ExitStack, tmp_path: Path) -> None:
    stub = serve(servers, Tracker(TWO, written=True))
    first = run(stub, tmp_path)()
    assert files(tmp_path) == TWO
    assert [entry["filename"] for entry in first["attachments"]] == list(TWO)
    assert [entry["size"] for entry in first["attachments"]] == [6, 4]
    again = run(stub, tmp_path)()
    assert (again["changed"], actions(again)) == (False, ["unchanged"] * 2)
    assert [entry["size"] for entry in again["attachments"]] == [6, 4]
    (tmp_path / "a.txt").write_bytes(b"first\n and more")
    assert actions(run(stub, tmp_path)(check=True)) == ["downloaded", "unchanged"]
    assert actions(run(stub, tmp_path)()) == ["downloaded", "unchanged"]
    assert files(tmp_path) == TWO


def test_unknown_size_is_measured(servers: ExitStack, tmp_path: Path) -> None:
    tracker = Tracker({"a.bin": b"x" * 100, "b.bin": b"y" * 99}, written=True)
    tracker.answers["501"] = [
        Reply(body=b"64\r\n" + b"x" * 100 + b"\r\n0\r\n\r\n", headers=CHUNKED) for _time in "12"
    ]
    stub = serve(servers, tracker)
    assert actions(run(stub, tmp_path, max_size=99)(check=True)) == ["skipped", "downloaded"]
    result = run(stub, tmp_path, max_size=99)()
    assert actions(result) == ["skipped", "downloaded"]
    assert list(files(tmp_path)) == ["b.bin"]
    assert actions(run(stub, tmp_path, max_size=99)()) == ["skipped", "unchanged"]


CHUNKED = {"Transfer-Encoding": "chunked", "Content-Length": ""}


# -- selection -------------------------------------------------------------------------------------


def test_patterns_select_attachments(servers: ExitStack, tmp_path: Path) -> None:
    names = ["a.log", "b.LOG", "c.txt", "[d].log"]
    stub = serve(servers, Tracker(dict.fromkeys(names, b"x")))
    result = run(stub, tmp_path, patterns=["*.log", "c*"])()
    assert [entry["filename"] for entry in result["attachments"]] == ["a.log", "c.txt", "[d].log"]
    assert run(stub, tmp_path, patterns=[])()["attachments"] == []


@pytest.mark.parametrize(("patterns", "said"), [(["*.log", "*.pdf"], "'*.pdf'"), ([], "is empty")])
def test_pattern_without_match_gives_a_warning(
    servers: ExitStack, tmp_path: Path, patterns: list[str], said: str
) -> None:
    made = run(serve(servers, Tracker({"a.log": b"x"})), tmp_path, patterns=patterns)
    made()
    assert [said in warning for warning in made.warnings] == [True]


def test_local_names_do_not_depend_on_the_patterns(servers: ExitStack, tmp_path: Path) -> None:
    tracker = Tracker({"a.txt": b"1", "A.txt": b"2"})
    stub = serve(servers, tracker)
    run(stub, tmp_path, patterns=["A*"])()
    assert files(tmp_path) == {"A-502.txt": b"2"}


def test_too_large_attachment_is_skipped(servers: ExitStack, tmp_path: Path) -> None:
    stub = serve(servers, Tracker({"a": b"12345", "b": b"1234", "c": b""}))
    result = run(stub, tmp_path, max_size=4)()
    assert actions(result) == ["skipped", "downloaded", "downloaded"]
    assert files(tmp_path) == {"b": b"1234", "c": b""}
    assert result["attachments"][0]["size"] == 5


def test_unsafe_names_stay_in_the_folder(servers: ExitStack, tmp_path: Path) -> None:
    names = ["../../escape.txt", "/etc/passwd", ".bashrc", "a\nb", "", "..", "log", "LOG"]
    tracker = Tracker({name: name.encode() for name in names})
    for item in tracker.items:
        tracker.changes[item["id"]] = {"filename": item["filename"]}
        item["filename"] = "x"
    stub, dest = serve(servers, tracker), tmp_path / "dest"
    result = run(stub, dest)()
    assert [entry["filename"] for entry in result["attachments"]][:4] == names[:4]
    assert list(tmp_path.iterdir()) == [dest]
    assert len(files(dest)) == len(names)
    assert {Path(entry["path"]).parent for entry in result["attachments"]} == {dest}


def test_equal_names_get_their_id(servers: ExitStack, tmp_path: Path) -> None:
    tracker = Tracker({"log.txt": b"1", "other": b"2"})
    tracker.items[1]["filename"] = "log.txt"
    run(serve(servers, tracker), tmp_path)()
    assert files(tmp_path) == {"log-501.txt": b"1", "log-502.txt": b"2"}


# -- complete or not at all ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (Reply(body=b"fir"), "protocol", "sent 3 bytes, but reports a size of 6"),
        (Reply(body=b"first\n and more"), "protocol", "sent more than 6 bytes"),
        (Reply(body=b""), "protocol", "sent 0 bytes"),
        (Reply(body=b"first\n", truncate=3), "network", "connection was lost"),
        (Reply(cut=True), "network", "connection was lost"),
        (Reply(body=LOGIN_PAGE), "auth", "login page"),
        (Reply(body=PAGE), "protocol", "HTML"),
        (Reply(302, headers={"Location": "/base/login.jsp?os_destination=x"}), "auth", "login"),
        (Reply(404, "<html><h1>gone</h1></html>"), "not_found", "gone"),
        (Reply(403, "no"), "permission", "403"),
        (Reply(401, "no"), "auth", "401"),
        (Reply(body=b"first\n", headers={"X-AUSERNAME": "anonymous"}), "auth", "anonymous"),
        (
            Reply(headers={"X-Seraph-LoginReason": "AUTHENTICATED_FAILED"}),
            "auth",
            "AUTHENTICATED_FAILED",
        ),
        (
            Reply(403, "locked", {"X-Authentication-Denied-Reason": "CAPTCHA_CHALLENGE; x"}),
            "auth",
            "CAPTCHA_CHALLENGE",
        ),
    ],
)
@pytest.mark.parametrize("there", [None, b"older"])
def test_invalid_download_leaves_no_file(
    servers: ExitStack,
    tmp_path: Path,
    *,
    there: bytes | None,
    reply: Reply,
    kind: str,
    words: str,
) -> None:
    tracker = Tracker({"a.txt": b"first\n"})
    tracker.answers["501"] = [reply]
    stub, dest = serve(servers, tracker), tmp_path / "deep" / "dest"
    if there is not None:
        dest.mkdir(parents=True)
        (dest / "a.txt").write_bytes(there)
    with pytest.raises(ToolchainError, match=words) as caught:
        run(stub, dest)()
    assert caught.value.kind == kind
    assert "'a.txt' (501) of the issue 'REL-2'" in str(caught.value)
    assert caught.value.result == {"changed": False, "attachments": []}
    assert files(dest) == ({} if there is None else {"a.txt": there})
    assert (tmp_path / "deep").exists() is (there is not None)
    assert len(fetched(stub)) == 1


@pytest.mark.parametrize(
    ("reply", "kind"),
    [(Reply(body=LOGIN_PAGE), "auth"), (Reply(body=PAGE), "protocol")],
)
@pytest.mark.parametrize("most", [None, 5])
def test_html_page_of_unknown_size_is_an_error(
    servers: ExitStack, tmp_path: Path, reply: Reply, kind: str, most: int | None
) -> None:
    tracker = Tracker({"a.txt": b"first\n"}, written=True)
    tracker.answers["501"] = [reply]
    stub = serve(servers, tracker)
    with pytest.raises(ToolchainError) as caught:
        run(stub, tmp_path, max_size=most)()
    assert caught.value.kind == kind
    assert files(tmp_path) == {}


def test_attachment_may_be_an_html_page(servers: ExitStack, tmp_path: Path) -> None:
    stub = serve(servers, Tracker({"a.html": PAGE.encode(), "login.txt": LOGIN_PAGE.encode()}))
    assert actions(run(stub, tmp_path)()) == ["downloaded", "downloaded"]
    tracker = Tracker({"b.html": PAGE.encode(), "c.txt": LOGIN_PAGE.encode()}, written=True)
    offered = {"Content-Disposition": 'attachment; filename="c.txt"'}
    tracker.answers["502"] = [Reply(body=LOGIN_PAGE, headers=offered)]
    assert actions(run(serve(servers, tracker), tmp_path)()) == ["downloaded", "downloaded"]


def test_truncated_download_is_restarted(servers: ExitStack, tmp_path: Path) -> None:
    tracker = Tracker({"a.txt": b"first\n"})
    tracker.answers["501"] = [Reply(body=b"fi", headers={"Content-Length": "6"}, truncate=2)]
    stub = serve(servers, tracker)
    task = run(stub, tmp_path, settings={"retries": 1, "retry_max_wait": 0})
    assert actions(task()) == ["downloaded"]
    assert files(tmp_path) == {"a.txt": b"first\n"}
    assert task.task.accounting.retries == 1
    assert task.task.accounting.requests == 3


def test_failure_reports_the_files_already_downloaded(servers: ExitStack, tmp_path: Path) -> None:
    tracker = Tracker({"a": b"1", "b": b"2", "c": b"3", "d": b"4"})
    tracker.answers["503"] = [Reply(403, "no")]
    stub = serve(servers, tracker)
    (tmp_path / "d").write_bytes(b"4")
    os.utime(tmp_path / "d", (CREATED_SECONDS, CREATED_SECONDS))
    with pytest.raises(ToolchainError) as caught:
        run(stub, tmp_path, parallel=1)()
    result = caught.value.result
    assert result["changed"] is True
    assert [(attachment["id"], attachment["action"]) for attachment in result["attachments"]] == [
        ("501", "downloaded"),
        ("502", "downloaded"),
        ("504", "unchanged"),
    ]
    assert files(tmp_path) == {"a": b"1", "b": b"2", "d": b"4"}


def test_file_appears_only_when_complete(servers: ExitStack, tmp_path: Path) -> None:
    tracker = Tracker({"a.txt": b"first\n"})
    tracker.answers["501"] = [Reply(hold=True)]
    stub = serve(servers, tracker)
    task = run(stub, tmp_path, settings={"timeout": 0.2})
    with pytest.raises(ToolchainError) as caught:
        task()
    assert caught.value.kind == "timeout"
    assert files(tmp_path) == {}


def test_file_permissions_follow_the_umask(servers: ExitStack, tmp_path: Path) -> None:
    stub = serve(servers, Tracker(TWO))
    before = os.umask(0o027)
    try:
        run(stub, tmp_path / "dest")()
    finally:
        os.umask(before)
    assert (tmp_path / "dest" / "a.txt").stat().st_mode & 0o777 == 0o640
    (tmp_path / "dest" / "a.txt").write_bytes(b"x")
    (tmp_path / "dest" / "a.txt").chmod(0o604)
    run(stub, tmp_path / "dest")()
    assert (tmp_path / "dest" / "a.txt").stat().st_mode & 0o777 == 0o604


def test_link_is_replaced_and_not_followed(servers: ExitStack, tmp_path: Path) -> None:
    stub, dest = serve(servers, Tracker({"a.txt": b"first\n"})), tmp_path / "dest"
    dest.mkdir()
    (tmp_path / "precious").write_bytes(b"PRECIO")
    (dest / "a.txt").symlink_to(tmp_path / "precious")
    assert actions(run(stub, dest)()) == ["downloaded"]
    assert (tmp_path / "precious").read_bytes() == b"PRECIO"
    assert not (dest / "a.txt").is_symlink()
    assert files(dest) == {"a.txt": b"first\n"}


def test_downloads_run_in_parallel_over_few_connections(servers: ExitStack, tmp_path: Path) -> None:
    contents = {f"{number}.txt": str(number).encode() for number in range(60)}
    stub = serve(servers, Tracker(contents))
    run(stub, tmp_path, parallel=3)()
    assert files(tmp_path) == contents
    assert len(stub.seen) <= 61
    assert 1 < stub.connections <= 3


def test_memory_does_not_grow_with_file_size(servers: ExitStack, tmp_path: Path) -> None:
    size = 32 * 1024 * 1024
    stub = serve(servers, Tracker({"large.bin": bytes(size)}))
    task = run(stub, tmp_path)
    tracemalloc.start()
    try:
        task()
        _current, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (tmp_path / "large.bin").stat().st_size == size
    # the server, which is in this process, holds a second copy of the body while it sends the body
    assert peak < size * 1.5


# -- files of the same size, and files that are kept -----------------------------------------------


@pytest.mark.parametrize("written", [False, True])
def test_compare_max_limits_the_comparison(
    servers: ExitStack, tmp_path: Path, *, written: bool
) -> None:
    stub = serve(servers, Tracker({"a.txt": b"first\n", "b.txt": b"four"}, written=written))
    (tmp_path / "a.txt").write_bytes(b"FIRST\n")
    (tmp_path / "b.txt").write_bytes(b"FOUR")
    task = run(stub, tmp_path, compare_max=5)
    result = task()
    assert actions(result) == ["unchanged", "downloaded"]
    assert result["unknown"] == ["REL-2: a.txt"]
    (warning,) = task.warnings
    assert f"{tmp_path / 'a.txt'} is assumed to be unchanged" in warning
    assert "it has 6 bytes, but compare_max is 5" in warning
    assert files(tmp_path) == {"a.txt": b"FIRST\n", "b.txt": b"four"}
    assert not any("501" in path for path in fetched(stub))


def test_file_of_exactly_compare_max_is_compared(servers: ExitStack, tmp_path: Path) -> None:
    stub = serve(servers, Tracker({"a.txt": b"first\n"}))
    (tmp_path / "a.txt").write_bytes(b"FIRST\n")
    result = run(stub, tmp_path, compare_max=6)()
    assert (actions(result), "unknown" in result) == (["downloaded"], False)


@pytest.mark.parametrize("there", [None, b"x"])
def test_compare_max_does_not_limit_downloads(
    servers: ExitStack, tmp_path: Path, there: bytes | None
) -> None:
    stub = serve(servers, Tracker({"a.txt": b"first\n"}))
    if there is not None:
        (tmp_path / "a.txt").write_bytes(there)
    task = run(stub, tmp_path, compare_max=0)
    assert (actions(task()), task.warnings) == (["downloaded"], [])
    again = run(stub, tmp_path, compare_max=0)
    result = again()
    assert (actions(result), "unknown" in result, again.warnings) == (["unchanged"], False, [])


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("there", [b"FIRST\n", b"x", b"first\n and more"])
@pytest.mark.parametrize("check", [False, True])
def test_different_file_is_kept_without_replace(
    servers: ExitStack, tmp_path: Path, *, there: bytes, written: bool, check: bool
) -> None:
    stub = serve(servers, Tracker(TWO, written=written))
    (tmp_path / "a.txt").write_bytes(there)
    task = run(stub, tmp_path, replace=False)
    result = task(check=check)
    assert actions(result) == ["conflict", "downloaded"]
    (warning,) = task.warnings
    assert str(tmp_path / "a.txt") in warning
    assert "replace: true" in warning
    assert (tmp_path / "a.txt").read_bytes() == there
    if not check:
        again = run(stub, tmp_path, replace=False)()
        assert (again["changed"], actions(again)) == (False, ["conflict", "unchanged"])


@pytest.mark.parametrize("written", [False, True])
def test_equal_file_is_unchanged_without_replace(
    servers: ExitStack, tmp_path: Path, *, written: bool
) -> None:
    stub = serve(servers, Tracker({"a.txt": b"first\n"}, written=written))
    (tmp_path / "a.txt").write_bytes(b"first\n")
    task = run(stub, tmp_path, replace=False)
    assert (actions(task()), task.warnings) == (["unchanged"], [])


def test_link_is_kept_without_replace(servers: ExitStack, tmp_path: Path) -> None:
    stub = serve(servers, Tracker({"a.txt": b"first\n"}))
    (tmp_path / "a.txt").symlink_to(tmp_path / "nowhere")
    assert actions(run(stub, tmp_path, replace=False)()) == ["conflict"]
    assert (tmp_path / "a.txt").is_symlink()


def test_file_created_during_the_download_is_kept_without_replace(
    servers: ExitStack, tmp_path: Path
) -> None:
    tracker = Tracker({"a.txt": b"first\n"})
    stub = serve(servers, tracker)
    task = run(stub, tmp_path, replace=False)
    content = tracker.path(tracker.items[0])

    def response(seen: Seen) -> Reply:
        if seen.path == content:
            (tmp_path / "a.txt").write_bytes(b"somebody's")
        return tracker(seen, stub.url)

    stub.response = response
    with pytest.raises(ToolchainError, match="was created there") as caught:
        task()
    assert caught.value.kind == "conflict"
    assert files(tmp_path) == {"a.txt": b"somebody's"}


# -- host of the address ---------------------------------------------------------------------------


def test_other_host_gets_no_credentials(servers: ExitStack, tmp_path: Path) -> None:
    other = servers.enter_context(Stub(response=lambda seen: Reply(body=b"first\n")))
    tracker = Tracker({"a.txt": b"first\n", "b.txt": b"first\n"})
    signed = f"{other.url}/file/1?token=signed-secret"
    tracker.answers["501"] = [Reply(303, headers={"Location": signed})]
    tracker.changes["502"] = {"content": f"{other.url}/elsewhere/b.txt"}
    stub = serve(servers, tracker)
    assert actions(run(stub, tmp_path)()) == ["downloaded", "downloaded"]
    assert len(other.seen) == 2
    for seen in other.seen:
        assert not {"authorization", "cookie"} & {name.lower() for name in seen.headers}
    assert all("Authorization" in seen.headers for seen in stub.seen)


@pytest.mark.parametrize("sign", ["\\@", "\\\\@", "\t@", "#\\@"])
def test_ambiguous_address_is_not_requested(servers: ExitStack, tmp_path: Path, sign: str) -> None:
    other = servers.enter_context(Stub(response=lambda seen: Reply(body=b"first\n")))
    tracker = Tracker({"a.txt": b"first\n"})
    stub = serve(servers, tracker)
    home = stub.url.removeprefix("http://")
    tracker.changes["501"] = {"content": f"{other.url.removesuffix('/base')}{sign}{home}/y"}
    with pytest.raises(ToolchainError) as caught:
        run(stub, tmp_path)()
    assert caught.value.kind == "protocol"
    assert other.seen == []


def test_signed_address_is_not_shown(servers: ExitStack, tmp_path: Path) -> None:
    other = servers.enter_context(Stub(response=lambda seen: Reply(403, "expired")))
    tracker = Tracker({"a.txt": b"first\n"})
    location = {"Location": f"{other.url}/file/1?token=signed-secret"}
    tracker.answers["501"] = [Reply(303, headers=location)]
    with pytest.raises(ToolchainError) as caught:
        run(serve(servers, tracker), tmp_path)()
    assert caught.value.kind == "permission"
    assert "signed-secret" not in str(caught.value) + str(caught.value.as_dict())


def test_address_behind_a_proxy_is_requested_at_the_base_url(
    servers: ExitStack, tmp_path: Path
) -> None:
    tracker = Tracker({"a.txt": b"first\n", "b.txt": b"other\n"})
    inside = "http://inside.invalid/context"
    tracker.changes["501"] = {"content": f"{inside}/secure/attachment/501/a.txt"}
    tracker.changes["502"] = {"content": f"{inside}/secure/attachment/502/b.txt"}
    stub = serve(servers, tracker)
    assert actions(run(stub, tmp_path)()) == ["downloaded", "downloaded"]
    assert sorted(fetched(stub)) == [
        "/base/secure/attachment/501/a.txt",
        "/base/secure/attachment/502/b.txt",
    ]


def test_unknown_address_is_requested_unchanged(servers: ExitStack, tmp_path: Path) -> None:
    other = servers.enter_context(Stub(response=lambda seen: Reply(body=b"first\n")))
    tracker = Tracker({"a.txt": b"first\n"})
    tracker.changes["501"] = {"content": f"{other.url}/secure/attachment/9/other.txt"}
    stub = serve(servers, tracker)
    assert actions(run(stub, tmp_path)()) == ["downloaded"]
    assert fetched(stub) == ["/base/secure/attachment/9/other.txt"]
    assert "Authorization" not in other.seen[0].headers


@pytest.mark.parametrize(
    ("login", "elsewhere", "words"),
    [
        (TOKEN, False, "use username and password"),
        (BASIC, True, "not on the server in url"),
    ],
)
def test_login_page_suggests_a_solution(
    servers: ExitStack, tmp_path: Path, login: dict[str, Any], elsewhere: bool, words: str
) -> None:
    to_login = Reply(302, headers={"Location": "/base/login.jsp"})
    other = servers.enter_context(Stub(response=lambda seen: to_login))
    tracker = Tracker({"a.txt": b"first\n"})
    tracker.answers["501"] = [to_login]
    if elsewhere:
        tracker.changes["501"] = {"content": f"{other.url}/files/1"}
    with pytest.raises(ToolchainError, match=words) as caught:
        run(serve(servers, tracker), tmp_path, login, {"retries": 3})()
    assert caught.value.kind == "auth"


@pytest.mark.parametrize("address", ["file:///etc/passwd", "ftp://host/x", "javascript:1"])
def test_address_with_another_scheme_is_rejected(
    servers: ExitStack, tmp_path: Path, address: str
) -> None:
    tracker = Tracker({"a.txt": b"first\n"})
    tracker.changes["501"] = {"content": address}
    with pytest.raises(ToolchainError, match="is not a valid http") as caught:
        run(serve(servers, tracker), tmp_path)()
    assert caught.value.kind == "protocol"


# -- impossible input ------------------------------------------------------------------------------


@pytest.mark.parametrize("fields", [{}, {"attachment": None}])
def test_hidden_attachment_field_gives_a_warning(
    servers: ExitStack, tmp_path: Path, fields: dict[str, Any]
) -> None:
    tracker = Tracker({})
    tracker.issue = Reply(body={"key": "REL-2", "fields": fields})
    task = run(serve(servers, tracker), tmp_path / "dest")
    assert task() == {"changed": False, "attachments": []}
    assert len(task.warnings) == 1
    assert not (tmp_path / "dest").exists()


@pytest.mark.parametrize("items", ["x", [1], [{"id": "1"}], [{"content": "x"}], {"a": 1}])
def test_malformed_attachments_are_an_error(servers: ExitStack, tmp_path: Path, items: Any) -> None:
    tracker = Tracker({})
    tracker.issue = Reply(body={"key": "REL-2", "fields": {"attachment": items}})
    with pytest.raises(ToolchainError) as caught:
        run(serve(servers, tracker), tmp_path)()
    assert caught.value.kind == "protocol"


def test_missing_issue_is_named(servers: ExitStack, tmp_path: Path) -> None:
    tracker = Tracker({})
    tracker.issue = Reply(404, {"errorMessages": ["Issue Does Not Exist"]})
    with pytest.raises(ToolchainError, match="REL-2") as caught:
        run(serve(servers, tracker), tmp_path)()
    assert caught.value.kind == "not_found"


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"max_size": -1}, "max_size"),
        ({"compare_max": -1}, "compare_max"),
        ({"parallel": 0}, "parallel"),
    ],
)
def test_invalid_numbers_are_rejected(tmp_path: Path, params: dict[str, Any], words: str) -> None:
    with Stub() as stub, pytest.raises(ToolchainError, match=words) as caught:
        run(stub, tmp_path, **params)()
    assert caught.value.kind == "invalid"


@pytest.mark.parametrize("kind", ["file", "dangling"])
def test_invalid_folder_is_rejected_before_any_request(tmp_path: Path, kind: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with Stub() as stub, pytest.raises(ToolchainError, match="dest") as caught:
        run(stub, tmp_path / kind)()
    assert caught.value.kind == "invalid"


def test_folder_at_the_destination_of_a_file_is_rejected(
    servers: ExitStack, tmp_path: Path
) -> None:
    stub = serve(servers, Tracker({"a.txt": b"first\n"}))
    (tmp_path / "a.txt").mkdir()
    with pytest.raises(ToolchainError, match="is a folder") as caught:
        run(stub, tmp_path)(check=True)
    assert caught.value.kind == "invalid"


def test_folder_below_a_file_is_rejected(servers: ExitStack, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    stub = serve(servers, Tracker({"a.txt": b"first\n"}))
    with pytest.raises(ToolchainError, match="Not a directory") as caught:
        run(stub, tmp_path / "file" / "below")()
    assert caught.value.kind == "invalid"
    assert fetched(stub) == []


@pytest.mark.parametrize(
    "path", ["secure/attachment/501/a.txt", "rest/api/3/attachment/content/501"]
)
def test_cloud_attachments_are_read_at_the_gateway(tmp_path: Path, path: str) -> None:
    base = "/base/ex/jira/1-2"

    def response(seen: Seen) -> Reply:
        site = stub.url.removesuffix("/base")
        item = {"id": "501", "filename": "a.txt", "content": f"{site}/{path}", "size": 3}
        if seen.path == f"{base}/rest/api/2/issue/REL-2":
            return Reply(body={"key": "REL-2", "fields": {"attachment": [item]}})
        there = seen.path == f"{base}/rest/api/3/attachment/content/501"
        return Reply(body=b"abc") if there else Reply(404)

    with Stub(response=response) as stub:
        options = build(TrackerAttachmentOptions, issue="REL-2", dest=str(tmp_path))
        url, make = stub.url.removesuffix("/base"), TrackerAttachmentOperation
        run = Run(url, make, options, cloud_id="1-2", cloud_gateway=stub.url)
        assert run()["changed"]
    assert (tmp_path / "a.txt").read_bytes() == b"abc"
    assert {seen.path.startswith(f"{base}/") for seen in stub.seen} == {True}
