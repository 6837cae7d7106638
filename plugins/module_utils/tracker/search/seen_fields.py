# SPDX-License-Identifier: GPL-3.0-or-later
"""Fields that were asked for and that no issue has: most often a slip [C1.6]."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

#: What an issue tells beside its fields.
_BESIDE = frozenset({"key", "id", "self"})


class SeenFields:
    """The fields that a search has asked for and not seen yet.

    :param by_keys: they are keys, by which an answer does not name them
    """

    def __init__(self, asked: Iterable[str] | None, *, by_keys: bool = False) -> None:
        asked = [] if by_keys else asked or []
        named = [name for name in asked if not name.startswith(("*", "-"))]
        self._left = {name for name in named if name not in _BESIDE}
        self._any = False

    def through(self, take: Callable[[dict[str, Any]], None] | None) -> Any:
        """C(take), that looks at each issue before; C(None) where there is none."""
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
        """A warning for the fields that none has, C(issues) included."""
        for issue in issues:
            if not self._left:
                break
            self._verify(issue)
        if not self._any or not self._left:
            return []
        names = ", ".join(sorted(self._left))
        return [f"fields: no issue that was found has {names} (names are not ids)"]
