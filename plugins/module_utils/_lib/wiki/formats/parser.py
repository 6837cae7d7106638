# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse storage format, the XHTML dialect of the wiki, with the standard library only."""

from __future__ import annotations

import html.entities
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias
from xml.parsers import expat


def excerpt(name: str, old: str, new: str) -> tuple[str, str]:
    """Return the lines that differ, with a line of context, below the name of the page."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    start = _common_lines(before, after)
    end = _common_lines(before[start:][::-1], after[start:][::-1])
    first, last = max(start - 1, 0), max(end - 1, 0)

    def cut(lines: list[str]) -> str:
        if not lines:
            return ""
        above, below = "...\n" if first > 0 else "", "...\n" if last > 0 else ""
        inner = "".join(lines[first : len(lines) - last])
        return f"{name}\n{above}{inner}{below}"

    return cut(before), cut(after)


def joined(sides: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """Return the diff of several pages as a single one."""
    texts = list(sides)
    return "".join(old for old, _new in texts), "".join(new for _old, new in texts)


def _common_lines(before: Sequence[str], after: Sequence[str]) -> int:
    """Return the number of equal lines at the start."""
    pairs = zip(before, after, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(before), len(after)))


_ROOT = "storage-format"
_XML_ENTITIES = ("amp", "lt", "gt", "quot", "apos")
_DECLARED = "".join(
    f'<!ENTITY {name} "&#{code};">'
    for name, code in html.entities.name2codepoint.items()
    if name not in _XML_ENTITIES
)
#: Ends with a line break, so expat's column numbers are those of the body.
_OPENING = f"<!DOCTYPE {_ROOT} [{_DECLARED}]><{_ROOT}>\n".encode()
_CLOSING = f"</{_ROOT}>".encode()
_NEVER_CLOSED = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "wbr")
)
#: Maximum nesting depth of elements. Real pages have far fewer levels.
_DEEPEST = 200
_TAG_END = re.compile(rb"""[^>"']*(?:"[^"]*"[^>"']*|'[^']*'[^>"']*)*>""")
_AMPERSAND = re.compile(r"&(?!#[0-9]+;|#x[0-9a-fA-F]+;|[A-Za-z][A-Za-z0-9]*;)")
_REFERENCE = re.compile(r"&([A-Za-z][A-Za-z0-9]*);")

Node: TypeAlias = "StorageElement | Comment | str"


@dataclass(frozen=True)
class Comment:
    """An XML comment, or a processing instruction if `target` is set."""

    text: str
    target: str | None = None


@dataclass
class StorageElement:
    """An element and its positions in the encoded source, in bytes.

    `begin`: start tag; `inner` to `outer`: content; `end`: first byte after the element.
    """

    name: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Node] = field(default_factory=list)
    begin: int = 0
    inner: int = 0
    outer: int = 0
    end: int = 0

    @property
    def elements(self) -> list[StorageElement]:
        return [child for child in self.children if isinstance(child, StorageElement)]

    def walk(self) -> Iterator[StorageElement]:
        """Yield this element and its descendants in document order."""
        todo = [self]
        while todo:
            element = todo.pop()
            yield element
            todo.extend(reversed(element.elements))


class Malformed(ValueError):
    """Error for a body that is not well-formed. `line` and `column` start at 1."""

    def __init__(self, reason: str, line: int, column: int, hint: str | None = None) -> None:
        advice = "" if hint is None else f": {hint}"
        super().__init__(f"line {line}, column {column}: {reason}{advice}")
        self.line, self.column = line, column


@lru_cache(maxsize=16)
def parse(source: str) -> StorageElement:
    """Parse a body. Return its tree below a root element without a name. Raises `Malformed`.

    HTML entities are predefined, and namespace prefixes such as `ac:` need no declaration. Trees
    are cached, because a task parses the same bodies several times: callers must not modify them.
    """
    try:
        return _Parser(source).root
    except UnicodeEncodeError as error:
        before = source[: error.start]
        column = error.start - before.rfind("\n")
        raise Malformed("unpaired surrogate", before.count("\n") + 1, column) from None


class _Parser:
    def __init__(self, source: str) -> None:
        self._text, self._source = source, source.encode()
        self.root = StorageElement("", end=len(self._source), outer=len(self._source))
        self._open = [self.root]
        self._expat = parser = expat.ParserCreate("utf-8")
        parser.ordered_attributes = True
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._add
        parser.CommentHandler = lambda text: self._add(Comment(text))
        parser.ProcessingInstructionHandler = lambda target, text: self._add(Comment(text, target))
        try:
            parser.Parse(_OPENING + self._source + _CLOSING, True)
        except expat.ExpatError as error:
            raise self._explained(error) from None
        self._drop_added_line_break()

    def _offset(self) -> int:
        return self._expat.CurrentByteIndex - len(_OPENING)

    def _start(self, name: str, attributes: list[str]) -> None:
        begin = self._offset()
        if begin < 0:
            return
        if len(self._open) > _DEEPEST:
            self._reject(f"<{name}> is nested deeper than {_DEEPEST} levels")
        pairs = dict(zip(attributes[::2], attributes[1::2], strict=True))
        found = _TAG_END.match(self._source, begin)
        inner = begin if found is None else found.end()
        element = StorageElement(name, pairs, begin=begin, inner=inner, outer=inner, end=inner)
        self._open[-1].children.append(element)
        self._open.append(element)

    def _end(self, name: str) -> None:
        offset = self._offset()
        if len(self._open) == 1:
            if offset < len(self._source):
                self._reject(f"</{name}> has no matching start tag")
            return
        element = self._open.pop()
        if self._source[element.inner - 2 : element.inner] != b"/>":
            element.outer = offset
            element.end = self._source.index(b">", offset) + 1

    def _reject(self, reason: str) -> None:
        line, column = self._expat.CurrentLineNumber - 1, self._expat.CurrentColumnNumber + 1
        raise Malformed(reason, line, column)

    def _add(self, node: Any) -> None:
        children = self._open[-1].children
        if isinstance(node, str) and children and isinstance(children[-1], str):
            children[-1] += node
        else:
            children.append(node)

    def _drop_added_line_break(self) -> None:
        """Remove the line break at the end of `_OPENING`."""
        first = self.root.children[0]
        if isinstance(first, str):
            self.root.children[:1] = [first[1:]] if first[1:] else []

    # -- error messages ----------------------------------------------------------------------------

    def _explained(self, error: expat.ExpatError) -> Malformed:
        words = expat.errors.messages[error.code]
        lines = self._text.split("\n")
        line = min(error.lineno - 1, len(lines))
        here = lines[line - 1]
        column = min(error.offset, len(here)) if error.lineno - 1 == line else len(here)
        if words == expat.errors.XML_ERROR_TAG_MISMATCH:
            return self._unclosed(line, max(error.offset - 1, 1))
        if words == expat.errors.XML_ERROR_UNDEFINED_ENTITY:
            return _unknown_entity(here, line, column)
        return _invalid(words, here, line, column)

    def _unclosed(self, line: int, column: int) -> Malformed:
        if len(self._open) == 1:
            return Malformed("an end tag has no matching start tag", line, column)
        name = self._open[-1].name
        before = self._source[: self._open[-1].begin].decode()
        opened, opened_column = before.count("\n") + 1, len(before) - before.rfind("\n")
        if name.lower() in _NEVER_CLOSED:
            hint = f"write <{name} /> instead of <{name}>"
            return Malformed(f"<{name}> is not closed", opened, opened_column, hint)
        reason = f"<{name}> from line {opened}, column {opened_column} is not closed here"
        return Malformed(reason, line, column)


def _unknown_entity(here: str, line: int, column: int) -> Malformed:
    found = _REFERENCE.search(here, column) or _REFERENCE.search(here)
    name = f"&{found[1]};" if found is not None else "the entity"
    hint = "write the character itself, its number (such as &#8212;), or &amp; for an ampersand"
    return Malformed(f"{name} is unknown", line, (found.start() if found else column) + 1, hint)


def _invalid(words: str, here: str, line: int, column: int) -> Malformed:
    """Explain a lexical error. Expat reports its cause or a position a few characters later."""
    for found in _AMPERSAND.finditer(here[: column + 1]):
        if found.start() >= column - _longest_name(here, found.end()) - 1:
            return Malformed(
                "an ampersand is not escaped", line, found.start() + 1, "write it as &amp;"
            )
    if here[max(0, column - 2) : column + 1] == "]]>":
        hint = "write ]]&gt; in text; inside CDATA, split it into two sections: ]]]]><![CDATA[>"
        return Malformed("]]> is outside CDATA", line, column - 1, hint)
    if "--" in here[max(0, column - 2) : column + 1] and "<!--" in here[:column]:
        return Malformed("-- is inside a comment", line, column + 1)
    if here[max(0, column - 1) : column] == "<":
        return Malformed("< is not escaped", line, column, "write it as &lt;")
    return Malformed(words, line, column + 1)


def _longest_name(here: str, start: int) -> int:
    """Return the length of a possible entity name that begins at `start`, after an ampersand."""
    found = re.compile(r"[#A-Za-z0-9]*").match(here, start)
    return 0 if found is None else len(found[0])
