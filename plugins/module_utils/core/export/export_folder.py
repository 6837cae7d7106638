# SPDX-License-Identifier: GPL-3.0-or-later
"""Write an export to a folder; replace and remove only the files of earlier exports.

A hidden file lists the exported files of a service with their digests. A file that a person created
or changed is replaced only with the option `overwrite`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from ..destination import safe_paths
from ..errors import ToolchainError, invalid, shorten
from ..files import atomic_write, make_folders
from .file_content import FileContent

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
    """

    files: list[FileChange]
    known: Mapping[str, set[str]]
    desired: Mapping[str, set[str]]

    @property
    def changed(self) -> bool:
        """Return whether `write` would change a file or the list of exported files."""
        return self.desired != self.known or any(
            change.action != "unchanged" for change in self.files
        )


class ExportFolder:
    """The folder with the exported files of a service.

    :param overwrite: also replace files that were not exported or have changed since
    """

    def __init__(
        self, folder: str, service: str, *, overwrite: bool, warn: Callable[[str], None]
    ) -> None:
        if os.path.lexists(folder) and not os.path.isdir(folder):
            raise invalid(f"dest must be a folder, but is '{folder}'")
        self._folder, self._overwrite, self._warn = folder, overwrite, warn
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
        known = self._read_list()
        paths = [*desired, *(path for path in known if path not in desired)]
        at = safe_paths(self._folder, [self._list, *paths])
        changes = [FileChange(path, FileContent.at(at[path]), desired.get(path)) for path in paths]
        foreign = [
            change.path
            for change in changes
            if change.before is not None
            and change.action != "unchanged"
            and change.before.digest not in known.get(change.path, ())
        ]
        self._reject_foreign([path for path in foreign if path in desired])
        for path in foreign:
            if path not in desired:
                self._warn(f"{path} was kept: it has changed since its export")
        changes = [
            change
            for change in changes
            if change.path in desired or (change.before and change.path not in foreign)
        ]
        digests = {path: {content.digest} for path, content in desired.items()}
        return FolderChanges(changes, known, digests)

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

    def _reject_foreign(self, foreign: list[str]) -> None:
        if not foreign or self._overwrite:
            return
        more = f" and {len(foreign) - _MAX_NAMED} more" if len(foreign) > _MAX_NAMED else ""
        names = shorten(", ".join(foreign[:_MAX_NAMED]))
        raise ToolchainError(
            "conflict",
            f"{os.path.abspath(self._folder)} has files that the export did not write, or that"
            f" have changed since: {names}{more}. Set overwrite to true to replace them",
        )

    def _read_list(self) -> dict[str, set[str]]:
        """Return the digests of earlier exports by path, or {} if the list cannot be parsed."""
        content = FileContent.at(os.path.join(self._folder, self._list), whole=True)
        try:
            files = json.loads((content and content.text) or b"{}")["files"]
            return {str(path): {str(digest) for digest in files[path]} for path in files}
        except (ValueError, KeyError, TypeError):
            return {}

    def _write_list(self, path: str, files: Mapping[str, set[str]]) -> None:
        ordered = {name: sorted(files[name]) for name in sorted(files)}
        with atomic_write(path) as file:
            file.write(f"{json.dumps({'format': _FORMAT, 'files': ordered}, indent=1)}\n".encode())


def _remove(path: str, home: str) -> None:
    """Remove a file and its parent folders that become empty, except `home`."""
    os.unlink(path)
    folder, top = os.path.dirname(path), os.path.abspath(home)
    with suppress(OSError):  # a folder with other files is kept
        while os.path.abspath(folder) != top:
            os.rmdir(folder)
            folder = os.path.dirname(folder)
