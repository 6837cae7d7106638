# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare two page bodies in storage format, and report ignored differences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from . import ignored_differences
from .canonical import (
    BLOCKS,
    MACROS,
    PARAMETER,
    STRUCTURES,
    TASK_ID,
    WIKI_BLOCKS,
    canonical,
    is_editor_attribute,
)
from .parser import Comment, Malformed, Node, StorageElement, parse

#: The server sets this attribute if the author has not.
MACRO_ID = "ac:macro-id"
_VERSION = "ac:schema-version"
_INDENT = "  "
_OWN_LINES = (
    BLOCKS
    | WIKI_BLOCKS
    | STRUCTURES
    | {"ac:parameter", "ac:plain-text-body", "ac:rich-text-body", "ac:layout-cell", "ac:task-body"}
    | {"ac:task-id", "ac:task-status", "col", "td", "th", "li", "dt", "dd"}
) - {"ac:link", "ac:image"}
_PLAIN = frozenset({"ac:plain-text-body", "ac:plain-text-link-body"})


@dataclass(frozen=True)
class BodyComparison:
    """Result of a comparison. `ignored`: kinds of ignored differences, with their counts."""

    same: bool
    ignored: tuple[str, ...] = ()


def compare(current: str, wanted: str, space: str | None) -> BodyComparison:
    """Compare the stored body of a page with the wanted body.

    A body that is not well-formed is only equal to the identical string.
    """
    if current == wanted:
        return BodyComparison(True)
    if not alike(current, wanted, space):
        return BodyComparison(False)
    return BodyComparison(
        True, ignored_differences.ignored((parse(current), current), (parse(wanted), wanted), space)
    )


def alike(current: str, wanted: str, space: str | None) -> bool:
    """Like `compare().same`, but without collecting the ignored differences."""
    if current == wanted:
        return True
    try:
        there, here = parse(current), parse(wanted)
    except Malformed:
        return False
    # Most changes affect the text, which is faster to compare than the trees.
    return _words(there) == _words(here) and same(*_comparable(there, here, space))


def _words(tree: StorageElement) -> str:
    """Return the text of a body without whitespace, macro parameters and task ids.

    Equivalent bodies have the same text, because `canonical()` removes no other text.
    """
    found: list[str] = []
    todo: list[Node] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, str):
            found.append(node)
        elif isinstance(node, StorageElement) and node.name not in (PARAMETER, TASK_ID):
            todo.extend(reversed(node.children))
    return "".join("".join(found).split())


def _comparable(
    current: StorageElement, wanted: StorageElement, space: str | None
) -> tuple[StorageElement, StorageElement]:
    """Return both canonical trees, without editor attributes that the wanted body does not use."""
    there = canonical(current, space)
    here = _without_duplicate_ids(canonical(wanted, space))
    used = {name for element in here.walk() for name in element.attributes}
    for element in there.walk():
        for name in [
            attribute
            for attribute in element.attributes
            if is_editor_attribute(attribute) and attribute not in used
        ]:
            del element.attributes[name]
    return there, here


def _without_duplicate_ids(wanted: StorageElement) -> StorageElement:
    """Remove repeated macro ids from a tree, because the server replaces them."""
    seen: set[str] = set()
    for element in wanted.walk():
        macro = element.attributes.get(MACRO_ID)
        if macro in seen:
            del element.attributes[MACRO_ID]
        elif macro is not None:
            seen.add(macro)
    return wanted


def same(current: Node, wanted: Node) -> bool:
    """Return whether two canonical trees are equal, apart from members that the server adds."""
    if not isinstance(current, StorageElement) or not isinstance(wanted, StorageElement):
        return current == wanted
    if current.name != wanted.name or not _same_attributes(current, wanted):
        return False
    theirs, ours = _children(current, wanted), wanted.children
    return len(theirs) == len(ours) and all(map(same, theirs, ours))


def _same_attributes(current: StorageElement, wanted: StorageElement) -> bool:
    theirs, ours = dict(current.attributes), dict(wanted.attributes)
    if MACRO_ID not in ours:
        theirs.pop(MACRO_ID, None)
    if _VERSION not in ours or _VERSION not in theirs:
        theirs.pop(_VERSION, None)
        ours.pop(_VERSION, None)
    return theirs == ours


def _children(current: StorageElement, wanted: StorageElement) -> list[Node]:
    """Return the stored children. Of a table, leave out default columns if none are wanted."""
    if current.name != "table" or any(child.name == "colgroup" for child in wanted.elements):
        return current.children
    return [child for child in current.children if not _is_bare_columns(child)]


def _is_bare_columns(node: Node) -> bool:
    return (
        isinstance(node, StorageElement)
        and node.name == "colgroup"
        and all(
            element.name in ("col", "colgroup") and not element.attributes
            for element in node.walk()
        )
    )


def readable(
    current: str, wanted: str, space: str | None, *, exact: bool = False
) -> tuple[str, str]:
    """Format both bodies for a unified diff, without ignored differences.

    Malformed bodies are only split into a line per tag. With `exact`, so are bodies without other
    than ignored differences.
    """
    try:
        there, here = _comparable(parse(current), parse(wanted), space)
    except Malformed:
        return _lines(current), _lines(wanted)
    _drop_server_members(there, here)
    before, after = pretty(there), pretty(here)
    only_ignored = exact and before == after
    return (_lines(current), _lines(wanted)) if only_ignored else (before, after)


def _drop_server_members(current: StorageElement, wanted: StorageElement) -> None:
    """Remove macro ids, macro versions and default columns that only the server has set.

    Macros with the same name are paired in document order. Columns are kept if any wanted table has
    columns.
    """
    if not any(element.name == "colgroup" for element in wanted.walk()):
        for table in current.walk():
            table.children = [child for child in table.children if not _is_bare_columns(child)]
    theirs, ours = _macros(current), _macros(wanted)
    for name, macros in theirs.items():
        for macro, partner in zip_longest(macros, ours.get(name, [])[: len(macros)]):
            attributes = {} if partner is None else partner.attributes
            if MACRO_ID not in attributes:
                macro.attributes.pop(MACRO_ID, None)
            if _VERSION not in attributes or _VERSION not in macro.attributes:
                macro.attributes.pop(_VERSION, None)
                attributes.pop(_VERSION, None)


def _macros(tree: StorageElement) -> dict[str, list[StorageElement]]:
    found: dict[str, list[StorageElement]] = {}
    for element in tree.walk():
        if element.name in MACROS:
            found.setdefault(element.attributes.get("ac:name", ""), []).append(element)
    return found


def _lines(body: str) -> str:
    return body.replace("><", ">\n<")


def pretty(root: StorageElement) -> str:
    """Return a tree as a string with a line per block. Inline elements do not start a line."""
    return "".join(f"{line}\n" for child in _runs(root.children) for line in _block(child, ""))


def _runs(nodes: list[Node]) -> list[list[Node]]:
    """Group nodes into lines: each block alone, and text together with its inline elements."""
    runs: list[list[Node]] = []
    inline = False
    for node in nodes:
        block = isinstance(node, StorageElement) and node.name in _OWN_LINES
        if block or not inline:
            runs.append([node])
        else:
            runs[-1].append(node)
        inline = not block
    return runs


def _block(run: list[Node], indent: str) -> Iterator[str]:
    node = run[0]
    if len(run) > 1 or not isinstance(node, StorageElement) or not _holds_blocks(node):
        yield indent + "".join(map(_inline, run))
        return
    yield f"{indent}<{_tag(node)}>"
    for child in _runs(node.children):
        yield from _block(child, indent + _INDENT)
    yield f"{indent}</{node.name}>"


def _holds_blocks(element: StorageElement) -> bool:
    return any(child.name in _OWN_LINES for child in element.elements)


def _inline(node: Node) -> str:
    if isinstance(node, str):
        return _escaped(node)
    if isinstance(node, Comment):
        return f"<!--{node.text}-->" if node.target is None else f"<?{node.target} {node.text}?>"
    content = "".join(map(_inline, node.children))
    if node.name in _PLAIN and all(isinstance(child, str) for child in node.children):
        text = "".join(child for child in node.children if isinstance(child, str))
        content = f"<![CDATA[{text.replace(']]>', ']]]]><![CDATA[>')}]]>"
    return f"<{_tag(node)}>{content}</{node.name}>" if node.children else f"<{_tag(node)} />"


def _tag(element: StorageElement) -> str:
    attributes = [
        f'{name}="{_escaped(value).replace(chr(34), "&quot;")}"'
        for name, value in element.attributes.items()
    ]
    return " ".join([element.name, *attributes])


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
