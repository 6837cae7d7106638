# SPDX-License-Identifier: GPL-3.0-or-later
"""Test names from a server: they never lead outside the folder or collide with another folder."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.files import safe_paths
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.file_download import (
    RemoteContent,
    download_file,
)
from tests.unit.stub import Reply, Stub, transport_to

DATA = b"0123456789" * 100
MD5 = hashlib.md5(DATA, usedforsecurity=False).hexdigest()


def test_folders_are_kept_or_flattened(tmp_path: Path) -> None:
    names = ["a.txt", "sub/b.txt", "sub/-x", "..x", "a\\b", "sub/ "]
    found = safe_paths(str(tmp_path), names)
    assert found == {name: f"{tmp_path}/{name}" for name in names}
    assert safe_paths("d", ["x/a.txt"], flat=True) == {"x/a.txt": "d/a.txt"}


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "a/../../x",
        "..",
        "/etc/passwd",
        "a//b",
        "./x",
        "",
        "a/",
        "x\0y",
        "n" * 256,
        "\ud800",
    ],
)
@pytest.mark.parametrize("flat", [True, False])
def test_hostile_names_are_rejected(tmp_path: Path, name: str, flat: bool) -> None:
    with pytest.raises(ToolchainError) as caught:
        safe_paths(str(tmp_path), ["good", name], flat=flat)
    assert caught.value.kind == "rejected"


def test_link_out_of_the_folder_is_rejected(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    home.mkdir()
    other.mkdir()
    (home / "in").mkdir()
    (home / "here").symlink_to("in")
    (home / "out").symlink_to(other)
    assert safe_paths(str(home), ["here/x"]) == {"here/x": f"{home}/here/x"}
    with pytest.raises(ToolchainError, match="leads out of"):
        safe_paths(str(home), ["out/x"])
    link = tmp_path / "link"
    link.symlink_to(home)
    assert safe_paths(str(link), ["a/x"]) == {"a/x": f"{link}/a/x"}


def test_names_of_the_same_file_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="would be the same file") as caught:
        safe_paths(str(tmp_path), ["a/x", "b/x"], flat=True)
    assert caught.value.kind == "invalid"
    with pytest.raises(ToolchainError, match="'a' is a file, not a folder"):
        safe_paths(str(tmp_path), ["a/b/x", "a"])
    (tmp_path / "folder").mkdir()
    with pytest.raises(ToolchainError, match="is a folder, but must be a file"):
        safe_paths(str(tmp_path), ["folder"])


def test_file_with_equal_size_and_digest_is_present(tmp_path: Path) -> None:
    path = tmp_path / "x"
    known = RemoteContent(len(DATA), "md5", MD5)
    assert not known.is_at(str(path))
    path.write_bytes(DATA)
    assert known.is_at(str(path))
    assert RemoteContent(len(DATA)).is_at(str(path))
    assert not RemoteContent().is_at(str(path))
    assert not RemoteContent(1).is_at(str(path))
    assert not RemoteContent(None, "md5", "0" * 32).is_at(str(path))
    link = tmp_path / "link"
    link.symlink_to(path)
    assert not known.is_at(str(link))


@pytest.mark.parametrize(
    "content",
    [
        RemoteContent(len(DATA), "md5", MD5.upper()),
        RemoteContent(None, "sha256", hashlib.sha256(DATA).hexdigest()),
        RemoteContent(),
    ],
)
def test_file_is_fetched_and_verified(tmp_path: Path, content: RemoteContent) -> None:
    path = tmp_path / "new" / "x"
    with Stub(Reply(body=DATA)) as stub:
        transport = transport_to(stub.url)
        found = download_file(transport, "fetching", "x", str(path), content=content, mode=0o640)
    assert path.read_bytes() == DATA
    assert path.stat().st_mode & 0o777 == 0o640
    assert (found.size, found.sha256) == (len(DATA), hashlib.sha256(DATA).hexdigest())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (RemoteContent(len(DATA) + 1), "instead of 1001"),
        (RemoteContent(10), "instead of 10"),
        (RemoteContent(None, "md5", "0" * 32), "a file with md5"),
    ],
)
def test_file_with_wrong_digest_is_removed(
    tmp_path: Path, content: RemoteContent, words: str
) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    with Stub(Reply(body=DATA)) as stub, pytest.raises(ToolchainError, match=words) as caught:
        download_file(transport_to(stub.url), "fetching", "x", str(path), content=content)
    assert caught.value.kind == "protocol"
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
