# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists of members that are managed exactly, or only in part."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

from ...core.errors import invalid

Mode: TypeAlias = Literal["exact", "add", "remove"]


def merged(held: Iterable[str], names: Iterable[str], mode: str) -> list[str]:
    """Return the sorted members after the change."""
    before, named = set(held), set(names)
    after = {"exact": named, "add": before | named, "remove": before - named}[mode]
    return sorted(after)


def require_mode(option: str, value: Any, mode: str) -> None:
    """Raise `invalid` for a mode without a list."""
    if value is None and mode != "exact":
        raise invalid(f"{option}_mode is '{mode}', but {option} is missing: list them")
