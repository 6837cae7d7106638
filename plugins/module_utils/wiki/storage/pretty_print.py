# SPDX-License-Identifier: GPL-3.0-or-later
"""Format storage format over several lines for a unified diff."""

from __future__ import annotations

from collections.abc import Iterator

from .canonical import BLOCKS, STRUCTURES, WIKI_BLOCKS
from .parser import Comment, Node, StorageElement

_INDENT = "  "
_OWN_LINES = (
    BLOCKS
    | WIKI_BLOCKS
    | STRUCTURES
    | {"ac:parameter", "ac:plain-text-body", "ac:rich-text-body", "ac:layout-cell", "ac:task-body"}
    | {"ac:task-id", "ac:task-status", "col", "td", "th", "li", "dt", "dd"}
) - {"ac:link", "ac:image"}
_PLAIN = frozenset({"ac:plain-text-body", "ac:plain-text-link-body"})


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
