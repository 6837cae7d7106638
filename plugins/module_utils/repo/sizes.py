# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers that a server has written for people, as numbers again.

Written interface [W2.1]: thousands separators, units and percentages; server fact [repo-10]:
C(1,234), C(3.48 GB), C(32.22 GB (15.77%)).
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
    """What a text says: a count, a size in bytes, or a share in percent; C(None) is not said."""

    count: float | None = None
    size: int | None = None
    percent: float | None = None


def quantity(text: str) -> Quantity | None:
    """The numbers in a text; C(None) where it is not written as one."""
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
