# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the files to deploy (files, folders, globs, strings) and their paths in the repository."""

from __future__ import annotations

import glob
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from stat import S_IFREG, S_ISDIR, S_ISREG
from typing import IO, Any, Protocol

from ...core.concurrency import spread
from ...core.errors import invalid
from ...core.paths.globs import Patterns, has_wildcards, matcher
from ..client import INSIDE_ARCHIVE, is_inside_archive, join, segments
from ..digests import Digests, digests_of, digests_of_bytes
from ..properties import Properties

#: Maximum bytes of a file that is read at once, and of all such files in memory until they are
#: sent.
_SMALL, _MAX_HELD = 64 * 1024, 16 * 1024 * 1024


class Content(Protocol):
    """Content that can be read repeatedly."""

    def open(self) -> IO[bytes]:
        """Open the content at its start."""


@dataclass(frozen=True, slots=True)
class LocalFile:
    path: str

    def open(self) -> IO[bytes]:
        return open(self.path, "rb", buffering=0)  # only read in large blocks


@dataclass(frozen=True, slots=True)
class HeldContent:
    """Content in memory: a string, or a small file as it was when its digests were computed."""

    data: bytes

    def open(self) -> IO[bytes]:
        return io.BytesIO(self.data)


@dataclass(frozen=True, slots=True)
class WantedFile:
    """A file for the repository: path, digests and properties."""

    path: str
    content: Content
    digests: Digests
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FileSource:
    """A file to deploy that has not been read yet."""

    path: str
    content: Content
    properties: Properties = field(default_factory=dict)


def text_source(content: Any, path: str) -> FileSource:
    """Return the file of `content`. A dictionary or a list becomes JSON."""
    if path == "" or path.endswith("/"):
        raise invalid("content requires a path that ends with a file name")
    text = content if isinstance(content, str) else json.dumps(content)
    return FileSource(join(*segments(path)), HeldContent(text.encode()))


def refuse_same_target(sources: Iterable[FileSource]) -> None:
    """Raise `invalid` for two files with the same target path, or for a path that no request can
    address [repo-26].
    """
    seen: dict[str, FileSource] = {}
    for source in sources:
        if is_inside_archive(source.path):
            raise invalid(f"{_name(source)} would be deployed to '{source.path}', {INSIDE_ARCHIVE}")
        if source.path in seen:
            one, two = _name(seen[source.path]), _name(source)
            raise invalid(f"{one} and {two} would both be deployed to '{source.path}'")
        seen[source.path] = source


def _name(source: FileSource) -> str:
    return source.content.path if isinstance(source.content, LocalFile) else "content"


@dataclass(frozen=True)
class Selection:
    """Selects the files below a source, and whether they keep their folders."""

    exclude: Patterns = field(default_factory=lambda: Patterns("exclude", ()))
    flat: bool = False


def files_of(src: str, path: str, selection: Selection | None = None) -> Iterator[FileSource]:
    """Yield the files of a `src`: a file, a folder (`dir/`: its content) or a glob.

    Files below the source, or below the fixed part of a glob, keep their folders.
    """
    selection = selection or Selection()
    folder = join(*segments(path))
    if os.path.lexists(src) and not S_ISDIR(_mode(src)):
        name = os.path.basename(src)
        into = path == "" or path.endswith("/")
        found = [(name, src)]
        targets = {name: join(folder, name) if into else folder}
    else:
        found = _below(src) if os.path.lexists(src) else _matches(src)
        is_kept = os.path.isdir(src) and not src.endswith("/") and not selection.flat
        above = join(folder, os.path.basename(os.path.abspath(src))) if is_kept else folder
        targets = {
            below: join(above, os.path.basename(below) if selection.flat else below)
            for below, _path in found
        }
    meant = [(below, real) for below, real in found if not selection.exclude.fits(below)]
    if not meant:
        raise invalid(f"src: exclude matches all files of '{src}'")
    for below, real in meant:
        yield _file(real, targets[below])


def _matches(pattern: str) -> list[tuple[str, str]]:
    """Return the files that a glob matches, and those in matching folders, by their path below its
    fixed part.
    """
    single = re.sub("/{2,}", "/", pattern)  # as the matches of Python's `glob` have them
    fixed, is_meant = _fixed_part(single), matcher(single)
    found: dict[str, str] = {}
    for match in sorted(glob.glob(_widened(single), recursive=True)):
        if not is_meant(match):
            continue
        above = os.path.relpath(match, fixed or ".")
        if not S_ISDIR(_mode(match)):
            found[above] = match
        elif "**" not in pattern:
            # with `**` the files of a folder match themselves
            found.update({join(above, below): path for below, path in _below(match)})
    if not found:
        looked = "" if os.path.isabs(pattern) else f", searched in '{os.getcwd()}'"
        raise invalid(f"src: '{pattern}' is not a file or folder, and matches none{looked}")
    return list(found.items())


def _widened(pattern: str) -> str:
    """Return the pattern for Python's `glob`, which finds more: there, `**` is a whole segment, and
    brackets are wildcards.
    """
    segments = pattern.replace("[", "[[]").split("/")
    return "/".join(
        "**/*" if "**" in segment and segment != "**" else segment for segment in segments
    )


def _fixed_part(pattern: str) -> str:
    """Return the folder above the first segment with a wildcard."""
    folder = pattern
    while has_wildcards(folder):
        folder = os.path.dirname(folder)
    return folder


def _mode(path: str) -> int:
    """Return the mode of a file or folder. Raises `invalid` for a pipe, device or socket, which
    cannot be read twice.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise invalid(f"src: cannot read '{path}': {error.strerror}") from None
    if not S_ISREG(mode) and not S_ISDIR(mode):
        raise invalid(f"src: '{path}' is neither a file nor a folder")
    return mode


def _file(src: str, path: str) -> FileSource:
    try:
        path.encode()
    except UnicodeEncodeError:
        raise invalid(f"src: the name of {src!r} is not UTF-8") from None
    return FileSource(path, LocalFile(src))


def _below(folder: str) -> list[tuple[str, str]]:
    """Return the files below a folder by their relative path."""
    found = sorted(_files_below(folder, "", (os.path.realpath(folder),)))
    if not found:
        raise invalid(f"src: the folder '{folder}' contains no files")
    return found


def _files_below(folder: str, path: str, above: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield files below a folder. Links are followed, except to a parent folder."""
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
    """Read every source once for its digests. Raises `invalid` for an unreadable file.

    Small files are read sequentially: threads would only wait for the interpreter lock, and if
    there are more threads than processors, for other threads.
    """
    reading = _Reading()
    small = [reading.small(source) for source in sources]
    others = [source for source, found in zip(sources, small, strict=True) if found is None]
    readers = min(parallel, os.cpu_count() or 1)
    rest = iter(spread(readers, reading.any_size, others))
    return [found or next(rest) for found in small]


class _Reading:
    """Reads sources for their digests, and keeps small files in memory up to a limit: reading them
    again takes as long as sending them.
    """

    def __init__(self) -> None:
        self._room = _MAX_HELD

    def small(self, source: FileSource) -> WantedFile | None:
        """Read a small file; `None` if it is not small."""
        with _opened(source) as stream:
            data = stream.read(_SMALL + 1)
            while data and len(data) <= _SMALL and (more := stream.read(_SMALL + 1 - len(data))):
                data += more
        if len(data) > _SMALL:
            return None
        content = source.content
        if len(data) <= self._room:
            self._room -= len(data)
            content = HeldContent(data)
        return WantedFile(source.path, content, digests_of_bytes(data), source.properties)

    def any_size(self, source: FileSource) -> WantedFile:
        with _opened(source) as stream:
            digests = digests_of(stream)
        return WantedFile(source.path, source.content, digests, source.properties)


@contextmanager
def _opened(source: FileSource) -> Iterator[IO[bytes]]:
    try:
        with source.content.open() as stream:
            yield stream
    except OSError as error:
        raise invalid(f"src: cannot read '{_name(source)}': {error.strerror}") from None
