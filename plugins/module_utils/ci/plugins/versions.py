# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare plugin versions by the rules of the CI server.

Source: the server compares versions with `hudson.util.VersionNumber` of its library
lib-version-number. Numbers are compared as numbers, without trailing zeros. A known qualifier
(`snapshot` to `rc`) comes before the release, every other qualifier after it. `-` in front of a
number begins a nested part (`1-1` is between `1` and `1.1`). Versions that end with a commit, as
`1371.vfee6b_095f0a_3`, differ in the number in front of the commit.
"""

from __future__ import annotations

import math
import re
from itertools import zip_longest
from typing import Any, TypeAlias

#: A number, a qualifier, a nested part, or :data:`_ANY`.
_Item: TypeAlias = "int | str | float | list[Any]"

_TOKEN = re.compile(r"[0-9]+|[.*-]|[^0-9.*-]+")
_SNAPSHOT = re.compile(r"(-[0-9]{8}\.[0-9]{6}-[0-9]+|-SNAPSHOT)( \(.*\))?$")
_QUALIFIERS = ("snapshot", "alpha", "beta", "milestone", "rc", "", "sp")
_ALIASES = {"ga": "", "final": "", "cr": "rc", "ea": "rc"}
_BEFORE_NUMBER = {"a": "alpha", "b": "beta", "m": "milestone"}
_RELEASE = _QUALIFIERS.index("")
#: Maximum number of characters that are compared; no real version is longer.
_LONGEST = 200
#: The item of `1.*`, later than everything.
_ANY = math.inf
_RANKS: dict[type, int] = {str: 0, list: 1, int: 2, float: 3}


def is_older(version: str, than: str) -> bool:
    """Return whether `version` is older than `than`. Builds of the same snapshot count as equal."""
    return _order(_parsed(version), _parsed(than)) < 0


def is_newer(version: str, other: str) -> bool:
    """Return whether `version` is newer than `other`."""
    return is_older(other, than=version)


def _parsed(version: str) -> list[Any]:
    """Return the items of a version; a `-` between two numbers opens a nested list."""
    text = version.strip()[:_LONGEST]
    tokens = _TOKEN.findall(_SNAPSHOT.sub("-SNAPSHOT", text).lower())
    items: list[Any] = []
    lists = [items]
    for before, token, behind in zip([".", *tokens], tokens, [*tokens[1:], ""], strict=False):
        if token in (".", "-"):
            if before in (".", "-"):
                items.append(0)
            if token == "-" and before.isdigit():
                _trim(items)
                if behind.isdigit():
                    items.append([])
                    items = items[-1]
                    lists.append(items)
        elif token == "*":
            items.append(_ANY)
        else:
            items.append(int(token) if token.isdigit() else _qualifier(token, behind))
    for each in reversed(lists):
        _trim(each)
    return lists[0]


def _qualifier(token: str, behind: str) -> str:
    text = _BEFORE_NUMBER.get(token, token) if behind.isdigit() else token
    return _ALIASES.get(text, text)


def _trim(items: list[Any]) -> None:
    """Drop items without a meaning at the end: zeros, the release, empty parts."""
    while items and items[-1] in (0, "", []):
        items.pop()


def _order(left: _Item, right: _Item) -> int:
    """Return a negative number, zero or a positive number if `left` is older than, equal to or
    newer than `right`.
    """
    if isinstance(left, list) and isinstance(right, list):
        pairs = zip_longest(left, right)
        return next((found for one, other in pairs if (found := _part_order(one, other))), 0)
    one, other = _RANKS[type(left)], _RANKS[type(right)]
    if one != other:
        return one - other
    key, other_key = _key(left), _key(right)
    return int(key > other_key) - int(key < other_key)


def _part_order(left: _Item | None, right: _Item | None) -> int:
    if left is None:
        return 0 if right is None else -_against_nothing(right)
    return _against_nothing(left) if right is None else _order(left, right)


def _against_nothing(item: _Item) -> int:
    """Return whether a version with this additional item is older or newer than without."""
    if isinstance(item, list):
        return _against_nothing(item[0]) if item else 0
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
