# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep the inline comments of readers, which are markers in the body, in a new body [wiki-17]."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .canonical import MARKER
from .parser import Malformed, StorageElement, parse
from .passages import Passages

#: Inline elements, whose tags do not interrupt a passage.
_INLINE = frozenset(
    {
        *("strong", "em", "u", "s", "b", "i", "sub", "sup", "code", "span", "a", "small"),
        *(MARKER, "ac:link", "ac:link-body"),
    }
)
#: Elements whose content is invisible or cannot contain markers.
_CLOSED = re.compile(r"ac:(?!structured-macro|rich-text-body|link|task|layout)|ri:|script|style")
_MARKERS = re.compile(rf"</?{MARKER}(?:\s[^<>]*)?>")
_UNIT = re.compile(rb"&[^;\s]+;|[\x00-\x7f]|[\xc0-\xff][\x80-\xbf]*")


def comment_counts(before: str, after: str) -> tuple[int, int]:
    """Return the numbers of inline comments that a change of the body keeps and loses."""
    had, has = _comments(before), _comments(after)
    return len(had & has), len(had - has)


def without_markers(body: str) -> str:
    """Return a body without the tags of markers. The commented text stays."""
    return _MARKERS.sub("", body)


def with_comments(before: str, after: str) -> str:
    """Return the new body with the markers of comments whose commented passage is still there.

    A passage in unchanged text keeps its place. Otherwise the equal passage with the most similar
    context is marked, but none in text that belonged to another passage before.
    """
    missing = _comments(before) - _comments(after)
    if not missing:
        return after
    try:
        old, new = _Text.of(before), _Text.of(after)
    except Malformed:
        return after
    passages, taken = Passages(old.text, new.text), list[tuple[int, int, str]]()
    todo = [(begin, end, ref) for ref, begin, end in old.marked if ref in missing]
    todo = [passage for passage in todo if old.text[passage[0] : passage[1]].strip()]
    for find in (passages.unchanged, passages.similar):
        left = []
        for begin, end, ref in todo:
            at = find(begin, end)
            if at is None:
                left.append((begin, end, ref))
            else:
                passages.use(at, end - begin)
                taken.append((at, at + end - begin, ref))
        todo = left
    return new.marked_with(taken)


@dataclass
class _Text:
    """The text of a body with collapsed whitespace.

    `spans`: byte range of each character in `source`, or None for the boundary of a block.
    `marked`: comment id, begin and end of each marker; positions are indexes of `text`.
    """

    source: bytes
    text: str = ""
    spans: list[tuple[int, int] | None] = field(default_factory=list)
    marked: list[tuple[str, int, int]] = field(default_factory=list)

    @classmethod
    def of(cls, body: str) -> _Text:
        """Parse a body. Raises `Malformed`."""
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
        begin, at = len(self.spans), element.inner
        for child in element.elements:
            self._add_text(at, child.begin, parts)
            if not _CLOSED.match(child.name) or child.name == MARKER:
                self._add(child, parts)
            else:
                self._break(parts)
            at = child.end
        self._add_text(at, element.outer, parts)
        if element.name == MARKER:
            self.marked.append((element.attributes.get("ac:ref", ""), begin, len(self.spans)))
        if element.name not in _INLINE:
            self._break(parts)

    def _break(self, parts: list[str]) -> None:
        if parts and parts[-1] != "\n":
            parts.append("\n")
            self.spans.append(None)

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
            for code_point in character:
                parts.append(code_point)
                self.spans.append(unit.span())

    def marked_with(self, ranges: Sequence[tuple[int, int, str]]) -> str:
        """Return the body with markers around passages. Tags split a passage into several markers.

        :param ranges: begin, end and comment id of each passage
        """
        tags: list[tuple[int, int, str]] = []
        for begin, end, ref in ranges:
            opening = f'<{MARKER} ac:ref="{html.escape(ref)}">'
            for first, last in self._runs(begin, end):
                tags += [(first, 1, opening), (last, 0, f"</{MARKER}>")]
        body, at = "", 0
        for position, _order, tag in sorted(tags, key=lambda entry: entry[:2]):
            body += self.source[at:position].decode() + tag
            at = position
        return body + self.source[at:].decode()

    def _runs(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the byte ranges of a passage, split at tags."""
        run: tuple[int, int] | None = None
        for span in self.spans[begin:end]:
            if span is None or run is None or b"<" in self.source[run[1] : span[0]]:
                if run is not None:
                    yield run
                run = span
            else:
                run = run[0], span[1]
        if run is not None:
            yield run


def _comments(body: str) -> set[str]:
    """Return the ids of the inline comments in a body. A comment may have several markers."""
    if MARKER not in body:
        return set()
    try:
        marks = [element for element in parse(body).walk() if element.name == MARKER]
    except Malformed:
        return set()
    return {mark.attributes.get("ac:ref", "") for mark in marks}
