# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the HTML elements that may contain Markdown: `details`, `sub` and `sup`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .raw_html import text_of_html

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

_INLINE = re.compile(r"<(?P<end>/?)(?P<tag>sub|sup)\s*>", re.IGNORECASE)
_OPENING = re.compile(r"\s*<details\b[^<>]*>", re.IGNORECASE)
_CLOSING = re.compile(r"</details\s*>\s*\Z", re.IGNORECASE)
_SUMMARY = re.compile(r"\s*<summary\b[^<>]*>([^<]*(?:<(?!/summary)[^<]*)*)</summary\s*>", re.I)


@dataclass(frozen=True)
class Enclosed:
    """The nodes between an opening and a closing tag.

    `title`: text of the summary. `first`: text after the summary in the same HTML block.
    """

    tag: str
    content: Sequence[SyntaxTreeNode]
    title: str = ""
    first: str = ""


def enclosed(nodes: Sequence[SyntaxTreeNode]) -> Iterator[SyntaxTreeNode | Enclosed]:
    """Yield sibling nodes. A pair of tags and the nodes in between become an `Enclosed`."""
    pairs = _pairs(nodes)
    at = 0
    while at < len(nodes):
        node = nodes[at]
        end = pairs.get(at)
        if end is None:
            yield node
            at += 1
            continue
        yield _part(node, nodes[at + 1 : end])
        at = end + 1


def _pairs(nodes: Sequence[SyntaxTreeNode]) -> dict[int, int]:
    """Return the index of each closing tag by that of its opening tag.

    Both indexes are equal for an HTML block that contains both tags.
    """
    found: dict[int, int] = {}
    opened: dict[str, list[int]] = {}
    for at, node in enumerate(nodes):
        for tag, ends in _tags(node):
            if not ends:
                opened.setdefault(tag, []).append(at)
            elif opened.get(tag):
                begin = opened[tag].pop()
                found[begin] = at
                for others in opened.values():  # tags may not overlap this pair
                    while others and others[-1] > begin:
                        others.pop()
    return found


def _tags(node: SyntaxTreeNode) -> Iterator[tuple[str, bool]]:
    if node.type == "html_inline":
        found = _INLINE.fullmatch(node.content)
        if found is not None:
            yield found["tag"].lower(), bool(found["end"])
    elif node.type == "html_block":
        if _OPENING.match(node.content):
            yield "details", False
        if _CLOSING.search(node.content):
            yield "details", True


def _part(node: SyntaxTreeNode, content: Sequence[SyntaxTreeNode]) -> Enclosed:
    if node.type == "html_inline":
        found = _INLINE.fullmatch(node.content)
        return Enclosed("" if found is None else found["tag"].lower(), content)
    opening = _OPENING.match(node.content)
    rest = node.content[opening.end() :] if opening else node.content
    summary = _SUMMARY.match(rest)
    title = "" if summary is None else text_of_html(summary[1])
    return Enclosed(
        "details", content, title, text_of_html(rest[summary.end() :] if summary else rest)
    )
