# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of two plugin versions is the newer one, as the CI server itself sees it.

Source: the server compares versions with C(hudson.util.VersionNumber) of its library
lib-version-number. Numbers count as numbers and trailing zeros not at all; a qualifier that is
known (C(snapshot) to C(rc)) comes before the release, every other one after it; C(-) in front of a
number begins a part of its own (C(1-1) is between C(1) and C(1.1)). A version that ends with a
commit, as C(1371.vfee6b_095f0a_3), is told by the number in front of it.
"""

from __future__ import annotations

import math
import re
from itertools import zip_longest
from typing import Any, TypeAlias

#: A number, a qualifier, a part of its own, or :data:`_ANY`.
_Item: TypeAlias = "int | str | float | list[Any]"

_TOKEN = re.compile(r"[0-9]+|[.*-]|[^0-9.*-]+")
_SNAPSHOT = re.compile(r"(-[0-9]{8}\.[0-9]{6}-[0-9]+|-SNAPSHOT)( \(.*\))?$")
_QUALIFIERS = ("snapshot", "alpha", "beta", "milestone", "rc", "", "sp")
_ALIASES = {"ga": "", "final": "", "cr": "rc", "ea": "rc"}
_BEFORE_NUMBER = {"a": "alpha", "b": "beta", "m": "milestone"}
_RELEASE = _QUALIFIERS.index("")
#: Characters of a version that are compared: more have none that is meant.
_LONGEST = 200
#: The item of C(1.*), later than everything.
_ANY = math.inf
_RANKS: dict[type, int] = {str: 0, list: 1, int: 2, float: 3}


def is_older(version: str, than: str) -> bool:
    """Whether C(version) is older than the other one. Builds of one snapshot count as equal."""
    return _order(_parsed(version), _parsed(than)) < 0


def is_newer(version: str, other: str) -> bool:
    """Whether C(version) is newer than the other one."""
    return is_older(other, than=version)


def _parsed(version: str) -> list[Any]:
    """The items of a version; a C(-) between two numbers opens a list inside."""
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
    """Drop what means nothing at the end: zeros, the release, empty parts."""
    while items and items[-1] in (0, "", []):
        items.pop()


def _order(left: _Item, right: _Item) -> int:
    """Negative, zero or positive, as C(left) is older than, equal to or newer than C(right)."""
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
    """Whether a version with this item behind it is older or newer than the one without."""
    if isinstance(item, list):
        return _against_nothing(item[0]) if item else 0
    if isinstance(item, str):
        return -1 if _key(item) < (_RELEASE, "") else int(_key(item) > (_RELEASE, ""))
    return int(item > 0)


def _key(item: _Item) -> Any:
    """What items of one type are compared by."""
    if not isinstance(item, str):
        return item
    if item in _QUALIFIERS:
        return _QUALIFIERS.index(item), ""
    return len(_QUALIFIERS), item
