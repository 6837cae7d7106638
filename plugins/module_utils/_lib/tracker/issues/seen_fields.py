# SPDX-License-Identifier: GPL-3.0-or-later
"""Warn about missing parts of a search result.

A field that no issue has is usually a typo [C1.6]. A search truncates long lists in issues
[tracker-11].
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from ...core.http.paged_list import is_whole

Take: TypeAlias = Callable[[dict[str, Any]], None]

#: Lists that a search may truncate: the member of the issue, and the member with the entries.
_LISTS = (("comment", "comments"), ("worklog", "worklogs"), ("changelog", "histories"))
#: Maximum length of such a list in the cloud, which does not always send the total.
_MAX_ENTRIES = 20
#: Maximum number of keys of issues in a warning.
_SHOWN = 10
#: Members of an issue that are not in `fields`.
_NOT_FIELDS = frozenset({"key", "id", "self"})


class MissingParts:
    """Find requested fields that no issue has, and lists that the search has truncated.

    :param asked: names of the requested fields; None means the default fields
    :param by_keys: whether they are keys of fields, which responses do not contain
    """

    def __init__(self, asked: Iterable[str] | None, *, by_keys: bool = False) -> None:
        asked = [] if by_keys else asked or []
        named = [name for name in asked if not name.startswith(("*", "-"))]
        #: Requested fields that no issue has so far.
        self._left = {name for name in named if name not in _NOT_FIELDS}
        #: Keys of the issues with truncated lists, by name of the list.
        self._cut: dict[str, list[str]] = {}

    def through(self, take: Take | None) -> Take | None:
        """Return a function that checks each issue before it calls `take`. None without `take`."""
        if take is None:
            return None

        def check_and_take(issue: dict[str, Any]) -> None:
            self._check(issue)
            take(issue)

        return check_and_take

    def _check(self, issue: Mapping[str, Any]) -> None:
        fields = issue.get("fields")
        members = {**fields} if isinstance(fields, Mapping) else {}
        self._left.difference_update(members)
        members["changelog"] = issue.get("changelog")
        for name, entries in _LISTS:
            if _is_cut(members.get(name), entries):
                self._cut.setdefault(name, []).append(str(issue.get("key") or issue.get("id")))

    def unseen(self, count: int, issues: Iterable[Mapping[str, Any]]) -> list[str]:
        """Check further issues. Return a warning if no issue has a requested field.

        :param count: number of all issues
        """
        for issue in issues:
            self._check(issue)
        if not count or not self._left:
            return []
        names = ", ".join(sorted(self._left))
        return [f"fields: no issue in the result has {names} (use ids, not names)"]

    def warnings(self, count: int, issues: Iterable[Mapping[str, Any]]) -> list[str]:
        """Check further issues. Return warnings about fields and each kind of truncated list."""
        return [
            *self.unseen(count, issues),
            *(
                f"{name}: a search truncates long lists, so {_keys(keys)} may have more entries;"
                f" rest/api/2/issue/KEY/{name} returns all of them"
                for name, keys in self._cut.items()
            ),
        ]


def _is_cut(shown: Any, entries: str) -> bool:
    found = shown.get(entries) if isinstance(shown, Mapping) else None
    if not isinstance(found, list):
        return False
    limited = len(found) >= _MAX_ENTRIES and not isinstance(shown.get("total"), int)
    return limited or not is_whole(shown, found)


def _keys(keys: list[str]) -> str:
    more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
    return ", ".join(keys[:_SHOWN]) + more
