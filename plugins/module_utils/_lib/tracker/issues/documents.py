# SPDX-License-Identifier: GPL-3.0-or-later
"""Documents, which version 3 of the cloud's interface uses instead of strings [tracker-25].

A string becomes paragraphs of lines without markup, and is compared by its text. A document of the
user is compared by its nodes, marks and attributes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...core.json_text import as_text, json_objects

Document = dict[str, Any]

#: Elements that end with a line break.
_BLOCKS = frozenset({"paragraph", "heading", "codeBlock", "listItem", "taskItem", "tableRow"})
#: Attributes with the visible text of elements without content, most preferred first.
_TEXTS = ("text", "shortName", "url", "timestamp")
#: Attributes that the server adds to the identity of an element.
_ADDED = {"mention": {"text", "accessLevel", "userType"}, "emoji": {"id", "text"}}
#: Values of attributes that mean the same as their absence.
_DEFAULTS = {"order": 1, "layout": "default"}


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
    blocks = [_inner(node).strip("\n") for node in json_objects(value.get("content"))]
    return plain_lines("\n\n".join(block for block in blocks if block))


def _inner(node: Mapping[str, Any]) -> str:
    kind = as_text(node.get("type"))
    if kind == "text":
        return str(node.get("text", ""))
    if kind == "hardBreak":
        return "\n"
    if "content" not in node and kind not in _BLOCKS:
        attributes = _mapping(node.get("attrs"))
        return next((str(attributes[name]) for name in _TEXTS if attributes.get(name)), "")
    inner = "".join(map(_inner, json_objects(node.get("content"))))
    return f"{inner}\n" if kind in _BLOCKS else inner


def is_blank(value: Any) -> bool:
    """Return whether a document shows nothing: no text, and no picture, mention or line."""
    content = _mapping(value).get("content")
    for node in map(_mapping, content if isinstance(content, list) else []):
        kind = node.get("type")
        is_empty_text = kind == "text" and not str(node.get("text", "")).strip()
        is_empty_paragraph = kind == "paragraph" and is_blank(node)
        if not (is_empty_text or is_empty_paragraph or kind == "hardBreak"):
            return False
    return True


def same_document(current: Any, wanted: Document) -> bool:
    """Return whether two documents have the same nodes, marks and attributes.

    `localId`, which the server generates, is ignored, and so are further attributes of a mention
    or an emoji.
    """
    return is_document(current) and _same_node(_mapping(current), wanted)


def _same_node(current: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    added = _ADDED.get(str(wanted.get("type")), set())
    there, given = _attributes(current), _attributes(wanted)
    there = {name: there[name] for name in there if name in given or name not in added}
    content, expected = _content(current), _content(wanted)
    return (
        (current.get("type"), current.get("text"), there)
        == (wanted.get("type"), wanted.get("text"), given)
        and _marks(current) == _marks(wanted)
        and len(content) == len(expected)
        and all(map(_same_node, content, expected))
    )


def _content(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the inner nodes. Adjacent strings with the same marks are joined, as on the server."""
    found: list[Mapping[str, Any]] = []
    for inner in json_objects(node.get("content")):
        last = found[-1] if found else {}
        if inner.get("type") == last.get("type") == "text" and _marks(inner) == _marks(last):
            found[-1] = {**last, "text": f"{last.get('text')}{inner.get('text')}"}
        else:
            found.append(inner)
    return found


def _marks(node: Mapping[str, Any]) -> list[str]:
    """Return the marks of a node in a form that does not depend on their order."""
    marks = json_objects(node.get("marks"))
    return sorted(f"{mark.get('type')} {sorted(_attributes(mark).items())}" for mark in marks)


def _attributes(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that have a value, without those that the server generates."""
    return {
        name: value
        for name, value in _mapping(node.get("attrs")).items()
        if name != "localId"
        and not (value is None or value is False or value in ("", _DEFAULTS.get(name)))
    }


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
