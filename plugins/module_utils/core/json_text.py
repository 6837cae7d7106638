# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON that others wrote, read within bounds [C1.4]."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

#: Most levels of lists and objects within each other.
DEEPEST = 200
_INNER = (dict, list)


class TooDeep(ValueError):
    """JSON with more levels than :data:`DEEPEST`."""

    def __init__(self) -> None:
        super().__init__(f"it is nested more than {DEEPEST} levels deep")


def loads(text: str | bytes, *, parse_constant: Callable[[str], Any] | None = None) -> Any:
    """The value of a text; C(ValueError) where it is not JSON, :class:`TooDeep` among them."""
    try:
        found = json.loads(text, parse_constant=parse_constant)
    except RecursionError:
        raise TooDeep from None
    if isinstance(text, bytes):
        require_depth(found, text.count(b"[") + text.count(b"{"))
    else:
        require_depth(found, text.count("[") + text.count("{"))
    return found


def require_depth(value: Any, most: int) -> None:
    """Raise :class:`TooDeep` for a value with too many levels.

    :param most: how many lists and objects its text has at most: with few of them nothing is
        looked at
    """
    if most <= DEEPEST:
        return
    level = [value]
    for _depth in range(DEEPEST):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) in _INNER
        ]
        if not level:
            return
    raise TooDeep
