# SPDX-License-Identifier: GPL-3.0-or-later
"""Show values of fields as text, for tables: CSV files and release notes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...core.json_text import as_text
from . import moments, sprints
from .documents import is_document, text_of

#: Members that represent an object, most preferred first: for people the display name.
_SHOWN = ("displayName", "name", "value", "filename", "key", "id")
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
        return _of_text(value)
    if isinstance(value, Mapping):
        return _of_object(value)
    if isinstance(value, (list, tuple)):
        texts = [field_text(entry) for entry in value]
        return None if None in texts else ", ".join(filter(None, texts))
    return str(value)


def _of_text(value: str) -> str:
    """Return a string, with a time of the server in the form of ISO 8601."""
    found = moments.moment(value) if moments.is_of_server(value) else None
    if found is not None:
        return found.isoformat(timespec="seconds")
    return sprints.name_of(value) or value


def _of_object(value: Mapping[str, Any]) -> str | None:
    if is_document(value):
        return text_of(value)
    for names, show in _KINDS:
        if any(value.get(name) is not None for name in names):
            return show(value)
    name = next((name for name in _SHOWN if value.get(name) is not None), None)
    if name is None:
        return None if value else ""
    child = value.get("child")
    shown = field_text(value[name])
    return shown if child is None else f"{shown} - {field_text(child)}"


def _of_link(value: Mapping[str, Any]) -> str | None:
    return next((field_text(value[name]) for name in _LINKED if value.get(name)), None)


def _of_estimates(value: Mapping[str, Any]) -> str:
    named = ((label, value.get(name)) for name, label in _ESTIMATES.items())
    return ", ".join(f"{label} {as_text(text)}" for label, text in named if text)


def _of_progress(value: Mapping[str, Any]) -> str:
    return f"{as_text(value['percent'])}%" if "percent" in value else ""


def _count(name: str) -> Callable[[Mapping[str, Any]], str | None]:
    return lambda value: field_text(value.get(name))


#: Members that only one kind of object has, and the function that shows it.
_KINDS: tuple[tuple[tuple[str, ...], Callable[[Mapping[str, Any]], str | None]], ...] = (
    (_LINKED, _of_link),
    (tuple(_ESTIMATES), _of_estimates),
    (("votes",), _count("votes")),
    (("watchCount",), _count("watchCount")),
    (("progress",), _of_progress),
)
