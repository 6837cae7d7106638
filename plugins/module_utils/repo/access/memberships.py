# SPDX-License-Identifier: GPL-3.0-or-later
"""Change lists of members: replace the list, or add and remove members."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

from ...core.errors import invalid

Mode: TypeAlias = Literal["exact", "add", "remove"]


def merged(current: Iterable[str], names: Iterable[str], mode: str) -> list[str]:
    """Return the sorted members after the change.

    :param mode: `exact` replaces the current members by the names, `add` adds the names, `remove`
        removes them
    """
    before, named = set(current), set(names)
    after = {"exact": named, "add": before | named, "remove": before - named}[mode]
    return sorted(after)


def require_mode(option: str, value: Any, mode: str) -> None:
    """Raise `invalid` if the mode is `add` or `remove`, but the option is not set."""
    if value is None and mode != "exact":
        raise invalid(f"{option}_mode is '{mode}', but {option} is missing: set {option}")
