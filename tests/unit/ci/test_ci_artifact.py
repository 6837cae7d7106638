# SPDX-License-Identifier: GPL-3.0-or-later
"""Test artifacts of hostile, old and distant servers, and the selection of artifacts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.builds.ci_artifact import (
    CiArtifactOperation,
    CiArtifactOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from tests.helpers.options import build as options_of
from tests.unit.ci.server import build
from tests.unit.ci.tasks import Run
from tests.unit.stub import Reply, Seen, Stub

LOG = b"one\ntwo\nFinished: SUCCESS\n"


def md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


@dataclass
class Server:
    """A build with files; `fingerprints`: recorded names and contents."""

    files: dict[str, bytes] = field(default_factory=dict)
    fingerprints: list[tuple[str, bytes]] = field(default_factory=list)
    shown: dict[str, Any] = field(default_factory=dict)
    replies: dict[str, Reply] = field(default_factory=dict)

    def __call__(self, seen: Seen) -> Reply:
        path = seen.path.removeprefix("/base/job/x/")
        if seen.path.endswith("/x/api/json"):
            return Reply(body={"lastBuild": {"number": 9}})
        if path.endswith("/api/json"):
            return self._build() if path.startswith(("7/", "lastSuccessfulBuild/")) else Reply(404)
        if path in self.replies:
            return self.replies[path]
        if path == "7/consoleText":
            return Reply(body=LOG, headers={"Content-Type": "text/plain;charset=UTF-8"})
        return Reply(body=self.files[path.removeprefix("7/artifact/")])

    def _build(self) -> Reply:
        artifacts = [
            {"fileName": path.rpartition("/")[2], "relativePath": path} for path in self.files
        ]
        fingerprint = [{"fileName": n, "hash": md5(data)} for n, data in self.fingerprints]
        return Reply(
            body={**build(7), "artifacts": artifacts, "fingerprint": fingerprint, **self.shown}
        )


@dataclass
class Fetching:
    """Tasks against a server; `asked`: the requests of the last task."""

    server: Server
    stub: Stub
    folder: Path
    warnings: list[str] = field(default_factory=list)

    def __call__(self, *, check: bool = False, **options: Any) -> dict[str, Any]:
        given = {"job": "x", "dest": str(self.folder / "dest"), **options}
        self.stub.seen.clear()
        played = Run(self.stub.url, check)
        try:
            chosen = options_of(CiArtifactOptions, **given)
            return played.play(lambda task: CiArtifactOperation(task, chosen))
        finally:
            self.warnings = played.warnings

    @property
    def asked(self) -> list[str]:
        begin = "/base/job/x/"
        return [f"{each.method} {each.path.removeprefix(begin)}" for each in self.stub.seen]

    def found(self) -> dict[str, bytes]:
        dest = self.folder / "dest"
        return {
            str(path.relative_to(dest)): path.read_bytes()
            for path in sorted(dest.rglob("*"))
            if path.is_file()
        }


@pytest.fixture
def fetch(tmp_path: Path) -> Iterator[Fetching]:
    server = Server({"a.txt": b"A", "sub/b.txt": b"BB"})
    with Stub(response=server) as stub:
        yield Fetching(server, stub, tmp_path)


def actions(result: dict[str, Any]) -> dict[str, str]:
    return {file["path"]: file["action"] for file in result["files"]}


def test_fingerprint_identifies_unchanged_files(fetch: Fetching) -> None:
    fetch.server.fingerprints = [("a.txt", b"A"), ("sub/b.txt", b"BB")]
    planned = fetch(check=True)
    assert planned["changed"]
    assert not (fetch.folder / "dest").exists()
    made = fetch()
    assert actions(made) == {"a.txt": "downloaded", "sub/b.txt": "downloaded"}
    assert made["downloaded_bytes"] == 3
    assert made["diff"] == planned["diff"]
    assert fetch.found() == fetch.server.files
    (fetch.folder / "dest/a.txt").write_bytes(b"X")
    assert actions(fetch()) == {"a.txt": "downloaded", "sub/b.txt": "unchanged"}
    again = fetch()
    assert not again["changed"]
    assert again["files"][0]["sha256"] == hashlib.sha256(b"A").hexdigest()
    assert fetch.asked == ["GET lastSuccessfulBuild/api/json"]


def test_size_identifies_unchanged_files_without_fingerprint(fetch: Fetching) -> None:
    fetch()
    (fetch.folder / "dest/a.txt").write_bytes(b"X")
    (fetch.folder / "dest/sub/b.txt").write_bytes(b"longer")
    assert actions(fetch(parallel=1)) == {"a.txt": "unchanged", "sub/b.txt": "downloaded"}
    assert fetch.asked[1:] == [
        "HEAD 7/artifact/a.txt",
        "HEAD 7/artifact/sub/b.txt",
        "GET 7/artifact/sub/b.txt",
    ]


def test_fingerprint_with_matching_file_name_only_is_ignored(fetch: Fetching) -> None:
    fetch.server.files = {"sub/b.txt": b"BB"}
    fetch.server.fingerprints = [("work/b.txt", b"input")]
    fetch()
    assert fetch.found() == {"sub/b.txt": b"BB"}
    assert not fetch()["changed"]
    assert fetch.asked[-1] == "GET 7/artifact/sub/b.txt"
    fetch.server.fingerprints = [("work/b.txt", b"BB")]
    assert not fetch()["changed"]
    assert fetch.asked == ["GET lastSuccessfulBuild/api/json"]


def test_wrong_digest_is_discarded(fetch: Fetching) -> None:
    fetch.server.fingerprints = [("a.txt", b"other")]
    with pytest.raises(ToolchainError, match="md5") as caught:
        fetch(patterns=["a.txt"])
    assert caught.value.kind == "protocol"
    assert caught.value.result["changed"] is False
    assert fetch.found() == {}


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "sub//x", "..", "a/*zip*/b.zip"])
def test_unsafe_names_are_rejected(fetch: Fetching, name: str) -> None:
    fetch.server.files = {"good": b"1", name: b"evil"}
    with pytest.raises(ToolchainError) as caught:
        fetch()
    assert caught.value.kind == "rejected"
    assert set(fetch.folder.rglob("*x")) == set()


def test_names_with_special_characters_are_downloaded(fetch: Fetching) -> None:
    fetch.server.files = {"a%20b%3B%2A%3F.txt": b"1"}
    fetch.server.shown = {"artifacts": [{"relativePath": "a b;*?.txt"}]}
    fetch()
    assert fetch.found() == {"a b;*?.txt": b"1"}


def test_redirect_to_another_host_gets_only_get_without_credentials(fetch: Fetching) -> None:
    """Verify that such addresses, signed for GET alone, get only GETs without credentials."""
    with Stub(response=lambda seen: Reply(body=b"A")) as store:
        there = f"{store.url.replace('127.0.0.1', 'localhost')}/signed"
        fetch.server.replies = {"7/artifact/a.txt": Reply(302, headers={"Location": there})}
        fetch(patterns=["a.txt"])
        (fetch.folder / "dest/a.txt").write_bytes(b"X")
        assert not fetch(patterns=["a.txt"])["changed"]
        assert {each.method for each in store.seen} == {"GET"}
        assert all("Authorization" not in each.headers for each in store.seen)


def test_html_page_is_not_a_file(fetch: Fetching) -> None:
    page = Reply(body="<html><form><input type='password'></form></html>")
    fetch.server.replies = {"7/artifact/a.txt": page}
    with pytest.raises(ToolchainError) as caught:
        fetch(patterns=["a.txt"])
    assert caught.value.kind in ("protocol", "auth")
    fetch.server.files["report.html"] = b"<html>good</html>"
    assert fetch(patterns=["*.html"])["changed"]


def test_failure_reports_the_files_already_downloaded(fetch: Fetching) -> None:
    fetch.server.replies = {"7/artifact/sub/b.txt": Reply(403)}
    with pytest.raises(ToolchainError) as caught:
        fetch(parallel=1)
    assert caught.value.kind == "permission"
    assert actions(caught.value.result) == {"a.txt": "downloaded"}
    assert caught.value.result["changed"] is True


def test_equal_flat_names_are_rejected(fetch: Fetching) -> None:
    fetch(flat=True)
    assert fetch.found() == {"a.txt": b"A", "b.txt": b"BB"}
    fetch.server.files["other/a.txt"] = b"2"
    with pytest.raises(ToolchainError, match="the same file") as caught:
        fetch(flat=True)
    assert caught.value.kind == "invalid"


def test_log_is_compared_and_written_completely(fetch: Fetching) -> None:
    log = fetch.folder / "logs" / "x.log"
    options: dict[str, Any] = {"dest": None, "console": str(log)}
    assert fetch(check=True, **options)["console"]["action"] == "downloaded"
    made = fetch(**options)
    assert log.read_bytes() == LOG
    assert (made["console"]["size"], made["files"]) == (len(LOG), [])
    assert not fetch(**options)["changed"]
    for other in (LOG[:-1], LOG + b"x", b"", b"x" * len(LOG)):
        log.write_bytes(other)
        assert fetch(**options)["changed"]
    assert log.read_bytes() == LOG
    page = Reply(body="<html>Sign in</html>", headers={"Content-Type": "text/html"})
    fetch.server.replies = {"7/consoleText": page}
    with pytest.raises(ToolchainError, match="a web page"):
        fetch(**options)
    assert log.read_bytes() == LOG


def test_truncated_log_is_discarded(fetch: Fetching) -> None:
    headers = {"Content-Type": "text/plain"}
    fetch.server.replies = {"7/consoleText": Reply(body=LOG, headers=headers, truncate=5)}
    with pytest.raises(ToolchainError) as caught:
        fetch(dest=None, console=str(fetch.folder / "x.log"))
    assert caught.value.kind == "network"
    assert list(fetch.folder.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "words", "kind"),
    [
        ({"patterns": ["nothing"]}, "it has 2 others", "not_found"),
        ({"build": "8"}, "has no build 8; its newest build is 9", "not_found"),
        ({"build": "../7"}, "set it to a number", "invalid"),
        ({"parallel": 0}, "parallel is 0", "invalid"),
        ({"console": "logs/"}, "console is 'logs/', which is a folder", "invalid"),
        ({"console": "/dev/null"}, "/dev/null is a device", "invalid"),
    ],
)
def test_invalid_options_are_rejected(
    fetch: Fetching, options: dict[str, Any], words: str, kind: str
) -> None:
    with pytest.raises(ToolchainError, match=words) as caught:
        fetch(**options)
    assert caught.value.kind == kind


def test_folders_and_files_at_the_destination_are_reported(fetch: Fetching) -> None:
    (fetch.folder / "file").write_bytes(b"")
    (fetch.folder / "dest/a.txt").mkdir(parents=True)
    for options, words in (
        ({"dest": str(fetch.folder / "file")}, "is not a folder: set dest"),
        ({}, "is a folder, but must be a file"),
        ({"dest": None, "console": str(fetch.folder / "dest")}, "is a folder"),
        (
            {"dest": str(fetch.folder / "new"), "console": str(fetch.folder / "new/a.txt")},
            "is also the file of an artifact",
        ),
    ):
        with pytest.raises(ToolchainError, match=words) as caught:
            fetch(**options)
        assert caught.value.kind == "invalid"


def test_allow_empty_accepts_no_match(fetch: Fetching) -> None:
    found = fetch(patterns=["nothing"], allow_empty=True)
    assert (found["changed"], found["files"]) == (False, [])
    assert "'nothing' matches no artifact" in fetch.warnings[0]


def test_running_build_gives_a_warning(fetch: Fetching) -> None:
    fetch.server.shown = {"building": True, "result": None}
    fetch()
    assert "build is still running" in fetch.warnings[0]
