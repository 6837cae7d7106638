# SPDX-License-Identifier: GPL-3.0-or-later
"""Write an export to a folder; replace and remove only the files of earlier exports.

A hidden file lists the exported files of a service with their digests. A file that a person created
or changed is replaced only with the option `overwrite`.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import threading
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

from ..errors import ToolchainError, conflict, invalid, shorten
from ..files import atomic_write, make_folders, safe_paths

_BLOCK = 1024 * 1024
#: Suffixes of the files that are held in memory and shown in a diff.
_TEXTS = (".yml", ".xml", ".md")


@dataclass(frozen=True)
class FileContent:
    """The content of a file.

    :param digest: SHA-256 in hexadecimal digits
    :param blocks: returns an iterator over all bytes
    :param text: the content if it is in memory, else `None`
    """

    digest: str
    size: int
    blocks: Callable[[], Iterator[bytes]]
    text: bytes | None = None

    @classmethod
    def of(cls, text: bytes) -> FileContent:
        return cls(hashlib.sha256(text).hexdigest(), len(text), lambda: iter([text]), text)

    @classmethod
    def at(cls, path: str, *, whole: bool = False) -> FileContent | None:
        """Return the content of the file at `path`, or `None` if the file does not exist.

        :param whole: hold the content in memory even if it is not a text
        """
        digest, size = hashlib.sha256(), 0
        try:
            if whole or path.endswith(_TEXTS):
                return cls.of(b"".join(_blocks_at(path)))
            for block in _blocks_at(path):
                digest.update(block)
                size += len(block)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            message = f"cannot read {path}: {error.strerror or error}"
            raise ToolchainError("failed", message) from None
        return cls(digest.hexdigest(), size, lambda: _blocks_at(path))

    @property
    def shown(self) -> str:
        """Return the representation of the content in a diff."""
        if self.text is None:
            return f"{self.size} bytes, sha256 {self.digest}\n"
        return self.text.decode("utf-8", "replace")


class KeptFiles:
    """A store for the content of many files in one anonymous temporary file."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (as long as the task lives)
        self._lock = threading.Lock()
        self._end = 0

    def keep(self, source: IO[bytes]) -> FileContent:
        """Store the content of an open file. The caller may reuse the file afterwards."""
        digest = hashlib.sha256()
        with self._lock:
            begin = self._end
            try:
                source.seek(0)
                self._file.seek(begin)
                for block in iter(lambda: source.read(_BLOCK), b""):
                    digest.update(block)
                    self._end += self._file.write(block)
                self._file.flush()
            except OSError as error:
                message = f"cannot write a temporary file: {error.strerror or error}"
                raise ToolchainError("failed", message) from None
            size = self._end - begin
        return FileContent(digest.hexdigest(), size, lambda: self._blocks(begin, size))

    def _blocks(self, begin: int, size: int) -> Iterator[bytes]:
        for start in range(begin, begin + size, _BLOCK):
            self._file.seek(start)
            yield self._file.read(min(_BLOCK, begin + size - start))


def _blocks_at(path: str) -> Iterator[bytes]:
    with open(path, "rb") as file:
        yield from iter(lambda: file.read(_BLOCK), b"")


#: Maximum characters of a name: even with four bytes each, they fit the usual limit of 255 bytes.
_LONGEST = 50
#: In folders with a path of this length or more, names with a digest consist of the digest only.
_LONGEST_PATH = 1000
_KEPT = "-_"
#: Names with a meaning for other programs, and for modules that read a folder.
_RESERVED = frozenset(
    {"index", "readme", "con", "prn", "aux", "nul"}
    | {f"{port}{number}" for port in ("com", "lpt") for number in range(10)}
)


class FileNames:
    """Create file names that are unique even on a file system that ignores case.

    Spaces become dashes. Other special characters are replaced, and a digest makes the name unique.
    """

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def name(self, folder: str, title: str) -> str:
        """Return a unique path in `folder`, without suffix, for the object with this title."""
        stem = _plain(title)
        changed = stem != title.replace(" ", "-")
        if changed or stem.casefold() in _RESERVED or self._is_taken(folder, stem):
            digest = hashlib.sha256(title.encode("utf-8", "surrogatepass")).hexdigest()[:10]
            stem = f"{stem}-{digest}" if len(folder) < _LONGEST_PATH else digest
        number, name = 1, stem
        while self._is_taken(folder, name):
            number, name = number + 1, f"{stem}-{number + 1}"
        self._taken.add(_joined(folder, name).casefold())
        return _joined(folder, name)

    def _is_taken(self, folder: str, name: str) -> bool:
        return _joined(folder, name).casefold() in self._taken


def _plain(title: str) -> str:
    """Return a name without separators, dots and invisible characters."""
    normal = unicodedata.normalize("NFC", title)
    text = "".join(char if char.isalnum() or char in _KEPT else "-" for char in normal)
    return text[:_LONGEST].strip("-") or "unnamed"


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


_FORMAT = 1
_MAX_NAMED = 10


@dataclass(frozen=True)
class FileChange:
    """The content of a file before and after the export.

    :param path: path relative to the folder
    :param before: `None` if the file does not exist
    :param after: `None` if the file will not exist
    """

    path: str
    before: FileContent | None
    after: FileContent | None

    @property
    def action(self) -> str:
        if self.after is None:
            return "unchanged" if self.before is None else "deleted"
        if self.before is None:
            return "created"
        return "unchanged" if self.before.digest == self.after.digest else "updated"


@dataclass(frozen=True)
class FolderChanges:
    """The comparison of a folder with the desired files.

    :param known: digests of earlier exports by path
    :param desired: digests of the desired files by path
    :param is_chosen_alike: the export of `known` had the same choice of objects
    """

    files: list[FileChange]
    known: Mapping[str, set[str]]
    desired: Mapping[str, set[str]]
    is_chosen_alike: bool = True

    @property
    def changed(self) -> bool:
        """Return whether `write` would change a file or the list of exported files."""
        is_listed = self.desired == self.known and self.is_chosen_alike
        return not is_listed or any(change.action != "unchanged" for change in self.files)


class ExportFolder:
    """The folder with the exported files of a service.

    :param overwrite: also replace files that were not exported or have changed since
    :param alike: returns whether two contents of an XML file have the same meaning. The file of an
        earlier export is then kept, because servers rewrite what nobody has changed
    :param chosen: the options that choose objects of the server. The list of exported files has
        them, so that what they leave out is not an object that nobody manages
    """

    def __init__(
        self,
        folder: str,
        service: str,
        *,
        overwrite: bool,
        warn: Callable[[str], None],
        alike: Callable[[str, str], bool] = str.__eq__,
        chosen: Mapping[str, Any] | None = None,
    ) -> None:
        if os.path.lexists(folder) and not os.path.isdir(folder):
            raise invalid(f"dest must be a folder, but is '{folder}'")
        self._folder, self._overwrite, self._warn = folder, overwrite, warn
        self._alike, self._chosen = alike, dict(chosen or {})
        self._list = f".export-{service}.json"

    def compare(self, files: Mapping[str, str | FileContent]) -> FolderChanges:
        """Compare the folder with the desired files.

        Raises `conflict` if a change would replace a file that was not exported or has changed
        since, unless `overwrite` is set.

        :param files: content by relative path
        """
        desired = {
            path: value if isinstance(value, FileContent) else FileContent.of(value.encode("utf-8"))
            for path, value in files.items()
        }
        content = FileContent.at(os.path.join(self._folder, self._list), whole=True)
        known: dict[str, set[str]] = {}  # stays empty if the list cannot be parsed
        chosen: Any = {}
        with suppress(ValueError, KeyError, TypeError):
            earlier = json.loads((content and content.text) or b"{}")
            listed, chosen = earlier["files"], earlier.get("chosen") or {}
            known = {str(path): {str(digest) for digest in listed[path]} for path in listed}
        paths = [*desired, *(path for path in known if path not in desired)]
        at = safe_paths(self._folder, [self._list, *paths])
        current = {path: FileContent.at(at[path]) for path in paths}
        for path, after in desired.items():
            before = current[path]
            if before is not None and before.digest in known.get(path, ()):
                desired[path] = self._kept(path, before, after)
        changes = [FileChange(path, current[path], desired.get(path)) for path in paths]
        foreign = [
            change.path
            for change in changes
            if change.before is not None
            and change.action != "unchanged"
            and change.before.digest not in known.get(change.path, ())
        ]
        lost = [path for path in foreign if path in desired]
        if lost and not self._overwrite:
            more = f" and {len(lost) - _MAX_NAMED} more" if len(lost) > _MAX_NAMED else ""
            names = shorten(", ".join(lost[:_MAX_NAMED]))
            raise conflict(
                f"{os.path.abspath(self._folder)} has files that the export did not write, or that"
                f" have changed since: {names}{more}. Set overwrite to true to replace them"
            )
        for path in foreign:
            if path not in desired:
                self._warn(f"{path} was kept: it has changed since its export")
        changes = [
            change
            for change in changes
            if change.path in desired or (change.before and change.path not in foreign)
        ]
        digests = {path: {content.digest} for path, content in desired.items()}
        return FolderChanges(changes, known, digests, chosen == self._chosen)

    def _kept(self, path: str, before: FileContent, after: FileContent) -> FileContent:
        """Return the content of an earlier export if it has the same meaning, else the new one."""
        if before.digest == after.digest or not path.endswith(".xml"):
            return after
        texts = [content.text and content.text.decode("utf-8") for content in (before, after)]
        return before if texts[0] and texts[1] and self._alike(texts[0], texts[1]) else after

    def write(self, changes: FolderChanges) -> None:
        """Write the changes. An interrupted export can be repeated."""
        at = safe_paths(self._folder, [self._list, *(change.path for change in changes.files)])
        known, desired = changes.known, changes.desired
        make_folders(self._folder)
        # first with old and new digests: whichever of them a file has after an interruption, the
        # next export recognises the file
        both = {path: {*desired.get(path, ()), *known.get(path, ())} for path in at}
        self._write_list(at[self._list], {path: both[path] for path in both if both[path]})
        for change in changes.files:
            if change.action == "deleted":
                _remove(at[change.path], self._folder)
            elif change.after is not None and change.action != "unchanged":
                make_folders(os.path.dirname(at[change.path]))
                with atomic_write(at[change.path]) as file:
                    for block in change.after.blocks():
                        file.write(block)
        self._write_list(at[self._list], desired)

    def _write_list(self, path: str, files: Mapping[str, set[str]]) -> None:
        ordered = {name: sorted(files[name]) for name in sorted(files)}
        content: dict[str, Any] = {"format": _FORMAT, "files": ordered}
        content |= {"chosen": self._chosen} if self._chosen else {}
        with atomic_write(path) as file:
            file.write(f"{json.dumps(content, indent=1)}\n".encode())


def _remove(path: str, home: str) -> None:
    """Remove a file and its parent folders that become empty, except `home`."""
    os.unlink(path)
    folder, top = os.path.dirname(path), os.path.abspath(home)
    with suppress(OSError):  # a folder with other files is kept
        while os.path.abspath(folder) != top:
            os.rmdir(folder)
            folder = os.path.dirname(folder)
