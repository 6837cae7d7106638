# SPDX-License-Identifier: GPL-3.0-or-later
"""Build a tree of elements from Markdown and the raw HTML in it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import TYPE_CHECKING, TypeAlias

from ...core.errors import invalid

if TYPE_CHECKING:
    from markdown_it.token import Token


#: Comments, declarations and processing instructions, or a tag. They match in linear time: an
#: unclosed comment ends with the source, and a tag contains `<` only between quotation marks.
_MARKUP = re.compile(
    r"<!--(?:-?>|.*?(?:-->|\Z))|<[!?][^>]*(?:>|\Z)"
    r"""|<(?P<end>/?)(?P<tag>[A-Za-z][A-Za-z0-9:.-]*)(?P<rest>(?:[\s/](?:[^<>"']|"[^"]*"|'[^']*')*)?)>""",
    re.DOTALL,
)
#: A slash that is not the end of an unquoted value, as in `<a href=x/>`.
_CLOSED = re.compile(r"""[\s"']/\Z""")
#: Elements whose content is no text of the page.
INVISIBLE = frozenset({"script", "style", "template"})
_CONTENT_ENDS = {tag: re.compile(rf"</{tag}\s*>|\Z", re.IGNORECASE) for tag in INVISIBLE}


@dataclass(frozen=True)
class Tag:
    """A start tag or an end tag. `line`: number of lines before it. `closed`: ends with `/>`."""

    name: str
    line: int
    ends: bool = False
    closed: bool = False
    attributes: dict[str, str] = field(default_factory=dict)


def split_html(source: str) -> Iterator[str | Tag]:
    """Yield the text and the tags of raw HTML, without comments, scripts and styles.

    The text has no character references.
    """
    at = line = 0
    while (found := _MARKUP.search(source, at)) is not None:
        if found.start() > at:
            yield html.unescape(source[at : found.start()])
        line += source.count("\n", at, found.start())
        at = found.start()
        if found["tag"] is not None:
            name, rest = found["tag"].lower(), found["rest"].strip()
            parser = _Attributes()
            if rest not in ("", "/") and not found["end"]:
                parser.feed(found[0])
            closed = rest == "/" or (not found["end"] and _CLOSED.search(rest) is not None)
            tag = Tag(name, line, bool(found["end"]), closed, parser.found)
            yield tag
            if tag.name in INVISIBLE and not (tag.ends or tag.closed):
                line += source.count("\n", at, found.end())
                at = found.end()
                found = _CONTENT_ENDS[tag.name].search(source, at) or found
        line += source.count("\n", at, found.end())
        at = found.end()
    if at < len(source):
        yield html.unescape(source[at:])


class _Attributes(HTMLParser):
    """Parse the attributes of a single start tag. The first of several equal names counts."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            self.found.setdefault(name, value or "")


#: Type of the token for a reference to a footnote. Its `content` is the name of the footnote.
FOOTNOTE = "footnote_reference"
#: Type of the token for a tag of a site generator.
TEMPLATE = "template"
#: Maximum nesting depth of elements, in Markdown and raw HTML.
DEEPEST = 60
#: Tag of a code block, whose attribute `info` is the first line after the fence. No tag of raw HTML
#: can have a name with a `#`.
CODE = "#code"
#: Tag of a note or a tab, whose attribute `macro` is that of the wiki, or empty for a tab.
NOTE = "#note"
#: Tags of passages in storage format: a block of code with the language `storage`, and a code span
#: followed by `{=storage}`. The attribute `source` is the storage format.
PASSAGE, INLINE_PASSAGE = "#storage", "#inline-storage"
#: Tag of the paragraph of a list item without blank lines.
TIGHT = "#tight"
#: Tag of the end of a paragraph that is not an element, such as the end of a `div`.
BREAK = "#break"

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
CELLS = ("td", "th")
_SECTIONS = ("thead", "tbody", "tfoot")
BLOCKS = frozenset(
    (
        *(*HEADINGS, *CELLS, *_SECTIONS, "p", TIGHT, CODE, BREAK, NOTE, "hr", "pre"),
        *("blockquote", PASSAGE),
        *("ul", "ol", "li", "dl", "dt", "dd", "table", "colgroup", "col", "tr", "caption"),
        *("details", "summary", "figcaption"),
    )
)
INLINE = frozenset(
    (
        *("br", "strong", "b", "em", "i", "u", "ins", "s", "del", "mark", "sub", "sup"),
        *("code", "kbd", "img", "a"),
    )
)
_KNOWN = BLOCKS | INLINE
_EMPTY = frozenset({"br", "hr", "img", "col"})
#: Elements without an equivalent whose content is kept, without a warning.
_TRANSPARENT = frozenset({"div", "span", "center", "picture", "source", "figure"})
#: Elements without an equivalent that separate paragraphs.
_BREAKING = frozenset(
    (
        *("div", "center", "figure", "address", "article", "aside", "body", "dir", "fieldset"),
        *("footer", "form", "header", "html", "legend", "main", "menu", "nav", "option"),
        *("section", "noscript", "optgroup", "hgroup"),
    )
)
#: Open elements that a start tag closes, and the elements that limit this.
_CLOSES: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "a": (frozenset({"a"}), frozenset()),
    **dict.fromkeys(HEADINGS, (frozenset(HEADINGS), frozenset({*CELLS, "li", "details"}))),
    "li": (frozenset({"li"}), frozenset({"ul", "ol"})),
    **dict.fromkeys(("dt", "dd"), (frozenset({"dt", "dd"}), frozenset({"dl"}))),
    **dict.fromkeys(CELLS, (frozenset(CELLS), frozenset({"tr", "table"}))),
    "tr": (frozenset({"tr", "caption", "colgroup"}), frozenset({"table"})),
    **dict.fromkeys(
        (*_SECTIONS, "colgroup", "caption"),
        (frozenset({*_SECTIONS, "colgroup", "caption"}), frozenset({"table"})),
    ),
}
_BLANKS = re.compile(r"[ \t\r\n\f]+")
_PARAGRAPH = (frozenset({"p"}), frozenset({*CELLS, "li", "dd", "blockquote", "details"}))


@dataclass(eq=False)
class Element:
    """An element of Markdown or of raw HTML (`raw`).

    `ids`: its explicit targets of links. `slug`: the target of a heading, from its text.
    `has_block`: whether it contains a block.
    """

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Node] = field(default_factory=list)
    line: int = 0
    raw: bool = False
    ids: list[str] = field(default_factory=list)
    slug: str = ""
    has_block: bool = False

    def walk(self) -> Iterator[Element]:
        """Yield this element and its descendants in document order."""
        todo = [self]
        while todo:
            element = todo.pop()
            yield element
            todo.extend(child for child in reversed(element.children) if not isinstance(child, str))

    def text(self) -> str:
        """Return the text without formatting, on a single line."""
        words: list[str] = []
        todo: list[Node] = [self]
        while todo:
            node = todo.pop()
            if isinstance(node, str):
                words.append(node)
                continue
            separates = node is not self and (node.tag in BLOCKS or node.tag == "br")
            blank = [" "] if separates else []
            todo += [*blank, *reversed(node.children), *blank]
        return " ".join("".join(words).split())


Node: TypeAlias = "Element | str"


class TreeBuilder:
    """Build a tree from the tokens of Markdown.

    A tag of raw HTML never closes an element of Markdown, and the end of an element of Markdown
    closes all elements of raw HTML within it.

    :param line: number of lines before the Markdown
    """

    def __init__(self, line: int = 0) -> None:
        self.root = Element("")
        #: Line numbers of the elements without an equivalent, by name.
        self.unknown: dict[str, list[int]] = {}
        #: Line numbers of the tags of site generators, by tag.
        self.templates: dict[str, list[int]] = {}
        self._open = [self.root]
        self._first, self._line = line + 1, line + 1

    def add(self, tokens: Iterable[Token]) -> None:
        for token in tokens:
            if token.map is not None:
                self._line = self._first + token.map[0]
            if token.type == "inline":
                self.add(token.children or ())
            elif token.nesting == 1:
                self._start(_element(token, self._line))
            elif token.nesting == -1:
                while self._open.pop().raw:
                    pass
            else:
                self._leaf(token)

    def _leaf(self, token: Token) -> None:
        if token.type == "text":
            self._append(token.content)
        elif token.type == TEMPLATE:
            self.templates.setdefault(token.content, []).append(self._line)
            self._append(token.content)
        elif token.type in ("softbreak", "hardbreak"):
            self._append("\n" if token.type == "softbreak" else Element("br"))
            self._line += 1
        elif token.type in ("html_block", "html_inline"):
            self._raw(token.content)
            self._line += token.content.count("\n")
        else:
            self._append(_element(token, self._line))

    # -- raw HTML ------------------------------------------------------------------------------

    def _raw(self, source: str) -> None:
        for part in split_html(source):
            if isinstance(part, str):
                is_code = any(element.tag == "pre" for element in self._open)
                self._append(part if is_code else _BLANKS.sub(" ", part))
            elif not part.ends:
                self._start_tag(part)
            elif part.name in _BREAKING:
                self._break()
            else:
                self._close(frozenset({part.name}), frozenset())

    def _start_tag(self, tag: Tag) -> None:
        names = [tag.attributes.get("id", "")]
        names += [tag.attributes.get("name", "")] if tag.name == "a" else []
        ids = list(dict.fromkeys(name for name in names if name.split() == [name]))
        element = Element(tag.name, tag.attributes, [], self._line + tag.line, True, ids)
        if tag.name not in _KNOWN:
            if tag.name not in _TRANSPARENT:
                self.unknown.setdefault(tag.name, []).append(element.line)
            if tag.name in _BREAKING:
                self._break()
            if ids:
                self._append(Element("a", ids=ids))
        elif tag.name == "a" and any(one.tag == "a" and not one.raw for one in self._open):
            self._append(Element("a", ids=ids))  # a link of Markdown contains no other link
        elif tag.closed or tag.name in _EMPTY:
            self._closed_by(element.tag)
            self._append(element)
        else:
            self._start(element)

    def _break(self) -> None:
        self._closed_by(BREAK)
        self._append(Element(BREAK))

    # -- tree ----------------------------------------------------------------------------------

    def _start(self, element: Element) -> None:
        self._closed_by(element.tag)
        self._append(element)
        self._open.append(element)
        if len(self._open) > DEEPEST:
            raise invalid(
                f"line {element.line}: elements are nested deeper than {DEEPEST} levels: use fewer"
            )

    def _closed_by(self, tag: str) -> None:
        """Close the open elements of raw HTML that the start of an element closes."""
        if tag in BLOCKS:
            self._close(*_PARAGRAPH)
        if tag in _CLOSES:
            self._close(*_CLOSES[tag])

    def _close(self, tags: frozenset[str], limits: frozenset[str]) -> None:
        for index in range(len(self._open) - 1, 0, -1):
            element = self._open[index]
            if not element.raw or element.tag in limits:
                return
            if element.tag in tags:
                del self._open[index:]
                return

    def _append(self, node: Node) -> None:
        self._open[-1].children.append(node)
        if not isinstance(node, str) and (node.tag in BLOCKS or node.has_block):
            for element in reversed(self._open):
                if element.has_block:
                    return
                element.has_block = True


def _element(token: Token, line: int) -> Element:
    """Return the element of a token that starts an element, or is one."""
    if token.type == "fence" and token.info.split()[:1] == ["storage"]:
        return Element(PASSAGE, {"source": token.content.removesuffix("\n")}, [], line)
    if token.type in ("fence", "code_block"):
        return Element(CODE, {"info": token.info}, [token.content], line)
    if token.type == "image":
        attributes = {name: str(value) for name, value in token.attrs.items()}
        return Element("img", {**attributes, "alt": _alternative(token)}, [], line)
    if token.type == FOOTNOTE:
        return Element(FOOTNOTE, {"name": token.content}, [], line)
    tag = TIGHT if token.type == "paragraph_open" and token.hidden else token.tag
    attributes = {name: str(value) for name, value in token.attrs.items()}
    content: list[Node] = [token.content] if token.type == "code_inline" else []
    return Element(tag, attributes, content, line)


def _alternative(image: Token) -> str:
    """Return the alternative text of an image."""
    parts = []
    for token in image.children or ():
        if token.type in ("text", "code_inline"):
            parts.append(token.content)
        elif token.type in ("softbreak", "hardbreak"):
            parts.append(" ")
        elif token.type == "image":
            parts.append(_alternative(token))
    return " ".join("".join(parts).split())
