# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare plugin versions by the rules of the CI server.

The server compares versions with `hudson.util.VersionNumber` of its library lib-version-number:
numbers by value, without trailing zeros. The qualifiers `snapshot` to `rc` come before the release,
all other qualifiers after it. `-` before a number opens a nested list, so `1-1` is between `1` and
`1.1`. Versions with a commit, such as `1371.vfee6b_095f0a_3`, are ordered by the number before it.
"""

from __future__ import annotations

import math
import re
from itertools import zip_longest
from typing import Any, TypeAlias

#: A number, a qualifier, a nested list, or `_ANY`.
_Item: TypeAlias = "int | str | float | list[Any]"

_TOKEN = re.compile(r"[0-9]+|[.*-]|[^0-9.*-]+")
_SNAPSHOT = re.compile(r"(-[0-9]{8}\.[0-9]{6}-[0-9]+|-SNAPSHOT)( \(.*\))?$")
_QUALIFIERS = ("snapshot", "alpha", "beta", "milestone", "rc", "", "sp")
_ALIASES = {"ga": "", "final": "", "cr": "rc", "ea": "rc"}
_BEFORE_NUMBER = {"a": "alpha", "b": "beta", "m": "milestone"}
_RELEASE = _QUALIFIERS.index("")
#: Maximum number of characters to compare. No real version is longer.
_MAX_LENGTH = 200
#: Item for `*` in `1.*`, which is newer than any other item.
_ANY = math.inf
_RANKS: dict[type, int] = {str: 0, list: 1, int: 2, float: 3}


def is_older(version: str, than: str) -> bool:
    """Return whether `version` is older than `than`. Builds of the same snapshot count as equal."""
    return _order(_parsed(version), _parsed(than)) < 0


def is_newer(version: str, other: str) -> bool:
    """Return whether `version` is newer than `other`."""
    return is_older(other, than=version)


def _parsed(version: str) -> list[Any]:
    """Parse a version into items. A `-` between two numbers opens a nested list."""
    text = version.strip()[:_MAX_LENGTH]
    tokens = _TOKEN.findall(_SNAPSHOT.sub("-SNAPSHOT", text).lower())
    items: list[Any] = []
    lists = [items]
    for before, token, following in zip([".", *tokens], tokens, [*tokens[1:], ""], strict=False):
        if token in (".", "-"):
            if before in (".", "-"):
                items.append(0)
            if token == "-" and before.isdigit():
                _trim(items)
                if following.isdigit():
                    items.append([])
                    items = items[-1]
                    lists.append(items)
        elif token == "*":
            items.append(_ANY)
        else:
            items.append(int(token) if token.isdigit() else _qualifier(token, following))
    for nested in reversed(lists):
        _trim(nested)
    return lists[0]


def _qualifier(token: str, following: str) -> str:
    text = _BEFORE_NUMBER.get(token, token) if following.isdigit() else token
    return _ALIASES.get(text, text)


def _trim(items: list[Any]) -> None:
    """Remove items at the end that do not change the order: 0, "" and empty lists."""
    while items and items[-1] in (0, "", []):
        items.pop()


def _order(left: _Item, right: _Item) -> int:
    """Return a negative number, zero or a positive number if `left` is older than, equal to or
    newer than `right`.
    """
    if isinstance(left, list) and isinstance(right, list):
        pairs = zip_longest(left, right)
        return next((order for a, b in pairs if (order := _item_order(a, b))), 0)
    left_rank, right_rank = _RANKS[type(left)], _RANKS[type(right)]
    if left_rank != right_rank:
        return left_rank - right_rank
    key, other_key = _key(left), _key(right)
    return int(key > other_key) - int(key < other_key)


def _item_order(left: _Item | None, right: _Item | None) -> int:
    if left is None:
        return 0 if right is None else -_order_against_end(right)
    return _order_against_end(left) if right is None else _order(left, right)


def _order_against_end(item: _Item) -> int:
    """Compare a version with an additional item to the version without the item.

    Returns a negative number if the longer version is older, a positive number if it is newer.
    """
    if isinstance(item, list):
        return _order_against_end(item[0]) if item else 0
    if isinstance(item, str):
        return -1 if _key(item) < (_RELEASE, "") else int(_key(item) > (_RELEASE, ""))
    return int(item > 0)


def _key(item: _Item) -> Any:
    """Return the sort key for items of the same type."""
    if not isinstance(item, str):
        return item
    if item in _QUALIFIERS:
        return _QUALIFIERS.index(item), ""
    return len(_QUALIFIERS), item
