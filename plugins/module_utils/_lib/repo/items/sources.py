# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the files to deploy and their paths in the repository.

They come from files, folders, globs, strings and archives.
"""

from __future__ import annotations

import glob
import io
import json
import os
import re
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from stat import S_IFREG, S_ISDIR, S_ISREG
from typing import IO, Any, Protocol

from ...core.concurrency import spread
from ...core.errors import invalid
from ...core.files import first_nested
from ...core.globs import Patterns, has_wildcards, matcher
from ..client import INSIDE_ARCHIVE, is_inside_archive, join, segments
from ..properties import Properties
from .listing import Digests, digests_of, digests_of_bytes

#: Suffixes of the archives that the server can expand [repo-0].
SUFFIXES = (".zip", ".tar.gz", ".tgz", ".tar")
_SAYS_UTF8 = 0x800
#: Maximum size in bytes of a file that is kept in memory.
_SMALL = 64 * 1024
#: Maximum total size in bytes of the files that are kept in memory until they are sent.
_MAX_HELD = 16 * 1024 * 1024


class Content(Protocol):
    """Content that can be opened repeatedly."""

    def open(self) -> IO[bytes]:
        """Return a new stream of the whole content."""


@dataclass(frozen=True, slots=True)
class LocalFile:
    path: str

    def open(self) -> IO[bytes]:
        return open(self.path, "rb", buffering=0)  # readers use large blocks


@dataclass(frozen=True, slots=True)
class HeldContent:
    """Content in memory: a string, or a small file as read when its digests were computed."""

    data: bytes

    def open(self) -> IO[bytes]:
        return io.BytesIO(self.data)


@dataclass(frozen=True, slots=True)
class WantedFile:
    """A file to deploy: its path in the repository, content, digests and properties."""

    path: str
    content: Content
    digests: Digests
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FileSource:
    """A file to deploy whose content has not been read yet.

    :param is_named: whether the options name the file itself, not a folder or glob
    """

    path: str
    content: Content
    properties: Properties = field(default_factory=dict)
    is_named: bool = False


def text_source(content: Any, path: str) -> FileSource:
    """Return the file of the option `content`; values that are not strings become JSON."""
    if path == "" or path.endswith("/"):
        raise invalid("content requires a path that ends with a file name")
    text = content if isinstance(content, str) else json.dumps(content)
    return FileSource(join(*segments(path)), HeldContent(text.encode()), is_named=True)


def refuse_same_target(sources: Iterable[FileSource]) -> None:
    """Raise `invalid` if two files have the same path in the repository, or one is below the other.

    Also raise `invalid` for a path with `!/`, which addresses a file in an archive [repo-26].
    """
    seen: dict[str, FileSource] = {}
    for source in sources:
        if is_inside_archive(source.path):
            raise invalid(f"{_name(source)} would be deployed to '{source.path}', {INSIDE_ARCHIVE}")
        if source.path in seen:
            first, second = _name(seen[source.path]), _name(source)
            raise invalid(f"{first} and {second} would both be deployed to '{source.path}'")
        seen[source.path] = source
    nested = first_nested(seen)
    if nested is not None:
        folder, path = nested
        raise invalid(
            f"{_name(seen[path])} would be deployed to '{path}', but {_name(seen[folder])} to"
            f" '{folder}', which would be its folder: change one of the paths"
        )


def _name(source: FileSource) -> str:
    return source.content.path if isinstance(source.content, LocalFile) else "content"


@dataclass(frozen=True)
class Selection:
    """Selection of the files below a source.

    :param flat: whether files lose their folders
    """

    exclude: Patterns = field(default_factory=lambda: Patterns("exclude", ()))
    flat: bool = False


def files_of(src: str, path: str, selection: Selection | None = None) -> Iterator[FileSource]:
    """Yield the files of the option `src`: a file, a folder or a glob.

    Files keep their path below the folder, or below the part of a glob without wildcards. The name
    of the folder itself is kept unless `src` ends with a slash.
    """
    selection = selection or Selection()
    folder = join(*segments(path))
    if not os.path.lexists(src):
        # some file systems decompose names: `ü` may be two characters (NFD)
        forms = (unicodedata.normalize(form, src) for form in ("NFC", "NFD"))
        src = next((form for form in forms if os.path.lexists(form)), src)
    is_named = os.path.lexists(src) and not S_ISDIR(_mode(src))
    if is_named:
        name = os.path.basename(src)
        is_folder = path == "" or path.endswith("/")
        found = [(name, src)]
        targets = {name: join(folder, name) if is_folder else folder}
    else:
        found = _below(src) if os.path.lexists(src) else _matches(src)
        is_kept = os.path.isdir(src) and not src.endswith("/") and not selection.flat
        above = join(folder, os.path.basename(os.path.abspath(src))) if is_kept else folder
        targets = {
            below: join(above, os.path.basename(below) if selection.flat else below)
            for below, _path in found
        }
    selected = [(below, real) for below, real in found if not selection.exclude.fits(below)]
    if not selected:
        raise invalid(f"src: exclude matches all files of '{src}'")
    for below, real in selected:
        try:
            targets[below].encode()
        except UnicodeEncodeError:
            raise invalid(f"src: the name of {real!r} is not UTF-8") from None
        yield FileSource(targets[below], LocalFile(real), is_named=is_named)


def _matches(pattern: str) -> list[tuple[str, str]]:
    """Return the files that a glob matches, and all files in folders that it matches.

    :returns: pairs of the path below the part without wildcards, and the local path
    """
    single = re.sub("/{2,}", "/", pattern)  # matches of Python's `glob` have single slashes
    fixed = single  # the folder above the first segment with a wildcard
    while has_wildcards(fixed):
        fixed = os.path.dirname(fixed)
    # for Python, `**` must be a whole segment, and brackets are wildcards: match at least the same
    parts = single.replace("[", "[[]").split("/")
    widened = "/".join("**/*" if "**" in part and part != "**" else part for part in parts)
    is_match = matcher(single)
    found: dict[str, str] = {}
    for match in sorted(glob.glob(widened, recursive=True)):
        if not is_match(match):
            continue
        above = os.path.relpath(match, fixed or ".")
        if not S_ISDIR(_mode(match)):
            found[above] = match
        elif "**" not in pattern:
            # a pattern with `**` also matches the files of a folder
            found.update({join(above, below): path for below, path in _below(match)})
    if not found:
        where = "" if os.path.isabs(pattern) else f" (searched in '{os.getcwd()}')"
        raise invalid(f"src: '{pattern}' is not a file or folder, and matches none{where}")
    return list(found.items())


def _mode(path: str) -> int:
    """Return the `st_mode` of a file or folder.

    Raises `invalid` for a pipe, device or socket, because it cannot be read twice.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise invalid(f"src: cannot read '{path}': {error.strerror}") from None
    if not S_ISREG(mode) and not S_ISDIR(mode):
        raise invalid(f"src: '{path}' is neither a file nor a folder")
    return mode


def _below(folder: str) -> list[tuple[str, str]]:
    """Return the files below a folder: pairs of the relative path and the local path."""
    found = sorted(_files_below(folder, "", (os.path.realpath(folder),)))
    if not found:
        raise invalid(f"src: the folder '{folder}' contains no files")
    return found


def _files_below(folder: str, path: str, above: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the files below a folder, as pairs of their path and the local path.

    Follows symbolic links. Raises `invalid` for a link to a parent folder.

    :param path: prefix of the yielded paths
    :param above: resolved paths of the parent folders
    """
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise invalid(f"src: cannot read '{folder}': {error.strerror}") from None
    for entry in entries:
        target = join(path, entry.name)
        mode = S_IFREG if entry.is_file(follow_symlinks=False) else _mode(entry.path)
        if not S_ISDIR(mode):
            yield target, entry.path
            continue
        real = os.path.realpath(entry.path)
        if real in above:
            raise invalid(f"src: '{entry.path}' is a link to one of its parent folders")
        yield from _files_below(entry.path, target, (*above, real))


def read_all(sources: Sequence[FileSource], parallel: int) -> list[WantedFile]:
    """Read every source once to compute its digests. Raises `invalid` for an unreadable file.

    Small files are read sequentially, because threads would only wait for the GIL. They stay in
    memory up to a limit, because reading them again takes as long as sending them.
    """
    free_bytes = _MAX_HELD
    found: list[WantedFile | None] = []
    for source in sources:
        with _opened(source) as stream:
            data = stream.read(_SMALL + 1)
            while data and len(data) <= _SMALL and (more := stream.read(_SMALL + 1 - len(data))):
                data += more
        if len(data) > _SMALL:
            found.append(None)
            continue
        content = source.content
        if len(data) <= free_bytes:
            free_bytes -= len(data)
            content = HeldContent(data)
        digests = digests_of_bytes(data)
        found.append(WantedFile(source.path, content, digests, source.properties))

    def read(source: FileSource) -> WantedFile:
        with _opened(source) as stream:
            digests = digests_of(stream)
        return WantedFile(source.path, source.content, digests, source.properties)

    others = [source for source, small in zip(sources, found, strict=True) if small is None]
    large = iter(spread(min(parallel, os.cpu_count() or 1), read, others))
    return [small or next(large) for small in found]


@contextmanager
def _opened(source: FileSource) -> Iterator[IO[bytes]]:
    try:
        with source.content.open() as stream:
            yield stream
    except OSError as error:
        raise invalid(f"src: cannot read '{_name(source)}': {error.strerror}") from None


def entries_of(path: str) -> dict[str, Digests]:
    """Return the digests of the files in an archive that the server will expand, by relative path.

    Raises `invalid` if the archive cannot be read or expanded, is empty, or contains a path outside
    of the target folder.
    """
    if not path.lower().endswith(SUFFIXES):
        raise invalid(
            f"src: '{path}' cannot be expanded: use an archive with the suffix"
            f" {', '.join(SUFFIXES)}"
        )
    found: dict[str, Digests] = {}
    files = _files_in_zip if path.lower().endswith(".zip") else _files_in_tar
    try:
        for name, stream in files(path):
            parts = [part for part in name.split("/") if part not in ("", ".")]
            if name.startswith("/") or ".." in parts or not parts:
                raise invalid(f"src: the archive '{path}' contains a path outside of it: '{name}'")
            found["/".join(parts)] = digests_of(stream)
    except (OSError, EOFError, RuntimeError, zlib.error) as error:
        raise invalid(f"src: cannot read the archive '{path}': {error}") from None
    except (zipfile.BadZipFile, tarfile.TarError) as error:
        raise invalid(f"src: '{path}' is damaged or has the wrong suffix: {error}") from None
    if not found:
        raise invalid(f"src: the archive '{path}' contains no files")
    return found


def _files_in_zip(path: str) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if member.is_dir():
                continue
            name = member.filename
            if not member.flag_bits & _SAYS_UTF8:
                # some tools write UTF-8 without the flag, and Python decodes it as code page 437,
                # but the server as UTF-8
                with suppress(UnicodeError):
                    name = name.encode("cp437").decode()
            with archive.open(member) as stream:
                yield name, stream


def _files_in_tar(path: str) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(path) as archive:
        for member in archive:
            stream = archive.extractfile(member) if member.isfile() else None
            if stream is not None:
                with stream:
                    yield member.name, stream
