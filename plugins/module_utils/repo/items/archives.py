# SPDX-License-Identifier: GPL-3.0-or-later
"""List the files of an archive that the server will expand."""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO

from ...core.errors import invalid
from ..digests import Digests, digests_of

#: Server fact [repo-0]: archives that the server expands, by the end of their name.
SUFFIXES = (".zip", ".tar.gz", ".tgz", ".tar")
_SAYS_UTF8 = 0x800


def entries_of(path: str) -> dict[str, Digests]:
    """Return the files of an archive by relative path with their digests; every file is streamed
    once.

    Raises `invalid` for a file that is not an archive, cannot be read, is empty, or has a path
    outside of the target folder.
    """
    if not path.lower().endswith(SUFFIXES):
        raise invalid(
            f"src: '{path}' is not an archive that can be expanded: {', '.join(SUFFIXES)}"
        )
    files = _of_zip if path.lower().endswith(".zip") else _of_tar
    try:
        found = {_relative(path, name): digests_of(stream) for name, stream in files(path)}
    except (OSError, EOFError, RuntimeError, zlib.error) as error:
        raise invalid(f"src: cannot read the archive '{path}': {error}") from None
    except (zipfile.BadZipFile, tarfile.TarError) as error:
        raise invalid(
            f"src: '{path}' is not an archive of the type that its name suggests: {error}"
        ) from None
    if not found:
        raise invalid(f"src: the archive '{path}' contains no files")
    return found


def _of_zip(path: str) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if not member.is_dir():
                with archive.open(member) as stream:
                    yield _name_in_zip(member), stream


def _name_in_zip(member: zipfile.ZipInfo) -> str:
    """Return the name as servers read it. Some tools write UTF-8 without the flag, which Python
    decodes as code page 437.
    """
    if member.flag_bits & _SAYS_UTF8:
        return member.filename
    try:
        return member.filename.encode("cp437").decode()
    except UnicodeError:
        return member.filename


def _of_tar(path: str) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(path) as archive:
        for member in archive:
            stream = archive.extractfile(member) if member.isfile() else None
            if stream is not None:
                with stream:
                    yield member.name, stream


def _relative(archive: str, name: str) -> str:
    segments = [segment for segment in name.split("/") if segment not in ("", ".")]
    if name.startswith("/") or ".." in segments or not segments:
        raise invalid(f"src: the archive '{archive}' has an entry outside of its folder: '{name}'")
    return "/".join(segments)
