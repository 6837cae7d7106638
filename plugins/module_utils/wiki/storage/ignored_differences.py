# SPDX-License-Identifier: GPL-3.0-or-later
"""Name and count the ignored differences between two bodies."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from .canonical import (
    BLOCKS,
    MACROS,
    MARKER,
    PARAMETER,
    SPACE_KEY,
    STRUCTURES,
    TASK_ID,
    VOLATILE,
    WIKI_BLOCKS,
    has_own_space,
    is_editor_attribute,
)
from .parser import StorageElement

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
    return found


def _of_element(element: StorageElement, space: str | None) -> Iterator[Feature]:
    for name, value in element.attributes.items():
        if name in _SERVER_SET or is_editor_attribute(name):
            yield f"attribute {name}", value
    if has_own_space(element, space):
        yield f"attribute {SPACE_KEY} for the space of the page", ""
    if element.name in (TASK_ID, MARKER):
        yield f"element {element.name}", repr(element.attributes)
    if element.name in ("tbody", "colgroup") and not element.attributes:
        yield f"element {element.name}", ""
    names = [
        name
        for name in element.attributes
        if name not in _SERVER_SET and not is_editor_attribute(name)
    ]
    if names != sorted(names):
        yield "order of attributes", " ".join(names)


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
