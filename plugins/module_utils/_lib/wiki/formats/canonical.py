# SPDX-License-Identifier: GPL-3.0-or-later
"""Canonical form of a page body, without the parts that the wiki rewrites when it saves a page.

Server facts [wiki-5]: on save, the wiki adds ids and marks, sorts the parameters of macros, wraps
table rows in a `tbody`, and removes whitespace between blocks. In links it removes the key of the
page's own space. Inline comments of readers add marker elements. The editor of the cloud puts the
text of list items, cells and tasks into paragraphs, and adds widths, layouts and an empty paragraph
at the end. Everything else counts as a difference: letter case, attributes set by the author, and
whitespace inside text or code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .parser import Comment, Node, StorageElement

MACROS = frozenset({"ac:structured-macro", "ac:macro"})
PARAMETER = "ac:parameter"
MARKER = "ac:inline-comment-marker"
TASK_ID = "ac:task-uuid"
SPACE_KEY = "ri:space-key"
#: Attributes that the server may change at any time.
VOLATILE = frozenset({"ac:local-id", "local-id", "ri:version-at-save", "ac:task-list-id"})
#: Attributes that the editor of the cloud adds to elements.
_ADDED = {
    "ac:image": frozenset(
        (
            *("ac:width", "ac:height", "ac:original-width", "ac:original-height"),
            *("ac:custom-width", "ac:layout", "ac:align"),
        )
    ),
    "ac:layout-section": frozenset({"ac:breakout-mode", "ac:breakout-width"}),
    "ac:link": frozenset({"ac:card-appearance"}),
}
#: Parameters that it adds to macros.
BREAKOUT = frozenset({"breakoutMode", "breakoutWidth"})
_TABLE_CLASSES = frozenset({"wrapped", "relative-table", "fixed-table", "confluenceTable"})
_TABLE_WIDTH = re.compile(r"\s*width:\s*[0-9.]+(?:px|%);?\s*")
_PLACEHOLDER = "placeholder-inline-tasks"
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
#: Elements whose text the editor of the cloud puts into paragraphs.
ITEMS = frozenset({"li", "td", "th", "ac:task-body"})
_FLOWS = _WIDE | ITEMS | {"div", "blockquote"}
_BODIES = frozenset({"ac:rich-text-body", "ac:plain-text-body"})
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
    elif element.name in ITEMS:
        children = _in_paragraphs(children)
    while element.name == "" and children and is_empty_paragraph(children[-1]):
        children.pop()
    return StorageElement(element.name, _attributes(element, space), children)


def is_editor_attribute(attribute: str) -> bool:
    """Return whether an attribute belongs to the wiki's editor and is invisible to readers."""
    return attribute.startswith("data-") and attribute not in _VISIBLE


def is_added(element: StorageElement, attribute: str) -> bool:
    """Return whether the editor of the cloud may have added an attribute of an element."""
    if element.name != "table":
        return attribute in _ADDED.get(element.name, ())
    value = element.attributes[attribute]
    if attribute == "class":
        return value.strip() != "" and _TABLE_CLASSES.issuperset(value.split())
    return attribute == "style" and _TABLE_WIDTH.fullmatch(value) is not None


def is_placeholder(element: StorageElement) -> bool:
    """Return whether an element is the mark of the editor around the text of a task."""
    return element.name == "span" and element.attributes.get("class") == _PLACEHOLDER


def is_empty_paragraph(node: Node) -> bool:
    if not isinstance(node, StorageElement) or node.name != "p" or node.children:
        return False
    return all(name in VOLATILE or is_editor_attribute(name) for name in node.attributes)


def _attributes(element: StorageElement, space: str | None) -> dict[str, str]:
    """Return the attributes to compare, sorted by name."""
    attributes = {name: value for name, value in element.attributes.items() if name not in VOLATILE}
    if has_own_space(element, space):
        del attributes[SPACE_KEY]
    if element.name == "ol" and attributes.get("start") == "1":
        del attributes["start"]
    return dict(sorted(attributes.items()))


def has_own_space(element: StorageElement, space: str | None) -> bool:
    """Return whether a link redundantly contains the key of the page's own space."""
    return (
        element.name in _LINKS and space is not None and element.attributes.get(SPACE_KEY) == space
    )


def _flat(nodes: Iterable[Node]) -> list[Node]:
    """Return the children without marks of inline comments and tasks, and join adjacent text."""
    flat: list[Node] = []
    for node in nodes:
        marked = isinstance(node, StorageElement) and (node.name == MARKER or is_placeholder(node))
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


def _in_paragraphs(children: list[Node]) -> list[Node]:
    """Wrap text and inline elements in paragraphs. A single empty paragraph is no content."""
    wrapped: list[Node] = []
    run: list[Node] = []
    for child in children:
        if _is_block(child):
            wrapped += [*_paragraph(run, after=bool(wrapped), before=True), child]
            run = []
        else:
            run.append(child)
    wrapped += _paragraph(run, after=bool(wrapped), before=False)
    return [] if len(wrapped) == 1 and is_empty_paragraph(wrapped[0]) else wrapped


def _paragraph(run: list[Node], *, after: bool, before: bool) -> list[Node]:
    """Return inline content as a paragraph, without blanks next to the blocks around it."""
    nodes = list(run)
    if nodes and after and isinstance(nodes[0], str):
        nodes[0] = nodes[0].lstrip(_BLANKS)
    if nodes and before and isinstance(nodes[-1], str):
        nodes[-1] = nodes[-1].rstrip(_BLANKS)
    nodes = [node for node in nodes if node != ""]
    return [StorageElement("p", {}, nodes)] if nodes else []


def _is_block(node: Node) -> bool:
    """Return whether a child of an item is a block. Macros with a body are."""
    if not isinstance(node, StorageElement):
        return False
    has_body = node.name in MACROS and any(child.name in _BODIES for child in node.elements)
    return has_body or node.name in BLOCKS or node.name in ("ac:layout", "ac:task-list")


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
