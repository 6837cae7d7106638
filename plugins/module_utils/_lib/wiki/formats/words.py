# SPDX-License-Identifier: GPL-3.0-or-later
"""Show what differs between two bodies in words: sentences and rows instead of storage format."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

from .parser import Malformed, Node, StorageElement, parse

_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_CELLS = ("td", "th")
_LINES = {
    *("p", "h1", "h2", "h3", "h4", "h5", "h6", "li", "pre", "blockquote", "div", "hr"),
    *("ul", "ol", "table", "tbody", "thead", "ac:task", "ac:task-list", "ac:task-body"),
    *("ac:structured-macro", "ac:rich-text-body", "ac:plain-text-body", "ac:layout-cell"),
}
#: Attributes with the text of an element that has none.
_NAMES = (
    *("ri:content-title", "ri:filename", "ri:username", "ri:account-id", "ri:userkey"),
    *("ri:value", "datetime", "ac:emoji-fallback"),
)


def in_words(before: str, after: str) -> tuple[str, str]:
    """Return the lines that only one of two bodies has. Both are empty if only the form differs.

    A line is a sentence, a row of a table, or a macro with its parameters.
    """
    one, other = list(_lines(before)), list(_lines(after))
    sides: tuple[list[str], list[str]] = ([], [])
    for kind, begin, end, other_begin, other_end in SequenceMatcher(
        None, one, other, autojunk=False
    ).get_opcodes():
        if kind != "equal":
            sides[0].extend(one[begin:end])
            sides[1].extend(other[other_begin:other_end])
    return "\n".join(sides[0]), "\n".join(sides[1])


def _lines(body: str) -> Iterator[str]:
    try:
        texts = list(_texts(parse(body).children))
    except Malformed:
        texts = body.replace("><", ">\n<").splitlines()
    for text in texts:
        plain = " ".join(text.split())
        yield from filter(None, _SENTENCE.split(plain))


def _texts(nodes: list[Node]) -> Iterator[str]:
    """Yield the text of each block, in order."""
    text = ""
    for node in nodes:
        if isinstance(node, str):
            text += node
        elif isinstance(node, StorageElement) and node.name == "tr":
            cells = (cell for cell in node.elements if cell.name in _CELLS)
            yield from (text, " | ".join(" ".join(_texts(cell.children)) for cell in cells))
            text = ""
        elif isinstance(node, StorageElement) and node.name in _LINES:
            yield text
            text = ""
            if node.name == "ac:structured-macro":
                yield _macro(node)
            yield from _texts([one for one in node.children if not _is_parameter(one)])
        elif isinstance(node, StorageElement):
            inner = list(_texts(node.children))
            named = next((node.attributes[name] for name in _NAMES if name in node.attributes), "")
            text += " ".join(inner) if any(map(str.strip, inner)) else named
            text += " " if node.name == "br" else ""
    yield text


def _macro(macro: StorageElement) -> str:
    parameters = [
        f"{one.attributes.get('ac:name', '')}: {' '.join(_texts(one.children)).strip()}"
        for one in macro.elements
        if _is_parameter(one)
    ]
    return f"[{' '.join([macro.attributes.get('ac:name', 'macro'), *parameters])}]"


def _is_parameter(node: Node) -> bool:
    return isinstance(node, StorageElement) and node.name == "ac:parameter"
