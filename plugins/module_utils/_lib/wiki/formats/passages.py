# SPDX-License-Identifier: GPL-3.0-or-later
"""Recognize storage format, also in passages of Markdown."""

from __future__ import annotations

import re

from ...core.errors import invalid
from .comparison import BLOCKS
from .parser import Malformed, parse

_PREFIXES = ("ac:", "ri:", "at:")
_ELEMENTS = BLOCKS | frozenset(
    (
        *("a", "b", "big", "br", "center", "code", "del", "em", "i", "img", "ins", "kbd", "mark"),
        *("s", "samp", "small", "span", "strong", "sub", "sup", "time", "tt", "u", "var"),
    )
)
#: A comment, or the start of a tag. The name is empty if there is none, as in UTF-16.
_TAG = re.compile(r"<!--.*?(?:-->|\Z)|<(?![?!])(?P<name>[A-Za-z_]?[^\s<>/]*)", re.DOTALL)


def may_be_storage_format(source: str) -> bool:
    """Return whether the first tag is an element of storage format, or there is only text."""
    tags = (found["name"] for found in _TAG.finditer(source) if not found[0].startswith("<!--"))
    first = next(tags, None)
    return first is None or _is_known(first)


def is_storage_format(source: str) -> bool:
    """Return whether all root elements are elements of storage format.

    The first tag decides if the source is not well-formed.
    """
    if not may_be_storage_format(source):
        return False
    try:
        return all(_is_known(element.name) for element in parse(source).elements)
    except Malformed:
        return True


def require_passage(source: str, line: int) -> None:
    """Raise `invalid` for a passage that is not well-formed, or not storage format.

    :param line: number of its first line in the file
    """
    try:
        unknown = [one.name for one in parse(source).elements if not _is_known(one.name)]
    except Malformed as error:
        reason = str(error).partition(": ")[2]
        raise invalid(
            f"line {line + error.line - 1}: the passage in storage format is not well-formed:"
            f" {reason}"
        ) from None
    if unknown:
        raise invalid(
            f"line {line}: the passage contains <{unknown[0]}>, which is not storage format"
        )


def _is_known(name: str) -> bool:
    return name in _ELEMENTS or name.startswith(_PREFIXES)
