# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert strings to documents, which version 3 of the cloud's interface uses [tracker-25].

A string becomes paragraphs of lines without markup. The stored document can then be converted back
and compared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Document = dict[str, Any]

#: Elements that end with a line break.
_BLOCKS = frozenset({"paragraph", "heading", "codeBlock", "listItem", "taskItem", "tableRow"})


def plain_lines(text: str) -> str:
    """Remove trailing whitespace and normalize line ends, which servers may change [tracker-22]."""
    return "\n".join(line.rstrip() for line in text.splitlines()).rstrip()


def is_document(value: Any) -> bool:
    return isinstance(value, Mapping) and value.get("type") == "doc"


def to_document(text: str) -> Document:
    """Convert a string to a document. Empty lines separate paragraphs."""
    blocks = [block for block in re.split(r"\n{2,}", plain_lines(text)) if block]
    return {"type": "doc", "version": 1, "content": [_paragraph(block) for block in blocks]}


def _paragraph(block: str) -> Document:
    content: list[Document] = []
    for number, line in enumerate(block.split("\n")):
        if number:
            content.append({"type": "hardBreak"})
        if line:
            content.append({"type": "text", "text": line})
    return {"type": "paragraph", "content": content}


def text_of(value: Any) -> str:
    """Return the plain text of a document or a string, or "" for other values."""
    if isinstance(value, str):
        return plain_lines(value)
    if not is_document(value):
        return ""
    blocks = [_inner(node).strip("\n") for node in value.get("content") or []]
    return plain_lines("\n\n".join(block for block in blocks if block))


def _inner(node: Any) -> str:
    if not isinstance(node, Mapping):
        return ""
    kind = node.get("type")
    if kind == "text":
        return str(node.get("text", ""))
    if kind == "hardBreak":
        return "\n"
    inner = "".join(_inner(child) for child in node.get("content") or [])
    return f"{inner}\n" if kind in _BLOCKS else inner
