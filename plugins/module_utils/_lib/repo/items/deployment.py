# SPDX-License-Identifier: GPL-3.0-or-later
"""List the files in a local archive that the server will expand."""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO

from ...core.errors import invalid
from .listing import Digests, digests_of

#: Suffixes of the archives that the server can expand [repo-0].
SUFFIXES = (".zip", ".tar.gz", ".tgz", ".tar")
_SAYS_UTF8 = 0x800


def entries_of(path: str) -> dict[str, Digests]:
    """Return the digests of the files in an archive, by relative path.

    Raises `invalid` if the archive cannot be read or expanded, is empty, or contains a path outside
    of the target folder.
    """
    if not path.lower().endswith(SUFFIXES):
        raise invalid(
            f"src: '{path}' cannot be expanded: use an archive with the suffix"
            f" {', '.join(SUFFIXES)}"
        )
    files = _of_zip if path.lower().endswith(".zip") else _of_tar
    try:
        found = {_relative(path, name): digests_of(stream) for name, stream in files(path)}
    except (OSError, EOFError, RuntimeError, zlib.error) as error:
        raise invalid(f"src: cannot read the archive '{path}': {error}") from None
    except (zipfile.BadZipFile, tarfile.TarError) as error:
        raise invalid(f"src: '{path}' is damaged or has the wrong suffix: {error}") from None
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
    """Return the name of a file in a ZIP archive as the server decodes it.

    Some tools write UTF-8 without setting the UTF-8 flag. Python decodes such a name as code page
    437.
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
        raise invalid(f"src: the archive '{archive}' contains a path outside of it: '{name}'")
    return "/".join(segments)
