# SPDX-License-Identifier: GPL-3.0-or-later
"""A section of a page: the content under a heading, byte for byte."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...core.errors import ToolchainError, invalid
from .canonical import HEADINGS
from .parser import Comment, Malformed, Node, StorageElement, parse

_CELLS = ("ac:layout-cell", "td", "th")


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
    """Return the section below a heading.

    The section ends before the first following sibling of the heading that is, or contains, a
    heading of the same or a higher level: a macro, a table or a layout is never cut. Without such a
    sibling it ends with its container. Headings are compared without formatting and with collapsed
    whitespace. Raises `not_found` if there is no such heading, `invalid` if there are several,
    `conflict` if the section goes on after its container, `protocol` for a malformed body.
    """
    root, source = _parsed(body), body.encode()
    wanted = " ".join(heading.split())
    found = [path for path in _paths(root, ()) if _words(path[-1]) == wanted]
    if not found:
        raise ToolchainError("not_found", f"the page has no heading '{wanted}'")
    if len(found) > 1:
        raise invalid(f"the page has {len(found)} headings '{wanted}': rename all but one")
    *above, start = found[0]
    level, later = _level(start), _after(above[-1], start)
    end = next((node.begin for node in later if _ends(node, level)), None)
    if end is None:
        if _goes_on(above, start, level):
            raise ToolchainError(
                "conflict",
                f"the heading '{wanted}' is the last element of a macro or box, but its section"
                " goes on after it: move the heading out of the macro, or the text into it",
            )
        end = above[-1].outer
    parts = (source[: start.end], source[start.end : end], source[end:])
    before, content, after = (part.decode() for part in parts)
    return Section(before, content, after, level)


def _paths(
    element: StorageElement, above: tuple[StorageElement, ...]
) -> Iterator[tuple[StorageElement, ...]]:
    """Yield every heading as the last item of the path to it, which begins with the root."""
    path = (*above, element)
    if element.name in HEADINGS:
        yield path
    for child in element.elements:
        yield from _paths(child, path)


def _after(parent: StorageElement, child: StorageElement) -> list[StorageElement]:
    return [element for element in parent.elements if element.begin >= child.end]


def _goes_on(above: Sequence[StorageElement], start: StorageElement, level: int) -> bool:
    """Return whether text follows the container of a heading, but not the heading inside it.

    Cells of layouts and tables end their sections.

    :param above: the path to the heading, without the heading
    """
    inner, is_outside = start, False
    for container in reversed(above):
        following = [node for node in container.children if not _is_blank(node)]
        following = following[_position(following, inner) + 1 :]
        if following:
            first = following[0]
            return is_outside and not (isinstance(first, StorageElement) and _ends(first, level))
        if container.name in _CELLS:
            return False
        inner, is_outside = container, True
    return False


def _position(nodes: Sequence[Node], wanted: StorageElement) -> int:
    return next(number for number, node in enumerate(nodes) if node is wanted)


def _is_blank(node: Node) -> bool:
    """Return whether a node shows nothing, like the empty paragraph that editors add."""
    if isinstance(node, str):
        return not node.strip()
    if isinstance(node, Comment):
        return True
    return node.name in ("p", "br") and all(map(_is_blank, node.children))


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
    for element in parse(content).walk():
        if element.name in HEADINGS and _level(element) <= section.level:
            raise invalid(
                f"the body of the section contains the heading '{_words(element)}' of level"
                f" {_level(element)}, which would end a section of level {section.level}: use"
                " headings of lower levels"
            )


def _level(heading: StorageElement) -> int:
    return HEADINGS.index(heading.name) + 1


def _ends(element: StorageElement, level: int) -> bool:
    """Return whether an element is, or contains, a heading that ends a section of a level."""
    return any(inner.name in HEADINGS and _level(inner) <= level for inner in element.walk())


def _words(heading: StorageElement) -> str:
    return " ".join("".join(_texts(heading)).split())


def _texts(element: StorageElement) -> Iterator[str]:
    children: Iterable[object] = element.children
    for child in children:
        if isinstance(child, str):
            yield child
        elif isinstance(child, StorageElement) and child.name != "ac:parameter":
            yield from _texts(child)
