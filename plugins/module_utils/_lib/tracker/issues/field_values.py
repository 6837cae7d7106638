# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert and compare the values of fields [tracker-22]."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping
from typing import Any

from ...core.json_text import as_text
from ...core.module.input_check import Place, split_list
from ...core.module.input_check import text as text_given
from ..accounts import Accounts
from . import moments, sprints
from .documents import (
    is_blank,
    is_document,
    plain_lines,
    same_document,
    text_of,
)
from .text_format import TextFormat

Schema = Mapping[str, Any]

#: Member that is set to a given string, by the type of a field whose values are objects.
_MEMBER_OF_KIND = {
    "option": "value",
    "option-with-child": "value",
    "issuelink": "key",
    "project": "key",
    **dict.fromkeys(
        ("component", "group", "issuetype", "priority", "resolution", "securitylevel", "version"),
        "name",
    ),
}
_TEXT_KINDS = frozenset({"string", "date"})
#: Types of entries whose names may contain commas.
_NAMED_KINDS = frozenset({*_MEMBER_OF_KIND, "user"})
_LONG_TEXTS = ("description", "environment")
#: Members that represent an object in messages, most preferred first.
_SHOWN = ("name", "value", "key", "accountId", "id")
#: Members that servers compare case-insensitively.
_NAMES = frozenset({"name", "value"})


def sent(
    value: Any, schema: Schema, place: Place, accounts: Accounts | None, texts: TextFormat
) -> Any:
    """Convert a value to the type of a field. Raises `invalid` if that is impossible.

    :param accounts: finds the accounts of the cloud; None on a server
    :param texts: converts texts of several lines
    """
    kind = str(schema.get("type"))
    if isinstance(value, str) and value and not value.strip():
        raise place.blank()
    if sprints.is_sprint(schema):
        return sprints.sent(value, place)
    if kind == "array":
        items = str(schema.get("items"))
        return [
            _single(entry, items, place.entry(number), accounts)
            for number, entry in enumerate(_entries(value, items))
        ]
    if kind == "user" and isinstance(value, str) and not value.strip():
        return None
    if is_long_text(schema) and value is not None and not isinstance(value, Mapping):
        return texts.stored(text_given(value, place, empty=True), place.name)
    return _single(value, kind, place, accounts)


def _entries(value: Any, kind: str) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, str):
        return list(filter(None, split_list(value, at_commas=kind not in _NAMED_KINDS)))
    return list(value) if isinstance(value, (list, tuple)) else [value]


def is_long_text(schema: Schema) -> bool:
    """Return whether a field has a text of several lines, which is a document in the cloud."""
    long = schema.get("system") in _LONG_TEXTS or str(schema.get("custom")).endswith(":textarea")
    return long and schema.get("type") == "string"


def _single(value: Any, kind: str, place: Place, accounts: Accounts | None) -> Any:
    if value is None or isinstance(value, (Mapping, list, tuple)):
        return value
    if kind == "number":
        return _number(value, place)
    if kind == "datetime":
        return moments.sent(text_given(value, place, empty=True), place)
    if kind == "timetracking":
        return {"originalEstimate": text_given(value, place)}
    if kind == "user":
        name = text_given(value, place).strip()
        if accounts is None:
            return {"name": name}
        return {accounts.member: accounts.id_of(name, place.name)}
    if kind in _MEMBER_OF_KIND:
        return {_MEMBER_OF_KIND[kind]: text_given(value, place)}
    return text_given(value, place, empty=True) if kind in _TEXT_KINDS else value


def _number(value: Any, place: Place) -> Any:
    """Convert a value to a number. Templates may have turned a number into a string."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    try:
        number = float(str(value))
        if not math.isfinite(number):
            raise ValueError
    except ValueError:
        raise place.error(value, "expected a number") from None
    return int(number) if number.is_integer() else number


def same(current: Any, wanted: Any) -> bool:
    """Return whether a field already has the wanted value.

    Objects are compared by the wanted members, lists in any order, and strings with normalized line
    ends.
    """
    if wanted is None or wanted == []:
        return current in (None, "", []) or (is_document(current) and is_blank(current))
    if is_document(wanted):
        return same_document(current, wanted)
    if isinstance(wanted, Mapping):
        is_object = isinstance(current, Mapping)
        return is_object and all(_same_member(current, name, wanted[name]) for name in wanted)
    if isinstance(wanted, (list, tuple)):
        return isinstance(current, list) and _same_entries(current, list(wanted))
    if isinstance(wanted, str):
        return _same_text(current, wanted)
    return isinstance(current, bool) == isinstance(wanted, bool) and bool(current == wanted)


def _same_member(current: Mapping[str, Any], name: str, wanted: Any) -> bool:
    found = current.get(name)
    if name in _NAMES and isinstance(wanted, str):
        return isinstance(found, str) and found.strip().casefold() == wanted.strip().casefold()
    return as_text(found) == str(wanted) if name == "id" else same(found, wanted)


def _same_entries(current: list[Any], wanted: list[Any]) -> bool:
    unmatched = list(current)
    for entry in wanted:
        found = next((item for item in unmatched if same(item, entry)), None)
        if found is None:
            return False
        unmatched.remove(found)
    return not unmatched


def missing(current: Any, wanted: list[Any]) -> list[Any]:
    """Return the wanted entries that the current list does not contain."""
    entries = current if isinstance(current, list) else []
    return [entry for entry in wanted if not any(same(item, entry) for item in entries)]


def _same_text(current: Any, wanted: str) -> bool:
    if current is None:
        return plain_lines(wanted) == ""
    if not isinstance(current, str):
        return text_of(current) == plain_lines(wanted) if is_document(current) else False
    return _normal(current) == _normal(wanted)


def _normal(text: str) -> str:
    return unicodedata.normalize("NFC", plain_lines(text))


def shown(value: Any) -> Any:
    """Return a value for results and messages: objects by name, documents as plain text.

    A value of a cascading select shows both levels.
    """
    if is_document(value):
        return text_of(value)
    if isinstance(value, Mapping) and value.get("child"):
        parent = {name: value[name] for name in value if name != "child"}
        return f"{shown(parent)} - {shown(value['child'])}"
    if isinstance(value, Mapping):
        return next((value[name] for name in _SHOWN if value.get(name) is not None), dict(value))
    if isinstance(value, (list, tuple)):
        return [shown(entry) for entry in value]
    return value
