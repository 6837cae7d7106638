# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse YAML that others wrote, with bounds for nesting and for the values that aliases repeat.

A few lines with aliases can stand for billions of values, and a value can contain itself. The C
parser crashes on very deep nesting, so the events are checked before any value is built.
"""

from __future__ import annotations

from typing import Any

from ansible.module_utils.common import yaml as library

#: Maximum levels of nesting, and maximum number of values with every alias written out.
MAX_DEPTH, MAX_VALUES = 100, 500_000
_TOO_DEEP = f"it is nested deeper than {MAX_DEPTH} levels"


class UnreadableYaml(ValueError):
    """The text is not YAML, or exceeds a bound. The message is the reason, as one sentence.

    :ivar line: number of the line, from 1, or `None`
    """

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.line = line


def parse_yaml(text: str | bytes) -> Any:
    """Return the value of a YAML document. Raises `UnreadableYaml`."""
    # libyaml rejects subclasses of str, such as the strings with origin of ansible-core 2.19
    plain = text if isinstance(text, bytes) else str(text)
    try:
        require_bounds(plain)
        return library.yaml_load(plain)
    except UnreadableYaml:
        raise
    except Exception as error:  # noqa: BLE001 - PyYAML, and its exceptions, may be missing
        mark, reason = getattr(error, "problem_mark", None), reason_of(error)
    raise UnreadableYaml(reason, None if mark is None else mark.line + 1)


def reason_of(error: Exception) -> str:
    """Return the reason for which PyYAML cannot load a document, for the end of a message.

    PyYAML raises Python's own exceptions for `2026-13-45`, `!!bool x`, `!!timestamp x` and deep
    nesting.
    """
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, (KeyError, AttributeError)):
        return "a value does not match its tag"
    reason = " ".join(str(getattr(error, "problem", None) or error).split())
    # libyaml 0.2.6 and newer reject 1,000 levels before they pass on the first event
    return _TOO_DEEP if reason == "exceeded maximum nesting depth" else reason


def require_bounds(text: str | bytes) -> None:
    """Raise `UnreadableYaml` if the values are nested too deeply, or too many with aliases."""
    loader: Any = library.SafeLoader(text)
    try:
        bounds = _Bounds()
        while loader.check_event():
            bounds.add(loader.get_event())
    finally:
        loader.dispose()


class _Bounds:
    """Counts the values and levels of a document, with every alias written out."""

    def __init__(self) -> None:
        self._values = 0
        # number of values and levels by anchor; anchor, first value and levels of open collections
        self._anchors: dict[str, tuple[int, int]] = {}
        self._open: list[tuple[str | None, int]] = []
        self._levels: list[int] = [0]

    def add(self, event: Any) -> None:
        kind = type(event).__name__
        anchor: Any = getattr(event, "anchor", None)
        if kind == "AliasEvent":
            if any(anchor == name for name, _first in self._open):
                raise UnreadableYaml("a value contains itself", event.start_mark.line + 1)
            values, levels = self._anchors.get(anchor, (0, 0))
            self._raise_levels(levels)
            self._count(event, values, levels)
        elif kind in ("SequenceStartEvent", "MappingStartEvent"):
            self._open.append((anchor, self._values))
            self._levels.append(0)
            self._count(event, 1, 0)
        elif kind in ("SequenceEndEvent", "MappingEndEvent"):
            name, before = self._open.pop()
            levels = self._levels.pop() + 1
            self._raise_levels(levels)
            if name is not None:
                self._anchors[name] = (self._values - before, levels)
        elif kind == "ScalarEvent":
            self._count(event, 1, 0)
            if anchor is not None:
                self._anchors[anchor] = (1, 0)

    def _raise_levels(self, levels: int) -> None:
        self._levels[-1] = max(self._levels[-1], levels)

    def _count(self, event: Any, values: int, levels: int) -> None:
        self._values += values
        if len(self._open) + levels > MAX_DEPTH:
            raise UnreadableYaml(_TOO_DEEP, event.start_mark.line + 1)
        if self._values > MAX_VALUES:
            raise UnreadableYaml(
                f"its aliases stand for more than {MAX_VALUES} values", event.start_mark.line + 1
            )
