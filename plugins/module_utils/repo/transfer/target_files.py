# SPDX-License-Identifier: GPL-3.0-or-later
"""Local destinations of downloaded files, which are always inside the destination folder [C8.1]."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from ...core.destination import safe_paths
from ...core.errors import ToolchainError, invalid
from ...core.files import make_folders, require_replaceable
from ..digests import Digests, digests_of
from .remote_files import RemoteFile


@dataclass(frozen=True)
class TargetFile:
    """A file to download and its local path, which must be inside the folder `root`."""

    remote: RemoteFile
    root: str
    path: str


def refuse_clashes(files: Sequence[TargetFile]) -> list[TargetFile]:
    """Return the files without duplicates.

    Raises `invalid` if two different files have the same destination, or if the destination of a
    file is also a folder of another file.
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
    """Return the state of an existing regular file at the destination.

    Returns `None` if nothing exists there, or a symbolic link, which the download replaces. Raises
    `invalid` if the destination cannot be replaced, for example because it is a folder.
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
    """Return size and digests of a local file. Raises `invalid` if it cannot be read."""
    try:
        with open(path, "rb", buffering=0) as stream:
            return digests_of(stream)
    except OSError as error:
        raise invalid(f"dest: cannot read '{path}': {error.strerror}") from None


class TargetFolders:
    """The folders of the destinations: checked before the download, and created when needed."""

    def __init__(self) -> None:
        self._checked: set[tuple[str, str]] = set()
        self._created: list[str] = []
        self._existing: set[str] = set()
        self._lock = threading.Lock()

    def check(self, file: TargetFile) -> None:
        """Raise `invalid` if a parent of the destination is a file or a link out of the root."""
        folder = os.path.dirname(file.path) or "."
        if (file.root, folder) in self._checked:
            return
        root, real = os.path.realpath(file.root), os.path.realpath(folder)
        if os.path.commonpath([root, real]) != root:
            raise invalid(
                f"dest: cannot write '{file.path}': '{folder}' is a symbolic link out of"
                f" '{file.root}'"
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
        if folder in self._existing:
            return
        with self._lock:
            if folder not in self._existing:
                self._created += make_folders(folder)
                self._checked.discard((file.root, folder))
                self.check(file)
                self._existing.add(folder)

    def remove_empty(self) -> None:
        """Remove the folders that this task created, if they are empty."""
        for folder in sorted(self._created, key=len, reverse=True):
            with suppress(OSError):
                os.rmdir(folder)


def targets_of(
    found: Sequence[RemoteFile], dest: str, *, flat: bool, is_file: bool
) -> list[TargetFile]:
    """Return files with their destinations, which are always inside `dest`.

    :param flat: whether files lose their folders
    :param is_file: whether `dest` may be the destination of a single file: it is, unless it is an
        existing folder or ends with a slash
    """
    if is_file and not dest.endswith("/") and not os.path.isdir(dest):
        return [TargetFile(file, os.path.dirname(dest) or ".", dest) for file in found]
    paths = safe_paths(dest, (file.below for file in found), flat=flat)
    return [TargetFile(file, dest, paths[file.below]) for file in found]


def mode_of(text: str | None) -> int | None:
    """Parse the option `mode`. Raises `invalid` unless it is `0` and three octal digits."""
    if text is None:
        return None
    if len(text) != 4 or not text.startswith("0") or not set(text) <= set("01234567"):
        raise invalid(
            f"mode is '{text}': write the permissions as four octal digits in quotes, such as"
            " '0644'; YAML reads an unquoted 0644 as 420"
        )
    return int(text, 8)


def change_mode(path: str, mode: int) -> None:
    """Set the permissions of a local file. Raises `failed`."""
    try:
        os.chmod(path, mode)
    except OSError as error:
        raise ToolchainError("failed", f"changing the mode of {path}: {error.strerror}") from None
