# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert Markdown to storage format [wiki-16]. The result is escaped and well-formed."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from urllib.parse import unquote

from . import markup
from .dialects import name_of
from .document import MarkdownDocument, is_safe_address, loose_key, parse_markdown, target_key
from .elements import (
    BLOCKS,
    BREAK,
    CELLS,
    CODE,
    FOOTNOTE,
    HEADINGS,
    INLINE,
    INLINE_PASSAGE,
    INVISIBLE,
    NOTE,
    PASSAGE,
    TIGHT,
    Element,
    Node,
)
from .front_matter import split_front_matter
from .markup import LinkResolver, SingleText

_TAGS = {
    **{tag: (f"<{tag}>", f"</{tag}>") for tag in ("strong", "em", "u", "sub", "sup", "code")},
    "b": ("<strong>", "</strong>"),
    "i": ("<em>", "</em>"),
    "ins": ("<u>", "</u>"),
    "kbd": ("<code>", "</code>"),
    **dict.fromkeys(("s", "del"), ('<span style="text-decoration: line-through;">', "</span>")),
    "mark": ('<span style="background-color: rgb(255,240,179);">', "</span>"),
}
_IMAGE_ALIGNMENTS = ("left", "center", "right")
_SIZE = re.compile(r"([1-9][0-9]{0,4})(?:px)?")


class InlineRenderer:
    """Render inline content.

    :param linked: fragments of the links to this document
    """

    def __init__(
        self, document: MarkdownDocument, resolver: LinkResolver, linked: Collection[str]
    ) -> None:
        self._document, self._resolver = document, resolver
        self._linked = {target_key(fragment) for fragment in linked}
        #: Footnotes in the order of their first reference.
        self.notes: list[str] = []
        self._numbers: dict[str, int] = {}
        #: Prefix of the anchors of footnotes, with which no other target starts.
        self.note = "footnote-"
        while any(key.startswith(self.note) for key in document.targets):
            self.note = f"page-{self.note}"
        self._in_link, self._is_code = False, False

    def render(self, nodes: Sequence[Node]) -> str:
        return "".join(self._node(node) for node in nodes)

    def preformatted(self, nodes: Sequence[Node]) -> str:
        """Render content in which blanks count, without further code elements."""
        outer, self._is_code = self._is_code, True
        try:
            return self.render(nodes)
        finally:
            self._is_code = outer

    def anchors(self, element: Element) -> str:
        """Return the anchors of an element: its ids, and its slug if a link leads there."""
        keys = {target_key(element.slug), loose_key(element.slug)}
        slug = [element.slug] if keys & self._linked else []
        return "".join(markup.anchor(name) for name in [*element.ids, *slug] if name)

    def surround(self, element: Element, content: str) -> str:
        """Return rendered content in an inline element."""
        if element.tag == "a":
            return self._with_link(element, content)
        before, after = _TAGS[element.tag]
        return f"{before}{content}{after}" if content else ""

    def _node(self, node: Node) -> str:
        if isinstance(node, str):
            plain = self._in_link or self._is_code
            return markup.escaped(node) if plain else markup.with_links(node)
        if node.tag in ("br", INLINE_PASSAGE):
            return node.attributes.get("source", "<br/>")
        if node.tag == "img":
            return self.anchors(node) + self._image(node)
        if node.tag == FOOTNOTE:
            name, mark = node.attributes["name"], ""
            if name not in self._document.footnotes:
                self._resolver.warn(f"the footnote '{name}' is not defined", node.line)
                return markup.escaped(f"[^{name}]")
            if name not in self._numbers:
                self.notes.append(name)
                self._numbers[name] = len(self.notes)
                mark = markup.anchor(f"{self.note}{len(self.notes)}-from")
            number = self._numbers[name]
            return f"<sup>{mark}{markup.jump(f'{self.note}{number}', str(number))}</sup>"
        if node.tag in BLOCKS:  # in a heading, for example
            return f" {self.anchors(node)}{self.render(node.children)} "
        if node.tag == "a":
            return self.anchors(node) + self._link(node)
        if node.tag in ("code", "kbd"):
            content = self.preformatted(node.children)
            content = content if self._is_code else self.surround(node, content)
        else:
            content = self.surround(node, self.render(node.children))
        return self.anchors(node) + content

    def _link(self, element: Element) -> str:
        if self._in_link or "href" not in element.attributes:
            return self.render(element.children)
        self._in_link = True
        try:
            content = self.render(element.children)
        finally:
            self._in_link = False
        return self._with_link(element, content)

    def _with_link(self, element: Element, content: str) -> str:
        address = element.attributes.get("href", "").strip()
        if "href" not in element.attributes or not self._is_safe(element, address):
            return content
        target = self._resolver.link(address, element.line)
        return markup.link(target, content, element.attributes.get("title", ""))

    def _image(self, element: Element) -> str:
        properties = element.attributes
        address = properties.get("src", "").strip()
        if not address or not self._is_safe(element, address):
            return markup.escaped(properties.get("alt", ""))
        target = self._resolver.image(address, element.line)
        shown = {name: properties.get(name, "") for name in ("alt", "title")}
        align = properties.get("align", "").strip().lower()
        shown["align"] = align if align in _IMAGE_ALIGNMENTS else ""
        for name in ("width", "height"):
            size = _SIZE.fullmatch(properties.get(name, "").strip())
            shown[name] = "" if size is None else size[1]
        return markup.image(target, {name: text for name, text in shown.items() if text.strip()})

    def _is_safe(self, element: Element, address: str) -> bool:
        """Return whether the address of raw HTML is one that Markdown also allows."""
        if not element.raw or is_safe_address(address.strip()):
            return True
        scheme = address.strip().partition(":")[0]
        self._resolver.warn(
            f"the address with {scheme}: is left out, only its text is kept", element.line
        )
        return False


_ALERT = re.compile(r"\[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\]\s*", re.IGNORECASE)
_MACRO_OF_ALERT = {
    "NOTE": "info",
    "TIP": "tip",
    "IMPORTANT": "note",
    "WARNING": "warning",
    "CAUTION": "warning",
}
#: Paragraphs of other dialects of Markdown: a table of contents, and the first lines of notes.
_CONTENTS = re.compile(r"\[TOC\]|\[\[TOC\]\]", re.IGNORECASE)
_FOREIGN = re.compile(r"(?:!!!|\?\?\?\+?)\s+\w.*|:::+\s*\{?\w.*|\+\+\+\s*")
#: Maximum number of characters of a tag in a warning.
_SHOWN = 60
_TASK = re.compile(r"\[([ xX])\]\s")
_START = re.compile(r"-?[0-9]{1,9}")
_BLANKS = " \t\r\n\f"
_PARTS_OF_TABLE = ("thead", "tbody", "tfoot", "colgroup", "col", "tr", *CELLS)
_SPANS = ("colspan", "rowspan")
_SPAN = re.compile(r"[1-9][0-9]{0,2}")
_WIDTH = re.compile(r"(?:.*\bwidth:\s*)?([1-9][0-9]{0,4}(?:\.[0-9]+)?)\s*(px|%)?\s*(?:;.*)?", re.S)
_ALIGNMENT = re.compile(r"(?:.*\btext-align:\s*)?(left|center|right)\s*(?:;.*)?", re.S | re.I)


@dataclass(frozen=True)
class _Part:
    """Rendered content. `is_run`: it is inline content outside of blocks. `line`: its first one."""

    content: str
    is_run: bool = False
    line: int = 0

    @property
    def block(self) -> str:
        return f"<p>{self.content}</p>" if self.is_run else self.content


def storage_format(text: str, warn: Callable[[str], None]) -> str:
    """Convert a Markdown document to storage format, without its front matter."""
    document = parse_markdown(split_front_matter(text).text)
    linked = {unquote(link[1:]) for link in document.links() if link.startswith("#")}
    return StorageRenderer(document, SingleText(document.targets, warn), linked).body()


class StorageRenderer:
    """Render a Markdown document as storage format.

    :param linked: fragments of the links to this document
    :param dropped: heading that is left out, because it is the title of the page
    """

    def __init__(
        self,
        document: MarkdownDocument,
        resolver: LinkResolver,
        linked: Collection[str],
        dropped: Element | None = None,
    ) -> None:
        self._document, self._resolver, self._dropped = document, resolver, dropped
        self._inline = InlineRenderer(document, resolver, linked)
        self._tasks = 0
        #: Inline elements that contain the current block.
        self._around: list[Element] = []
        self._blocks: dict[str, Callable[[Element], str]] = {
            **dict.fromkeys(HEADINGS, self._heading),
            "hr": lambda _element: "<hr/>",
            BREAK: lambda _element: "",
            CODE: lambda element: markup.code(str(element.children[0]), element.attributes["info"]),
            PASSAGE: lambda element: element.attributes["source"],
            "pre": self._preformatted,
            "blockquote": self._quote,
            **dict.fromkeys(("ul", "ol"), self._list),
            "li": lambda element: self._list(Element("ul", children=[element])),
            "dl": self._definitions,
            **dict.fromkeys(
                ("dt", "dd"), lambda element: self._definitions(Element("dl", children=[element]))
            ),
            "table": self._table,
            **dict.fromkeys(("details", NOTE), self._titled),
        }

    def body(self) -> str:
        """Return the page, with its footnotes at the end. Report what the wiki does not have."""
        for name, lines in self._document.unknown.items():
            kept = "it is left out" if name in INVISIBLE else "only its text is kept"
            self._warn(f"the wiki has no <{name}>, so {kept}", lines)
        for name, lines in self._document.components.items():
            self._warn(f"the wiki has no component <{name}>, so only its content is kept", lines)
        for name, lines in _by_name(self._document.templates).items():
            self._warn(f"'{name}' is syntax of a site generator, so it is shown as text", lines)
        if self._document.definitions:
            cure = "write it as <dl> with <dt> and <dd>, or as a list"
            self._warn(
                f"a list of definitions is shown as text: {cure}", self._document.definitions
            )
        content = self._flow(self._document.tree.children)
        items: list[str] = []
        # Rendering a footnote may append further footnotes to the list.
        for number, name in enumerate(self._inline.notes, 1):
            mark = f"{self._inline.note}{number}"
            text = self._mixed(self._document.footnotes[name].children)
            back = markup.jump(f"{mark}-from", "\u21a9")
            items.append(f"<li>{markup.anchor(mark)}{text}<p>{back}</p></li>")
        return content + (f"<hr/><ol>{''.join(items)}</ol>" if items else "")

    def pieces(self) -> list[tuple[int, str]]:
        """Return the content of the page in pieces, each with its first line; 0 if unknown."""
        return [(part.line, part.block) for part in self._parts(self._document.tree.children)]

    def _warn(self, problem: str, lines: Sequence[int]) -> None:
        """Report content in several lines."""
        more = f"; also in line {', '.join(map(str, lines[1:6]))}" if lines[1:] else ""
        self._resolver.warn(f"{problem}{more}", lines[0])

    # -- content ---------------------------------------------------------------------------------

    def _flow(self, nodes: Sequence[Node]) -> str:
        """Render content whose text must be in blocks."""
        return "".join(part.block for part in self._parts(nodes))

    def _mixed(self, nodes: Sequence[Node]) -> str:
        """Render content of text and blocks. Only texts side by side become paragraphs."""
        parts = self._parts(nodes)
        if any(first.is_run and second.is_run for first, second in pairwise(parts)):
            return "".join(part.block for part in parts)
        return "".join(part.content for part in parts)

    def _parts(self, nodes: Sequence[Node]) -> list[_Part]:
        parts: list[_Part] = []
        run: list[Node] = []
        for node in nodes:
            if isinstance(node, str) or not (node.tag in BLOCKS or node.has_block):
                run.append(node)
                continue
            parts.append(_Part(self._run(run), True, _line_of(run)))
            parts += (replace(part, line=node.line) for part in self._block(node))
            run = []
        parts.append(_Part(self._run(run), True, _line_of(run)))
        return [part for part in parts if part.content]

    def _run(self, nodes: Sequence[Node]) -> str:
        """Render inline content, within the inline elements around the block."""
        content = self._inline.render(nodes).strip(_BLANKS)
        if content and self._around:
            elements = (node for node in nodes if isinstance(node, Element))
            has_link = any("href" in one.attributes for node in elements for one in node.walk())
            for element in reversed(self._around):
                if not (has_link and element.tag == "a"):
                    content = self._inline.surround(element, content)
        return content

    def _block(self, element: Element) -> list[_Part]:
        render = self._blocks.get(element.tag)
        if element.tag in (*HEADINGS, "li", "dt", "dd") and render is not None:
            return [_Part(render(element))]
        anchors = _Part(self._inline.anchors(element), is_run=True)
        if render is not None:
            return [anchors, _Part(render(element))]
        if element.tag in INLINE:  # an inline element around blocks
            self._around.append(element)
            parts = self._parts(element.children)
            self._around.pop()
            return [anchors, *parts]
        elements = [node for node in element.children if isinstance(node, Element)]
        if any(one.tag in BLOCKS or one.has_block for one in elements):
            return [anchors, *self._parts(element.children)]
        first = element.children[0] if element.children and not element.raw else ""
        if isinstance(first, str) and _FOREIGN.fullmatch(first):
            what = "TOML front matter" if first[0] == "+" else f"'{first[:40]}'"
            problem = f"{what} is not converted, so it is shown as text; use YAML or > [!NOTE]"
            self._resolver.warn(problem, element.line)
        if isinstance(first, str) and first[:1] == "[" and _CONTENTS.fullmatch(element.text()):
            return [_Part(markup.macro("toc", ""))]
        content = anchors.content + self._run(element.children)
        if element.tag == TIGHT:
            return [_Part(content, is_run=True)]
        return [_Part(f"<p{_aligned(element)}>{content}</p>" if content else "")]

    # -- blocks ----------------------------------------------------------------------------------

    def _heading(self, element: Element) -> str:
        if element is self._dropped:
            kept = self._run(list(_without_text(element)))
            return f"<p>{kept}</p>" if kept else ""
        content = self._inline.anchors(element) + self._run(element.children)
        return f"<{element.tag}{_aligned(element)}>{content}</{element.tag}>" if content else ""

    def _preformatted(self, element: Element) -> str:
        content = self._inline.preformatted(element.children)
        return f"<pre>{content.removeprefix(chr(10))}</pre>" if content.strip() else ""

    def _quote(self, element: Element) -> str:
        first = element.children[0] if element.children else None
        if isinstance(first, Element) and first.tag == "p" and not element.raw and first.children:
            mark = first.children[0]
            found = _ALERT.fullmatch(mark) if isinstance(mark, str) else None
            if found is not None and first.children[1:2] in ([], ["\n"]):
                rest = replace(first, children=first.children[2:])
                body = self._flow([rest, *element.children[1:]])
                return markup.macro_with_body(_MACRO_OF_ALERT[found[1].upper()], body)
        return f"<blockquote>{self._flow(element.children)}</blockquote>"

    def _list(self, element: Element) -> str:
        """Render a list. Tasks and other items cannot share a list, so a mixed list is split."""
        start = _START.fullmatch(element.attributes.get("start", "") if element.tag == "ol" else "")
        opening = element.tag if start is None else f'{element.tag} start="{int(start[0])}"'
        within: bool | None = None
        written = ""
        for item in _items(element.children, ("li",)):
            task = self._task(item)
            if within is not (task is not None):
                written += _closing(within, element.tag)
                within = task is not None
                written += "<ac:task-list>" if within else f"<{opening}>"
            anchors = self._inline.anchors(item)
            written += task or f"<li>{anchors}{self._mixed(item.children)}</li>"
        return written + _closing(within, element.tag)

    def _task(self, item: Element) -> str | None:
        """Return the task of an item of Markdown that starts with `[ ]`."""
        first = item.children[0] if item.children and not item.raw else None
        if not isinstance(first, Element) or first.tag not in ("p", TIGHT) or not first.children:
            return None
        mark = first.children[0]
        found = _TASK.match(mark) if isinstance(mark, str) else None
        if found is None:
            return None
        self._tasks += 1
        number, status = self._tasks, "incomplete" if found[1] == " " else "complete"
        rest = Element(TIGHT, children=[found.string[found.end() :], *first.children[1:]])
        rest.has_block = first.has_block
        return (
            f"<ac:task><ac:task-id>{number}</ac:task-id><ac:task-status>{status}</ac:task-status>"
            f"<ac:task-body>{self._mixed([rest, *item.children[1:]])}</ac:task-body></ac:task>"
        )

    def _definitions(self, element: Element) -> str:
        content = "".join(
            f"<{item.tag}>{self._inline.anchors(item)}{self._mixed(item.children)}</{item.tag}>"
            for item in _items(element.children, ("dd", "dt"))
        )
        return f"<dl>{content}</dl>" if content else ""

    def _table(self, table: Element) -> str:
        """Render a table. All its rows are in its body, as the server stores them."""
        rows: list[str] = []
        columns: list[Element] = []
        #: Captions, and content outside of cells.
        above: list[Node] = []
        todo: list[Node] = list(reversed(table.children))
        while todo:
            node = todo.pop()
            if isinstance(node, str) or node.tag not in _PARTS_OF_TABLE:
                above.append(node)
            elif node.tag == "col":
                columns.append(node)
            elif node.tag == "tr":
                rows.append(self._row(node.children))
            elif node.tag in CELLS:
                rows.append(self._row([node]))
            else:
                todo += reversed(node.children)
        content = "".join(f"<tr>{row}</tr>" for row in rows if row)
        body = f"<table>{_columns(columns)}<tbody>{content}</tbody></table>" if content else ""
        return self._flow(above) + body

    def _row(self, nodes: Sequence[Node]) -> str:
        cells: list[str] = []
        for node in nodes:
            if isinstance(node, Element) and node.tag in CELLS:
                content = self._inline.anchors(node) + self._mixed(node.children)
                spans = {name: node.attributes.get(name, "").strip() for name in _SPANS}
                shown = "".join(
                    f' {name}="{span}"'
                    for name, span in spans.items()
                    if _SPAN.fullmatch(span) and span != "1"
                )
                cells.append(f"<{node.tag}{shown}{_aligned(node)}>{content}</{node.tag}>")
            elif content := self._mixed([node]):
                cells.append(f"<td>{content}</td>")
        return "".join(cells)

    def _titled(self, element: Element) -> str:
        """Render `details`, a note or a tab."""
        children = list(element.children)
        summary = next(
            (one for one in children if isinstance(one, Element) and one.tag == "summary"), None
        )
        title = ""
        if summary is not None:
            title = summary.text()
            # the title of the macro is plain text
            children[children.index(summary)] = Element("p", children=list(_without_text(summary)))
        name = element.attributes["macro"] if element.tag == NOTE else "expand"
        if name == "":
            heading = f"<p><strong>{markup.escaped(title)}</strong></p>" if title else ""
            return heading + self._flow(children)
        return markup.macro_with_body(name, self._flow(children), title)


def _line_of(nodes: Sequence[Node]) -> int:
    return next((node.line for node in nodes if isinstance(node, Element)), 0)


def _by_name(templates: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    """Return the sorted lines of tags by the first tag of each name."""
    first: dict[str, str] = {}
    found: dict[str, list[int]] = {}
    for tag, lines in templates.items():
        found.setdefault(first.setdefault(name_of(tag), tag), []).extend(lines)
    return {" ".join(tag.split())[:_SHOWN]: sorted(set(lines)) for tag, lines in found.items()}


def _without_text(element: Element) -> Iterator[Node]:
    """Yield the images, also in links, and the references of an element whose text is a title."""
    for child in element.children:
        if isinstance(child, str):
            continue
        has_image = any(one.tag == "img" for one in child.walk())
        if child.tag in ("img", FOOTNOTE) or (child.tag == "a" and has_image):
            yield child
            yield " "
        else:
            yield from _without_text(child)


def _items(nodes: Sequence[Node], tags: tuple[str, ...]) -> list[Element]:
    """Return the items of a list. Other content of the list becomes items of the first tag."""
    items: list[Element] = []
    other: Element | None = None
    for node in nodes:
        if isinstance(node, Element) and node.tag in tags:
            items.append(node)
            other = None
        elif other is not None:
            other.children.append(node)
        elif not isinstance(node, str) or node.strip(_BLANKS):
            other = Element(tags[0], children=[node], raw=True)
            items.append(other)
    return items


def _closing(within: bool | None, tag: str) -> str:
    if within is None:
        return ""
    return "</ac:task-list>" if within else f"</{tag}>"


def _aligned(element: Element) -> str:
    """Return the attribute for the alignment of an element, or an empty string."""
    for name in ("style", "align"):
        found = _ALIGNMENT.fullmatch(element.attributes.get(name, "").strip())
        if found is not None:
            return f' style="text-align: {found[1].lower()};"'
    return ""


def _columns(columns: Sequence[Element]) -> str:
    """Return the widths of the columns, if the table has any."""
    written, has_width = "", False
    for column in columns:
        span = _SPAN.fullmatch(column.attributes.get("span", ""))
        written += "<col" if span is None else f'<col span="{span[0]}"'
        for name in ("style", "width"):
            found = _WIDTH.fullmatch(column.attributes.get(name, "").strip())
            if found is not None:
                written += f' style="width: {found[1]}{found[2] or "px"};"'
                has_width = True
                break
        written += "/>"
    return f"<colgroup>{written}</colgroup>" if has_width else ""
