# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse human-readable numbers of the storage summary [W2.1, repo-10].

Examples are `1,234`, `3.48 GB` and `32.22 GB (15.77%)`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NUMBER = r"\d[\d,]*(?:\.\d+)?"
_QUANTITY = re.compile(
    rf"\s*(?P<number>{_NUMBER})\s*(?P<unit>%|bytes?|B|[KMGTPE]i?B)?"
    rf"(?:\s*\(\s*(?P<share>{_NUMBER})\s*%\s*\))?\s*",
    re.IGNORECASE,
)
_POWERS = "KMGTPE"


@dataclass(frozen=True)
class Quantity:
    """Parsed number: a count, a size in bytes, or a percentage; missing values are `None`."""

    count: float | None = None
    size: int | None = None
    percent: float | None = None


def quantity(text: str) -> Quantity | None:
    """Parse a formatted number; return `None` if the string has another format."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        return None
    unit, number = (found["unit"] or "").upper(), _number(found["number"])
    share = None if found["share"] is None else _number(found["share"])
    if unit == "%":
        return Quantity(percent=number)
    if unit == "":
        return Quantity(count=number, percent=share)
    power = _POWERS.find(unit[0]) + 1  # 0 for bytes
    return Quantity(size=round(number * 1024**power), percent=share)


def _number(text: str) -> float:
    digits = text.replace(",", "")
    return float(digits) if "." in digits else int(digits)
