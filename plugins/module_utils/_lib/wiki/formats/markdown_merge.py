# SPDX-License-Identifier: GPL-3.0-or-later
"""Merge a page of the wiki into its Markdown.

Blocks, items of lists, rows of tables and blocks of quotations whose content is unchanged keep
every byte. Others are written in the style of the file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from itertools import zip_longest

from .comparison import alike
from .document import blocks_in
from .markdown_writer import (
    Block,
    Context,
    MarkdownWriter,
    Style,
    blocks_of,
    grouped,
    indented,
    markdown_of,
    source_of,
    table_row,
)
from .parser import StorageElement, parse

#: Returns the storage format of a text in pieces, each with its first line.
Convert = Callable[[str], Sequence[tuple[int, str]]]


class Conflict(Exception):
    """Both sides changed a block. `line`: its line in the file."""

    def __init__(self, line: int) -> None:
        super().__init__(f"line {line}")
        self.line = line


@dataclass(frozen=True)
class Segment:
    """Lines of a file, and the blocks of the page that they become."""

    begin: int
    end: int
    blocks: list[Block]


@dataclass(frozen=True)
class _Edit:
    """Lines to replace. `separate`: a blank line goes before and after the new lines."""

    begin: int
    end: int
    lines: list[str]
    separate: bool = False


def style_of(text: str) -> Style:
    """Return the style of a file."""
    found = Style()
    bullets = Counter(re.findall(r"^[ \t>]*([-*+])[ \t]+\S", text, re.MULTILINE))
    delimiters = Counter(re.findall(r"^[ \t>]*\d+([.)])[ \t]+\S", text, re.MULTILINE))
    fences = Counter(re.findall(r"^[ \t>]*(`{3,}|~{3,})", text, re.MULTILINE))
    single = Counter(re.findall(r"(?<![\w*_\\])([*_])(?![\s*_])[^*_\n]+(?<!\s)\1(?![\w*_])", text))
    double = Counter(re.findall(r"(?<![\w*_\\])(\*\*|__)(?![\s*_])", text))
    breaks = Counter(re.findall(r"\S(\\|  +)\n(?=\S)", text))
    rules = re.findall(r"(?:^|\n\n)((?:[*_-] ?){3,})(?=\n)", text)
    paragraphs = re.findall(r"(?:^|\n\n)([^\W_`|#>~-][^\n|]*(?:\n[^\n|]+)+)(?=\n\n|\n?\Z)", text)
    widths = [max(map(len, paragraph.split("\n"))) for paragraph in paragraphs]
    longest = max(map(len, re.findall(r"(?:^|\n\n)(\w[^\n|]*)(?=\n\n|\n?\Z)", text)), default=0)
    width = None
    if widths and longest <= max(widths) <= _WIDEST:  # the file is wrapped
        width = max(_NARROWEST, *widths)
    return replace(
        found,
        bullet=_first(bullets, found.bullet),
        delimiter=_first(delimiters, found.delimiter),
        fence=_first(fences, found.fence),
        emphasis=_first(single, found.emphasis),
        strong=_first(double, found.strong),
        line_break="\\" if _first(breaks, "\\") == "\\" else "  ",
        rule=rules[0] if rules else found.rule,
        underlined=re.search(r"^\S.*\n(?:=+|-+)[ \t]*$", text, re.MULTILINE) is not None
        and re.search(r"^#{1,2} ", text, re.MULTILINE) is None,
        width=width,
    )


def _first(counts: Counter[str], default: str) -> str:
    return counts.most_common(1)[0][0] if counts else default


_LIST_MARK = re.compile(r"^ {0,3}(?:\d+)?([-*+.)])(?:[ \t]|$)")
_NARROWEST, _WIDEST = 60, 120
_DEFINITION = re.compile(r"^ {0,3}\[[^\]^][^\]]*\]:.*$", re.MULTILINE)


def segments_of(text: str, pieces: Sequence[tuple[int, str]]) -> list[Segment]:
    """Return the blocks of a file with the blocks of the page that they become."""
    spans = blocks_in(text)
    found: list[tuple[int, int, str]] = []
    for line, source in pieces:
        at = next((n for n, (begin, end) in enumerate(spans) if begin < line <= end), None)
        if found and (line == 0 or at is None or at <= found[-1][1]):
            first, last, before = found[-1]
            found[-1] = (first, last, before + source)
        elif at is not None:
            found.append((at, at, source))
    segments = []
    for number, (first, _last, source) in enumerate(found):
        after = found[number + 1][0] if number + 1 < len(found) else len(spans)
        inner = spans[first:after]
        end = max(span[1] for span in inner)
        lines = text.split("\n")[spans[first][0] : end]
        while lines and not lines[-1].strip():
            lines.pop()
        begin = spans[first][0]
        segments.append(Segment(begin, begin + len(lines), blocks_of(source)))
    return segments


@dataclass
class Merger:
    """Merge pages into texts.

    `convert`: the conversion of the page. `context`: for new Markdown. `notes`: the footnotes at
    the end of the page, whose definitions stay as they are.
    """

    convert: Convert
    context: Context
    notes: str = ""
    _definitions: str = field(default="")

    def merged(self, text: str, page: str, base: str | None = None) -> str:
        """Return the text with the changes that lead from the base to the page.

        Raises `Conflict` if the text has changed at the same place.

        :param base: body that the text had when it was published; by default what it is now
        """
        self._definitions = "\n".join(_DEFINITION.findall(text))
        former = None if base is None else self._without_notes(base)
        return self._merged(text, self._without_notes(page), former)

    def _without_notes(self, body: str) -> list[Block]:
        blocks, count = blocks_of(body), len(blocks_of(self.notes))
        end = "".join(block.source for block in blocks[-count:])
        if count and alike(end, self.notes, self.context.space, flowing=True):
            return blocks[:-count]
        return blocks

    def _merged(self, text: str, page: Sequence[Block], base: Sequence[Block] | None = None) -> str:
        segments = segments_of(text, self.convert(text))
        own = [block for segment in segments for block in segment.blocks]
        former = own if base is None else list(base)
        ids = _identities([own, former, list(page)], self.context.space)
        lines = text.split("\n")
        texts, at = dict[int, str](), 0
        for segment in segments:
            if len(segment.blocks) == 1:
                texts[ids[0][at]] = "\n".join(lines[segment.begin : segment.end])
            at += len(segment.blocks)
        #: Texts of blocks that may have moved, by the block of the page.
        moved = {
            id(block): texts[number]
            for block, number in zip(page, ids[2], strict=True)
            if number in texts
        }
        edits: list[_Edit] = []
        for begin, end, first, last in _wiki_changes(ids, segments):
            edits += self._edits(lines, page[first:last], moved, segments, (begin, end))
        return _applied(text, edits)

    def _edits(
        self,
        lines: Sequence[str],
        new: Sequence[Block],
        moved: Mapping[int, str],
        segments: Sequence[Segment],
        span: tuple[int, int],
    ) -> list[_Edit]:
        """Return the edits that replace segments by blocks, those of the same kind each other."""
        at, end = span
        old = segments[at:end]
        kinds = [_kind(one.blocks[0]) if len(one.blocks) == 1 else "" for one in old]
        matcher = SequenceMatcher(None, kinds, [_kind(block) for block in new], autojunk=False)
        edits: list[_Edit] = []
        after = segments[at - 1].end if at else (segments[0].begin if segments else len(lines))
        if not segments:
            after = len(lines) - 1 if any(lines) else 0
        for tag, a1, a2, b1, b2 in matcher.get_opcodes():
            if tag == "equal":
                for segment, block in zip(old[a1:a2], new[b1:b2], strict=True):
                    source = "\n".join(lines[segment.begin : segment.end])
                    rewritten = self._rewritten(source, segment.blocks[0], block)
                    edits.append(_Edit(segment.begin, segment.end, rewritten.split("\n")))
                after = old[a2 - 1].end
                continue
            beside = {
                mark
                for other in (*segments[max(at - 1, 0) : at], *segments[end : end + 1])
                for mark in _LIST_MARK.findall(lines[other.begin])
            }
            written = self._written(new[b1:b2], moved, beside)
            if a1 < a2:
                removed = old[a1:a2]
                edits.append(_Edit(removed[0].begin, removed[-1].end, written, bool(written)))
                after = removed[-1].end
            elif written:
                edits.append(_Edit(after, after, written, separate=True))
        return edits

    def _written(
        self, blocks: Sequence[Block], moved: Mapping[int, str], beside: Collection[str] = ()
    ) -> list[str]:
        """Return the lines of new blocks. Blocks that moved keep their bytes.

        :param beside: marks of the lists before and after them, which would continue a new list
        """
        style = self.context.style
        bullets = [mark for mark in (style.bullet, "-", "*", "+") if mark not in beside]
        delimiters = [mark for mark in (style.delimiter, ".", ")") if mark not in beside]
        style = replace(style, bullet=bullets[0], delimiter=[*delimiters, style.delimiter][0])
        context = replace(self.context, style=style)
        if not blocks:
            return []
        parts: list[str] = []
        new: list[Block] = []
        for block in (*blocks, None):
            known = None if block is None else moved.get(id(block))
            if block is not None and known is None:
                new.append(block)
                continue
            if new:
                body = "".join(one.source for one in new)
                parts.append(markdown_of(body, context).rstrip("\n"))
            new = []
            if known is not None:
                parts.append(known)
        return "\n\n".join(parts).split("\n")

    # -- parts of blocks -------------------------------------------------------------------------

    def _rewritten(self, text: str, old: Block, new: Block) -> str:
        """Return the text of a block with the changes in its items, rows or blocks."""
        name, before, after = _kind(old), old.nodes[0], new.nodes[0]
        written = None
        if isinstance(before, StorageElement) and isinstance(after, StorageElement):
            if name in ("ul", "ol", "ac:task-list"):
                written = self._list(text, before, after)
            elif name == "table":
                written = self._table(text, before, after)
            elif name == "blockquote" or text.startswith("> [!"):
                written = self._quotation(text, before, after)
        if written is not None:
            source = "".join(
                piece for _line, piece in self.convert(self._with_definitions(written))
            )
            if alike(new.source, source, self.context.space, flowing=True):
                return written
        return "\n".join(self._written([new], {}))

    def _with_definitions(self, text: str) -> str:
        return f"{text}\n\n{self._definitions}\n" if self._definitions else f"{text}\n"

    def _list(self, text: str, old: StorageElement, new: StorageElement) -> str | None:
        spans = blocks_in(text, "list_item_open", 1)
        if len(spans) != len(old.elements):
            return None
        lines = text.split("\n")
        items = ["\n".join(lines[begin:end]).rstrip("\n") for begin, end in spans]
        gaps = [lines[end - 1 : end] == [""] for _begin, end in spans[:-1]]
        is_loose = any(gaps)
        tag, space = old.name, self.context.space
        wrap = [f"<{tag}>{source_of(item)}</{tag}>" for item in old.elements]
        wanted = [f"<{tag}>{source_of(item)}</{tag}>" for item in new.elements]
        own_ids, new_ids = _identities([blocks_of("".join(one)) for one in (wrap, wanted)], space)
        found: list[str] = []
        for kind, a1, a2, b1, b2 in SequenceMatcher(None, own_ids, new_ids, False).get_opcodes():
            if kind == "equal":
                found += items[a1:a2]
                continue
            for at in range(b1, b2):
                number = a1 + at - b1
                own = items[number] if number < a2 else None
                found.append(self._item(own, items[0], new.elements[at], len(found)))
        return ("\n\n" if is_loose else "\n").join(found)

    def _item(self, own: str | None, model: str, item: StorageElement, at: int) -> str:
        """Return the text of an item. `own`: the text that it had. `model`: the first item."""
        mark = re.match(r"( {0,3})([-*+]|\d+[.)])([ \t]+|$)", own or model)
        prefix = "- " if mark is None else mark[0]
        if not own:  # the number after that of the first item
            prefix = re.sub(r"\d+", lambda found: str(int(found[0]) + at), prefix, count=1)
        children, task = item.children, ""
        if item.name == "ac:task":
            parts = {one.name: one for one in item.elements}
            status = "".join(map(str, parts["ac:task-status"].children)).strip()
            task = "[x] " if status == "complete" else "[ ] "
            children = parts["ac:task-body"].children
        body = "".join(
            source_of(nodes)
            if isinstance(nodes, StorageElement)
            else source_of(StorageElement("p", {}, nodes))
            for nodes in grouped(children)
        )
        blocks = blocks_of(body)
        width = len(prefix)
        if own is None:
            writer = MarkdownWriter(self.context)
            written = writer.item(item)
            return indented(prefix, written)
        first, *rest = own.split("\n")
        inner = "\n".join([first[width:], *(line[width:] for line in rest)])
        inner = re.sub(r"\A\[[ xX]\] ", "", inner)
        written = self._merged(self._with_definitions(inner), blocks)
        if self._definitions:
            written = written.rstrip("\n").removesuffix(self._definitions)
        written = written.rstrip("\n")
        return indented(prefix, task + written)

    def _quotation(self, text: str, old: StorageElement, new: StorageElement) -> str | None:
        lines = text.split("\n")
        if not all(line.startswith(">") for line in lines) or old.attributes.get(
            "ac:name"
        ) != new.attributes.get("ac:name"):
            return None
        inner = [re.sub(r"^> ?", "", line) for line in lines]
        head = inner[:1] if old.name == "ac:structured-macro" else []
        bodies = [one for one in new.elements if one.name == "ac:rich-text-body"]
        content = bodies[0].children if head and bodies else new.children
        body = "".join(source_of(one) for one in content if isinstance(one, StorageElement))
        text = self._with_definitions("\n".join(inner[len(head) :]))
        written = self._merged(text, blocks_of(body)).rstrip("\n")
        if self._definitions:
            written = written.removesuffix(self._definitions).rstrip("\n")
        return "\n".join(f"> {line}".rstrip() for line in [*head, *written.split("\n")])

    def _table(self, text: str, old: StorageElement, new: StorageElement) -> str | None:
        """Return the text of a table. Rows that are unchanged keep their bytes."""
        lines = text.split("\n")
        rows = [[one for one in table.walk() if one.name == "tr"] for table in (old, new)]
        header = rows[0][0].elements if rows[0] else []
        is_same = rows[1] and len(rows[1][0].elements) == len(header)
        if len(lines) != len(rows[0]) + 1 or not is_same or "|" not in lines[0]:
            return None
        wraps = [
            [f"<table><tbody>{source_of(row)}</tbody></table>" for row in each] for each in rows
        ]
        own_ids, new_ids = _identities(
            [blocks_of("".join(each)) for each in wraps], self.context.space
        )
        texts = [lines[0], *lines[2:]]
        writer = MarkdownWriter(self.context)
        widths = [len(cell) - 2 for cell in re.split(r"(?<!\\)\|", lines[0])[1:-1]]
        widths = widths if len(widths) == len(header) else [0] * len(header)
        found: list[str] = []
        for kind, a1, a2, b1, b2 in SequenceMatcher(None, own_ids, new_ids, False).get_opcodes():
            if kind == "equal":
                found += texts[a1:a2]
                continue
            for row in rows[1][b1:b2]:
                cells = writer.cells(row)
                if cells is None or len(cells) != len(widths):
                    return None
                found.append(table_row(cells, widths))
        return "\n".join([found[0], lines[1], *found[1:]])


def _kind(block: Block) -> str:
    node = block.nodes[0]
    if not isinstance(node, StorageElement):
        return "text"
    name = node.attributes.get("ac:name", "")
    return f"{node.name} {name}" if name else node.name


def _identities(lists: Sequence[Sequence[Block]], space: str | None) -> list[list[int]]:
    """Return a number for each block, which is the same for blocks that mean the same."""
    known: dict[str, list[tuple[Block, int]]] = {}
    count = 0
    found: list[list[int]] = []
    for blocks in lists:
        numbers: list[int] = []
        for block in blocks:
            tree = parse(block.source)
            words = "".join(tree.words("ac:parameter", "ac:task-uuid", "ac:task-id", "ac:link"))
            same = known.setdefault(words, [])
            number = next(
                (
                    number
                    for other, number in same
                    if alike(block.source, other.source, space, flowing=True)
                ),
                None,
            )
            if number is None:
                number, count = count, count + 1
                same.append((block, number))
            numbers.append(number)
        found.append(numbers)
    return found


def _wiki_changes(
    ids: Sequence[Sequence[int]], segments: Sequence[Segment]
) -> list[tuple[int, int, int, int]]:
    """Return the changes of the page: begin and end of the segments, and of the blocks of the page.

    Raises `Conflict` for a change where the file has changed too.

    :param ids: numbers of the blocks of the file, of the base and of the page
    """
    own, base, page = ids
    ours, theirs = _edits_of(base, own), _edits_of(base, page)
    owners = [at for at, segment in enumerate(segments) for _block in segment.blocks]
    changes: list[tuple[int, int, int, int]] = []
    left = theirs
    while left:
        span, grown = left[0][:2], None
        while span != grown:  # with the edits of both sides that overlap it
            grown = span
            spans = [edit[:2] for edit in (*ours, *theirs) if _overlap(edit[:2], span)]
            span = (min(begin for begin, _end in spans), max(end for _begin, end in spans))
        (f1, f2), (p1, p2) = _counterpart(ours, span), _counterpart(theirs, span)
        left = [edit for edit in left if not _overlap(edit[:2], span)]
        former = base[span[0] : span[1]]
        # what both sides made the same is no change any more
        while f1 < f2 and p1 < p2 and own[f1] == page[p1]:
            f1, p1, former = f1 + 1, p1 + 1, former[1:]
        while f1 < f2 and p1 < p2 and own[f2 - 1] == page[p2 - 1]:
            f2, p2, former = f2 - 1, p2 - 1, former[:-1]
        if list(page[p1:p2]) in (list(own[f1:f2]), list(former)):
            continue
        if list(own[f1:f2]) != list(former):
            at = owners[min(f1, len(owners) - 1)] if owners else 0
            raise Conflict(segments[at].begin + 1 if segments else 1)
        changes.append(_whole(owners, f1, f2, p1, p2))
    return changes


def _edits_of(base: Sequence[int], changed: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return the begin and end of each edit in the base, and the number of blocks that it adds."""
    matcher = SequenceMatcher(None, base, changed, autojunk=False)
    return [
        (b1, b2, (c2 - c1) - (b2 - b1))
        for tag, b1, b2, c1, c2 in matcher.get_opcodes()
        if tag != "equal"
    ]


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Return whether edits concern the same blocks, or insert at the same place."""
    (a1, a2), (b1, b2) = one, other
    return a1 == b1 if a1 == a2 and b1 == b2 else a1 < b2 and b1 < a2


def _counterpart(edits: Sequence[tuple[int, int, int]], span: tuple[int, int]) -> tuple[int, int]:
    """Return the begin and end that a span of the base has after the edits."""
    inside = sum(more for b1, b2, more in edits if _overlap((b1, b2), span))
    before = sum(more for b1, b2, more in edits if b2 <= span[0] and not _overlap((b1, b2), span))
    return span[0] + before, span[1] + before + inside


def is_merge(own: str, base: str, page: str, new: str, space: str | None) -> bool:
    """Return whether a body is its own former one with the changes from the base to the page."""
    ids = _identities([blocks_of(body) for body in (own, base, page, new)], space)
    blocks = [Segment(at, at, [block]) for at, block in enumerate(blocks_of(own))]
    expected = list(ids[0])
    for begin, end, first, last in reversed(_wiki_changes(ids[:3], blocks)):
        expected[begin:end] = ids[2][first:last]
    return expected == ids[3]


def first_difference(page: str, body: str, space: str | None) -> str:
    """Return the text of the first block of a page that another body does not have."""
    for block, other in zip_longest(blocks_of(page), blocks_of(body)):
        if not (block and other and alike(block.source, other.source, space, flowing=True)):
            return parse((block or other).source).title()
    return ""


def _whole(owners: Sequence[int], f1: int, f2: int, p1: int, p2: int) -> tuple[int, int, int, int]:
    """Extend a change to whole segments. Return the segments and the blocks of the page."""
    while f1 > 0 and f1 < len(owners) and owners[f1 - 1] == owners[f1] and (f1 < f2 or f1 == f2):
        f1, p1 = f1 - 1, p1 - 1
    while f2 > f1 and f2 < len(owners) and owners[f2] == owners[f2 - 1]:
        f2, p2 = f2 + 1, p2 + 1
    begin = owners[f1] if f1 < len(owners) else (owners[-1] + 1 if owners else 0)
    end = owners[f2 - 1] + 1 if f2 > f1 else begin
    return begin, end, p1, p2


def _applied(text: str, edits: Sequence[_Edit]) -> str:
    """Return the text with the edits, from the last to the first one."""
    lines = text.split("\n")
    for edit in reversed(edits):
        begin, end, new = edit.begin, edit.end, list(edit.lines)
        if not new:  # with the blank lines after it, or else before it
            while end < len(lines) and not lines[end].strip() and end + 1 < len(lines):
                end += 1
            if end + 1 >= len(lines):
                while begin > 0 and not lines[begin - 1].strip():
                    begin -= 1
        elif edit.separate:
            if begin > 0 and lines[begin - 1].strip():
                new.insert(0, "")
            if end < len(lines) and lines[end].strip():
                new.append("")
        lines[begin:end] = new
    joined = "\n".join(lines)
    return joined if joined.endswith("\n") or not text.endswith("\n") else joined + "\n"
