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


_LISTS = ("bulletList", "orderedList")
_SIMPLE = ("paragraph", "codeBlock", *_LISTS)
_BLOCKS = (*_SIMPLE, "heading", "blockquote", "rule", "table", "taskList")
_INLINE = ("text", "hardBreak", "mention", "emoji", "inlineCard")
#: Nodes that a node of the cloud's documents may contain.
_CONTENT: dict[str, tuple[str, ...]] = {
    "doc": _BLOCKS,
    **dict.fromkeys(("paragraph", "heading", "taskItem"), _INLINE),
    "codeBlock": ("text",),
    **dict.fromkeys(("blockquote", "listItem"), _SIMPLE),
    **dict.fromkeys(_LISTS, ("listItem",)),
    "taskList": ("taskItem", "taskList"),
    "table": ("tableRow",),
    "tableRow": ("tableHeader", "tableCell"),
    **dict.fromkeys(("tableHeader", "tableCell"), _BLOCKS),
}
#: Nodes that need content.
_FILLED = (*_LISTS, "listItem", "blockquote", "table", "tableRow", "tableHeader", "tableCell")


def is_document(value: Any) -> bool:
    """Return whether a value is a document that the cloud accepts [tracker-25]."""
    is_whole = isinstance(value, dict) and value.get("type") == "doc" and value.get("version") == 1
    return is_whole and isinstance(value.get("content"), list) and _is_valid(value)


def _is_valid(node: Json) -> bool:
    kind, content = node.get("type"), node.get("content", [])
    marks = [mark.get("type") for mark in node.get("marks", [])]
    if kind == "text":
        return bool(node.get("text")) and not ("code" in marks and {*marks} - {"code", "link"})
    if kind == "listItem" and content and content[0].get("type") in _LISTS:
        return False
    if kind in ("taskList", "taskItem") and not node.get("attrs", {}).get("localId"):
        return False
    if kind in _FILLED and not content:
        return False
    return all(one.get("type") in _CONTENT.get(str(kind), ()) and _is_valid(one) for one in content)


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
    if kind in ("doc", "blockquote"):
        return "\n\n".join(inner)
    if kind == "codeBlock":
        return f"{{code}}\n{''.join(inner)}\n{{code}}"
    if kind in ("bulletList", "orderedList"):
        mark = "*" if kind == "bulletList" else "#"
        return "\n".join(f"{mark} {item}" for item in inner)
    text = "".join(inner)
    return f"h{node['attrs']['level']}. {text}" if kind == "heading" else text


def regenerated(text: str) -> str:
    """Return markup as version 2 regenerates it: `*` lists, smart links, no trailing blanks."""
    lines = [re.sub(r"^(\s*)- ", r"\1* ", line.rstrip()) for line in text.split("\n")]
    return _ADDRESS.sub(lambda found: f"[{found[0]}|{found[0]}|smart-link]", "\n".join(lines))
