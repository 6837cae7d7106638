# SPDX-License-Identifier: GPL-3.0-or-later
"""Group the items of a cleanup into versions, which are kept or deleted as a whole [C2.4]."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TypeAlias

from .. import layouts
from .image_parts import NO_TIME, ImageParts
from .rules import CleanupItem, CleanupRule

#: Sort key of a version: its time, whether it is an index with tags, its number, and its path.
Rank: TypeAlias = tuple[datetime, bool, int, str]


@dataclass(frozen=True)
class ItemVersion:
    """A folder, or the files of a version.

    :param items: all items, sorted by path
    :param matched: the items that match the rule
    :param main: the items without signatures and checksums
    """

    items: list[CleanupItem]
    matched: list[CleanupItem]
    main: list[CleanupItem]

    @property
    def name(self) -> str:
        """Return the path that identifies the version."""
        return self.main[0].path

    @property
    def folder(self) -> str:
        return self.main[0].parent

    def rank(self, parts: ImageParts) -> Rank:
        """Return the sort key: unique snapshots are ordered by the time and number in their name,
        other versions by their newest item.
        """
        moment, is_index, path = max(map(parts.rank, self.main))
        found = None if self.main[0].folder else layouts.snapshot_of(self.main[0].path)
        if found is None or not found.time:
            return moment, is_index, 0, path
        return _moment(found.time), is_index, found.number, path


def _moment(time: str) -> datetime:
    try:
        return datetime.strptime(time, "%Y%m%d.%H%M%S").replace(tzinfo=timezone.utc)
    except ValueError:
        return NO_TIME


def versions_of(
    rule: CleanupRule, known: Mapping[str, CleanupItem], selected: Collection[CleanupItem]
) -> list[ItemVersion]:
    """Return the versions of the selected items.

    A signature or checksum goes with its file. It does not select the file, and can only be
    selected by its exact name.

    :param known: all items that the query found, by path
    """
    files = {path for path, item in known.items() if not item.folder}
    matched: dict[object, list[CleanupItem]] = {}
    alone: list[ItemVersion] = []
    for item in selected:
        if item.folder or (_is_dependant(item.path, files) and rule.name == item.name):
            alone.append(ItemVersion([item], [item], [item]))
        elif not _is_dependant(item.path, files):
            matched.setdefault(_key(item.path, files), []).append(item)
    members: dict[object, list[CleanupItem]] = {}
    for path in files:
        key = _key(path, files)
        if key in matched:
            members.setdefault(key, []).append(known[path])
    return [*alone, *(_version(members[key], found, files) for key, found in matched.items())]


def needed_by_newer(
    known: Mapping[str, CleanupItem], going: Collection[str]
) -> dict[tuple[str, str, int], str]:
    """Return the snapshots without which kept newer ones would be incomplete.

    A deployment of a changed jar need not repeat an unchanged POM: then that of an older snapshot
    is still in use. Files with a classifier are optional.

    :param going: paths of the files to delete
    :returns: the path of a file that newer snapshots lack, by version
    """
    found: dict[str, dict[tuple[str, int], dict[str, str]]] = {}
    for path, item in known.items():
        file = None if item.folder else layouts.snapshot_of(path)
        if file is not None and file.time and file.is_main:
            versions = found.setdefault(file.start, {})
            versions.setdefault((file.time, file.number), {})[file.rest] = path
    needed: dict[tuple[str, str, int], str] = {}
    for start, versions in found.items():
        kept: set[str] = set()
        for version in sorted(versions, reverse=True):
            files = versions[version]
            if all(path in going for path in files.values()):
                lacking = sorted(files.keys() - kept) if kept else []
                if not lacking:
                    continue
                time, number = version
                needed[start, time, number] = files[lacking[0]]
            kept |= files.keys()
    return needed


def left_alone(
    versions: Collection[ItemVersion], selected: Collection[CleanupItem]
) -> list[CleanupItem]:
    """Return the selected signatures and checksums whose file no version contains."""
    paths = {item.path for version in versions for item in version.items}
    return [item for item in selected if item.path not in paths]


def _version(
    items: list[CleanupItem], matched: list[CleanupItem], files: Collection[str]
) -> ItemVersion:
    items.sort(key=lambda item: item.path)
    main = [item for item in items if not _is_dependant(item.path, files)]
    return ItemVersion(items, matched, main)


def _is_dependant(path: str, files: Collection[str]) -> bool:
    """Return whether a file is the signature or checksum of another file."""
    return layouts.owner_of(path, files) is not None


def _key(path: str, files: Collection[str]) -> object:
    """Return the key of the version to which a file belongs."""
    owner = layouts.owner_of(path, files) or path
    found = layouts.snapshot_of(owner)
    return found.version if found is not None and found.time else owner
