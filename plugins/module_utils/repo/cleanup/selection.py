# SPDX-License-Identifier: GPL-3.0-or-later
"""Select the items of a cleanup rule from the rows of its query, without requests.

Every condition of the rule is checked again, because a server may ignore a part of the query.
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
#: Prefixes of folders with the manifests of a multi-platform image, which are not tags.
_NOT_TAGS = ("sha256:", "sha256__")


@dataclass
class CleanupItem:
    """A file or folder.

    :param size: size of a file in bytes
    :param created: creation time as returned by the server
    :param moment: time from which the age is computed; `None` if unknown
    """

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
    """

    item: CleanupItem
    goes: bool
    reason: str


def verdicts(
    rule: CleanupRule, rows: Iterable[Mapping[str, Any]], now: datetime | None
) -> list[CleanupVerdict]:
    """Return a verdict on each item that a rule selects and that is old enough.

    :param now: current time by the server's clock; `None` if unknown
    :raises ValueError: if the rule needs the current time and it is unknown
    """
    if now is None and rule.age is not None and (rule.evaluates_ages or rule.takes_folders):
        raise ValueError("no clock")
    selected = [item for item in _items(rule, rows) if _matches_rule(rule, item)]
    excluded = {item.path: glob for item in selected if (glob := rule.excluding(item.path))}
    newest = _newest(rule, [item for item in selected if item.path not in excluded])
    found = []
    for item in selected:
        if _is_young(rule, item, now):
            continue
        kept = _reason_to_keep(rule, item, now, excluded.get(item.path))
        if kept is None and item.path in newest:
            kept = f"among the newest {rule.keep_last} of {_shown(item.parent)}"
        reason = kept or _reason_to_delete(rule, item)
        found.append(CleanupVerdict(item, kept is None, f"rule {rule.number}: {reason}"))
    return _keep_folders_of_kept(found)


def paths_in(rows: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the paths of the items in the rows, and of their parent folders."""
    files = {item.path for item in map(_item, rows) if item is not None}
    return files | {folder for path in files for folder in folders_above(path)}


def _items(rule: CleanupRule, rows: Iterable[Mapping[str, Any]]) -> list[CleanupItem]:
    """Return the items in the rows without the root of the repository; add files to folders."""
    known: dict[str, CleanupItem] = {}
    for row in rows:
        item = _item(row)
        if item is None or item.repo != rule.repo:
            continue
        first = known.setdefault(item.path, item)
        if first is not item:
            # some servers return a row per property, not a row per item
            for name, values in item.properties.items():
                first.properties.setdefault(name, []).extend(values)
    if rule.kind == "file":
        return list(known.values())
    files = [item for item in known.values() if not item.folder]
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
        # server fact [repo-6]: folders also have a size, which is 0 or -1
        size=int(size) if size.isdigit() and not is_folder else 0,
        created=None if row.get("created") is None else str(row["created"]),
        moment=moment_of(row.get("created")),
        modified=moment_of(row.get("modified")),
        properties=aql.properties_in(row),
    )


def _images(files: Sequence[CleanupItem]) -> dict[str, CleanupItem]:
    """Return the tags of images, which are folders with a manifest, by path.

    The age of a tag is computed from the last change of its manifest, because a tag that is pushed
    again gets a new manifest.
    """
    found: dict[str, CleanupItem] = {}
    for file in files:
        tag = file.parent
        if file.name not in MANIFESTS or "/" not in tag:
            continue
        if tag.rpartition("/")[2].startswith(_NOT_TAGS):
            continue
        pushed = max(file.moment or _NO_TIME, file.modified or _NO_TIME)
        known = found.get(tag)
        if known is None or (known.moment or _NO_TIME) < pushed:
            moment = None if file.moment is None else pushed
            found[tag] = replace(file, path=tag, folder=True, size=0, moment=moment, files=[])
    return found


def folders_above(path: str) -> Iterator[str]:
    """Yield the parent folders of a path, from the nearest to the top."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _matches_rule(rule: CleanupRule, item: CleanupItem) -> bool:
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
        # without a time, trust the server if the query selected old items
        return rule.evaluates_ages
    return item.moment > now - rule.age


def _reason_to_keep(
    rule: CleanupRule, item: CleanupItem, now: datetime | None, glob: str | None
) -> str | None:
    """Return why `exclude` or the age of a file in it keeps an item; `None` if nothing does.

    :param glob: glob of `exclude` that matches the item itself
    """
    if glob is not None:
        return f"excluded by '{glob}'"
    for file in item.files:
        for path in (file.path, *folders_above(file.path)):
            inner = rule.excluding(path) if len(path) > len(item.path) else None
            if inner is not None:
                return f"contains '{path}', excluded by '{inner}'"
        if rule.kind != "image" and _is_young(rule, file, now):
            return f"contains '{file.path}', younger than {rule.age_text}"
    return None


def _newest(rule: CleanupRule, items: Sequence[CleanupItem]) -> set[str]:
    """Return the paths of the newest `keep_last` items of each folder; for tags, of each image."""
    if rule.keep_last is None:
        return set()
    groups: dict[str, list[CleanupItem]] = {}
    for item in sorted(items, key=_by_time, reverse=True):
        groups.setdefault(item.parent, []).append(item)
    return {item.path for group in groups.values() for item in group[: rule.keep_last]}


def _by_time(item: CleanupItem) -> tuple[datetime, str]:
    return item.moment or _NO_TIME, item.path


def _reason_to_delete(rule: CleanupRule, item: CleanupItem) -> str:
    reasons = [] if rule.age is None else [f"older than {rule.age_text}"]
    if rule.keep_last is not None:
        reasons.append(f"not among the newest {rule.keep_last} of {_shown(item.parent)}")
    return ", ".join(reasons) or "everything that it matches"


def _shown(folder: str) -> str:
    return f"'{folder}'" if folder else "the root"


def _keep_folders_of_kept(found: Sequence[CleanupVerdict]) -> list[CleanupVerdict]:
    """Return the verdicts, with folders kept if they contain a kept item."""
    kept_in = {
        folder: verdict.item.path
        for verdict in found
        if not verdict.goes
        for folder in folders_above(verdict.item.path)
    }
    return [
        CleanupVerdict(
            verdict.item, False, f"{verdict.reason}; but contains '{kept}', which is kept"
        )
        if verdict.goes and (kept := kept_in.get(verdict.item.path)) is not None
        else verdict
        for verdict in found
    ]
