# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the selection of local files, and their targets."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import os
import tarfile
import zipfile
from pathlib import Path
from typing import IO, Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.items import (
    sources,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.items.artifact_deploy import (
    ArtifactDeployOptions,
    sources_of,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.items.listing import (
    Digests,
    digests_of,
)
from tests.helpers.options import build


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("dist/a.txt", "dist/sub/b.txt", "dist/sub/we;ird #1 %ü.txt", "other/a.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "dist" / "empty").mkdir()
    (tmp_path / "dist" / "link.txt").symlink_to("a.txt")
    return tmp_path


def paths(src: object, path: str = "") -> list[str]:
    return [source.path for source in sources.files_of(str(src), path)]


BELOW = ["a.txt", "link.txt", "sub/b.txt", "sub/we;ird #1 %ü.txt"]


def test_file_keeps_its_name_in_a_folder(tree: Path) -> None:
    assert paths(tree / "dist/a.txt") == ["a.txt"]
    assert paths(tree / "dist/a.txt", "x/y/") == ["x/y/a.txt"]
    assert paths(tree / "dist/a.txt", "/x/y") == ["x/y"]


def test_folder_keeps_its_name_without_trailing_slash(tree: Path) -> None:
    assert paths(f"{tree}/dist/", "x") == [f"x/{name}" for name in BELOW]
    assert paths(f"{tree}/dist/", "") == BELOW
    assert paths(tree / "dist", "x/") == [f"x/dist/{name}" for name in BELOW]
    assert paths(tree / "dist") == [f"dist/{name}" for name in BELOW]


def test_glob_selects_files(tree: Path) -> None:
    assert paths(tree / "dist/*.txt", "x") == ["x/a.txt", "x/link.txt"]
    assert paths(tree / "dist/s*", "x") == ["x/sub/b.txt", "x/sub/we;ird #1 %ü.txt"]
    assert sorted(paths(tree / "dist/**/b*")) == ["sub/b.txt"]
    assert paths(tree / "*/*.txt", "x") == ["x/dist/a.txt", "x/dist/link.txt", "x/other/a.txt"]


@pytest.mark.parametrize("pattern", ["/dist//*.txt", "//dist/*.txt", "/dis*//?.txt", "//**//a.txt"])
def test_glob_after_a_folder_with_slash_selects_files(tree: Path, pattern: str) -> None:
    found = {file.path.rpartition("/")[2] for file in sources.files_of(f"{tree}{pattern}", "x")}
    assert "a.txt" in found


def test_flat_drops_folders(tree: Path) -> None:
    flat = sources.Selection(flat=True)
    assert [file.path for file in sources.files_of(f"{tree}/dist", "x", flat)] == [
        f"x/{name.rpartition('/')[2]}" for name in BELOW
    ]
    assert [file.path for file in sources.files_of(f"{tree}/dist/**/b*", "", flat)] == ["b.txt"]
    with pytest.raises(ToolchainError, match=r"both be deployed to 'a\.txt'"):
        found_for(src=f"{tree}/*/a.txt", flat=True)


def test_excluded_files_below_the_source_are_omitted(tree: Path) -> None:
    kept = found_for(src=f"{tree}/dist", exclude=["sub/*", "link*"])
    assert [one.path for one in kept] == ["dist/a.txt"]
    kept = found_for(src=f"{tree}/**/*.txt", exclude=["dist/sub/", "other/*"])
    assert [one.path for one in kept] == ["dist/a.txt", "dist/link.txt"]
    kept = found_for(artifacts=[{"src": f"{tree}/dist/"}], exclude=["**/*b.txt", "**ü*"])
    assert [one.path for one in kept] == ["a.txt", "link.txt"]
    with pytest.raises(ToolchainError, match="exclude matches all files"):
        found_for(src=f"{tree}/dist/a.txt", exclude=["*.txt"])


def test_missing_relative_source_is_reported_with_its_folder(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree)
    with pytest.raises(ToolchainError) as caught:
        paths("dist/*.zip")
    assert f"searched in '{os.path.realpath(tree)}'" in caught.value.message


def test_special_file_is_rejected(tree: Path) -> None:
    os.mkfifo(tree / "dist" / "sub" / "fifo")
    for src in ("dist", "dist/**", "dist/sub/f*"):
        with pytest.raises(ToolchainError, match="neither a file nor a folder"):
            paths(tree / src)


def test_existing_name_with_glob_characters_is_literal(tree: Path) -> None:
    (tree / "a[1].txt").write_text("")
    assert paths(tree / "a[1].txt") == ["a[1].txt"]


def test_linked_folders_are_followed_without_loops(tree: Path) -> None:
    (tree / "dist" / "linked").symlink_to(tree / "other")
    assert "linked/a.txt" in paths(f"{tree}/dist/")
    (tree / "dist" / "linked").unlink()
    (tree / "dist" / "sub" / "up").symlink_to(tree / "dist")
    with pytest.raises(ToolchainError, match="is a link to one of its parent folders"):
        paths(f"{tree}/dist/")


@pytest.mark.parametrize("src", ["missing", "dist/*.zip", "dist/empty", "broken", "fifo", "links"])
def test_undeployable_source_is_rejected(tree: Path, src: str) -> None:
    (tree / "broken").symlink_to("nowhere")
    (tree / "links").mkdir()
    (tree / "links" / "to_itself").symlink_to("to_itself")
    os.mkfifo(tree / "fifo")
    with pytest.raises(ToolchainError) as caught:
        paths(tree / src)
    assert caught.value.kind == "invalid"
    assert "src" in caught.value.message


def test_name_that_is_not_utf8_is_rejected(tree: Path) -> None:
    os.mkdir(os.fsencode(tree) + b"/latin")
    with open(os.fsencode(tree) + b"/latin/\xfc.txt", "wb"):
        pass
    with pytest.raises(ToolchainError, match="not UTF-8"):
        paths(tree / "latin")


def found_for(**given: Any) -> list[sources.FileSource]:
    return sources_of(build(ArtifactDeployOptions, repo="r", **given))


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("a\n", "a\n"),
        ("", ""),
        ({"a": ["b", None]}, '{"a": ["b", null]}'),
        ([1], "[1]"),
    ],
)
def test_content_other_than_a_string_is_json(content: Any, text: str) -> None:
    (source,) = found_for(content=content, path="a.json")
    assert source.content.open().read() == text.encode()


def test_artifacts_are_placed_below_path_with_their_properties(tree: Path) -> None:
    artifacts = [
        {"src": str(tree / "dist/a.txt"), "path": "x/new.txt", "properties": {"k": "2", "l": "z"}},
        {"src": str(tree / "other")},
    ]
    found = found_for(artifacts=artifacts, path="top", properties={"k": "1", "m": "2"})
    assert [(one.path, one.properties) for one in found] == [
        ("top/x/new.txt", {"k": ["2"], "l": ["z"], "m": ["2"]}),
        ("top/other/a.txt", {"k": ["1"], "m": ["2"]}),
    ]


def test_two_sources_for_one_target_are_rejected(tree: Path) -> None:
    artifacts = [{"src": str(tree / name)} for name in ("dist/a.txt", "other/a.txt")]
    with pytest.raises(ToolchainError, match=r"would both be deployed to 'a\.txt'"):
        found_for(artifacts=artifacts)


def test_file_below_another_file_is_rejected(tree: Path) -> None:
    paths = (("dist/a.txt", "x/y"), ("other/a.txt", "x/y/z/a.txt"))
    artifacts = [{"src": str(tree / name), "path": path} for name, path in paths]
    with pytest.raises(ToolchainError, match=r"to 'x/y', which would be its folder"):
        found_for(artifacts=artifacts)


@pytest.mark.parametrize("path", ["", "x/", "x/../y", "x//y", "./x"])
def test_content_without_file_path_is_rejected(path: str) -> None:
    with pytest.raises(ToolchainError) as caught:
        found_for(content="text", path=path)
    assert caught.value.kind == "invalid"


@pytest.mark.parametrize("size", [0, 1, 2 * 1024 * 1024, 5_000_001])
def test_digests_are_computed_in_one_pass(size: int) -> None:
    content = os.urandom(size)

    class Once(io.BytesIO):
        """Count the reads."""

        count = 0

        def read(self, amount: int | None = -1) -> bytes:
            block = super().read(amount)
            self.count += len(block)
            return block

    stream = Once(content)
    assert digests_of(stream) == Digests(
        size, hashlib.sha256(content).hexdigest(), hashlib.sha1(content).hexdigest()
    )
    assert stream.count == size


def archive(path: Path, entries: dict[str, bytes]) -> Path:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as zipped:
            for name, content in entries.items():
                zipped.writestr(name, content)
        return path
    with tarfile.open(path, "w" if path.suffix == ".tar" else "w:gz") as tar:
        for name, content in entries.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        folder = tarfile.TarInfo("folder")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
    return path


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz", "a.tgz", "A.TGZ"])
def test_entries_of_an_archive_are_listed(tmp_path: Path, name: str) -> None:
    path = archive(tmp_path / name, {"./x/y.txt": b"1", "z.txt": b""})
    found = sources.entries_of(str(path))
    assert found == {
        "x/y.txt": digests_of(io.BytesIO(b"1")),
        "z.txt": digests_of(io.BytesIO(b"")),
    }


@pytest.mark.parametrize(("written", "read"), [("größe".encode(), "größe"), (b"\x81.txt", "ü.txt")])
def test_legacy_zip_names_are_decoded(tmp_path: Path, written: bytes, read: str) -> None:
    stand_in = "x" * len(written)
    path = archive(tmp_path / "a.zip", {stand_in: b"1"})
    path.write_bytes(path.read_bytes().replace(stand_in.encode(), written))
    assert list(sources.entries_of(str(path))) == [read]


@pytest.mark.parametrize("entry", ["../x", "/x", "a/../../x"])
@pytest.mark.parametrize("name", ["a.zip", "a.tar"])
def test_archive_entries_outside_of_the_folder_are_rejected(
    tmp_path: Path, name: str, entry: str
) -> None:
    with pytest.raises(ToolchainError, match="outside"):
        sources.entries_of(str(archive(tmp_path / name, {entry: b"1"})))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.zip", b"no archive"),
        ("a.tar", b"no archive"),
        ("a.tgz", b"\x1f\x8b no archive"),
        ("a.rar", b"x"),
    ],
)
def test_invalid_archive_is_rejected(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ToolchainError) as caught:
        sources.entries_of(str(tmp_path / name))
    assert caught.value.kind == "invalid"


def test_empty_archive_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="contains no files"):
        sources.entries_of(str(archive(tmp_path / "a.tar", {})))


# --- reads for digests


class _InParts(io.BytesIO):
    """A file that returns at most three bytes at a time, as files of the system do."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(3, 3 if size is None or size < 0 else size))


@dataclasses.dataclass(frozen=True)
class _Parts:
    content: bytes

    def open(self) -> IO[bytes]:
        return _InParts(self.content)


def _read(*contents: sources.Content) -> list[sources.WantedFile]:
    given = [sources.FileSource(f"{n}.bin", content) for n, content in enumerate(contents)]
    return sources.read_all(given, 2)


@pytest.mark.parametrize("size", [0, 1, 7, 65_536, 65_537, 100_000])
def test_file_is_read_completely(size: int) -> None:
    content = os.urandom(size)
    (found,) = _read(_Parts(content))
    assert found.digests == digests_of(io.BytesIO(content))
    with found.content.open() as stream:
        assert b"".join(iter(lambda: stream.read(10**6), b"")) == content


def test_small_file_is_sent_with_the_content_of_its_digests(tmp_path: Path) -> None:
    file = tmp_path / "a.bin"
    file.write_bytes(b"as it was")
    (found,) = _read(sources.LocalFile(str(file)))
    file.write_bytes(b"as it is!")
    with found.content.open() as stream:
        assert stream.read() == b"as it was"


def test_small_files_are_held_up_to_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "_MAX_HELD", 25)
    files = [tmp_path / name for name in "abcd"]
    for file, size in zip(files, (10, 10, 10, 5), strict=True):
        file.write_bytes(os.urandom(size))
    found = _read(*(sources.LocalFile(str(file)) for file in files))
    assert [isinstance(one.content, sources.HeldContent) for one in found] == [1, 1, 0, 1]


def test_large_and_small_files_keep_their_order(tmp_path: Path) -> None:
    sizes = [100_000, 1, 70_000, 2, 3, 90_000]
    contents = [sources.HeldContent(os.urandom(size)) for size in sizes]
    assert [one.digests.size for one in _read(*contents)] == sizes
