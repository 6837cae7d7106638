# SPDX-License-Identifier: GPL-3.0-or-later
"""Select the items of a cleanup rule from the rows of its query, without requests.

A row counts only if it shows every condition of the rule: a server that ignores part of a query
must not cause further deletions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

from ...core.times import moment_of
from .. import aql
from .rules import MANIFESTS, ROOT, CleanupRule, matches

_NO_TIME = datetime.min.replace(tzinfo=timezone.utc)
#: Folders for the manifests of an index; they are not tags.
_PARTS_OF_IMAGES = ("sha256:", "sha256__")


@dataclass
class CleanupItem:
    """A file or folder. `created` is the server's string, `moment` the time that ages refer to."""

    repo: str
    path: str
    folder: bool
    size: int
    created: str | None
    moment: datetime | None
    modified: datetime | None
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
        """Yield the path of the item, and of all that is in it."""
        yield self.path
        for file in self.files:
            yield file.path
            yield from (each for each in folders_above(file.path) if len(each) > len(self.path))

    @property
    def all_bytes(self) -> int:
        return self.size + sum(file.size for file in self.files)


@dataclass(frozen=True)
class CleanupVerdict:
    """Whether an item is deleted, and the reason."""

    item: CleanupItem
    goes: bool
    reason: str


def verdicts(
    rule: CleanupRule, rows: Iterable[Mapping[str, Any]], now: datetime | None
) -> list[CleanupVerdict]:
    """Return the verdicts on all items that a rule selects, except items that are too young.

    :param now: the time of the server's clock
    :raises ValueError: if the rule needs the time and `now` is `None`
    """
    if now is None and rule.age is not None and (rule.counts_ages or rule.takes_folders):
        raise ValueError("no clock")
    selected = [item for item in _items(rule, rows) if _is_meant(rule, item)]
    excluded = {item.path: glob for item in selected if (glob := rule.excluding(item.path))}
    newest = _newest(rule, [item for item in selected if item.path not in excluded])
    found = []
    for item in selected:
        if _is_young(rule, item, now):
            continue
        why = _why_kept(rule, item, now, excluded.get(item.path))
        if why is None and item.path in newest:
            why = f"among the newest {rule.keep_last} of {_shown(item.parent)}"
        found.append(
            CleanupVerdict(item, why is None, f"rule {rule.number}: {why or _why(rule, item)}")
        )
    return _keep_what_holds_kept(found)


def paths_in(rows: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the paths of the items in the rows, and of the folders above them."""
    files = {item.path for item in map(_item, rows) if item is not None}
    return files | {folder for path in files for folder in folders_above(path)}


def _items(rule: CleanupRule, rows: Iterable[Mapping[str, Any]]) -> list[CleanupItem]:
    """Return the items of the rows, folders with their files; the root of a repository is not an
    item.
    """
    known: dict[str, CleanupItem] = {}
    for row in rows:
        item = _item(row)
        if item is None or item.repo != rule.repo:
            continue
        first = known.setdefault(item.path, item)
        if first is not item:
            # a server may send a row per property
            for name, values in item.properties.items():
                first.properties.setdefault(name, []).extend(values)
    if rule.kind == "file":
        return list(known.values())
    files = [cleanup_item for cleanup_item in known.values() if not cleanup_item.folder]
    found = _images(files) if rule.kind == "image" else known
    for file in files:
        for folder in folders_above(file.path):
            if folder in found:
                found[folder].files.append(file)
    return list(found.values())


def _item(row: Mapping[str, Any]) -> CleanupItem | None:
    name, folder = str(row.get("name") or ""), str(row.get("path") or "")
    if name in ("", ROOT):
        return None
    is_folder, size = row.get("type") == "folder", str(row.get("size") or "")
    return CleanupItem(
        repo=str(row.get("repo")),
        path=name if folder in ("", ROOT) else f"{folder}/{name}",
        folder=is_folder,
        # server fact [repo-6]: folders have a size as well, 0 or -1
        size=int(size) if size.isdigit() and not is_folder else 0,
        created=None if row.get("created") is None else str(row["created"]),
        moment=moment_of(row.get("created")),
        modified=moment_of(row.get("modified")),
        properties=aql.properties_in(row),
    )


def _images(files: Sequence[CleanupItem]) -> dict[str, CleanupItem]:
    """Return the tags of images by path: folders with a manifest, whose age counts.

    A tag that is pushed again gets another manifest, so the last change counts.
    """
    found: dict[str, CleanupItem] = {}
    for file in files:
        tag = file.parent
        if file.name not in MANIFESTS or "/" not in tag:
            continue
        if tag.rpartition("/")[2].startswith(_PARTS_OF_IMAGES):
            continue
        pushed = max(file.moment or _NO_TIME, file.modified or _NO_TIME)
        known = found.get(tag)
        if known is None or (known.moment or _NO_TIME) < pushed:
            moment = None if file.moment is None else pushed
            found[tag] = replace(file, path=tag, folder=True, size=0, moment=moment, files=[])
    return found


def folders_above(path: str) -> Iterator[str]:
    """Yield the folders above a path, the nearest first."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _is_meant(rule: CleanupRule, item: CleanupItem) -> bool:
    kinds = {"file": not item.folder, "folder": item.folder, "image": item.folder, "any": True}
    return (
        kinds[rule.kind]
        and matches(rule.path, item.parent or ROOT)
        and matches(rule.name, item.name)
        and rule.depth in (None, item.path.count("/") + 1)
        and rule.has_values(item.properties)
    )


def _is_young(rule: CleanupRule, item: CleanupItem, now: datetime | None) -> bool:
    if rule.age is None or now is None:
        return False
    if item.moment is None:
        # a server that was asked for old items only has already decided
        return rule.counts_ages
    return item.moment > now - rule.age


def _why_kept(
    rule: CleanupRule, item: CleanupItem, now: datetime | None, glob: str | None
) -> str | None:
    if glob is not None:
        return f"excluded by '{glob}'"
    for file in item.files:
        for path in (file.path, *folders_above(file.path)):
            inner = rule.excluding(path) if len(path) > len(item.path) else None
            if inner is not None:
                return f"holds '{path}', excluded by '{inner}'"
        if rule.kind != "image" and _is_young(rule, file, now):
            return f"holds '{file.path}', younger than {rule.age_text}"
    return None


def _newest(rule: CleanupRule, items: Sequence[CleanupItem]) -> set[str]:
    """Return the paths of the newest items per folder (per image if they are its tags)."""
    if rule.keep_last is None:
        return set()
    groups: dict[str, list[CleanupItem]] = {}
    for item in sorted(items, key=lambda each: (each.moment or _NO_TIME, each.path), reverse=True):
        groups.setdefault(item.parent, []).append(item)
    return {item.path for group in groups.values() for item in group[: rule.keep_last]}


def _why(rule: CleanupRule, item: CleanupItem) -> str:
    reasons = [] if rule.age is None else [f"older than {rule.age_text}"]
    if rule.keep_last is not None:
        reasons.append(f"not among the newest {rule.keep_last} of {_shown(item.parent)}")
    return ", ".join(reasons) or "everything that it matches"


def _shown(folder: str) -> str:
    return f"'{folder}'" if folder else "the root"


def _keep_what_holds_kept(found: Sequence[CleanupVerdict]) -> list[CleanupVerdict]:
    """Keep folders with content that is kept."""
    holding = {
        folder: verdict.item.path
        for verdict in found
        if not verdict.goes
        for folder in folders_above(verdict.item.path)
    }
    return [
        CleanupVerdict(verdict.item, False, f"{verdict.reason}; but holds '{kept}', which is kept")
        if verdict.goes and (kept := holding.get(verdict.item.path)) is not None
        else verdict
        for verdict in found
    ]
