# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of versions, as the CI server has it [ci-22]."""

from __future__ import annotations

import re
from itertools import zip_longest

_NONE = (1, 0, "")


def _parts(version: str) -> list[tuple[int, int, str]]:
    found = re.split(r"[.\-]", version.strip())
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in found if part]


def older(version: str, other: str) -> bool:
    """Numbers count as numbers; a text comes before nothing, and nothing is 0."""
    for mine, theirs in zip_longest(_parts(version), _parts(other), fillvalue=_NONE):
        if mine != theirs:
            return mine < theirs
    return False
