# SPDX-License-Identifier: GPL-3.0-or-later
"""Test files that appear complete or not at all, and bodies that are read to the end."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import requests.exceptions

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.files import (
    atomic_write,
    make_folders,
    read_text,
    require_replaceable,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.file_download import (
    download,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.messages import (
    Response,
    back_off,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.items import (
    artifact_info,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki import additions
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.pages import desired_page
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.pages.desired_page import (
    PageOptions,
)
from tests.helpers.options import build as options_of
from tests.unit.stub import Reply, Stub, Waits, transport_to

if TYPE_CHECKING:
    from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.bodies import (
        Incoming,
    )


def test_file_is_replaced_when_complete(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    with atomic_write(str(path)) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
        (temporary,) = set(tmp_path.iterdir()) - {path}
        assert temporary.name.startswith(".")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, requests.exceptions.Timeout])
def test_incomplete_file_is_removed(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    with pytest.raises(error), atomic_write(str(path)) as file:  # noqa: PT012 - what is inside counts
        file.write(b"half")
        raise error
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_permissions_do_not_depend_on_umask(tmp_path: Path, mode: int) -> None:
    before = os.umask(0o077)
    try:
        with atomic_write(str(tmp_path / "a"), mode) as file:
            assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == mode
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode


def test_new_file_is_created_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []
    real = os.open

    def watched(path: str, flags: int, mode: int = 0o777) -> int:
        opened.append(mode)
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", watched)
    with atomic_write(str(tmp_path / "key"), 0o600):
        pass
    assert opened == [0o600]


def test_replaced_file_keeps_permissions_without_special_bits(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"")
    path.chmod(0o4751)
    with atomic_write(str(path)):
        pass
    assert stat.S_IMODE(path.stat().st_mode) == 0o751


def test_disk_error_is_reported(tmp_path: Path) -> None:
    opening = atomic_write(str(tmp_path / "nowhere" / "a"))
    with pytest.raises(ToolchainError, match="nowhere/a: No such file") as caught:
        opening.__enter__()
    assert caught.value.kind == "failed"


def test_folder_cannot_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(ToolchainError, match="directory"), atomic_write(str(tmp_path / "a")):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_missing_folders_are_created_and_returned(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    assert make_folders(str(deep)) == [str(deep), str(deep.parent)]
    assert deep.is_dir()
    assert make_folders(str(deep)) == []


def test_folder_below_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(ToolchainError, match="cannot create the folder") as caught:
        make_folders(str(tmp_path / "a" / "b"))
    assert caught.value.kind == "failed"


# Downloads


def accept(response: Response) -> None:
    """Accept every response."""


def content(response: Incoming) -> bytes:
    return b"".join(response.iter_content())


SHORT = Reply(body=b"whole", truncate=2)


def test_truncated_body_is_fetched_again() -> None:
    waits = Waits()
    with Stub(SHORT, SHORT, Reply(body=b"whole")) as stub:
        transport = transport_to(stub.url, retry_max_wait=1)
        found = download(transport, "taking", "x", content, validate=accept, sleep=waits)
    assert found == b"whole"
    assert transport.accounting.retries == len(waits) == 2
    assert transport.accounting.requests == 3
    assert 0.25 <= waits[0] <= 0.5 <= waits[1] <= 1


def test_repeatedly_truncated_body_is_an_error() -> None:
    with Stub(SHORT, SHORT) as stub:
        transport = transport_to(stub.url, retries=1)
        with pytest.raises(ToolchainError, match="taking: the connection was lost") as caught:
            download(transport, "taking", "x", content, validate=accept, sleep=Waits())
    assert caught.value.kind == "network"
    assert len(stub.seen) == 2


def test_failure_before_the_body_is_retried_only_by_transport() -> None:
    with Stub(*[Reply(cut=True)] * 3) as stub:
        transport = transport_to(stub.url, retries=2)
        with pytest.raises(ToolchainError):
            download(transport, "taking", "x", content, validate=accept, sleep=Waits())
    assert len(stub.seen) == 3


@pytest.mark.parametrize("status", [200, 404])
def test_every_response_is_checked_first(status: int) -> None:
    def judge(response: Response) -> None:
        raise response.error("auth", f"judged {response.status}")

    with Stub(Reply(status, "text")) as stub:
        transport = transport_to(stub.url)
        with pytest.raises(ToolchainError, match=f"taking: judged {status}") as caught:
            download(transport, "taking", "x", content, validate=judge, sleep=Waits())
    assert caught.value.kind == "auth"
    assert len(stub.seen) == 1


def test_back_off_grows_to_its_maximum() -> None:
    for attempt, longest in ((0, 0.5), (1, 1.0), (2, 2.0), (20, 60.0)):
        wait = back_off(attempt, 60)
        assert longest / 2 <= wait <= longest
    assert back_off(5, 0) == 0


@pytest.mark.parametrize("attempt", [40, 1024, 2_000_000])
def test_back_off_of_many_attempts_is_the_maximum(attempt: int) -> None:
    assert 0.5 <= back_off(attempt, 1) <= 1
    assert 1_000_000 <= back_off(attempt, 2_000_000) <= 2_000_000


def test_text_file_is_read_or_error_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_text("größe\n", encoding="utf-8")
    assert read_text(str(file), "the script") == "größe\n"
    file.write_bytes(b"\xff")
    for path, words in (
        (str(file), f"the script {file} is not UTF-8 text"),
        (str(tmp_path), f"cannot read the script {tmp_path}: Is a directory"),
        ("a\0b", "cannot read the script 'a\\x00b': "),
    ):
        with pytest.raises(ToolchainError) as caught:
            read_text(path, "the script")
        assert caught.value.kind == "invalid"
        assert caught.value.message.startswith(words)


#: Functions that read a file named by the user, by the names of their options.
READERS: dict[str, Callable[[str], object]] = {
    "ci_job.src, ci_script.src, oauth_consumer.private_key": lambda path: read_text(
        path, "the script"
    ),
    "wiki_page.src": lambda path: desired_page._body(
        options_of(PageOptions, space="S", title="T", src=path)
    ),
    "wiki_page.attachments": lambda path: additions._file(path, "a.txt", ""),
    "artifact_info.aql_file": lambda path: artifact_info._content(
        options_of(artifact_info.ArtifactInfoOptions, aql_file=path)
    ),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_special_files_are_rejected_without_blocking(
    tmp_path: Path, reader: str, kind: str
) -> None:
    """Verify this because a pipe without a writer would block the task, and an endless device would
    fill the memory.
    """
    path = {"pipe": f"{tmp_path}/pipe", "device": "/dev/zero", "folder": str(tmp_path)}[kind]
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ToolchainError, match="cannot read") as caught:
        READERS[reader](path)
    assert caught.value.kind == "invalid"
    assert path in str(caught.value)


@pytest.mark.parametrize("path", ["/dev/null", "pipe", "."])
def test_special_file_at_destination_is_an_error(tmp_path: Path, path: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    there = str(tmp_path / path)
    with pytest.raises(ToolchainError, match="but must be a file") as caught:
        require_replaceable(there, os.lstat(there))
    assert caught.value.kind == "invalid"


def test_link_at_destination_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/null")
    require_replaceable(str(tmp_path / "link"), os.lstat(tmp_path / "link"))
