# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare two page bodies in storage format, and report ignored differences."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

from . import ignored_differences
from .canonical import MACROS, PARAMETER, TASK_ID, canonical, is_editor_attribute
from .parser import Malformed, Node, StorageElement, parse
from .pretty_print import pretty

#: The server sets this attribute if the author has not.
MACRO_ID = "ac:macro-id"
_VERSION = "ac:schema-version"


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
