# SPDX-License-Identifier: GPL-3.0-or-later
"""Match paths against patterns, to select or to exclude files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

_WILDCARD = re.compile(r"[*?]")
_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|[^*?]+")


def has_wildcards(path: str) -> bool:
    return _WILDCARD.search(path) is not None


def fixed_part(pattern: str) -> str:
    """Return the folder above the first segment with a wildcard, without surrounding slashes."""
    begin = _WILDCARD.split(pattern, maxsplit=1)[0]
    return begin.rpartition("/")[0].strip("/")


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return a test for paths: `*` and `?` match within a segment, `**` across segments, and `**/`
    any number of folders including none.
    """
    return _compiled(pattern.strip("/"), within="[^/]")


class Exclusion:
    """Exclude paths by patterns and record which patterns matched.

    `*` also matches slashes, and a trailing slash means all content of a folder.
    """

    def __init__(self, patterns: Sequence[str] | None) -> None:
        self._matchers = {
            pattern: _compiled(f"{pattern}**" if pattern.endswith("/") else pattern, within=".")
            for pattern in patterns or ()
        }
        self._used: set[str] = set()

    def leaves_out(self, paths: Iterable[str]) -> bool:
        """Return whether an item is excluded by any of the paths that name it."""
        names = list(paths)
        found = [
            pattern for pattern, fits in self._matchers.items() if any(fits(name) for name in names)
        ]
        self._used.update(found)
        return bool(found)

    @property
    def is_empty(self) -> bool:
        """Return whether there is no pattern."""
        return not self._matchers

    @property
    def unused(self) -> list[str]:
        """Return the patterns that excluded nothing."""
        return [pattern for pattern in self._matchers if pattern not in self._used]


def _compiled(pattern: str, *, within: str) -> Callable[[str], bool]:
    meanings = {"**/": "(?:.*/)?", "**": ".*", "*": f"{within}*", "?": within}
    parts = [meanings.get(token) or re.escape(token) for token in _TOKEN.findall(pattern)]
    fits = re.compile("".join(parts), re.DOTALL).fullmatch
    return lambda path: fits(path) is not None
