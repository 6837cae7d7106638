# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert texts of the cloud [tracker-25].

Version 3 of the interface uses documents. Version 2 returns markup that the server generates from
the document.
"""

from __future__ import annotations

import re
from typing import Any

Json = dict[str, Any]

_ADDRESS = re.compile(r"(?<![|\[])\bhttps?://[^\s|\]]+")


def is_document(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.get("type") == "doc"
        and value.get("version") == 1
        and isinstance(value.get("content"), list)
    )


def to_document(text: str) -> Json:
    """Convert a string to a document. Empty lines separate paragraphs."""
    blocks = [block for block in re.split(r"\n{2,}", text) if block != ""]
    return {"type": "doc", "version": 1, "content": [_paragraph(block) for block in blocks]}


def _paragraph(block: str) -> Json:
    content: list[Json] = []
    for index, line in enumerate(block.split("\n")):
        if index:
            content.append({"type": "hardBreak"})
        if line:
            content.append({"type": "text", "text": line})
    return {"type": "paragraph", "content": content}


def as_markup(text: str | Json) -> str:
    """Return a stored text as markup: a string, or the document of version 3."""
    return from_document(text) if isinstance(text, dict) else text


def with_local_ids(node: Json, number: str = "0") -> Json:
    """Return a document in which the blocks have ids, as in the cloud [tracker-25]."""
    blocks = [
        inner if inner.get("type") == "text" else with_local_ids(inner, f"{number}-{index}")
        for index, inner in enumerate(node.get("content", []))
    ]
    shown = {**node, "content": blocks} if "content" in node else node
    if node.get("type") == "doc":
        return shown
    return {**shown, "attrs": {"localId": number, **node.get("attrs", {})}}


def from_document(node: Json) -> str:
    """Convert a document to markup."""
    kind, content = node.get("type"), node.get("content", [])
    if kind == "text":
        return str(node.get("text", ""))
    if kind == "hardBreak":
        return "\n"
    inner = [from_document(child) for child in content]
    if kind == "doc":
        return "\n\n".join(inner)
    if kind in ("bulletList", "orderedList"):
        mark = "*" if kind == "bulletList" else "#"
        return "\n".join(f"{mark} {item}" for item in inner)
    text = "".join(inner)
    return f"h{node['attrs']['level']}. {text}" if kind == "heading" else text


def regenerated(text: str) -> str:
    """Return markup as version 2 regenerates it: `*` lists, smart links, no trailing blanks."""
    lines = [re.sub(r"^(\s*)- ", r"\1* ", line.rstrip()) for line in text.split("\n")]
    return _ADDRESS.sub(lambda found: f"[{found[0]}|{found[0]}|smart-link]", "\n".join(lines))
