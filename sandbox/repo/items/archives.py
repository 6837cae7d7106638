# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the files in an archive that the server expands on deployment."""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from typing import IO, TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")
_SAYS_UTF8 = 0x800


class BrokenArchive(Exception):
    """The archive cannot be read, or contains a path outside the target folder."""


def entries(path: Path, *, tar: bool = True) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the relative path and the content of each file in a ZIP or tar archive.

    The caller must read the content before the next iteration. BrokenArchive may be raised after
    some files.

    :param tar: whether to accept tar files without gzip compression
    """
    try:
        if zipfile.is_zipfile(path):
            yield from _zip_entries(path)
        else:
            yield from _tar_entries(path, "r:*" if tar else "r:gz")
    except (zipfile.BadZipFile, zlib.error, tarfile.TarError, EOFError, OSError) as error:
        raise BrokenArchive(str(error)) from error


def _zip_entries(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if not member.is_dir():
                with archive.open(member) as content:
                    yield _safe(_name_in_zip(member)), content


def _name_in_zip(member: zipfile.ZipInfo) -> str:
    """Return the name of a file in a ZIP archive as the server decodes it.

    Server fact [repo-21] (inferred): a name that is valid UTF-8 is decoded as UTF-8, even without
    the UTF-8 flag. Python then decodes it as code page 437.
    """
    if member.flag_bits & _SAYS_UTF8:
        return member.filename
    try:
        return member.filename.encode("cp437").decode()
    except UnicodeError:
        return member.filename


def _tar_entries(path: Path, mode: Literal["r:*", "r:gz"]) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(path, mode) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None:
                yield _safe(member.name), content


def _safe(name: str) -> str:
    segments = [segment for segment in name.split("/") if segment not in ("", ".")]
    if ".." in segments or name.startswith("/") or not segments:
        raise BrokenArchive(f"unsafe entry name '{name}'")
    return "/".join(segments)
