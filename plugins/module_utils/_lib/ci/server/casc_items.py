# SPDX-License-Identifier: GPL-3.0-or-later
"""Names and kinds of objects in a configuration as code, and matching of list items [ci-43].

Items are matched by name, then by content, then by kind, then by equal members. The labels of items
are in paths, messages and keys of diffs, so an item without a name has a number: its content may be
a secret.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.free_text import mask_free_text
from ...core.secret import secrets_of_url

MISSING = object()
#: Server fact [ci-43]: obsolete symbols of the core, with the ones that exports show.
_SYMBOLS = {"dumb": "permanent", "slave": "permanent", "jnlp": "inbound"}
#: Kinds of role assignments, whose value is the name.
_ACCOUNTS = ("user", "group", "userOrGroup")


@dataclass(frozen=True)
class ItemPair:
    """An item on both sides; `MISSING` on the side that does not have it.

    :ivar place: index in the live list if the order of such items matters, else `None`
    """

    label: str
    wanted: Any
    live: Any
    place: int | None = None


def pairs_of(wanted: Sequence[Any], live: Sequence[Any], *, secret: bool) -> list[ItemPair]:
    """Return the items of both lists, matched, in the order of `wanted`.

    :param secret: items that are strings are secrets
    """
    found = _matched(wanted, live)
    labels = [_labels(side, secret=secret) for side in (wanted, live)]
    kinds = [identity_of(item) for item in live]
    pairs = []
    for number, item in enumerate(wanted):
        place = found.get(number)
        other = MISSING if place is None else live[place]
        ordered = place is not None and (kinds[place] is None or kinds.count(kinds[place]) > 1)
        pairs.append(ItemPair(labels[0][number], item, other, place if ordered else None))
    for number in sorted(set(range(len(live))) - set(found.values())):
        label = labels[1][number]
        numbered = label == str(number)
        pairs.append(ItemPair(f"live {label}" if numbered else label, MISSING, live[number]))
    return pairs


def is_reordered(pairs: Sequence[ItemPair]) -> bool:
    """Return whether items that only their place tells apart have another order."""
    places = [pair.place for pair in pairs if pair.place is not None]
    return places != sorted(places)


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
    kind, inner = next(iter(entry.items())) if len(entry) == 1 else ("", None)
    if kind in _ACCOUNTS and isinstance(inner, str):
        return inner
    return name_of(inner) if isinstance(inner, Mapping) else None


def content_of(entry: Any) -> str:
    return json.dumps(entry, sort_keys=True, default=str) if is_nested(entry) else str(entry)


def is_nested(value: Any) -> bool:
    return isinstance(value, (Mapping, Sequence)) and not isinstance(value, str)


def kind_of(entry: Any) -> str | None:
    """Return the kind of an object, `x` of `{x: {...}}` and of the symbol `x`; `None` if it has
    none.
    """
    if isinstance(entry, Mapping) and len(entry) == 1:
        return _normal(next(iter(entry)))
    return _normal(entry) if isinstance(entry, str) else None


def key_in(value: Mapping[Any, Any], key: Any) -> Any:
    """Return the spelling of a key in an object, or the key if the object does not have it.

    Server fact [ci-43]: the server ignores the case of names.
    """
    if key in value:
        return key
    return next((other for other in value if _normal(other) == _normal(key)), key)


def with_symbol(value: Any, other: Any) -> Any:
    """Return the symbol `x` as `{x: {}}`, if the other value is an object of this kind. An obsolete
    symbol is returned as the other value spells it.
    """
    if isinstance(value, str) and value in _SYMBOLS and other == _SYMBOLS[value]:
        return other
    if isinstance(value, str) and isinstance(other, Mapping) and kind_of(value) == kind_of(other):
        return {next(iter(other)): {}}
    return value


def label_of(entry: Any, *, secret: bool = False) -> str | None:
    """Return the name of a list item, or `None` if it has none or the name contains a secret.

    :param secret: items that are strings are secrets
    """
    name = name_of(entry)
    if name is None or (secret and not is_nested(entry)) or secrets_of_url(name):
        return None
    return name if mask_free_text(name) == name else None


def is_same_scalar(wanted: Any, live: Any) -> bool:
    if isinstance(wanted, bool) or isinstance(live, bool):
        return str(wanted).lower() == str(live).lower()
    return bool(_plain(wanted) == _plain(live))


def _normal(key: Any) -> str:
    name = str(key).lower()
    return _SYMBOLS.get(name, name)


def _plain(value: Any) -> Any:
    return value if is_nested(value) else str(value).replace("\r\n", "\n").strip()


def identity_of(entry: Any) -> str | None:
    """Return the identity of an item in its list: name and kind, or either of them."""
    name, kind = name_of(entry), kind_of(entry)
    if isinstance(entry, Mapping) and not {"id", "name"}.isdisjoint(entry):
        kind = None
    return f"{kind} {name}" if name and kind else name or kind


def _matched(wanted: Sequence[Any], live: Sequence[Any]) -> dict[int, int]:
    """Return the indexes of matching items. Names and kinds that are repeated do not match."""
    found: dict[int, int] = {}
    for key_of in (identity_of, name_of, _content_key, _kind_of_unnamed):
        ours = _by_key(wanted, key_of, set(found))
        theirs = _by_key(live, key_of, set(found.values()))
        for key, numbers in ours.items():
            others = theirs.get(key, [])
            if key_of is _content_key or len(numbers) == len(others) == 1:
                found.update(zip(numbers, others, strict=False))
    _match_by_members(wanted, live, found)
    return found


def _match_by_members(wanted: Sequence[Any], live: Sequence[Any], found: dict[int, int]) -> None:
    """Match the items without a name that share members.

    First those without a different member, because exports leave out defaults and add members. Then
    the last item, if it has an equal member: without one, it is a different object, whose secrets
    must not be mixed.
    """

    def left(side: Sequence[Any], done: set[int]) -> list[int]:
        return [n for n, item in enumerate(side) if n not in done and name_of(item) is None]

    for number in left(wanted, set(found)):
        for other in left(live, set(found.values())):
            equal, different = _likeness(wanted[number], live[other])
            if equal and not different:
                found[number] = other
                break
    ours, theirs = left(wanted, set(found)), left(live, set(found.values()))
    if len(ours) == len(theirs) == 1 and _likeness(wanted[ours[0]], live[theirs[0]])[0]:
        found[ours[0]] = theirs[0]


def _likeness(wanted: Any, live: Any) -> tuple[int, int]:
    """Return the numbers of equal and different values that both objects have."""
    wanted, live = with_symbol(wanted, live), with_symbol(live, wanted)
    if isinstance(wanted, Mapping) and isinstance(live, Mapping):
        pairs = [(item, live.get(key_in(live, key), MISSING)) for key, item in wanted.items()]
        counts = [_likeness(item, other) for item, other in pairs if other is not MISSING]
        return sum(count[0] for count in counts), sum(count[1] for count in counts)
    if isinstance(wanted, list) and isinstance(live, list):
        same = sorted(map(content_of, wanted)) == sorted(map(content_of, live))
    else:
        same = is_same_scalar(wanted, live)
    return (1, 0) if same else (0, 1)


def _content_key(entry: Any) -> str:
    """Return the content of an item, equal for `x` and `{x: {}}`."""
    alone = isinstance(entry, Mapping) and len(entry) == 1 and not next(iter(entry.values()))
    return content_of(next(iter(entry)) if alone else entry)


def _kind_of_unnamed(entry: Any) -> str | None:
    """Return the kind of an object without a name, such as `envvars` of `{envVars: ...}`."""
    symbol = isinstance(entry, str)
    return kind_of(entry) if symbol or name_of(entry) is None else None


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
