# SPDX-License-Identifier: GPL-3.0-or-later
"""Show values of fields as text, for tables: CSV files and release notes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...core.json_text import as_text
from .documents import is_document, text_of
from .field_values import moment, sprint_name

#: Members that represent an object, most preferred first: for people the display name.
_SHOWN = ("displayName", "name", "value", "filename", "key", "id")
#: The form in which servers send times.
_OF_SERVER = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d{4}")
#: Issues that a link leads to.
_LINKED = ("outwardIssue", "inwardIssue")
_ESTIMATES = {
    "originalEstimate": "estimate",
    "timeSpent": "spent",
    "remainingEstimate": "remaining",
}


def field_text(value: Any) -> str | None:
    """Return a value of a field as text. None if the value cannot be shown.

    Issues are shown by key, documents by their text, and a cascading select by both levels.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, str):
        found = moment(value) if _OF_SERVER.fullmatch(value) else None
        if found is not None:
            return found.isoformat(timespec="seconds")
        return sprint_name(value) or value
    if isinstance(value, Mapping):
        return text_of(value) if is_document(value) else _of_object(value)
    if isinstance(value, (list, tuple)):
        texts = [field_text(entry) for entry in value]
        return None if None in texts else ", ".join(filter(None, texts))
    return str(value)


def _of_object(value: Mapping[str, Any]) -> str | None:
    if any(value.get(name) is not None for name in _LINKED):
        return next((field_text(value[name]) for name in _LINKED if value.get(name)), None)
    if any(value.get(name) is not None for name in _ESTIMATES):
        named = ((label, value.get(name)) for name, label in _ESTIMATES.items())
        return ", ".join(f"{label} {as_text(text)}" for label, text in named if text)
    for count in ("votes", "watchCount"):
        if value.get(count) is not None:
            return field_text(value[count])
    if value.get("progress") is not None:
        return f"{as_text(value['percent'])}%" if "percent" in value else ""
    name = next((name for name in _SHOWN if value.get(name) is not None), None)
    if name is None:
        return None if value else ""
    child, shown = value.get("child"), field_text(value[name])
    return shown if child is None else f"{shown} - {field_text(child)}"
