# SPDX-License-Identifier: GPL-3.0-or-later
"""Destinations of downloaded files: names from the server never leave the destination folder
[C8.1].
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from ...core.destination import places
from ...core.errors import ToolchainError, invalid
from ...core.files import make_folders, require_replaceable
from ..digests import Digests, digests_of
from .remote_files import RemoteFile


@dataclass(frozen=True)
class TargetFile:
    """A file to download and its destination. It stays inside the folder `root`."""

    remote: RemoteFile
    root: str
    path: str


def refuse_clashes(files: Sequence[TargetFile]) -> list[TargetFile]:
    """Return the files without duplicates. Raises `invalid` for two files with the same
    destination, and for a file that is the folder of another.
    """
    places: dict[str, TargetFile] = {}
    for file in files:
        place = os.path.abspath(file.path)
        other = places.setdefault(place, file)
        if (other.remote.repo, other.remote.path) != (file.remote.repo, file.remote.path):
            raise invalid(
                f"'{other.remote.name}' and '{file.remote.name}' would both be written to"
                f" '{file.path}'"
            )
    folders = {os.path.dirname(place) for place in places}
    for place, file in places.items():
        if place in folders:
            raise invalid(
                f"'{file.remote.name}' would be written to '{file.path}', which is also the folder"
                " of other files"
            )
    return list(places.values())


def present(file: TargetFile) -> os.stat_result | None:
    """Return the state of the regular file at the destination; `None` if there is none, or a link,
    which is replaced. Raises `invalid` if nothing can be written there.
    """
    try:
        found = os.lstat(file.path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise invalid(f"dest: cannot read '{file.path}': {error}") from None
    require_replaceable(file.path, found)
    return found if stat.S_ISREG(found.st_mode) else None


def digests_at(path: str) -> Digests:
    """Return size and digests of an existing file."""
    try:
        with open(path, "rb", buffering=0) as stream:
            return digests_of(stream)
    except OSError as error:
        raise invalid(f"dest: cannot read '{path}': {error.strerror}") from None


class TargetFolders:
    """Folders of the files: checked before the first byte, created when a file is written."""

    def __init__(self) -> None:
        self._checked: set[tuple[str, str]] = set()
        self._made: list[str] = []
        self._there: set[str] = set()
        self._lock = threading.Lock()

    def check(self, file: TargetFile) -> None:
        """Raise `invalid` if a file, or a link that leaves the folder, blocks the destination."""
        folder = os.path.dirname(file.path) or "."
        if (file.root, folder) in self._checked:
            return
        root, real = os.path.realpath(file.root), os.path.realpath(folder)
        if os.path.commonpath([root, real]) != root:
            raise invalid(
                f"dest: '{folder}' is a symbolic link out of '{file.root}': refusing to write"
                f" '{file.path}'"
            )
        nearest = real
        while not os.path.lexists(nearest):
            nearest = os.path.dirname(nearest)
        if not os.path.isdir(nearest):
            raise invalid(f"dest: '{nearest}' is a file, but must be a folder")
        self._checked.add((file.root, folder))

    def make(self, file: TargetFile) -> None:
        """Create the folder of a file, and check again that it is inside the root."""
        folder = os.path.dirname(file.path) or "."
        if folder in self._there:
            return
        with self._lock:
            if folder not in self._there:
                self._made += make_folders(folder)
                self._checked.discard((file.root, folder))
                self.check(file)
                self._there.add(folder)

    def remove_empty(self) -> None:
        """Remove empty folders that were created."""
        for folder in sorted(self._made, key=len, reverse=True):
            with suppress(OSError):
                os.rmdir(folder)


def targets_of(
    found: Sequence[RemoteFile], dest: str, *, flat: bool, is_file: bool
) -> list[TargetFile]:
    """Return the destinations of files below `dest`, which no name leaves. With `is_file`, `dest`
    is the file itself unless it is a folder.
    """
    if is_file and not dest.endswith("/") and not os.path.isdir(dest):
        return [TargetFile(file, os.path.dirname(dest) or ".", dest) for file in found]
    paths = places(dest, (file.below for file in found), flat=flat)
    return [TargetFile(file, dest, paths[file.below]) for file in found]


def mode_of(text: str | None) -> int | None:
    """Return the permissions of `mode`. Raises `invalid` for anything but octal digits after a
    zero.
    """
    if text is None:
        return None
    if len(text) != 4 or not text.startswith("0") or not set(text) <= set("01234567"):
        raise invalid(
            f"mode is '{text}': write the permissions as four octal digits in quotes, such as"
            " '0644'; YAML reads an unquoted 0644 as 420"
        )
    return int(text, 8)


def change_mode(path: str, mode: int) -> None:
    """Set the permissions of a file."""
    try:
        os.chmod(path, mode)
    except OSError as error:
        raise ToolchainError("failed", f"changing the mode of {path}: {error.strerror}") from None
