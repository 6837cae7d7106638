# SPDX-License-Identifier: GPL-3.0-or-later
"""Find readers' inline comments, which are markers in the body [wiki-17]."""

from __future__ import annotations

from .canonical import MARKER
from .parser import Malformed, parse


def lost_comments(before: str, after: str) -> int:
    """Return the number of comments whose markers the other body lacks."""
    return len(_comments(before) - _comments(after))


def _comments(body: str) -> set[str]:
    """Return the ids of the inline comments in a body; a comment may have several markers."""
    if MARKER not in body:
        return set()
    try:
        marks = [element for element in parse(body).walk() if element.name == MARKER]
    except Malformed:
        return set()
    return {mark.attributes.get("ac:ref", "") for mark in marks}
