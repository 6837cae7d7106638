# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep readers' inline comments, which are markers in the body, in a new body [wiki-17]."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from .canonical import MARKER
from .parser import Malformed, StorageElement, parse

#: Characters before and after a commented text that distinguish it from equal texts.
_CONTEXT = 40
#: Maximum number of equal texts to compare.
_MAX_EQUAL_TEXTS = 200
#: Elements within a line: the text on both sides of their tags is one.
_INLINE = frozenset(
    {
        *("strong", "em", "u", "s", "b", "i", "sub", "sup", "code", "span", "a", "small"),
        *(MARKER, "ac:link", "ac:link-body"),
    }
)
#: Elements without text for readers, or whose text takes no markers.
_CLOSED = re.compile(r"ac:(?!structured-macro|rich-text-body|link|task|layout)|ri:|script|style")
_MARKERS = re.compile(rf"</?{MARKER}(?:\s[^<>]*)?>")
_UNIT = re.compile(rb"&[^;\s]+;|[\x00-\x7f]|[\xc0-\xff][\x80-\xbf]*")


def comment_counts(before: str, after: str) -> tuple[int, int]:
    """Return how many comments the other body keeps, and how many it loses."""
    had, has = _comments(before), _comments(after)
    return len(had & has), len(had - has)


def without_markers(body: str) -> str:
    """Return a body without the markers; their content stays."""
    return _MARKERS.sub("", body)


def with_comments(before: str, after: str) -> str:
    """Return the new body with the markers of comments whose text is still there.

    Of several equal texts the one with the most similar surroundings gets the marker.
    """
    missing = _comments(before) - _comments(after)
    if not missing:
        return after
    try:
        old, new = _Text.of(before), _Text.of(after)
    except Malformed:
        return after
    taken: list[tuple[int, int, str]] = []
    for ref, begin, end in old.marked:
        if ref in missing:
            found = _best(old, begin, end, new)
            if found is not None and all(found[1] <= a or found[0] >= b for a, b, _ref in taken):
                taken.append((*found, ref))
    return new.marked_with(taken)


@dataclass
class _Text:
    """The text of a body with blanks collapsed; `places` has the bytes of each character, `None`
    for the boundary of a block. `marked`: id, begin and end of each marker.
    """

    source: bytes
    text: str = ""
    places: list[tuple[int, int] | None] = field(default_factory=list)
    marked: list[tuple[str, int, int]] = field(default_factory=list)

    @classmethod
    def of(cls, body: str) -> _Text:
        """Read a body. Raises `Malformed`."""
        found = cls(body.encode())
        parts: list[str] = []
        root = parse(body)
        root.outer = root.end = len(found.source)
        found._add(root, parts)
        found.text = "".join(parts)
        return found

    def _add(self, element: StorageElement, parts: list[str]) -> None:
        if element.name not in _INLINE:
            self._break(parts)
        begin, at = len(self.places), element.inner
        for child in element.elements:
            self._add_text(at, child.begin, parts)
            if not _CLOSED.match(child.name) or child.name == MARKER:
                self._add(child, parts)
            else:
                self._break(parts)
            at = child.end
        self._add_text(at, element.outer, parts)
        if element.name == MARKER:
            self.marked.append((element.attributes.get("ac:ref", ""), begin, len(self.places)))
        if element.name not in _INLINE:
            self._break(parts)

    def _break(self, parts: list[str]) -> None:
        if parts and parts[-1] != "\n":
            parts.append("\n")
            self.places.append(None)

    def _add_text(self, begin: int, end: int, parts: list[str]) -> None:
        if b"<" in self.source[begin:end]:
            self._break(parts)  # a comment, or CDATA
            return
        for unit in _UNIT.finditer(self.source, begin, end):
            character = html.unescape(unit[0].decode())
            if character.isspace():
                if parts and parts[-1] in (" ", "\n"):
                    continue
                character = " "
            for each in character:
                parts.append(each)
                self.places.append(unit.span())

    def around(self, begin: int, end: int) -> tuple[str, str]:
        """Return the text before and after a range."""
        return self.text[max(0, begin - _CONTEXT) : begin], self.text[end : end + _CONTEXT]

    def marked_with(self, ranges: Sequence[tuple[int, int, str]]) -> str:
        """Return the body with markers around ranges. Tags split a range into several markers."""
        tags: list[tuple[int, int, str]] = []
        for begin, end, ref in ranges:
            opening = f'<{MARKER} ac:ref="{html.escape(ref)}">'
            for first, last in self._runs(begin, end):
                tags += [(first, 1, opening), (last, 0, f"</{MARKER}>")]
        body, at = "", 0
        for place, _order, tag in sorted(tags, key=lambda one: one[:2]):
            body += self.source[at:place].decode() + tag
            at = place
        return body + self.source[at:].decode()

    def _runs(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the byte ranges of a text, without the tags between them."""
        run: tuple[int, int] | None = None
        for place in self.places[begin:end]:
            if place is None or run is None or b"<" in self.source[run[1] : place[0]]:
                if run is not None:
                    yield run
                run = place
            else:
                run = run[0], place[1]
        if run is not None:
            yield run


def _best(old: _Text, begin: int, end: int, new: _Text) -> tuple[int, int] | None:
    """Return the range in the new text whose surroundings are most similar; None without one."""
    wanted = old.text[begin:end]
    if not wanted.strip():
        return None
    before, after = old.around(begin, end)
    best: tuple[float, int] | None = None
    at = new.text.find(wanted)
    for _number in range(_MAX_EQUAL_TEXTS):
        if at < 0:
            break
        mine = new.around(at, at + len(wanted))
        score = sum(
            SequenceMatcher(None, one, other, autojunk=False).ratio()
            for one, other in zip((before, after), mine, strict=True)
        )
        if best is None or score > best[0]:
            best = score, at
        at = new.text.find(wanted, at + 1)
    return None if best is None else (best[1], best[1] + len(wanted))


def _comments(body: str) -> set[str]:
    """Return the ids of the inline comments in a body; a comment may have several markers."""
    if MARKER not in body:
        return set()
    try:
        marks = [element for element in parse(body).walk() if element.name == MARKER]
    except Malformed:
        return set()
    return {mark.attributes.get("ac:ref", "") for mark in marks}
