# SPDX-License-Identifier: GPL-3.0-or-later
"""Order of versions on the CI server [ci-22]."""

from __future__ import annotations

import re
from itertools import zip_longest

_NONE = (1, 0, "")


def _parts(version: str) -> list[tuple[int, int, str]]:
    found = re.split(r"[.\-]", version.strip())
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in found if part]


def older(version: str, other: str) -> bool:
    """Return whether `version` is older than `other`.

    Numbers are compared by value. A missing part counts as 0, and a string is older than that.
    """
    for mine, theirs in zip_longest(_parts(version), _parts(other), fillvalue=_NONE):
        if mine != theirs:
            return mine < theirs
    return False
