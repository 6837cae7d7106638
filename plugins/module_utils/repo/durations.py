# SPDX-License-Identifier: GPL-3.0-or-later
"""Ages as users write them: C(4w), C(30d), C(12h)."""

from __future__ import annotations

import re
from datetime import timedelta

from ..core.errors import invalid

_AGE = re.compile(r"([1-9]\d{0,5})\s*([wdhm])")
_UNITS = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes"}


def age_of(option: str, text: str) -> timedelta:
    """The time that an option such as C(max_age) names; C(invalid) where it is none."""
    found = _AGE.fullmatch(text.strip())
    if found is None:
        raise invalid(
            f"{option}: '{text}' is no age: write a number with w (weeks), d (days), h (hours) "
            "or m (minutes), as 90d"
        )
    return timedelta(**{_UNITS[found[2]]: int(found[1])})
