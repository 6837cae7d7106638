# SPDX-License-Identifier: GPL-3.0-or-later
"""Files and folders in the rows of a query, and the decisions of a cleanup about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ...core.times import moment_of
from .. import aql
from .rules import ROOT, CleanupRule


@dataclass
class CleanupItem:
    """A file or folder.

    :param size: size of a file in bytes
    :param created: creation time as returned by the server
    :param moment: time from which the age is computed; `None` if unknown
    :param digest: digest of a file, `sha256:...`; `None` if unknown
    """

    repo: str
    path: str
    folder: bool
    size: int
    created: str | None
    moment: datetime | None
    modified: datetime | None
    digest: str | None = None
    properties: dict[str, list[str]] = field(default_factory=dict)
    #: All files in a folder, recursively.
    files: list[CleanupItem] = field(default_factory=list)

    @property
    def parent(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def paths(self) -> Iterator[str]:
        """Yield the path of the item, and of all files and folders in it."""
        yield self.path
        for file in self.files:
            yield file.path
            yield from (
                folder for folder in folders_above(file.path) if len(folder) > len(self.path)
            )

    @property
    def all_bytes(self) -> int:
        return self.size + sum(file.size for file in self.files)


@dataclass(frozen=True)
class CleanupVerdict:
    """Decision about an item.

    :param goes: whether the item is deleted
    :param reason: reason why it is deleted or kept
    :param after: names of the items to which this item belongs; they are deleted before it
    """

    item: CleanupItem
    rule: CleanupRule
    goes: bool
    reason: str
    after: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.item.repo}/{self.item.path}"


def items_in(repo: str, rows: Iterable[Mapping[str, Any]]) -> dict[str, CleanupItem]:
    """Return the items in the rows by path, without the root of the repository."""
    known: dict[str, CleanupItem] = {}
    for row in rows:
        item = _item(row)
        if item is None or item.repo != repo:
            continue
        first = known.setdefault(item.path, item)
        if first is not item:
            # some servers return a row per property, not a row per item
            for name, values in item.properties.items():
                first.properties.setdefault(name, []).extend(values)
    return known


def paths_in(rows: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the paths of the items in the rows, and of their parent folders."""
    files = {item.path for item in map(_item, rows) if item is not None}
    return files | {folder for path in files for folder in folders_above(path)}


def _item(row: Mapping[str, Any]) -> CleanupItem | None:
    name, folder = str(row.get("name") or ""), str(row.get("path") or "")
    if name in ("", ROOT):
        return None
    is_folder, size = row.get("type") == "folder", str(row.get("size") or "")
    return CleanupItem(
        repo=str(row.get("repo")),
        path=name if folder in ("", ROOT) else f"{folder}/{name}",
        folder=is_folder,
        # server fact [repo-6]: folders also have a size, which is 0 or -1
        size=int(size) if size.isdigit() and not is_folder else 0,
        created=None if row.get("created") is None else str(row["created"]),
        moment=moment_of(row.get("created")),
        modified=moment_of(row.get("modified")),
        digest=f"sha256:{row['sha256']}" if row.get("sha256") else None,
        properties=aql.properties_in(row),
    )


def folders_above(path: str) -> Iterator[str]:
    """Yield the parent folders of a path, from the nearest to the top."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path
