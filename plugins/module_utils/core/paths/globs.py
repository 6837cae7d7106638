# SPDX-License-Identifier: GPL-3.0-or-later
"""The one language of patterns [C1.7].

`*` and `?` match within a segment, `**` across segments, and `**/` any number of folders including
none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import count

_WILDCARD = re.compile(r"[*?]")
_WIDE = re.compile(r"(\*\*/?)")
_MEANINGS = {"**/": "(?:.*?/)??", "**": ".*?"}
#: A `*` that is not part of `**`.
_SINGLE = re.compile(r"(?<!\*)\*(?!\*)")


def has_wildcards(path: str) -> bool:
    return _WILDCARD.search(path) is not None


def fixed_part(pattern: str) -> str:
    """Return the folder above the first segment with a wildcard, without surrounding slashes."""
    begin = _WILDCARD.split(pattern, maxsplit=1)[0]
    return begin.rpartition("/")[0].strip("/")


@lru_cache(maxsize=1024)
def matcher(pattern: str) -> Callable[[str], bool]:
    """Return a test for names and paths, in time that does not explode with their length."""
    head, *others = _WIDE.split(pattern)
    atomic = _is_atomic(head, others)
    groups = count()

    def first(expression: str) -> str:
        """Let the expression match once: an atomic group, which Python has from 3.11 on only."""
        name = f"g{next(groups)}"
        return f"(?=(?P<{name}>{expression}))(?P={name})" if atomic else expression

    def section(text: str, last: bool) -> str:
        begin, *rest = ("[^/]".join(map(re.escape, part.split("?"))) for part in text.split("*"))
        stars = [first(f"[^/]*?{literal}") for literal in rest]
        if last and rest:
            stars[-1] = f"[^/]*{rest[-1]}"
        return begin + "".join(stars)

    expression = section(head, not others)
    for index in range(0, len(others), 2):
        last = index == len(others) - 2
        part = _MEANINGS[others[index]] + section(others[index + 1], last)
        expression += part if last else first(part)
    fits = re.compile(expression, re.DOTALL).fullmatch
    return lambda path: fits(path) is not None


def _is_atomic(head: str, others: Sequence[str]) -> bool:
    """Return whether a section may keep the first place where it matches.

    The section before `**/` has to end at a slash for that.
    """
    before, wide = head, "**/"
    for index in range(0, len(others), 2):
        at_slash = before.endswith("/") or (not before and wide == "**/")
        wide, before = others[index], others[index + 1]
        if wide == "**/" and not at_slash:
            return False
    return True


def crossing(pattern: str) -> str:
    """Return the pattern whose `*` also matches slashes."""
    return _SINGLE.sub("**", pattern)


class Patterns:
    """Match paths against the patterns of an option and record which patterns matched.

    A slash at the end means all content of a folder.
    """

    def __init__(self, option: str, patterns: Sequence[str] | None) -> None:
        self._option = option
        self._matchers = {pattern: matcher(with_content(pattern)) for pattern in patterns or ()}
        #: Tests of the patterns without a hint so far, as if their `*` matched slashes.
        self._wider = {
            pattern: matcher(with_content(crossing(pattern)))
            for pattern in self._matchers
            if crossing(pattern) != pattern
        }
        self._used: set[str] = set()
        self._hints: dict[str, str] = {}

    def fits(self, *names: str) -> bool:
        """Return whether a pattern matches any of the names of an object."""
        found = {pattern for pattern, fits in self._matchers.items() if any(map(fits, names))}
        self._used |= found
        for pattern, reaches in list(self._wider.items()):
            # a pattern that matches one name of the object needs no hint for its other names
            if pattern not in found and any(map(reaches, names)):
                self._hints[pattern] = hint(pattern, names)
                self._wider.pop(pattern, None)
        return bool(found)

    def __bool__(self) -> bool:
        """Return whether there is any pattern."""
        return bool(self._matchers)

    def doubt(self, name: str) -> str:
        """Return the hint of a pattern for a name that no pattern matches, else ""."""
        return next(filter(None, (hint(pattern, [name]) for pattern in self._matchers)), "")

    @property
    def unused(self) -> list[str]:
        """Return the patterns that matched nothing."""
        return [pattern for pattern in self._matchers if pattern not in self._used]

    @property
    def hints(self) -> list[str]:
        """Return what to write for each pattern that would match if `*` matched slashes."""
        return [f"{self._option}: {self._hints[one]}" for one in self.unused if one in self._hints]

    def warnings(self, nothing: str) -> Iterator[str]:
        """Yield a warning for each pattern that matched nothing, such as `no file`, or that would
        match more if `*` matched slashes.
        """
        for pattern in self._matchers:
            message = self._hints.get(pattern)
            if message is None and pattern not in self._used:
                message = f"'{pattern}' matches {nothing}"
            if message is not None:
                yield f"{self._option}: {message}"


def hint(pattern: str, names: Iterable[str]) -> str:
    """Return what to write if the pattern would match a name if `*` matched slashes, else ""."""
    wider = crossing(pattern)
    if wider == pattern:
        return ""
    fits, reaches = matcher(with_content(pattern)), matcher(with_content(wider))
    missed = next((name for name in names if reaches(name) and not fits(name)), None)
    if missed is None:
        return ""
    folder, slash, name = pattern.rpartition("/")
    candidates = (f"{folder}{slash}**/{name}", f"**/{pattern}") if name else ()
    instead = next((candidate for candidate in candidates if matcher(candidate)(missed)), wider)
    return f"'{pattern}' does not match '{missed}': * does not match slashes, write '{instead}'"


def with_content(pattern: str) -> str:
    """Return the pattern, with all content of a folder if a slash ends it."""
    return f"{pattern}**" if pattern.endswith("/") else pattern
