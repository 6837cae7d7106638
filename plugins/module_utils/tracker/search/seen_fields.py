# SPDX-License-Identifier: GPL-3.0-or-later
"""Detect requested fields that no issue has: usually a typo [C1.6]."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

#: Members of an issue outside of its fields.
_BESIDE = frozenset({"key", "id", "self"})


class SeenFields:
    """The requested fields that were not seen yet.

    :param by_keys: the fields are keys, which responses do not contain
    """

    def __init__(self, asked: Iterable[str] | None, *, by_keys: bool = False) -> None:
        asked = [] if by_keys else asked or []
        named = [name for name in asked if not name.startswith(("*", "-"))]
        self._left = {name for name in named if name not in _BESIDE}
        self._any = False

    def through(self, take: Callable[[dict[str, Any]], None] | None) -> Any:
        """Return `take` with a check of every issue before; `None` without `take`."""
        if take is None or not self._left:
            return take

        def looked(issue: dict[str, Any]) -> None:
            if self._left:
                self._verify(issue)
            take(issue)

        return looked

    def _verify(self, issue: Mapping[str, Any]) -> None:
        self._any = True
        fields = issue.get("fields")
        if isinstance(fields, Mapping):
            self._left -= fields.keys()

    def unseen(self, issues: Iterable[Mapping[str, Any]]) -> list[str]:
        """Return a warning for the fields that no issue has."""
        for issue in issues:
            if not self._left:
                break
            self._verify(issue)
        if not self._any or not self._left:
            return []
        names = ", ".join(sorted(self._left))
        return [f"fields: no issue that was found has {names} (names are not ids)"]
