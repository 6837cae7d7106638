# SPDX-License-Identifier: GPL-3.0-or-later
"""Change lists of members: replace the list, or add and remove members."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

Mode: TypeAlias = Literal["exact", "add", "remove"]


def merged(current: Iterable[str], names: Iterable[str], mode: str) -> list[str]:
    """Return the sorted members after the change.

    :param mode: `exact` replaces the current members by the names, `add` adds the names, `remove`
        removes them
    """
    before, named = set(current), set(names)
    after = {"exact": named, "add": before | named, "remove": before - named}[mode]
    return sorted(after)
