# SPDX-License-Identifier: GPL-3.0-or-later
"""A section of a page: the content under a heading, byte for byte."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ...core.errors import ToolchainError, invalid
from .canonical import HEADINGS
from .parser import Malformed, StorageElement, parse


@dataclass(frozen=True)
class Section:
    """A body, split before and after the content of a section. `level`: of its heading, 1 to 6."""

    before: str
    content: str
    after: str
    level: int

    def replaced(self, content: str) -> str:
        """Return the whole body with the section replaced."""
        return f"{self.before}{content}{self.after}"


def find(body: str, heading: str) -> Section:
    """Return the section below a heading, up to the next heading of the same or a higher level.

    The next heading must have the same parent element. Headings are compared without formatting and
    with collapsed whitespace. Raises `not_found` if there is no such heading, `invalid` if there
    are several, `protocol` for a malformed body.
    """
    root, source = _parsed(body), body.encode()
    wanted = " ".join(heading.split())
    found = [
        (parent, child)
        for parent in root.walk()
        for child in parent.elements
        if child.name in HEADINGS and _words(child) == wanted
    ]
    if not found:
        raise ToolchainError("not_found", f"the page has no heading '{wanted}'")
    if len(found) > 1:
        raise invalid(f"the page has {len(found)} headings '{wanted}': rename all but one")
    parent, start = found[0]
    end = next(
        (
            sibling.begin
            for sibling in parent.elements
            if sibling.begin >= start.end and _ends(sibling, start)
        ),
        parent.outer,
    )
    parts = (source[: start.end], source[start.end : end], source[end:])
    before, content, after = (part.decode() for part in parts)
    return Section(before, content, after, _level(start))


def _parsed(body: str) -> StorageElement:
    try:
        return parse(body)
    except Malformed as error:
        reason = (
            f"the body of the page on the server is not well-formed, so it has no sections: {error}"
        )
        raise ToolchainError("protocol", reason) from None


def require_inside(content: str, section: Section) -> None:
    """Raise `invalid` if the content has a heading that would end the section.

    Everything from that heading on would be added to the page again in every run.
    """
    for element in parse(content).elements:
        if element.name in HEADINGS and _level(element) <= section.level:
            raise invalid(
                f"the body of the section contains the heading '{_words(element)}' of level"
                f" {_level(element)}, which would end a section of level {section.level}: use"
                " headings of lower levels"
            )


def _level(heading: StorageElement) -> int:
    return HEADINGS.index(heading.name) + 1


def _ends(element: StorageElement, start: StorageElement) -> bool:
    return element.name in HEADINGS and _level(element) <= _level(start)


def _words(heading: StorageElement) -> str:
    return " ".join("".join(_texts(heading)).split())


def _texts(element: StorageElement) -> Iterator[str]:
    children: Iterable[object] = element.children
    for child in children:
        if isinstance(child, str):
            yield child
        elif isinstance(child, StorageElement) and child.name != "ac:parameter":
            yield from _texts(child)
