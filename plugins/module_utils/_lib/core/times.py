# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse times that servers return, and ages in options, such as `4w`, `30d` and `12h`.

Tasks that have to wait for a time fail with the kind `waiting`.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Any

from .errors import ToolchainError, invalid

_AGE = re.compile(r"([1-9]\d{0,5})\s*([wdhm])")
_UNITS = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes"}
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d+))? ?(?:Z|([+-]\d\d):?(\d\d)?)?",
    re.IGNORECASE,
)


def age_of(option: str, text: str) -> timedelta:
    """Parse the value of an option such as `max_age`. Raises `invalid` if it is not an age.

    :param option: name of the option, for the message
    """
    found = _AGE.fullmatch(text.strip())
    if found is None:
        raise invalid(
            f"{option}: '{text}' is not an age: write a number with w (weeks), d (days), h (hours)"
            " or m (minutes), such as 90d"
        )
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def moment_of(value: Any) -> datetime | None:
    """Parse a time from a server, or return `None` if it is invalid.

    :param value: ISO 8601, such as `2024-01-02T03:04:05.678+0000`, by default in UTC; or epoch
        milliseconds
    """
    text = str(value).strip()
    found = _TIME.fullmatch(text)
    try:
        if found is None:
            return datetime.fromtimestamp(int(text) / 1000, timezone.utc)
        day, clock, fraction, hours, minutes = found.groups()
        zone = f"{hours or '+00'}:{minutes or '00'}"
        moment = datetime.fromisoformat(f"{day}T{clock}.{(fraction or '')[:6]:0<6}{zone}")
        moment.astimezone(timezone.utc)  # raises for a time outside the years 1 to 9999
        return moment
    except (ValueError, OverflowError, OSError):
        return None


def iso(moment: datetime | None) -> str | None:
    """Format a time as `2026-01-02T03:04:05.678Z`."""
    if moment is None:
        return None
    utc = moment.astimezone(timezone.utc)
    return f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03d}Z"


def waiting(reason: str, until: datetime | None) -> ToolchainError:
    """Return the error of a task that has to wait: nothing failed, and a later run may pass.

    :param until: earliest time of another run; `None` if it is unknown
    """
    end = "" if until is None else f": wait until {iso(until)}"
    result = {"waiting": {"reason": reason, "until": iso(until)}, "changed": False}
    return ToolchainError("waiting", f"{reason}{end}", result=result)


def not_built(label: str, stage: str, duration: str) -> ToolchainError:
    """Return the error of check mode for an object that the run would build, and that must stay in
    a stage before its promotion.
    """
    reason = f"{label} does not exist yet, and must stay in '{stage}' for {duration}"
    return waiting(reason, None)
