# SPDX-License-Identifier: GPL-3.0-or-later
"""Match the items of a desired list with those of the exported list.

Items are matched by name, then by content, then by kind. The labels of items are in paths, messages
and keys of diffs, so an item without a name has a number: its content may be a secret.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.secret import mask_free_text, secrets_of_url

MISSING = object()


@dataclass(frozen=True)
class ItemPair:
    """An item on both sides; `MISSING` on the side that does not have it."""

    label: str
    wanted: Any
    live: Any


def pairs_of(wanted: Sequence[Any], live: Sequence[Any], *, secret: bool) -> list[ItemPair]:
    """Return the items of both lists, matched, in the order of `wanted`.

    :param secret: items that are strings are secrets
    """
    found = _matched(wanted, live)
    labels = [_labels(side, secret=secret) for side in (wanted, live)]
    pairs = [
        ItemPair(labels[0][number], item, live[found[number]] if number in found else MISSING)
        for number, item in enumerate(wanted)
    ]
    for number in sorted(set(range(len(live))) - set(found.values())):
        label = labels[1][number]
        numbered = label == str(number)
        pairs.append(ItemPair(f"live {label}" if numbered else label, MISSING, live[number]))
    return pairs


def name_of(entry: Any) -> str | None:
    """Return the id or name of a list item, or `None` for an object without one."""
    if not isinstance(entry, Mapping):
        return None if is_nested(entry) else str(entry)
    # without a member `value`, the member `key` may be a secret
    for key in ("id", "name", "key") if "value" in entry else ("id", "name"):
        if isinstance(entry.get(key), (str, int)):
            return str(entry[key])
    if isinstance(entry.get("domain"), Mapping):
        return name_of(entry["domain"])
    if "credentials" in entry:
        return "global"
    inner = next(iter(entry.values())) if len(entry) == 1 else None
    return name_of(inner) if isinstance(inner, Mapping) else None


def content_of(entry: Any) -> str:
    return json.dumps(entry, sort_keys=True, default=str) if is_nested(entry) else str(entry)


def is_nested(value: Any) -> bool:
    return isinstance(value, (Mapping, Sequence)) and not isinstance(value, str)


def label_of(entry: Any, *, secret: bool = False) -> str | None:
    """Return the name of a list item, or `None` if it has none or the name contains a secret.

    :param secret: items that are strings are secrets
    """
    name = name_of(entry)
    if name is None or (secret and not is_nested(entry)) or secrets_of_url(name):
        return None
    return name if mask_free_text(name) == name else None


def _kind_of(entry: Any) -> str | None:
    """Return the only key of an object without a name, which is its kind: `{env: [...]}`."""
    if not isinstance(entry, Mapping) or len(entry) != 1 or name_of(entry) is not None:
        return None
    return str(next(iter(entry)))


def _matched(wanted: Sequence[Any], live: Sequence[Any]) -> dict[int, int]:
    """Return the indexes of matching items. Names and kinds that are repeated do not match."""
    found: dict[int, int] = {}
    for key_of in (name_of, content_of, _kind_of):
        ours = _by_key(wanted, key_of, set(found))
        theirs = _by_key(live, key_of, set(found.values()))
        for key, numbers in ours.items():
            others = theirs.get(key, [])
            if key_of is content_of or len(numbers) == len(others) == 1:
                found.update(zip(numbers, others, strict=False))
    return found


def _by_key(
    side: Sequence[Any], key_of: Callable[[Any], str | None], done: set[int]
) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for number, item in enumerate(side):
        key = None if number in done else key_of(item)
        if key is not None:
            found.setdefault(key, []).append(number)
    return found


def _labels(side: Sequence[Any], *, secret: bool) -> list[str]:
    names = [label_of(item, secret=secret) for item in side]
    return [
        str(number) if name is None or names.count(name) > 1 else name
        for number, name in enumerate(names)
    ]
