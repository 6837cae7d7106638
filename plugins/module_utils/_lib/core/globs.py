# SPDX-License-Identifier: GPL-3.0-or-later
"""Glob patterns for names and paths, the same in all modules [C1.7].

`*` and `?` match within a segment, `**` across segments, and `**/` zero or more folders.
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
    """Return the folders before the first segment with a wildcard, without surrounding slashes."""
    begin = _WILDCARD.split(pattern, maxsplit=1)[0]
    return begin.rpartition("/")[0].strip("/")


@lru_cache(maxsize=1024)
def matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that tests whether a name or path matches.

    The regular expression is atomic where possible, to prevent exponential backtracking.
    """
    head, *others = _WIDE.split(pattern)
    atomic = _is_atomic(head, others)
    groups = count()

    def atomic_group(expression: str) -> str:
        """Return an atomic group, emulated by a lookahead because Python 3.10 has none."""
        name = f"g{next(groups)}"
        return f"(?=(?P<{name}>{expression}))(?P={name})" if atomic else expression

    def section(text: str, last: bool) -> str:
        begin, *rest = ("[^/]".join(map(re.escape, part.split("?"))) for part in text.split("*"))
        stars = [atomic_group(f"[^/]*?{literal}") for literal in rest]
        if last and rest:
            stars[-1] = f"[^/]*{rest[-1]}"
        return begin + "".join(stars)

    expression = section(head, not others)
    for index in range(0, len(others), 2):
        last = index == len(others) - 2
        part = _MEANINGS[others[index]] + section(others[index + 1], last)
        expression += part if last else atomic_group(part)
    fullmatch = re.compile(expression, re.DOTALL).fullmatch
    return lambda path: fullmatch(path) is not None


def _is_atomic(head: str, others: Sequence[str]) -> bool:
    """Return whether the sections of a pattern can be atomic groups without losing matches.

    This requires that each `**/` is at the start of the pattern or after a slash.
    """
    before, wide = head, "**/"
    for index in range(0, len(others), 2):
        at_slash = before.endswith("/") or (not before and wide == "**/")
        wide, before = others[index], others[index + 1]
        if wide == "**/" and not at_slash:
            return False
    return True


def crossing(pattern: str) -> str:
    """Return the pattern with `**` for each `*`, which also matches slashes."""
    return _SINGLE.sub("**", pattern)


class Patterns:
    """The patterns of an option, with a record of those that matched.

    A pattern with a slash at the end matches all content of a folder.
    """

    def __init__(self, option: str, patterns: Sequence[str] | None) -> None:
        self._option = option
        self._matchers = {pattern: matcher(with_content(pattern)) for pattern in patterns or ()}
        #: Patterns without a hint yet, with a test in which `*` also matches slashes.
        self._wider = {
            pattern: matcher(with_content(crossing(pattern)))
            for pattern in self._matchers
            if crossing(pattern) != pattern
        }
        self._used: set[str] = set()
        self._hints: dict[str, str] = {}

    def fits(self, *names: str) -> bool:
        """Return whether any pattern matches any name of an object."""
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
        """Return the first hint of a pattern for an unmatched name, or ""."""
        return next(filter(None, (hint(pattern, [name]) for pattern in self._matchers)), "")

    @property
    def unused(self) -> list[str]:
        """Return the patterns that matched nothing."""
        return [pattern for pattern in self._matchers if pattern not in self._used]

    @property
    def hints(self) -> list[str]:
        """Return a hint for each unused pattern that would match if `*` matched slashes."""
        unused = (pattern for pattern in self.unused if pattern in self._hints)
        return [f"{self._option}: {self._hints[pattern]}" for pattern in unused]

    def warnings(self, nothing: str) -> Iterator[str]:
        """Yield a warning for each pattern that matched nothing, or would match more if `*` matched
        slashes.

        :param nothing: the missing object for the message, such as `no file`
        """
        for pattern in self._matchers:
            message = self._hints.get(pattern)
            if message is None and pattern not in self._used:
                message = f"'{pattern}' matches {nothing}"
            if message is not None:
                yield f"{self._option}: {message}"


def hint(pattern: str, names: Iterable[str]) -> str:
    """Suggest another pattern if `pattern` would match a name only if `*` matched slashes, else
    return "".
    """
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
    """Append `**` to a pattern that ends with a slash, to match all content of the folder."""
    return f"{pattern}**" if pattern.endswith("/") else pattern
