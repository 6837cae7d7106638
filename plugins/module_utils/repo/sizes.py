# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers that a server has written for people, as numbers again.

Written interface [W2.1]: thousands separators, units and percentages; server fact [repo-10]:
C(1,234), C(3.48 GB), C(32.22 GB (15.77%)). A server in another locale writes C(3,48 GB).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NUMBER = r"[+-]?\d[\d.,'\u2019\u00a0\u202f ]*"
_QUANTITY = re.compile(
    rf"\s*(?P<number>{_NUMBER})(?P<unit>%|bytes?|B|[KMGTPE]i?B)?"
    rf"(?:\s*\(\s*(?P<share>{_NUMBER})%\s*\))?\s*",
    re.IGNORECASE,
)
_POWERS = "KMGTPE"
#: What separates groups of three digits and nothing else.
_BLANKS = re.compile(r"['\u2019\u00a0\u202f ]")


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
    unit = (found["unit"] or "").upper()
    share = None if found["share"] is None else _number(found["share"], scaled=True)
    if unit == "%":
        return Quantity(percent=_number(found["number"], scaled=True))
    scaled = unit[:1] in _POWERS and unit != ""
    number = _number(found["number"], scaled=scaled)
    if number is None:
        return None
    if unit == "":
        return Quantity(count=number, percent=share)
    power = _POWERS.index(unit[0]) + 1 if scaled else 0
    return Quantity(size=round(number * 1024**power), percent=share)


def _number(text: str, *, scaled: bool) -> float | None:
    """A number in either decimal convention; C(None) where it is in none.

    :param scaled: it may have decimals, as sizes with a unit and percentages do; counts have none
    """
    digits = _BLANKS.sub("", text)
    mark = _decimal_mark(digits, scaled=scaled)
    whole, _mark, decimals = digits.rpartition(mark) if mark else (digits, "", "")
    plain = re.sub(r"[.,]", "", whole)
    try:
        return float(f"{plain}.{decimals}") if decimals else int(plain)
    except ValueError:
        return None


def _decimal_mark(digits: str, *, scaled: bool) -> str:
    """The character before the decimals; empty where there are none.

    The last one of two kinds is it. One alone, which comes once, is it unless it may end a group
    of three digits: there only a point in a scaled number is.
    """
    marks = re.findall(r"[.,]", digits)
    if not marks or marks.count(marks[-1]) > 1:
        return ""
    if len(set(marks)) == 2:
        return str(marks[-1])
    if len(digits.rpartition(marks[-1])[2]) == 3:
        return "." if scaled and marks[-1] == "." else ""
    return str(marks[-1])
