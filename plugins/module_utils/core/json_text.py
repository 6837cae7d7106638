# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse JSON of servers and users within limits [C1.4]."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

#: Maximum number of nested levels of lists and objects.
DEEPEST = 200
_INNER = (dict, list)
# The escape of a surrogate; JSON writes a character beyond U+FFFF as two of them.
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_HALF_IN_BYTES = re.compile(_HALF.pattern.encode())


class TooDeep(ValueError):
    """JSON with more levels than :data:`DEEPEST`."""

    def __init__(self) -> None:
        super().__init__(f"it is nested more than {DEEPEST} levels deep")


def loads(text: str | bytes, *, parse_constant: Callable[[str], Any] | None = None) -> Any:
    """Parse JSON. Raises ValueError if it is invalid, and its subclass `TooDeep`.

    A lone surrogate (the server cut an emoji at the end of a title) becomes U+FFFD: Ansible
    rejects results that contain it.
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
    return without_halves(found) if halves else found


def has_halves(text: str, begin: int = 0, end: int | None = None) -> bool:
    """Return whether a part of a string may contain lone surrogates."""
    return _HALF.search(text, begin, len(text) if end is None else end) is not None


def without_halves(value: Any) -> Any:
    """Return a value without lone surrogates."""
    text = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass")
    return json.loads(text.decode("utf-16", "replace"))


def is_too_deep(value: Any) -> bool:
    """Return whether a value has more than :data:`DEEPEST` levels."""
    try:
        require_depth(value, DEEPEST + 1)
    except TooDeep:
        return True
    return False


def require_depth(value: Any, most: int) -> None:
    """Raise `TooDeep` for a value with too many levels.

    :param most: maximum number of lists and objects in the value; a small number needs no check
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
