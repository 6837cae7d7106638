# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of the CI server as JSON data, limited by the parameters `depth` or `tree`.

Server facts [ci-11]: the response contains nested objects down to `depth`, or the members that
`tree` names. Unknown names are ignored, a range limits a list, and a malformed `tree` causes a 500.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Getter = Callable[[], Any]


class TreeError(ValueError):
    """Raised for a malformed `tree` parameter."""


@dataclass(frozen=True)
class Exported:
    """An object of the server.

    :param fields: functions that return the members; called only for members in the response
    :param brief: members of an object that is nested deeper than the requested depth
    :param hidden: members that are only returned if `tree` names them
    """

    cls: str | None
    fields: dict[str, Getter]
    brief: tuple[str, ...] = ()
    hidden: frozenset[str] = frozenset()
    tag: str | None = None


@dataclass
class Selector:
    """Node of a parsed `tree`: the children by name, and the range `[first, last)` for a list."""

    children: dict[str, Selector] = field(default_factory=dict)
    first: int = 0
    last: int | None = None

    def child(self, name: str) -> Selector | None:
        return self.children.get(name, self.children.get("*"))


class _Reader:
    """Recursive descent parser for `name[child,child]{m,n},name`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def until(self, stops: str) -> str:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in stops:
            self.at += 1
        return self.text[start : self.at].strip()

    def expect(self, char: str) -> None:
        if self.peek() != char:
            raise TreeError(f"expected {char!r} at {self.at} of {self.text!r}")
        self.at += 1

    def children(self) -> dict[str, Selector]:
        found: dict[str, Selector] = {}
        while True:
            name = self.until(",[]{}")
            if name == "":
                raise TreeError(f"a name is missing at {self.at} of {self.text!r}")
            found[name] = self.selector()
            if self.peek() != ",":
                return found
            self.at += 1

    def selector(self) -> Selector:
        node = Selector()
        if self.peek() == "[":
            self.at += 1
            node.children = self.children()
            self.expect("]")
        if self.peek() == "{":
            self.at += 1
            node.first, node.last = _bounds(self.until("}"))
            self.expect("}")
        return node


def _bounds(text: str) -> tuple[int, int | None]:
    """Parse a range: `m,n` or `m,` or `,n` (without item n), or `n` (only item n)."""
    try:
        if "," not in text:
            return int(text), int(text) + 1
        low, high = (part.strip() for part in text.split(",", 1))
        return (int(low) if low else 0), (int(high) if high else None)
    except ValueError as error:
        raise TreeError(f"not a range: {text!r}") from error


def parse_tree(text: str) -> Selector:
    """Parse a `tree` parameter. Raises TreeError if it is malformed."""
    reader = _Reader(text)
    node = Selector(children=reader.children())
    if reader.at != len(text):
        raise TreeError(f"unexpected {reader.peek()!r} at {reader.at} of {text!r}")
    return node


def by_tree(value: Any, selector: Selector) -> Any:
    """Convert `value` to JSON data with the members that the selector names."""
    if isinstance(value, list):
        return [by_tree(entry, selector) for entry in value[selector.first : selector.last]]
    if not isinstance(value, Exported):
        return value
    shown: dict[str, Any] = {} if value.cls is None else {"_class": value.cls}
    for name, getter in value.fields.items():
        if name in value.hidden and name not in selector.children:
            continue
        child = selector.child(name)
        if child is not None:
            shown[name] = by_tree(getter(), child)
    return shown


def by_depth(value: Any, depth: int) -> Any:
    """Convert `value` to JSON data with all members of nested objects down to `depth`."""
    if isinstance(value, list):
        return [by_depth(entry, depth) for entry in value]
    if not isinstance(value, Exported):
        return value
    shown: dict[str, Any] = {} if value.cls is None else {"_class": value.cls}
    for name, getter in value.fields.items():
        if name not in value.hidden and (depth >= 0 or name in value.brief):
            shown[name] = by_depth(getter(), depth - 1)
    return shown


def constants(**values: Any) -> dict[str, Getter]:
    """Return fields with constant values."""

    def getter(value: Any) -> Getter:
        return lambda: value

    return {name: getter(value) for name, value in values.items()}
