# SPDX-License-Identifier: GPL-3.0-or-later
"""Read lists that a server sends page by page, up to their certain end."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .messages import Response

_COUNTS = ("total", "totalSize", "totalCount")
_LIMITS = ("limit", "maxResults")
#: Maximum number of entries, so that an endless list ends.
_MAX_ENTRIES = 100_000
#: Maximum number of consecutive pages without a new entry: an account may not see every entry.
_MAX_STALE = 10
_REPEATS = "the list continues with entries that were sent before: entries may be missing"


class Page(NamedTuple):
    """A page of a list.

    :param shown: the JSON object with the limit and the count of the list
    :param cursor: where the next page begins, `None` without a link to it
    :param start: offset of the next page in that link, if known
    """

    response: Response
    shown: Mapping[str, Any]
    entries: Sequence[Any]
    cursor: Any = None
    start: int | None = None


def read_all(
    ask: Callable[[int, Any], Page], requested: int | None = None, most: int | None = None
) -> list[Any]:
    """Read a list page by page, and return its entries. Raises `protocol` as :class:`PagedList`.

    :param ask: reads the page at an offset and cursor; the cursor is `None` for the first page
    :param requested: see :class:`PagedList`
    :param most: stop after the page with more entries than this
    """
    listed, cursor = PagedList(requested), None
    while True:
        response, shown, entries, cursor, start = ask(listed.start, cursor)
        more = listed.add(response, shown, entries, follows=cursor is not None, start=start)
        if not more or (most is not None and len(listed.entries) > most):
            return listed.entries


class PagedList:
    """Collect the entries of a list, without duplicates.

    A page without a link to the next page is only the last one if it is not full: some servers send
    fewer entries than requested, and no link. A page is full if its size reaches the limit in the
    response or, without one, the requested limit.

    A server that sends a page again ignores the offset or cursor, so entries may be missing.

    :param requested: the requested limit of a list by offset. None for a list by cursor, which
        ends without a cursor
    """

    def __init__(self, requested: int | None = None) -> None:
        self.entries: list[Any] = []
        #: Offset of the next page.
        self.start = 0
        self._requested = requested
        self._known: set[str] = set()
        self._last: list[str] = []
        self._stale = 0

    def add(
        self,
        response: Response,
        shown: Mapping[str, Any],
        entries: Sequence[Any],
        *,
        follows: bool = False,
        start: int | None = None,
    ) -> bool:
        """Add the entries of a page. Return whether to read the next page.

        Raises `protocol` if the list ends with fewer entries than its reported count, never ends,
        or repeats a page and has no count that proves that no entry is missing.

        :param shown: the JSON object with the limit and the count of the list
        :param follows: whether the page has a link to the next page
        :param start: offset of the next page in that link, if known
        """
        keys = [_identity(entry) for entry in entries]
        new = {key: one for key, one in zip(keys, entries, strict=True) if key not in self._known}
        repeated, self._last = bool(keys) and keys == self._last, keys
        self._known.update(new)
        self.entries += new.values()
        self.start = max(self.start + len(entries), start or 0)
        self._stale = 0 if new else self._stale + 1
        count = _number(shown, _COUNTS)
        more = (count or 0) > len(self.entries) or _is_full(shown, entries, self._requested)
        if len(self.entries) > _MAX_ENTRIES and (follows or more):
            message = f"the list does not end after {len(self.entries)} entries"
            raise response.error("protocol", message)
        if follows and not repeated and self._stale < _MAX_STALE:
            return True
        if new and more and self._requested is not None and not follows:
            return True
        if (count or 0) > len(self.entries):
            message = f"the server reports {count} entries, but sent {len(self.entries)}"
            raise response.error("protocol", message)
        if count is None and (repeated or follows):
            raise response.error("protocol", _REPEATS)
        return False


def is_whole(shown: Any, entries: Sequence[Any]) -> bool:
    """Return whether a list inside another object certainly contains all of its entries.

    :param shown: the JSON object with the entries
    """
    if not isinstance(shown, Mapping):
        return False
    links, meta = shown.get("_links"), shown.get("meta")
    follows = isinstance(links, Mapping) and links.get("next") is not None
    more = isinstance(meta, Mapping) and bool(meta.get("hasMore"))
    count = _number(shown, _COUNTS)
    cut = _is_full(shown, entries, None) if count is None else count > len(entries)
    return not (follows or more or cut)


def _is_full(shown: Mapping[str, Any], entries: Sequence[Any], requested: int | None) -> bool:
    limit = _number(shown, _LIMITS) or requested or 0
    return 0 < limit <= max(len(entries), _number(shown, ("size",)) or 0)


def _number(shown: Mapping[str, Any], names: Sequence[str]) -> int | None:
    """Return the first of these members that is a number, or None."""
    values = (shown.get(name) for name in names)
    numbers = (value for value in values if isinstance(value, int) and not isinstance(value, bool))
    return next(numbers, None)


def _identity(entry: Any) -> str:
    """Return the id of an entry, or its JSON if it has none."""
    number = entry.get("id") if isinstance(entry, Mapping) else None
    return json.dumps(entry, sort_keys=True) if number is None else str(number)
