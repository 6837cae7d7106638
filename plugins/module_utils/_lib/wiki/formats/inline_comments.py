# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep the inline comments of readers, which are markers in the body, in a new body [wiki-17]."""

from __future__ import annotations

import html
import re
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import islice, starmap

from .comparison import MARKER
from .parser import Malformed, StorageElement, parse

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
#: Number of characters before and after a passage that distinguish it from equal ones.
_CONTEXT = 40
#: Maximum number of equal passages to compare: those nearest to the expected place.
_MAX_COMPARED = 200
#: Maximum number of added and removed blocks. With more of them, only the blocks before the first
#: and after the last change count as unchanged, because the search for others would take too long.
_MAX_EDITS = 500


def comment_counts(before: str, after: str) -> tuple[int, int]:
    """Return the numbers of inline comments that a change of the body keeps and loses."""
    had, has = _comments(before), _comments(after)
    return len(had & has), len(had - has)


def without_markers(body: str) -> str:
    """Return a body without the tags of markers. The commented text stays."""
    return _MARKERS.sub("", body)


def with_comments(before: str, after: str) -> str:
    """Return the new body with the markers of comments whose commented passage is still there.

    A passage in unchanged text keeps its place, and one in a moved block moves with it. Otherwise
    the equal passage with the most similar context is marked, but none in text that belonged to
    another passage before.
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
    for find in (passages.unchanged, passages.moved, passages.similar):
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


class Passages:
    """Find passages of the text `old` in the text `new`. Line breaks separate blocks.

    Unchanged and moved blocks keep their passages. If a block was changed, its passages are only
    searched for in new blocks and in equal blocks. A passage never moves into another unchanged
    block.
    """

    def __init__(self, old: str, new: str) -> None:
        self._old, self._new = _BlockText(old), _BlockText(new)
        pairs = sorted(aligned(self._old.blocks, self._new.blocks))
        self._kept = {number for number, _new in pairs}
        self._unchanged = {number for _old, number in pairs}
        self._moved = moved_blocks(self._old.blocks, self._new.blocks, dict(pairs))
        self._kept.update(self._moved)
        self._unchanged.update(self._moved.values())
        #: Begins and ends in both texts, alternately between and inside unchanged blocks.
        self._segments: list[tuple[slice, slice]] = []
        at, there = 0, 0
        for pair in pairs:
            own, other = self._old.range(pair[0]), self._new.range(pair[1])
            self._segments.append((slice(at, own.start), slice(there, other.start)))
            self._segments.append((own, other))
            at, there = own.stop, other.stop
        self._segments.append((slice(at, len(old)), slice(there, len(new))))
        self._begins = [own.start for own, _other in self._segments]
        self._used = bytearray(len(new))

    def use(self, at: int, length: int) -> None:
        """Occupy a range of the new text, which is then not found any more."""
        self._used[at : at + length] = b"1" * length

    def unchanged(self, begin: int, end: int) -> int | None:
        """Return the position of a passage in unchanged text, or None.

        Text before the first and after the last change between unchanged blocks is unchanged too.
        """
        own, other = self._segment(begin)
        old, new = self._old.text[own], self._new.text[other]
        if end - own.start <= _common(old, new):
            return self._free(other.start + begin - own.start, end - begin)
        if own.stop - begin <= _common(old[::-1], new[::-1]) and end <= own.stop:
            return self._free(other.stop - (own.stop - begin), end - begin)
        return None

    def moved(self, begin: int, end: int) -> int | None:
        """Return the position of a passage in a block that was moved as a whole, or None."""
        number = self._old.number(begin)
        own, there = self._old.range(number), self._moved.get(number)
        if there is None or end > own.stop:
            return None
        return self._free(self._new.range(there).start + begin - own.start, end - begin)

    def similar(self, begin: int, end: int) -> int | None:
        """Return the position of the equal passage with the most similar context, or None.

        The context in the same block counts first, then that around it. Of passages with the same
        context, the one at the most similar position is chosen. The result is None if the context
        of another passage of a changed block is more similar.
        """
        wanted = self._old.text[begin:end]
        here, there = self._old.positions(wanted), self._new.positions(wanted)
        old, new = self._segment(begin)
        rank = bisect_left(here, begin) - bisect_left(here, old.start)
        rank += bisect_left(there, new.start)
        block = self._old.blocks[self._old.number(begin)]

        def may_move(at: int) -> bool:
            """Return whether the passage may move to a position of the new text."""
            number = self._new.number(at)
            return number not in self._unchanged or self._new.blocks[number] == block

        places = (
            there[number]
            for number in _outwards(rank, len(there))
            if may_move(there[number]) and self._free(there[number], len(wanted)) is not None
        )
        best = max(
            islice(places, _MAX_COMPARED),
            key=lambda at: self._score(begin, at, len(wanted)),
            default=None,
        )
        if best is None:
            return None
        own = self._score(begin, best, len(wanted))
        others = (
            here[number]
            for number in _outwards(bisect_left(here, begin), len(here))
            if self._old.number(here[number]) not in self._kept
        )
        rivals = (self._score(at, best, len(wanted)) for at in islice(others, _MAX_COMPARED))
        return None if any(score > own for score in rivals) else best

    def _score(self, begin: int, at: int, length: int) -> tuple[float, float]:
        """Return the similarity of the contexts of a passage in both texts."""
        end, there = begin + length, at + length
        inner = zip(self._old.inside(begin, end), self._new.inside(at, there), strict=True)
        outer = zip(self._old.around(begin, end), self._new.around(at, there), strict=True)
        return sum(starmap(_similarity, inner)), sum(starmap(_similarity, outer))

    def _segment(self, position: int) -> tuple[slice, slice]:
        return self._segments[bisect_right(self._begins, position) - 1]

    def _free(self, at: int, length: int) -> int | None:
        """Return the position if its range is not occupied, else None."""
        return None if any(self._used[at : at + length]) else at


class _BlockText:
    """A text, its blocks and their positions."""

    def __init__(self, text: str) -> None:
        self.text, self.blocks = text, text.split("\n")
        self._begins = [0]
        for block in self.blocks:
            self._begins.append(self._begins[-1] + len(block) + 1)
        self._found: dict[str, list[int]] = {}

    def number(self, position: int) -> int:
        """Return the number of the block at a position."""
        return bisect_right(self._begins, position) - 1

    def range(self, number: int) -> slice:
        begin = self._begins[number]
        return slice(begin, begin + len(self.blocks[number]))

    def positions(self, passage: str) -> list[int]:
        """Return all positions of a passage."""
        if passage not in self._found:
            self._found[passage] = found = []
            at = self.text.find(passage)
            while at >= 0:
                found.append(at)
                at = self.text.find(passage, at + 1)
        return self._found[passage]

    def around(self, begin: int, end: int) -> tuple[str, str]:
        """Return the context before and after a range."""
        return self.text[max(0, begin - _CONTEXT) : begin], self.text[end : end + _CONTEXT]

    def inside(self, begin: int, end: int) -> tuple[str, str]:
        """Return the context in the same blocks."""
        before, after = self.around(begin, end)
        return before.rpartition("\n")[2], after.partition("\n")[0]


def _outwards(middle: int, count: int) -> Iterator[int]:
    """Yield the numbers below `count`, those nearest to the middle first."""
    middle = min(max(middle, 0), count)
    for distance in range(count + 1):
        if middle + distance < count:
            yield middle + distance
        if middle > distance:
            yield middle - distance - 1


@lru_cache(maxsize=256)
def _common(one: str, other: str) -> int:
    """Return the length of the common beginning of two strings."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(one), len(other)))


@lru_cache(maxsize=4096)
def _similarity(one: str, other: str) -> float:
    return 1.0 if one == other else SequenceMatcher(None, one, other, autojunk=False).ratio()


def moved_blocks(
    old: Sequence[str], new: Sequence[str], unchanged: Mapping[int, int]
) -> dict[int, int]:
    """Return the numbers of equal blocks at different places.

    Of several equal blocks, those between equal neighbours belong together. Without such neighbours
    only a block that is unique counts.

    :param unchanged: numbers of the blocks that are in their places
    """
    found: dict[int, int] = {}
    there = set(unchanged.values())
    for distance in (1, 0):
        groups = [
            _numbers(blocks, distance, done)
            for blocks, done in ((old, {*unchanged, *found}), (new, {*there, *found.values()}))
        ]
        for key, numbers in groups[0].items():
            others = groups[1].get(key, [])
            if len(numbers) == len(others) and (distance or len(numbers) == 1):
                found.update(zip(numbers, others, strict=True))
    return found


def _numbers(
    blocks: Sequence[str], distance: int, done: Container[int]
) -> dict[tuple[str, ...], list[int]]:
    """Return the numbers of the blocks by their text and the text of their neighbours."""
    found: dict[tuple[str, ...], list[int]] = {}
    for number in range(len(blocks)):
        if number not in done and blocks[number]:
            around = tuple(blocks[max(0, number - distance) : number + distance + 1])
            found.setdefault(around, []).append(number)
    return found


def aligned(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the numbers of equal items in both lists, which are in the same order there."""
    shorter, begin, end = min(len(old), len(new)), 0, 0
    while begin < shorter and old[begin] == new[begin]:
        yield begin, begin
        begin += 1
    while end < shorter - begin and old[-1 - end] == new[-1 - end]:
        end += 1
        yield len(old) - end, len(new) - end
    old, new = old[begin : len(old) - end], new[begin : len(new) - end]
    found = list(_matches(old, new))
    in_place = [(n, n) for n, item in enumerate(old) if len(old) == len(new) and item == new[n]]
    # of several shortest edits, the one that changes items in place is the most likely
    for own, other in in_place if len(in_place) >= len(found) else found:
        yield begin + own, begin + other


def _matches(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the numbers of the items that the shortest edit keeps (algorithm of Myers).

    Yields nothing if more than `_MAX_EDITS` items differ.
    """
    #: The largest position in `old` on each diagonal, that is position in `old` minus in `new`.
    reach, trail = {1: 0}, list[dict[int, int]]()
    for edits in range(_MAX_EDITS + 1):
        trail.append(dict(reach))
        for diagonal in range(-edits, edits + 1, 2):
            before = _before(reach, diagonal, edits)
            own = reach[before] + (before < diagonal)
            while own < len(old) and own - diagonal < len(new) and old[own] == new[own - diagonal]:
                own += 1
            reach[diagonal] = own
            if own >= len(old) and own - diagonal >= len(new):
                break
        else:
            continue
        own, other = len(old), len(new)
        for number, reach in reversed(list(enumerate(trail))):
            before = _before(reach, own - other, number)
            begin = reach[before]
            while own > begin and other > begin - before:
                own, other = own - 1, other - 1
                yield own, other
            own, other = begin, begin - before
        return


def _before(reach: dict[int, int], diagonal: int, edits: int) -> int:
    """Return the diagonal from which an edit leads farthest on a diagonal."""
    adds = diagonal == -edits or (diagonal != edits and reach[diagonal - 1] < reach[diagonal + 1])
    return diagonal + 1 if adds else diagonal - 1
