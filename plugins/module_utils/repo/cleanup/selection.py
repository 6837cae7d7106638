# SPDX-License-Identifier: GPL-3.0-or-later
"""Select the items of a cleanup rule from the rows of its query, without requests.

Every condition of the rule is checked again, because a server may ignore a part of the query.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from .image_parts import ImageParts
from .items import CleanupItem, CleanupVerdict, folders_above, items_in
from .rules import ROOT, CleanupRule, matches


def matching(
    rule: CleanupRule, rows: Iterable[Mapping[str, Any]], parts: ImageParts
) -> list[CleanupItem]:
    """Return the items in the rows that match a rule.

    :param parts: receives the manifests in the rows
    """
    return [item for item in _items(rule, rows, parts) if _matches_rule(rule, item)]


def verdicts(
    rule: CleanupRule, items: Sequence[CleanupItem], now: datetime | None, parts: ImageParts
) -> list[CleanupVerdict]:
    """Return a verdict on each item that a rule selects and that is old enough.

    :param items: the items that match the rule
    :param now: current time by the server's clock; `None` if unknown
    :raises ValueError: if the rule needs the current time and it is unknown
    """
    if now is None and rule.age is not None and (rule.evaluates_ages or rule.takes_folders):
        raise ValueError("no clock")
    selected = parts.selectable(items)
    kept: Mapping[str, CleanupItem] = {}
    while True:
        found = _judged(rule, selected, now, parts, kept)
        going = {verdict.item.path for verdict in found if verdict.goes}
        # a kept index keeps what it lists, which then does not count: more other items are kept
        more = parts.keepers(rule, selected, going)
        if more.keys() == kept.keys():
            return found
        kept = more


def _judged(
    rule: CleanupRule,
    selected: Sequence[CleanupItem],
    now: datetime | None,
    parts: ImageParts,
    listed: Mapping[str, CleanupItem],
) -> list[CleanupVerdict]:
    """Return the verdicts on the selected items that are old enough.

    :param listed: indexes that are kept, by the paths of the items that they list
    """
    excluded = {item.path: glob for item in selected if (glob := rule.excluding(item.path))}
    counted = [item for item in selected if item.path not in excluded and item.path not in listed]
    newest = _newest(rule, counted, parts)
    found = []
    for item in selected:
        if _is_young(rule, item, now):
            continue
        kept = _reason_to_keep(rule, item, now, excluded.get(item.path))
        if kept is None and item.path in listed:
            kept = f"part of '{listed[item.path].path}', which is kept"
        if kept is None and item.path in newest:
            kept = f"among the newest {rule.keep_last} of {_shown(item.parent)}"
        reason = f"rule {rule.number}: {kept or _reason_to_delete(rule, item)}"
        found.append(CleanupVerdict(item, rule, kept is None, reason))
    return _keep_folders_of_kept(found)


def _items(
    rule: CleanupRule, rows: Iterable[Mapping[str, Any]], parts: ImageParts
) -> list[CleanupItem]:
    """Return the items in the rows without the root of the repository; add files to folders."""
    known = items_in(rule.repo, rows)
    if not rule.takes_folders:
        return list(known.values())
    files = [item for item in known.values() if not item.folder]
    manifests = parts.learn(files, rule.covers)
    if rule.kind == "image":
        return [manifest.item for manifest in manifests if manifest.has_tag]
    for file in files:
        for folder in folders_above(file.path):
            if folder in known:
                known[folder].files.append(file)
    return list(known.values())


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


def _newest(rule: CleanupRule, items: Sequence[CleanupItem], parts: ImageParts) -> set[str]:
    """Return the paths of the newest `keep_last` items of each folder; for tags, of each image."""
    if rule.keep_last is None:
        return set()
    groups: dict[str, list[CleanupItem]] = {}
    for item in sorted(items, key=parts.rank, reverse=True):
        groups.setdefault(item.parent, []).append(item)
    return {item.path for group in groups.values() for item in group[: rule.keep_last]}


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
        replace(
            verdict, goes=False, reason=f"{verdict.reason}; but contains '{kept}', which is kept"
        )
        if verdict.goes and (kept := kept_in.get(verdict.item.path)) is not None
        else verdict
        for verdict in found
    ]
