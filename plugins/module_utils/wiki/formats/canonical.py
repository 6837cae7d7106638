# SPDX-License-Identifier: GPL-3.0-or-later
"""Canonical form of a page body, without the parts that the wiki rewrites when it saves a page.

Server facts [wiki-5]: on save, the wiki adds ids and marks, sorts the parameters of macros, wraps
table rows in a `tbody`, and removes whitespace between blocks. In links it removes the key of the
page's own space. Inline comments of readers add marker elements. Everything else counts as a
difference: letter case, attributes set by the author, and whitespace inside text or code.
"""

from __future__ import annotations

from collections.abc import Iterable

from .parser import Comment, Node, StorageElement

MACROS = frozenset({"ac:structured-macro", "ac:macro"})
PARAMETER = "ac:parameter"
MARKER = "ac:inline-comment-marker"
TASK_ID = "ac:task-uuid"
SPACE_KEY = "ri:space-key"
#: Attributes that the server may change at any time.
VOLATILE = frozenset({"ac:local-id", "local-id", "ri:version-at-save"})
#: Attributes of the wiki's editor (`data-*`) that readers can see: the colour of a table cell.
_VISIBLE = frozenset({"data-highlight-colour"})
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")

_LINKS = frozenset({"ri:page", "ri:blog-post"})
BLOCKS = frozenset(("p", *HEADINGS, "div", "table", "ul", "ol", "dl", "blockquote", "pre", "hr"))
WIKI_BLOCKS = frozenset({"ac:structured-macro", "ac:layout", "ac:task-list"})
#: Elements without text, in which whitespace is insignificant.
STRUCTURES = frozenset(
    (
        *("table", "thead", "tbody", "tfoot", "tr", "colgroup", "ul", "ol", "dl"),
        *("ac:layout", "ac:layout-section", "ac:task-list", "ac:task"),
        *("ac:structured-macro", "ac:macro", "ac:link", "ac:image"),
    )
)
#: Elements that contain blocks. In those of `_WIDE`, macros count as blocks.
_WIDE = frozenset({"", "ac:rich-text-body", "ac:layout-cell"})
_FLOWS = _WIDE | {"div", "td", "th", "li", "blockquote", "ac:task-body"}
_BLANKS = " \t\r\n"


def canonical(element: StorageElement, space: str | None) -> StorageElement:
    """Return a copy of a tree without the parts that the server rewrites.

    :param space: key of the page's space, or None if unknown
    """
    children = [
        canonical(child, space) if isinstance(child, StorageElement) else child
        for child in _flat(element.children)
        if not (
            element.name == "ac:task"
            and isinstance(child, StorageElement)
            and child.name == TASK_ID
        )
    ]
    children = _without_blanks(element.name, children)
    if element.name in MACROS:
        children = _parameters_first(children)
    elif element.name == "table":
        children = _in_bodies(children)
    return StorageElement(element.name, _attributes(element, space), children)


def is_editor_attribute(attribute: str) -> bool:
    """Return whether an attribute belongs to the wiki's editor and is invisible to readers."""
    return attribute.startswith("data-") and attribute not in _VISIBLE


def _attributes(element: StorageElement, space: str | None) -> dict[str, str]:
    """Return the attributes to compare, sorted by name."""
    attributes = {name: value for name, value in element.attributes.items() if name not in VOLATILE}
    if has_own_space(element, space):
        del attributes[SPACE_KEY]
    return dict(sorted(attributes.items()))


def has_own_space(element: StorageElement, space: str | None) -> bool:
    """Return whether a link redundantly contains the key of the page's own space."""
    return (
        element.name in _LINKS and space is not None and element.attributes.get(SPACE_KEY) == space
    )


def _flat(nodes: Iterable[Node]) -> list[Node]:
    """Return the children without the markers of inline comments, and join adjacent text."""
    flat: list[Node] = []
    for node in nodes:
        marked = isinstance(node, StorageElement) and node.name == MARKER
        for part in _flat(node.children) if marked and isinstance(node, StorageElement) else [node]:
            if isinstance(part, str) and flat and isinstance(flat[-1], str):
                flat[-1] += part
            else:
                flat.append(part)
    return flat


def _blank(node: Node) -> bool:
    return isinstance(node, str) and not node.strip(_BLANKS)


def _without_blanks(name: str, children: list[Node]) -> list[Node]:
    """Return the children without whitespace that only formats the source."""
    if name in STRUCTURES:
        return [child for child in children if not _blank(child)]
    if name not in _FLOWS:
        return children
    blocks = BLOCKS | WIKI_BLOCKS if name in _WIDE else BLOCKS
    last = len(children) - 1
    remaining = [
        child
        for index, child in enumerate(children)
        if not (_blank(child) and (index in (0, last) or _at_a_block(children, index, blocks)))
    ]
    return _stripped(remaining) if name == "" else remaining


def _at_a_block(children: list[Node], index: int, blocks: frozenset[str]) -> bool:
    neighbours = (*children[max(index - 1, 0) : index], *children[index + 1 : index + 2])
    return any(isinstance(node, StorageElement) and node.name in blocks for node in neighbours)


def _stripped(children: list[Node]) -> list[Node]:
    """Strip whitespace at the start and the end of a body."""
    remaining = list(children)
    if remaining and isinstance(remaining[0], str):
        remaining[0] = remaining[0].lstrip(_BLANKS)
    if remaining and isinstance(remaining[-1], str):
        remaining[-1] = remaining[-1].rstrip(_BLANKS)
    return [node for node in remaining if node != ""]


def _parameters_first(children: list[Node]) -> list[Node]:
    """Return the parameters of a macro, sorted by name (stable), then its other children."""
    parameters = [
        node for node in children if isinstance(node, StorageElement) and node.name == PARAMETER
    ]
    parameters.sort(key=lambda parameter: parameter.attributes.get("ac:name", ""))
    others = [
        node
        for node in children
        if not (isinstance(node, StorageElement) and node.name == PARAMETER)
    ]
    return [*parameters, *others]


def _in_bodies(children: list[Node]) -> list[Node]:
    """Wrap the bare rows of a table in a `tbody`, like the server."""
    wrapped: list[Node] = []
    body: StorageElement | None = None
    for node in children:
        if not (isinstance(node, StorageElement) and node.name == "tr"):
            body = None if isinstance(node, (StorageElement, Comment)) else body
            wrapped.append(node)
            continue
        if body is None:
            body = StorageElement("tbody")
            wrapped.append(body)
        body.children.append(node)
    return wrapped
