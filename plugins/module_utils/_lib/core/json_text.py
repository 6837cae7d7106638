# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse JSON from servers and users, with a limit of nesting [C1.4]."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

#: Maximum nesting of lists and objects.
DEEPEST = 200
_INNER = (dict, list)
# The escape of a surrogate. JSON escapes a character beyond U+FFFF as a pair of surrogates.
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE_IN_BYTES = re.compile(_SURROGATE.pattern.encode())


class TooDeep(ValueError):
    """Raised for JSON that is nested deeper than :data:`DEEPEST` levels."""

    def __init__(self) -> None:
        super().__init__(f"it is nested deeper than {DEEPEST} levels")


def loads(text: str | bytes, *, parse_constant: Callable[[str], Any] | None = None) -> Any:
    """Parse JSON. Raises ValueError, or its subclass `TooDeep`.

    Lone surrogates become U+FFFD, because Ansible rejects results that contain them. A server
    returns one if it truncates a title in the middle of an emoji.
    """
    try:
        found = json.loads(text, parse_constant=parse_constant)
    except RecursionError:
        raise TooDeep from None
    if isinstance(text, bytes):
        require_depth(found, text.count(b"[") + text.count(b"{"))
        halves = _SURROGATE_IN_BYTES.search(text) is not None
    else:
        require_depth(found, text.count("[") + text.count("{"))
        halves = has_surrogates(text)
    return without_surrogates(found) if halves else found


def as_text(value: Any) -> str:
    """Return a JSON value as a string, or "" for null, which `str` would turn into a name."""
    return "" if value is None else str(value)


def member(value: Any, *names: str) -> Any:
    """Return the nested member `value[names[0]][names[1]]...`, or None if it is missing."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def has_surrogates(text: str, begin: int = 0, end: int | None = None) -> bool:
    """Return whether `text[begin:end]` may contain lone surrogates."""
    return _SURROGATE.search(text, begin, len(text) if end is None else end) is not None


def without_surrogates(value: Any) -> Any:
    """Return a JSON value with lone surrogates replaced by U+FFFD."""
    text = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass")
    return json.loads(text.decode("utf-16", "replace"))


def is_too_deep(value: Any) -> bool:
    """Return whether a value is nested deeper than :data:`DEEPEST` levels."""
    try:
        require_depth(value, DEEPEST + 1)
    except TooDeep:
        return True
    return False


def require_depth(value: Any, most: int) -> None:
    """Raise `TooDeep` for a value that is nested deeper than :data:`DEEPEST` levels.

    :param most: upper bound of the number of lists and objects in the value; if it is small, the
        value is not searched
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


def json_objects(value: object) -> list[Mapping[str, Any]]:
    """Return the JSON objects in a list. Return an empty list if `value` is not a list."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
