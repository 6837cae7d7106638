# SPDX-License-Identifier: GPL-3.0-or-later
"""The inline comments of readers, which hang on marks in the text of a page [wiki-17]."""

from __future__ import annotations

from .canonical import MARKER
from .parser import Malformed, parse


def lost_comments(before: str, after: str) -> int:
    """How many comments have a place in the one body and none in the other."""
    return len(_comments(before) - _comments(after))


def _comments(body: str) -> set[str]:
    """The inline comments that have a place in a body; one may have several."""
    if MARKER not in body:
        return set()
    try:
        marks = [element for element in parse(body).walk() if element.name == MARKER]
    except Malformed:
        return set()
    return {mark.attributes.get("ac:ref", "") for mark in marks}
