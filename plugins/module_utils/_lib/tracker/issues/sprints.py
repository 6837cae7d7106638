# SPDX-License-Identifier: GPL-3.0-or-later
"""The field for the sprint of an issue [tracker-22].

The server lists all sprints of an issue, most of them closed. It accepts the id of a single sprint.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...core.json_text import as_text
from ...core.module.input_check import Place

#: Older servers send sprints as strings, such as `...Sprint@1f[id=7,state=ACTIVE,name=x]`.
_MEMBER = re.compile(r"[\[,](id|state|name)=([^,\]]*)")
_SPRINT = re.compile(r"[\w.]+\.Sprint@[0-9a-f]+\[")


def is_sprint(schema: Mapping[str, Any]) -> bool:
    return str(schema.get("custom")).endswith(":gh-sprint")


def sent(value: Any, place: Place) -> int | None:
    """Return the id of a sprint as a number. Raises `invalid` for another value."""
    if value is None or value == []:
        return None
    number = as_text(value).strip()
    if isinstance(value, bool) or not number.isdecimal():
        raise place.error(value, "expected the id of a sprint, a number")
    return int(number)


def open_sprint(current: Any) -> Any:
    """Return the id of the sprint that is not closed, or None. A number is returned unchanged."""
    if not isinstance(current, list):
        return current
    for entry in current:
        members = entry if isinstance(entry, Mapping) else _members(as_text(entry))
        if as_text(members.get("state")).casefold() != "closed" and members.get("id") is not None:
            number = as_text(members["id"])
            return int(number) if number.isdecimal() else number
    return None


def name_of(text: str) -> str | None:
    """Return the name of a sprint that a server sends as a string. None for other strings."""
    return _members(text).get("name") if _SPRINT.match(text) else None


def _members(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in _MEMBER.findall(text):
        found.setdefault(name, value)  # the name of a sprint may look like another member
    return found


def same(current: Any, wanted: Any) -> bool:
    return bool(open_sprint(current) == wanted)
