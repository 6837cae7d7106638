# SPDX-License-Identifier: GPL-3.0-or-later
"""Detect missing parts of a search result: fields that no issue has, usually a typo [C1.6], and the
ends of long lists in issues [tracker-11].
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

Take: TypeAlias = "Callable[[dict[str, Any]], None]"

#: Lists in an issue that a search may cut: the member, and the member with its entries.
_LISTS = (("comment", "comments"), ("worklog", "worklogs"), ("changelog", "histories"))
#: Entries of such a list in the cloud, which does not always tell the total.
_MAX_ENTRIES = 20
#: Keys of issues in a warning.
_SHOWN = 10
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
        return [f"fields: no issue in the result has {names} (use ids, not names)"]


class CutLists:
    """Remember the issues whose comments, work logs or changes are incomplete."""

    def __init__(self) -> None:
        self._cut: dict[str, list[str]] = {}

    def through(self, take: Take | None) -> Take | None:
        """Return `take` with a check of every issue before; `None` without `take`."""
        if take is None:
            return None

        def looked(issue: dict[str, Any]) -> None:
            self._verify(issue)
            take(issue)

        return looked

    def _verify(self, issue: Mapping[str, Any]) -> None:
        fields = issue.get("fields")
        members = {**(fields if isinstance(fields, Mapping) else {})}
        members["changelog"] = issue.get("changelog")
        for name, entries in _LISTS:
            if _is_cut(members.get(name), entries):
                self._cut.setdefault(name, []).append(str(issue.get("key") or issue.get("id")))

    def cut(self, issues: Iterable[Mapping[str, Any]]) -> list[str]:
        """Return a warning for each kind of list that is incomplete."""
        for issue in issues:
            self._verify(issue)
        return [
            f"{name}: a search truncates long lists, so {_keys(keys)} may have more entries;"
            f" rest/api/2/issue/KEY/{name} returns all of them"
            for name, keys in self._cut.items()
        ]


def _is_cut(shown: Any, entries: str) -> bool:
    found = shown.get(entries) if isinstance(shown, Mapping) else None
    if not isinstance(found, list):
        return False
    total = shown.get("total")
    return total > len(found) if isinstance(total, int) else len(found) >= _MAX_ENTRIES


def _keys(keys: list[str]) -> str:
    more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
    return ", ".join(keys[:_SHOWN]) + more
