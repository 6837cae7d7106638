# SPDX-License-Identifier: GPL-3.0-or-later
"""Patterns on paths: those that choose files, and those that leave some of them out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

_WILDCARD = re.compile(r"[*?]")
_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|[^*?]+")


def has_wildcards(path: str) -> bool:
    return _WILDCARD.search(path) is not None


def fixed_part(pattern: str) -> str:
    """The folder above the first segment with a wildcard, without slashes at its ends."""
    begin = _WILDCARD.split(pattern, maxsplit=1)[0]
    return begin.rpartition("/")[0].strip("/")


def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a path is meant: C(*) and C(?) stay within a segment, C(**) does not, and C(**/) is
    any number of folders, none too.
    """
    return _compiled(pattern.strip("/"), within="[^/]")


class Exclusion:
    """Leaves out paths by patterns, in which C(*) goes beyond a slash and a slash at the end means
    all that is below; remembers which of them served.
    """

    def __init__(self, patterns: Sequence[str] | None) -> None:
        self._matchers = {
            pattern: _compiled(f"{pattern}**" if pattern.endswith("/") else pattern, within=".")
            for pattern in patterns or ()
        }
        self._used: set[str] = set()

    def leaves_out(self, paths: Iterable[str]) -> bool:
        """Whether an item is left out, by any of the paths that name it."""
        names = list(paths)
        found = [
            pattern for pattern, fits in self._matchers.items() if any(fits(name) for name in names)
        ]
        self._used.update(found)
        return bool(found)

    @property
    def unused(self) -> list[str]:
        """The patterns that have left out nothing."""
        return [pattern for pattern in self._matchers if pattern not in self._used]


def _compiled(pattern: str, *, within: str) -> Callable[[str], bool]:
    meanings = {"**/": "(?:.*/)?", "**": ".*", "*": f"{within}*", "?": within}
    parts = [meanings.get(token) or re.escape(token) for token in _TOKEN.findall(pattern)]
    fits = re.compile("".join(parts), re.DOTALL).fullmatch
    return lambda path: fits(path) is not None
