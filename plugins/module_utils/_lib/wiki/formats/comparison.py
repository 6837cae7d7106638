# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare two page bodies in storage format, and report ignored differences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from .canonical import (
    BLOCKS,
    BREAKOUT,
    ITEMS,
    MACROS,
    MARKER,
    PARAMETER,
    SPACE_KEY,
    STRUCTURES,
    TASK_ID,
    VOLATILE,
    WIKI_BLOCKS,
    canonical,
    has_own_space,
    is_added,
    is_editor_attribute,
    is_empty_paragraph,
    is_placeholder,
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
_SERVER_SET = VOLATILE | {"ac:macro-id", "ac:schema-version"}
_REFERENCE = re.compile(r"&#?[A-Za-z0-9]+;")
_QUOTED = re.compile(r'"[^"]*"')
# Attributes match in only one way, so matching takes linear time.
_TAG = re.compile(
    r"""<([A-Za-z_][^\s/<>"']*)(?=[\s/>])([^>"']*(?:"[^"]*"[^>"']*|'[^']*'[^>"']*)*)>"""
)
_OPENING = re.compile(r"<(?=[A-Za-z_])")
_END_TAG = re.compile(r"</([^\s<>]*)\s*>")
#: Start and end of CDATA sections and comments.
_SECTIONS = (("<![CDATA[", "]]>"), ("<!--", "-->"))

Feature = tuple[str, str]


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
    return BodyComparison(True, ignored((parse(current), current), (parse(wanted), wanted), space))


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
    for name in [name for name in theirs if name not in ours and is_added(current, name)]:
        del theirs[name]
    if MACRO_ID not in ours:
        theirs.pop(MACRO_ID, None)
    if _VERSION not in ours or _VERSION not in theirs:
        theirs.pop(_VERSION, None)
        ours.pop(_VERSION, None)
    return theirs == ours


def _children(current: StorageElement, wanted: StorageElement | None) -> list[Node]:
    """Return the stored children, without columns and breakout parameters that are not wanted."""
    ours = {_part(child) for child in (() if wanted is None else wanted.elements)}
    return [
        child
        for child in current.children
        if not isinstance(child, StorageElement)
        or not _is_optional(current, child)
        or _part(child) in ours
    ]


def _part(element: StorageElement) -> tuple[str, str]:
    return element.name, element.attributes.get("ac:name", "")


def _is_optional(parent: StorageElement, child: StorageElement) -> bool:
    """Return whether the server or its editor may have added a child."""
    if parent.name == "table":
        return child.name == "colgroup"
    return child.name == PARAMETER and child.attributes.get("ac:name") in BREAKOUT


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
    before, after = pretty(_compact(there)), pretty(_compact(here))
    only_ignored = exact and before == after
    return (_lines(current), _lines(wanted)) if only_ignored else (before, after)


def _drop_server_members(current: StorageElement, wanted: StorageElement) -> None:
    """Remove ids, versions, sizes and other members that only the server has set.

    Elements of the same kind are paired in document order.
    """
    theirs, ours = _kinds(current), _kinds(wanted)
    for kind, elements in theirs.items():
        for element, partner in zip_longest(elements, ours.get(kind, [])[: len(elements)]):
            attributes = {} if partner is None else partner.attributes
            element.children = _children(element, partner)
            for name in [n for n in element.attributes if n not in attributes]:
                if name == MACRO_ID or is_added(element, name):
                    del element.attributes[name]
            if _VERSION not in attributes or _VERSION not in element.attributes:
                element.attributes.pop(_VERSION, None)
                attributes.pop(_VERSION, None)


def _compact(tree: StorageElement) -> StorageElement:
    """Show the first paragraph of list items, cells and tasks as their text."""
    for item in tree.walk():
        paragraphs = [child for child in item.elements if child.name == "p"]
        if item.name not in ITEMS or len(paragraphs) != 1 or paragraphs[0].attributes:
            continue
        if item.children[0] is paragraphs[0]:
            item.children[:1] = paragraphs[0].children
    return tree


def _kinds(tree: StorageElement) -> dict[tuple[str, str], list[StorageElement]]:
    found: dict[tuple[str, str], list[StorageElement]] = {}
    for element in tree.walk():
        found.setdefault(_part(element), []).append(element)
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


def ignored(
    current: tuple[StorageElement, str], wanted: tuple[StorageElement, str], space: str | None
) -> tuple[str, ...]:
    """Return the kinds of ignored differences, for example `attribute ac:macro-id (2)`.

    The bodies must be different strings, so the result is never empty.

    :param current: tree and source of the stored body
    :param wanted: tree and source of the wanted body
    """
    theirs, ours = _features(*current, space), _features(*wanted, space)
    counts: Counter[str] = Counter()
    for features, others in ((theirs, ours), (ours, theirs)):
        surplus: Counter[str] = Counter()
        for (kind, _detail), count in (features - others).items():
            surplus[kind] += count
        counts |= surplus
    if not counts:  # for example whitespace inside tags, or CRLF
        counts["spelling of tags and line breaks"] = 1
    return tuple(f"{kind} ({count})" for kind, count in sorted(counts.items()))


def _features(root: StorageElement, text: str, space: str | None) -> Counter[Feature]:
    """Count the features of a body that a comparison ignores: pairs of a kind and its detail."""
    found: Counter[Feature] = Counter(_spelling(text))
    for element in root.walk():
        found.update(_of_element(element, space))
        found.update(_of_children(element))
        found.update(_of_the_editor(element))
    return found


def _of_element(element: StorageElement, space: str | None) -> Iterator[Feature]:
    for name, value in element.attributes.items():
        if _may_be_set(element, name):
            yield f"attribute {name}", value
    if has_own_space(element, space):
        yield f"attribute {SPACE_KEY} for the space of the page", ""
    if element.name in (TASK_ID, MARKER):
        yield f"element {element.name}", repr(element.attributes)
    if element.name == "colgroup" or (element.name == "tbody" and not element.attributes):
        yield f"element {element.name}", ""
    if is_placeholder(element):
        yield "marks of the text of tasks", ""
    names = [name for name in element.attributes if not _may_be_set(element, name)]
    if names != sorted(names):
        yield "order of attributes", " ".join(names)


def _may_be_set(element: StorageElement, attribute: str) -> bool:
    """Return whether the server or its editor may set an attribute."""
    return (
        attribute in _SERVER_SET or is_editor_attribute(attribute) or is_added(element, attribute)
    )


def _of_the_editor(element: StorageElement) -> Iterator[Feature]:
    """Yield the children that the editor of the cloud may have added."""
    for part in element.elements:
        if element.name in ITEMS and part.name == "p":
            yield f"paragraphs in {element.name}", ""
        if part.name == PARAMETER and _is_optional(element, part):
            yield f"parameter {part.attributes['ac:name']}", ""
    if element.name == "" and element.children and is_empty_paragraph(element.children[-1]):
        yield "empty paragraph at the end", ""


def _of_children(element: StorageElement) -> Iterator[Feature]:
    if element.name in MACROS:
        names = [child.attributes.get("ac:name", "") for child in element.elements]
        kinds = [child.name == PARAMETER for child in element.elements]
        if names != sorted(names) or kinds != sorted(kinds, reverse=True):
            yield f"order of {PARAMETER}", " ".join(names)
    holds_blocks = element.name in STRUCTURES or any(
        child.name in BLOCKS | WIKI_BLOCKS for child in element.elements
    )
    for child in element.children if holds_blocks or not element.name else ():
        if isinstance(child, str) and child != child.strip():
            yield "whitespace between blocks", child


def _spelling(text: str) -> Iterator[Feature]:
    """Yield the features of the source that a parsed tree does not contain."""
    bare, sections = _without_sections(text)
    for section in sections:
        yield "CDATA sections", section
    for reference in _REFERENCE.findall(bare):
        yield "entities", reference
    for tag in _tags(bare):
        name, attributes = tag[1], tag[2]
        if "'" in _QUOTED.sub("", attributes):
            yield "quotation marks of attributes", attributes.removesuffix("/").rstrip()
        if attributes.endswith("/"):
            remaining = attributes[:-1].rstrip()
            yield "spelling of empty elements", f"{name}{attributes[len(remaining) :]}"
            continue
        end = _END_TAG.match(bare, tag.end())
        if end is not None and end[1] == name:
            yield "spelling of empty elements", f"{name}>"


def _without_sections(text: str) -> tuple[str, list[str]]:
    """Return the source without comments and CDATA sections, and a list of the CDATA sections."""
    remaining: list[str] = []
    found: list[str] = []
    at = 0
    while True:
        begin = text.find("<!", at)
        remaining.append(text[at : begin if begin >= 0 else None])
        if begin < 0:
            return "".join(remaining), found
        marks = next(
            (section for section in _SECTIONS if text.startswith(section[0], begin)), ("<!", "")
        )
        end = text.find(marks[1], begin + len(marks[0]))
        at = len(text) if end < 0 else end + len(marks[1])
        if marks == _SECTIONS[0]:
            found.append(text[begin:at])


def _tags(text: str) -> Iterator[re.Match[str]]:
    """Yield the start tags of a source, up to a tag that is not closed."""
    opening = _OPENING.search(text)
    while opening is not None:
        tag = _TAG.match(text, opening.start())
        if tag is None:
            return
        yield tag
        opening = _OPENING.search(text, tag.end())
