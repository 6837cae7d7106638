# SPDX-License-Identifier: GPL-3.0-or-later
"""Times with an offset from UTC, as values of fields [tracker-22]."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from ...core.module.input_check import Place

_MOMENT = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)[T ](?P<time>\d\d:\d\d)(?P<seconds>:\d\d)?(\.(?P<fraction>\d+))?"
    r" ?(?P<offset>Z|[+-]\d\d:?\d\d)"
)


_OF_SERVER = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d{4}")


def is_of_server(text: str) -> bool:
    """Return whether a string has the form in which servers send times."""
    return _OF_SERVER.fullmatch(text) is not None


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


def sent(text: str, place: Place) -> str | None:
    """Return a time in the server's form, or None for an empty string. Raises `invalid`."""
    if not text.strip():
        return None
    found = moment(text)
    if found is None:
        hint = "expected a time with its offset from UTC, such as 2026-01-05T09:00:00+01:00"
        raise place.error(text, hint)
    thousandths = found.microsecond // 1000
    return f"{found:%Y-%m-%dT%H:%M:%S}.{thousandths:03d}{found:%z}"


def same(current: Any, wanted: Any) -> bool:
    """Return whether two values are the same instant, to the millisecond of the server."""
    if current is None or wanted is None:
        return current is wanted
    stored, given = moment(current), moment(wanted)
    return current == wanted if None in (stored, given) else stored == given
