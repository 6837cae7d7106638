# SPDX-License-Identifier: GPL-3.0-or-later
"""Estimates of time, such as `2d 4h`, as members of the field `timetracking` [tracker-22]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...core.json_text import as_text, member
from ..client import TrackerClient
from .field_values import same

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
            self._client.memory[_UNITS] = _units(member(reported, "timeTrackingConfiguration"))
        found: Mapping[str, float] = self._client.memory[_UNITS]
        return found


def _units(configuration: Any) -> dict[str, float]:
    names = ("workingHoursPerDay", "workingDaysPerWeek")
    hours, days = (member(configuration, name) for name in names)
    if not isinstance(hours, (int, float)) or not isinstance(days, (int, float)):
        return {}
    day = 3600.0 * hours
    units = {"m": 60.0, "h": 3600.0, "d": day, "w": day * days}
    default = as_text(member(configuration, "defaultUnit"))[:1].lower()
    return {**units, **({"": units[default]} if default in units else {})}
