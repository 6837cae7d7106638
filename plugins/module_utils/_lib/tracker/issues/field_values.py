# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert and compare the values of fields, also of times, sprints and estimates [tracker-22]."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from ...core.json_text import as_text, member
from ...core.module.input_check import Place, split_list
from ...core.module.input_check import text as text_given
from ..accounts import Accounts
from ..client import TrackerClient
from .documents import is_blank, is_document, plain_lines, same_document, text_of

if TYPE_CHECKING:
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
    if is_sprint(schema):
        return sent_sprint(value, place)
    if kind == "array":
        items = str(schema.get("items"))
        return distinct(
            _single(_given(entry, place.entry(number)), items, place.entry(number), accounts)
            for number, entry in enumerate(_entries(value, items))
        )
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


def _given(entry: Any, place: Place) -> Any:
    """Return the entry of a list. Raises `invalid` for null."""
    if entry is None:
        raise place.error(None, "remove the entry, or write its value")
    return entry


def distinct(entries: Iterable[Any]) -> list[Any]:
    """Return the entries of a list that differ for the server, which stores each once."""
    found: list[Any] = []
    for entry in entries:
        found += missing(found, [entry])
    return found


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
        return sent_moment(text_given(value, place, empty=True), place)
    if kind == "date":
        return _day(text_given(value, place, empty=True).strip(), place)
    if kind == "timetracking":
        return {"originalEstimate": text_given(value, place)}
    if kind == "user":
        name = text_given(value, place).strip()
        if accounts is None:
            return {"name": name}
        return {accounts.member: accounts.id_of(name, place.name)}
    if kind in _MEMBER_OF_KIND:
        return {_MEMBER_OF_KIND[kind]: text_given(value, place)}
    return text_given(value, place, empty=True) if kind == "string" else value


def _day(text: str, place: Place) -> str:
    """Return a date, or "". Raises `invalid` for another form, which the server rejects."""
    try:
        if text and date.fromisoformat(text).isoformat() != text:  # Python accepts more forms
            raise ValueError
    except ValueError:
        raise place.error(text, "expected a date such as 2026-05-31") from None
    return text


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


# -- times with an offset from UTC -------------------------------------------------------------

_MOMENT = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)[T ](?P<time>\d\d:\d\d)(?P<seconds>:\d\d)?(\.(?P<fraction>\d+))?"
    r" ?(?P<offset>Z|[+-]\d\d:?\d\d)"
)


def moment(text: Any) -> datetime | None:
    """Parse a time with an offset. Return None for other values."""
    found = _MOMENT.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None:
        return None
    fraction = (found["fraction"] or "0")[:6]
    offset = "+0000" if found["offset"] == "Z" else found["offset"]
    written = f"{found['day']}T{found['time']}{found['seconds'] or ':00'}.{fraction}{offset}"
    try:
        return datetime.strptime(written, "%Y-%m-%dT%H:%M:%S.%f%z")
    except ValueError:
        return None


def sent_moment(text: str, place: Place) -> str | None:
    """Return a time in the server's form, or None for an empty string. Raises `invalid`."""
    if not text.strip():
        return None
    found = moment(text)
    if found is None:
        hint = "expected a time with its offset from UTC, such as 2026-01-05T09:00:00+01:00"
        raise place.error(text, hint)
    thousandths = found.microsecond // 1000
    return f"{found:%Y-%m-%dT%H:%M:%S}.{thousandths:03d}{found:%z}"


def same_moment(current: Any, wanted: Any) -> bool:
    """Return whether two values are the same instant, to the millisecond of the server."""
    if current is None or wanted is None:
        return current is wanted
    stored, given = moment(current), moment(wanted)
    return current == wanted if None in (stored, given) else stored == given


# -- sprints: a server lists all of an issue, most of them closed, and accepts the id of one -------

#: Older servers send sprints as strings, such as `...Sprint@1f[id=7,state=ACTIVE,name=x]`.
_MEMBER = re.compile(r"[\[,](id|state|name)=([^,\]]*)")
_SPRINT = re.compile(r"[\w.]+\.Sprint@[0-9a-f]+\[")


def is_sprint(schema: Mapping[str, Any]) -> bool:
    return str(schema.get("custom")).endswith(":gh-sprint")


def sent_sprint(value: Any, place: Place) -> int | None:
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
        members = entry if isinstance(entry, Mapping) else _sprint_members(as_text(entry))
        if as_text(members.get("state")).casefold() != "closed" and members.get("id") is not None:
            number = as_text(members["id"])
            return int(number) if number.isdecimal() else number
    return None


def sprint_name(text: str) -> str | None:
    """Return the name of a sprint that a server sends as a string. None for other strings."""
    return _sprint_members(text).get("name") if _SPRINT.match(text) else None


def _sprint_members(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in _MEMBER.findall(text):
        found.setdefault(name, value)  # the name of a sprint may look like another member
    return found


# -- estimates, such as `2d 4h`: members of the field `timetracking` ----------------------------

_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([wdhm])?\s*", re.IGNORECASE)
#: Key in `memory` for the seconds of a unit, or an empty mapping if the server does not send them.
_UNITS = "tracker.units of time"
_ESTIMATES = ("originalEstimate", "remainingEstimate")


class Durations:
    """Compare estimates in seconds, by the server's hours of a day and days of a week."""

    def __init__(self, client: TrackerClient) -> None:
        self._client = client

    def same(self, current: Any, wanted: Any) -> bool:
        if not isinstance(wanted, Mapping):
            return same(current, wanted)
        return all(self._same_member(current, name, wanted[name]) for name in wanted)

    def _same_member(self, current: Any, name: str, wanted: Any) -> bool:
        found, seconds = member(current, name), member(current, f"{name}Seconds")
        if same(found, wanted):
            return True
        return isinstance(seconds, int) and seconds == self._seconds(as_text(wanted))

    def shown(self, value: Any) -> Any:
        """Return the estimates without the other members."""
        if not isinstance(value, Mapping):
            return value
        return {name: value[name] for name in _ESTIMATES if name in value}

    def _seconds(self, text: str) -> float | None:
        """Return the seconds of an estimate. None if they are not known."""
        parts = list(_PART.finditer(text.strip()))
        if not parts or "".join(part[0] for part in parts) != text.strip():
            return None
        units = self._units()
        found = [(float(part[1]), (part[2] or "").lower()) for part in parts]
        if any(unit not in units for _number, unit in found):
            return None
        return sum(number * units[unit] for number, unit in found)

    def _units(self) -> Mapping[str, float]:
        """Return the seconds of each unit. The key "" is for numbers without a unit."""
        if _UNITS not in self._client.memory:
            purpose = "reading the hours of a day"
            reported = self._client.read_optional(purpose, "rest/api/2/configuration")
            found = member(reported, "timeTrackingConfiguration")
            hours, days = member(found, "workingHoursPerDay"), member(found, "workingDaysPerWeek")
            units: dict[str, float] = {}
            if isinstance(hours, (int, float)) and isinstance(days, (int, float)):
                day = 3600.0 * hours
                units = {"m": 60.0, "h": 3600.0, "d": day, "w": day * days}
            default = as_text(member(found, "defaultUnit"))[:1].lower()
            units |= {"": units[default]} if default in units else {}
            self._client.memory[_UNITS] = units
        known: Mapping[str, float] = self._client.memory[_UNITS]
        return known
