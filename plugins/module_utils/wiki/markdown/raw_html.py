# SPDX-License-Identifier: GPL-3.0-or-later
"""Extract the text of raw HTML in Markdown, without elements, scripts and comments."""

from __future__ import annotations

import html
import re

_LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
# Matches in linear time: an unclosed comment ends with the source, and a tag contains no `<`.
_MARKUP = re.compile(
    r"<!--.*?(?:-->|\Z)|<(?=[/!?A-Za-z])(?P<end>/?)(?P<name>[A-Za-z0-9]*)[^<>]*>", re.DOTALL
)
_WITHOUT_TEXT = frozenset({"script", "style"})
#: Inline elements, whose tags do not separate words.
_INLINE = frozenset(
    ("a", "abbr", "b", "code", "em", "i", "kbd", "mark", "small", "span", "strong", "sub", "sup")
)


def is_line_break(tag: str) -> bool:
    return _LINE_BREAK.fullmatch(tag) is not None


def text_of_html(source: str) -> str:
    """Return the visible text on a single line."""
    parts: list[str] = []
    silent, at = "", 0
    for found in _MARKUP.finditer(source):
        if silent == "":
            parts.append(source[at : found.start()])
        at, name = found.end(), (found["name"] or "").lower()
        if found["end"]:
            silent = "" if name == silent else silent
        elif name in _WITHOUT_TEXT and silent == "":
            silent = name
        if name and name not in _INLINE:
            parts.append(" ")
    if silent == "":
        parts.append(source[at:])
    return " ".join(html.unescape("".join(parts)).split())
