# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON that others wrote, read within bounds [C1.4]."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

#: Most levels of lists and objects within each other.
DEEPEST = 200
_INNER = (dict, list)
# A half, or a pair, of the escapes with which JSON may write what is beyond U+FFFF.
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_HALF_IN_BYTES = re.compile(_HALF.pattern.encode())


class TooDeep(ValueError):
    """JSON with more levels than :data:`DEEPEST`."""

    def __init__(self) -> None:
        super().__init__(f"it is nested more than {DEEPEST} levels deep")


def loads(text: str | bytes, *, parse_constant: Callable[[str], Any] | None = None) -> Any:
    """The value of a text; C(ValueError) where it is not JSON, :class:`TooDeep` among them.

    A character of which the server has cut off one half (an emoji at the end of a title) is
    U+FFFD: Ansible refuses a result with a half.
    """
    try:
        found = json.loads(text, parse_constant=parse_constant)
    except RecursionError:
        raise TooDeep from None
    if isinstance(text, bytes):
        require_depth(found, text.count(b"[") + text.count(b"{"))
        halves = _HALF_IN_BYTES.search(text) is not None
    else:
        require_depth(found, text.count("[") + text.count("{"))
        halves = has_halves(text)
    return whole(found) if halves else found


def has_halves(text: str, begin: int = 0, end: int | None = None) -> bool:
    """Whether a part of a text may have halves of characters."""
    return _HALF.search(text, begin, len(text) if end is None else end) is not None


def whole(value: Any) -> Any:
    """A value without halves of characters."""
    text = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass")
    return json.loads(text.decode("utf-16", "replace"))


def is_too_deep(value: Any) -> bool:
    """Whether lists and mappings in it have more than :data:`DEEPEST` levels."""
    try:
        require_depth(value, DEEPEST + 1)
    except TooDeep:
        return True
    return False


def require_depth(value: Any, most: int) -> None:
    """Raise :class:`TooDeep` for a value with too many levels.

    :param most: how many lists and objects its text has at most: with few of them nothing is
        looked at
    """
    if most <= DEEPEST:
        return
    level = [value] if isinstance(value, _INNER) else []
    for _depth in range(DEEPEST):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, _INNER)
        ]
        if not level:
            return
    raise TooDeep
