# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse storage format, the XHTML dialect of the wiki, and find the sections of a page in it."""

from __future__ import annotations

import html.entities
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias
from xml.parsers import expat

from ...core.errors import conflict, invalid, not_found, protocol

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
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
_AFTER_AMPERSAND = re.compile(r"[#A-Za-z0-9]*")
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

    def words(self, *without: str) -> list[str]:
        """Return the words of the text, without that in elements with the names `without`."""
        found: list[str] = []
        todo: list[Node] = [self]
        while todo:
            node = todo.pop()
            if isinstance(node, str):
                found.append(node)
            elif isinstance(node, StorageElement) and node.name not in without:
                todo.extend(reversed(node.children))
        return "".join(found).split()

    def parameters(self) -> dict[str, str]:
        """Return the texts of the parameters of a macro by name."""
        return {
            one.attributes.get("ac:name", ""): "".join(map(str, one.children))
            for one in self.elements
            if one.name == "ac:parameter" and not one.elements
        }

    def title(self) -> str:
        """Return the text on a single line, without that in parameters of macros."""
        return " ".join(self.words("ac:parameter"))


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
    """Build the tree of a body from the events of expat. `root`: the root element."""

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
        first = self.root.children[0]
        if isinstance(first, str):  # the line break at the end of `_OPENING`
            self.root.children[:1] = [first[1:]] if first[1:] else []

    def _start(self, name: str, attributes: list[str]) -> None:
        begin = self._expat.CurrentByteIndex - len(_OPENING)
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
        offset = self._expat.CurrentByteIndex - len(_OPENING)
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

    def _explained(self, error: expat.ExpatError) -> Malformed:
        """Return the error with its position in the body, and with advice if it is a usual one."""
        words = expat.errors.messages[error.code]
        lines = self._text.split("\n")
        line = min(error.lineno - 1, len(lines))
        here = lines[line - 1]
        column = min(error.offset, len(here)) if error.lineno - 1 == line else len(here)
        if words == expat.errors.XML_ERROR_UNDEFINED_ENTITY:
            entity = _REFERENCE.search(here, column) or _REFERENCE.search(here)
            name = f"&{entity[1]};" if entity is not None else "the entity"
            hint = "write the character itself, its number (such as &#8212;), or &amp; for an"
            hint += " ampersand"
            at = (entity.start() if entity else column) + 1
            return Malformed(f"{name} is unknown", line, at, hint)
        if words != expat.errors.XML_ERROR_TAG_MISMATCH:
            return _invalid(words, here, line, column)
        column = max(error.offset - 1, 1)
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


def _invalid(words: str, here: str, line: int, column: int) -> Malformed:
    """Explain a lexical error. Expat reports its cause or a position a few characters later."""
    for found in _AMPERSAND.finditer(here[: column + 1]):
        name = _AFTER_AMPERSAND.match(here, found.end())
        longest = 0 if name is None else len(name[0])
        if found.start() >= column - longest - 1:
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


# -- sections ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Section:
    """A body, split before and after the content of a section. `level`: of its heading, 1 to 6."""

    before: str
    content: str
    after: str
    level: int

    def replaced(self, content: str) -> str:
        """Return the whole body with the section replaced."""
        return f"{self.before}{content}{self.after}"


def find_section(body: str, heading: str, name: str = "the page") -> Section:
    """Return the content below a heading, byte for byte.

    The section ends before the first following sibling of the heading that is, or contains, a
    heading of the same or a higher level: a macro, a table or a layout is never cut. Without such a
    sibling it ends with its container. Headings are compared without formatting and with collapsed
    whitespace. Raises `not_found` if there is no such heading, `invalid` if there are several,
    `conflict` if the section goes on after its container, `protocol` for a malformed body.

    :param name: the page, for messages
    """
    try:
        root, source = parse(body), body.encode()
    except Malformed as error:
        reason = (
            f"the body of {name} on the server is not well-formed, so it has no sections: {error}"
        )
        raise protocol(reason) from None
    wanted = " ".join(heading.split())
    found = [path for path in _paths(root, ()) if path[-1].title() == wanted]
    if not found:
        message = f"{name} has no heading '{wanted}': add it to the page first, or correct section"
        raise not_found(message)
    if len(found) > 1:
        raise invalid(f"{name} has {len(found)} headings '{wanted}': rename all but one")
    *above, start = found[0]
    level = _level(start)
    later = [element for element in above[-1].elements if element.begin >= start.end]
    end = next((node.begin for node in later if _ends(node, level)), None)
    if end is None:
        if _goes_on(found[0], level):
            raise conflict(
                f"the heading '{wanted}' is the last element of a macro or box, but its section"
                " goes on after it: move the heading out of the macro, or the text into it"
            )
        end = above[-1].outer
    parts = (source[: start.end], source[start.end : end], source[end:])
    before, content, after = (part.decode() for part in parts)
    return Section(before, content, after, level)


def require_inside(content: str, section: Section) -> None:
    """Raise `invalid` if the content has a heading that would end the section.

    Everything from that heading on would be added to the page again in every run.
    """
    for element in parse(content).walk():
        if element.name in HEADINGS and _level(element) <= section.level:
            raise invalid(
                f"the body of the section contains the heading '{element.title()}' of level"
                f" {_level(element)}, which would end a section of level {section.level}: use"
                " headings of lower levels"
            )


def _paths(
    element: StorageElement, above: tuple[StorageElement, ...]
) -> Iterator[tuple[StorageElement, ...]]:
    """Yield every heading as the last item of the path to it, which begins with the root."""
    path = (*above, element)
    if element.name in HEADINGS:
        yield path
    for child in element.elements:
        yield from _paths(child, path)


def _goes_on(path: tuple[StorageElement, ...], level: int) -> bool:
    """Return whether text follows the container of a heading, but not the heading inside it.

    Cells of layouts and tables end their sections.

    :param path: the path to the heading, which begins with the root
    """
    inner, is_outside = path[-1], False
    for container in reversed(path[:-1]):
        at = next(number for number, node in enumerate(container.children) if node is inner)
        first = next((node for node in container.children[at + 1 :] if not _is_blank(node)), None)
        if first is not None:
            return is_outside and not (isinstance(first, StorageElement) and _ends(first, level))
        if container.name in ("ac:layout-cell", "td", "th"):
            return False
        inner, is_outside = container, True
    return False


def _is_blank(node: Node) -> bool:
    """Return whether a node shows nothing, like the empty paragraph that editors add."""
    if isinstance(node, str):
        return not node.strip()
    if isinstance(node, Comment):
        return True
    return node.name in ("p", "br") and all(map(_is_blank, node.children))


def _level(heading: StorageElement) -> int:
    return HEADINGS.index(heading.name) + 1


def _ends(element: StorageElement, level: int) -> bool:
    """Return whether an element is, or contains, a heading that ends a section of a level."""
    return any(inner.name in HEADINGS and _level(inner) <= level for inner in element.walk())
