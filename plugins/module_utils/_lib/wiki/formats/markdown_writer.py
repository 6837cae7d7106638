# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert storage format to Markdown: the inverse of `converter`.

Every page is converted back and compared. A block that would become another one is written with
more escapes and raw HTML, and if that fails, as a passage in storage format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import quote, unquote

from ...core.errors import ToolchainError
from . import markup
from .comparison import EDITED, MARKER, alike, is_placeholder
from .converter import StorageRenderer
from .document import anchors_of, is_safe_address, parse_markdown, slug_of, target_key
from .markup import LinkTarget
from .parser import HEADINGS, Comment, Node, StorageElement, parse


class Addresses(Protocol):
    """The addresses in Markdown of pages and attachments. None for what has none."""

    def page(self, title: str, anchor: str) -> str | None:
        """Return the address of a page of the same space."""

    def file(self, name: str) -> str | None:
        """Return the address of an attachment of the page."""


@dataclass(frozen=True)
class Style:
    """The style of a file.

    `width`: maximum width of lines; None if they are not wrapped.
    """

    bullet: str = "-"
    delimiter: str = "."
    emphasis: str = "*"
    strong: str = "**"
    fence: str = "```"
    line_break: str = "\\"
    rule: str = "---"
    underlined: bool = False
    width: int | None = None


@dataclass(frozen=True)
class Context:
    """What a page refers to, and what refers to it.

    `space`: key of its space. `linked`: anchors to which links lead, by `target_key`.
    `title`: title of the page if it is a heading above the body. `keeps_relative`: relative
    addresses of links do not lead to files. `begins`: the text begins a file. `anchors`: anchors in
    other parts of the page.
    """

    addresses: Addresses
    space: str | None = None
    linked: Collection[str] = ()
    title: str | None = None
    keeps_relative: bool = False
    begins: bool = True
    anchors: Collection[str] = ()
    style: Style = field(default_factory=Style)


class _NoWords(Exception):
    """Markdown has no form for a block."""


@dataclass
class Block:
    """A block of a page. `level`: how its Markdown is written, as natural text at first.

    `source`: its storage format.
    """

    nodes: list[Node]
    source: str
    level: int = 0


#: Levels: as people write, with all escapes and raw HTML, and as a passage in storage format.
_NATURAL, _EXPLICIT, _PASSAGE = 0, 1, 2
#: Maximum number of attempts for a page, and at the end all blocks are passages.
_ATTEMPTS = 40
#: Attributes that the wiki adds, and that a passage does not need.
_ADDED = re.compile(
    r"\s(?:ac:local-id|local-id|ac:macro-id|ac:task-list-id|ri:version-at-save)=\"[^\"]*\""
    r"|\sac:schema-version=\"1\""
)
_BLANKS = re.compile(r"[ \t\r\n\f]+")
_FENCES = re.compile(r"^[ \t]*(`{3,})", re.MULTILINE)


def plain_body(body: str) -> str:
    """Return a body without the marks of inline comments and of the text of tasks."""
    cuts: list[tuple[int, int]] = []
    for element in parse(body).walk():
        if element.name == MARKER or is_placeholder(element):
            cuts += [(element.begin, element.inner), (element.outer, element.end)]
    source, at, parts = body.encode(), 0, list[bytes]()
    for begin, end in sorted(cuts):
        parts.append(source[at:begin])
        at = end
    return b"".join([*parts, source[at:]]).decode()


def blocks_of(body: str) -> list[Block]:
    """Return the blocks of a body. Text outside of blocks is a block too."""
    body = plain_body(body).replace(f' class="{EDITED}"', "")
    source, tree = body.encode(), parse(body)
    blocks: list[Block] = []
    run: list[Node] = []
    at = 0
    for node in tree.children:
        if not isinstance(node, StorageElement) or not is_block(node):
            run.append(node)
            continue
        text = source[at : node.begin].decode()
        if run and text.strip():
            blocks.append(Block(run, text.strip()))
        blocks.append(Block([node], source[node.begin : node.end].decode()))
        run, at = [], node.end
    text = source[at:].decode().strip()
    if run and text:
        blocks.append(Block(run, text))
    return [block for block in blocks if not _is_empty(block)]


def _is_empty(block: Block) -> bool:
    node = block.nodes[0]
    is_paragraph = isinstance(node, StorageElement) and node.name == "p" and not node.attributes
    return is_paragraph and isinstance(node, StorageElement) and not node.children


_INLINE_MACROS = frozenset({"anchor", "status", "jira", "jiraissues"})
_INLINE = frozenset(
    (
        *("a", "b", "big", "br", "code", "del", "em", "i", "ins", "kbd", "mark", "s", "small"),
        *("span", "strong", "sub", "sup", "time", "tt", "u", "var", "ac:link", "ac:image"),
        *("ac:emoticon", "ac:placeholder", MARKER),
    )
)


def is_block(element: StorageElement) -> bool:
    """Return whether an element is a block. Macros without a body can be part of a text."""
    if element.name in ("ac:structured-macro", "ac:macro"):
        return element.attributes.get("ac:name") not in _INLINE_MACROS
    return element.name not in _INLINE and not element.name.startswith("ri:")


def markdown_of(body: str, context: Context) -> str:
    """Return the Markdown of a body, without a heading for its title.

    It converts to the same page, provided that addresses lead back to what they stand for.
    """
    blocks = blocks_of(body)
    for attempt in range(_ATTEMPTS + 1):
        writer = MarkdownWriter(context)
        text = writer.document(blocks)
        converted = _converted(text, context, writer.targets)
        if converted is not None and alike(body, converted, context.space, flowing=True):
            break
        last = attempt == _ATTEMPTS - 1
        if not _raise_levels(blocks, converted, context.space, all_of_them=last):
            break
    return text


def _converted(text: str, context: Context, targets: Mapping[str, LinkTarget]) -> str | None:
    """Convert Markdown back, below the heading with the title. None if it is invalid."""
    title = "" if context.title is None else f"# {heading_text(context.title)}\n\n"
    try:
        document = parse_markdown(title + text)
    except ToolchainError:
        return None
    heading = document.title() if context.title is not None else None
    own = {unquote(link[1:]) for link in document.links() if link.startswith("#")}
    linked = own.union(context.linked)
    return StorageRenderer(document, _Recorded(targets), linked, heading).body()


def _raise_levels(
    blocks: Sequence[Block], converted: str | None, space: str | None, *, all_of_them: bool
) -> bool:
    """Raise the levels of the blocks that become others. Return whether there are any."""
    open_blocks = [block for block in blocks if block.level < _PASSAGE]
    if not open_blocks:
        return False
    if converted is None or all_of_them:
        for block in open_blocks:
            block.level = _PASSAGE if all_of_them else block.level + 1
        return True
    others = blocks_of(converted)
    pairs = list(zip(blocks, others, strict=False))
    wrong = [
        at
        for at, (block, other) in enumerate(pairs)
        if not alike(block.source, other.source, space, flowing=True)
    ]
    if len(blocks) != len(others):
        wrong = wrong[:1] or [len(pairs) - 1]
        first = wrong[0]
        while first > 0 and blocks[first].level == _PASSAGE:
            first -= 1
        wrong = [first]
    found = [blocks[at] for at in wrong if blocks[at].level < _PASSAGE] or open_blocks[:1]
    for block in found:
        block.level += 1
    return True


class _Recorded:
    """Resolve the addresses that a writer has written."""

    def __init__(self, targets: Mapping[str, LinkTarget]) -> None:
        self._targets = targets

    def link(self, address: str, line: int) -> LinkTarget:
        return self._targets.get(address, LinkTarget("address", address))

    def image(self, address: str, line: int) -> LinkTarget:
        return self.link(address, line)

    def warn(self, problem: str, line: int) -> None:
        """Ignore what the converter reports."""


# -- text ------------------------------------------------------------------------------------------

_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_MARKUP = re.compile(
    r"(?P<tag>\{\{[<%].*?[>%]\}\}|\{%.*?%\})"
    r"|\\(?=[!-/:-@\[-`{-~]|\n|\Z)|`|\*|_|~~"
    r"|\[(?=\^|!\w|[^\]]*\][(\[:{]|[ xX]\]\s|\[?TOC\])"
    r"|<(?=[A-Za-z/!?])|&(?=\#?\w+;)"
)
#: A line that would start another block than a paragraph.
_STARTS = re.compile(
    r"(?P<number>\d{1,9})(?=[.)](?:\s|$))"
    r"|(?=#{1,6}(?:\s|$)|>|[-+*](?:\s|$)|(?:[-*_][ \t]*){3,}$|[-=]+[ \t]*$|:{3,}|/{3,}|~{3,}"
    r"|!!!|\?\?\?|\+\+\+|===|-+8<|\|)"
)
_AFTER_ELEMENT = re.compile(r"\{[^{}]*\}")


def escaped(text: str, *, explicit: bool = False, in_link: bool = False) -> str:
    """Escape a text for Markdown. `explicit`: escape all punctuation."""
    if explicit:
        text = _PUNCTUATION.sub(r"\\\1", text)
    else:
        text = _MARKUP.sub(_escape, text)
        if in_link:
            text = re.sub(r"(?<!\\)([\[\]])", r"\\\1", text)
    # Blanks other than the usual ones become references, so that they are seen.
    if text.isascii():
        return text
    text = text.replace("\xa0", "&nbsp;")
    return "".join(f"&#{ord(one)};" if one.isspace() and not one.isascii() else one for one in text)


def heading_text(title: str) -> str:
    """Return a title as the text of a heading."""
    return re.sub(r"(?<!\\)(#+)$", r"\\\1", escaped(title))


def _escape(found: re.Match[str]) -> str:
    mark, text = found[0], found.string
    if found["tag"]:
        return mark
    before, after = text[: found.start()][-1:], text[found.end() :][:1]
    if mark == "_" and _is_word(before) and _is_word(after):
        return mark
    if mark in ("*", "_") and before.isspace() and after.isspace():
        return mark
    return f"\\{mark}"


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _flanks(before: str, content: str, after: str, mark: str) -> bool:
    """Return whether marks around a content are those of emphasis."""
    if not content or content[0].isspace() or content[-1].isspace():
        return False
    if before == mark[0] or after == mark[0] or mark[0] in (content[0], content[-1]):
        return False
    if mark[0] == "_" and (_is_word(before) or _is_word(after)):
        return False
    opens = content[0].isalnum() or not before.isalnum()
    return opens and (content[-1].isalnum() or not after.isalnum())


# -- blocks ----------------------------------------------------------------------------------------

_MACROS = {"info": "NOTE", "tip": "TIP", "note": "IMPORTANT", "warning": "WARNING"}
_KINDS = {"info": "info", "tip": "tip", "note": "important", "warning": "warning"}
#: Attributes of elements that are checked or written later, or that only the wiki sets.
_KEPT = {
    "ol": {"start"},
    "table": {"class", "style"},
    "ac:task-list": {"ac:task-list-id"},
    "ac:structured-macro": {"ac:name", "ac:schema-version", "ac:macro-id"},
}
_FORMATS = ("strong", "em", "u", "sub", "sup")
#: Tags of raw HTML for the styles of spans.
_SPANS = {"text-decoration: line-through;": "s", "background-color: rgb(255,240,179);": "mark"}
_ALIGNMENT = re.compile(r"text-align:\s*(left|center|right);?")
_DIAGRAM = re.compile(r"(\S+) diagram, shown as source")
_IMAGE = ("ac:alt", "ac:title", "ac:width", "ac:height", "ac:align")
_OF_EDITOR = frozenset({"ac:layout", "ac:original-width", "ac:original-height", "ac:custom-width"})
_ID = re.compile(r"[^\s{}#=\"']+")
_WORDS = {"py": "python", "c#": "csharp", "js": "js"}


class MarkdownWriter:
    """Write blocks as Markdown.

    `targets` contains the target of each address that was written.
    """

    def __init__(self, context: Context) -> None:
        self._context, self._style = context, context.style
        self.targets: dict[str, LinkTarget] = {}
        self._explicit = False
        self._notes: dict[str, str] = {}
        #: Slugs of the headings so far.
        self._slugs: dict[str, int] = {}
        #: Anchors of the page, and those to which links lead.
        self._anchors: set[str] = {target_key(name) for name in context.anchors}
        self._linked: set[str] = set()
        if context.title is not None:
            slug_of(context.title, self._slugs)
        self._forms: dict[str, Callable[[StorageElement], str]] = {
            **dict.fromkeys(HEADINGS, self._heading),
            **dict.fromkeys(("ul", "ol", "ac:task-list"), lambda element: ""),
            "ac:structured-macro": self._macro,
            "p": lambda element: self._paragraph(element.children),
            "hr": lambda _element: self._style.rule,
            "blockquote": lambda element: _prefixed("> ", self._flow(element.children)),
            "table": self._table,
        }

    def document(self, blocks: Sequence[Block]) -> str:
        """Return the Markdown of all blocks of a page."""
        blocks = list(blocks)
        trees = [node for block in blocks for node in block.nodes if not isinstance(node, str)]
        links = (
            one.attributes["ac:anchor"]
            for tree in trees
            if isinstance(tree, StorageElement)
            for one in tree.walk()
            if one.name == "ac:link" and "ac:anchor" in one.attributes and not _targets_of(one)
        )
        self._linked = {target_key(name) for name in (*links, *self._context.linked)}
        self._anchors = {target_key(name) for name in self._context.anchors} | {
            target_key(name)
            for block in blocks
            for node in block.nodes
            if isinstance(node, StorageElement)
            for name in anchors_of(node)
        }
        notes = self._footnotes(blocks)
        shown = blocks[:-2] if notes else blocks
        texts = [*self.blocks(shown), *notes]
        is_first = self._context.begins and self._context.title is None
        if texts and is_first and texts[0].startswith("---"):
            texts[0] = "***"  # front matter starts with dashes
        return "\n\n".join(texts) + "\n" if texts else ""

    def blocks(self, blocks: Sequence[Block]) -> list[str]:
        """Return the Markdown of each block."""
        written: list[str] = []
        previous = ""
        for block in blocks:
            text = self._block(block, after_list=previous)
            previous = _list_mark(text, block)
            written.append(text)
        return written

    def _block(self, block: Block, after_list: str = "") -> str:
        if block.level == _PASSAGE or is_text(block.nodes):
            return passage(block.source)
        slugs = dict(self._slugs)
        self._explicit = block.level == _EXPLICIT
        try:
            return self._element(_only(block.nodes), after_list)
        except _NoWords:
            self._slugs = slugs  # headings in passages have none
            return passage(block.source)

    def _element(self, element: StorageElement, after: str = "") -> str:
        """Return the Markdown of a block. Raises `_NoWords` if there is none."""
        name = element.name
        write = self._forms.get(name)
        if write is None:
            raise _NoWords
        names = set(element.attributes) - _KEPT.get(name, set())
        if not all(map(_is_of_editor, names)):
            raise _NoWords
        if name == "ol":
            delimiter = self._style.delimiter
            other = ")" if delimiter == "." else "."
            return self._list(element, other if after == delimiter else delimiter)
        if name in ("ul", "ac:task-list"):
            bullet = self._style.bullet
            other = "*" if bullet != "*" else "-"
            return self._list(element, other if after == bullet else bullet)
        return write(element)

    def _paragraph(self, nodes: Sequence[Node]) -> str:
        if _is_macro(nodes, "toc"):
            return "[TOC]"
        # escape the starts of lines that would be other blocks
        lines = [line.strip(" ") for line in self._inline(nodes).strip(" \n").split("\n")]
        text = "\n".join(
            _STARTS.sub(lambda found: f"{found['number'] or ''}\\", line, count=1)
            if _STARTS.match(line)
            else line
            for line in lines
        )
        if not text:
            raise _NoWords
        return wrapped(text, self._style.width)

    def _flow(self, nodes: Sequence[Node]) -> str:
        """Return the Markdown of the content of a quotation or a macro."""
        found = [node for node in nodes if not (isinstance(node, str) and not node.strip())]
        if any(not isinstance(node, StorageElement) or not is_block(node) for node in found):
            raise _NoWords
        texts: list[str] = []
        previous = ""
        for node in found:
            if isinstance(node, StorageElement):
                text = self._element(node, previous)
                previous = _list_mark(text, Block([node], ""))
                texts.append(text)
        if not texts:
            raise _NoWords
        return "\n\n".join(texts)

    def _heading(self, element: StorageElement) -> str:
        children = list(element.children)
        names: list[str] = []
        while children and _is_macro(children[:1], "anchor"):
            first = children.pop(0)
            names.append(_parameter(first, ""))
        title = StorageElement("", {}, children).title()
        slug = slug_of(title, self._slugs)
        if not title:
            raise _NoWords
        linked = () if self._explicit else self._linked
        names = [name for name in names if name != slug or target_key(name) not in linked]
        given = [name for name in names if name != slug and _ID.fullmatch(name)]
        others = "".join(inline_passage(markup.anchor(name)) for name in names if name not in given)
        text = others + self._inline(children).replace("\n", " ").strip(" ")
        text = re.sub(r"(?<!\\)(#+)$", lambda found: "\\" + found[0], text)
        ids = " ".join(f"#{name}" for name in reversed(given))
        level = HEADINGS.index(element.name) + 1
        if self._style.underlined and level < 3 and not _STARTS.match(text):
            ids = f" {{{ids}}}" if ids else ""
            return f"{text}{ids}\n" + ("=" if level == 1 else "-") * max(3, len(text + ids))
        return f"{'#' * level} {text}" + (f" {{{ids}}}" if ids else "")

    def _macro(self, element: StorageElement) -> str:
        name = element.attributes.get("ac:name", "")
        parameters = element.parameters()
        bodies = [one for one in element.elements if one.name != "ac:parameter"]
        if len(bodies) + len(parameters) != len(element.elements) or len(bodies) > 1:
            raise _NoWords
        if name == "toc" and not element.elements:
            return "[TOC]"
        if not bodies:
            raise _NoWords
        body = bodies[0]
        if name == "code" and body.name == "ac:plain-text-body":
            return self._code(parameters, body)
        if body.name != "ac:rich-text-body" or set(parameters) - {"title"}:
            raise _NoWords
        title = parameters.get("title", "")
        if name == "expand":
            heading = f"\n<summary>{markup.escaped(title)}</summary>" if title else ""
            return f"<details>{heading}\n\n{self._flow(body.children)}\n\n</details>"
        if name not in _MACROS:
            raise _NoWords
        content = self._flow(body.children)
        if not title:
            return _prefixed("> ", f"[!{_MACROS[name]}]\n{content}")
        shown = escaped(title, explicit=self._explicit)
        return f'!!! {_KINDS[name]} "{shown}"\n{_prefixed("    ", content)}'

    def _code(self, parameters: Mapping[str, str], body: StorageElement) -> str:
        language = parameters.get("language", "")
        diagram = _DIAGRAM.fullmatch(parameters.get("title", ""))
        if set(parameters) - {"language"} and not (diagram and not language):
            raise _NoWords
        info = diagram[1] if diagram else _WORDS.get(language, language)
        source = "".join(map(str, body.children))
        return fenced(source, info, self._style.fence)

    def item(self, item: StorageElement) -> str:
        """Return the Markdown of an item of a list, or a passage for what Markdown cannot hold."""
        try:
            return self._item(item)[0]
        except _NoWords:
            return passage("".join(source_of(one) for one in item.elements))

    def cells(self, row: StorageElement) -> list[str] | None:
        """Return the Markdown of the cells of a row, or None if it cannot hold them."""
        try:
            return [self._cell(cell) for cell in row.elements]
        except _NoWords:
            return None

    # -- lists and tables ------------------------------------------------------------------------

    def _list(self, element: StorageElement, mark: str) -> str:
        items = element.elements
        kind = "ac:task" if element.name == "ac:task-list" else "li"
        if not items or any(one.name != kind for one in items) or _has_text(element):
            raise _NoWords
        if any(not all(map(_is_of_editor, one.attributes)) for one in items):
            raise _NoWords
        contents = [self._item(item) for item in items]
        is_loose = any("\n\n" in join for _text, join in contents)
        number = int(element.attributes.get("start", "1")) if element.name == "ol" else 1
        if number < 0:
            raise _NoWords
        written = []
        for at, (text, _join) in enumerate(contents):
            prefix = f"{number + at}{mark} " if element.name == "ol" else f"{mark} "
            written.append(indented(prefix, text))
        return ("\n\n" if is_loose else "\n").join(written)

    def _item(self, item: StorageElement) -> tuple[str, str]:
        """Return the Markdown of an item, and what separates the blocks in it."""
        children = item.children
        mark = ""
        if item.name == "ac:task":
            parts = {one.name: one for one in item.elements}
            status = parts.get("ac:task-status")
            body = parts.get("ac:task-body")
            if status is None or body is None:
                raise _NoWords
            done = "".join(map(str, status.children)).strip() == "complete"
            mark, children = "[x] " if done else "[ ] ", body.children
        texts: list[tuple[bool, str]] = []
        previous = ""
        for nodes in grouped(children):
            if isinstance(nodes, StorageElement) and nodes.name != "p":
                text = self._element(nodes, previous)
                previous = _list_mark(text, Block([nodes], ""))
                texts.append((False, text))
                continue
            if isinstance(nodes, StorageElement) and not all(map(_is_of_editor, nodes.attributes)):
                raise _NoWords
            inner = nodes.children if isinstance(nodes, StorageElement) else nodes
            texts.append((True, self._paragraph(inner)))
            previous = ""
        if mark and not (texts and texts[0][0]):
            raise _NoWords
        joined = separator = ""
        for at, (is_paragraph, text) in enumerate(texts):
            if at:
                both = is_paragraph and texts[at - 1][0]
                is_apart = (
                    both or is_paragraph or text.startswith(("|", "<", "!!!", "[TOC", "--", "**"))
                )
                separator = "\n\n" if is_apart else separator or "\n"
                joined += "\n\n" if is_apart else "\n"
            joined += text
        return mark + joined, separator

    def _table(self, table: StorageElement) -> str:
        rows = [one for one in table.walk() if one.name == "tr"]
        parts = ("tbody", "thead", "colgroup", "tr")
        known = [one.name in parts and not one.attributes for one in table.elements]
        if not rows or not all(known):
            raise _NoWords
        columns = len(rows[0].elements)
        aligns: list[str] = []
        lines: list[list[str]] = []
        for at, row in enumerate(rows):
            cells = row.elements
            tag = "td" if at else "th"
            if len(cells) != columns or any(cell.name != tag for cell in cells):
                raise _NoWords
            lines.append([self._cell(cell) for cell in cells])
            styles = [_alignment(cell) for cell in cells]
            if at and styles != aligns:
                raise _NoWords
            aligns = styles
        return table_text(lines, aligns)

    def _cell(self, cell: StorageElement) -> str:
        groups = grouped(cell.children)
        if not groups:
            return ""
        nodes = groups[0]
        if len(groups) > 1 or (isinstance(nodes, StorageElement) and nodes.name != "p"):
            raise _NoWords
        if isinstance(nodes, StorageElement):
            if not all(map(_is_of_editor, nodes.attributes)):
                raise _NoWords
            nodes = nodes.children
        text = self._inline(nodes, in_cell=True).replace("\n", " ").strip(" ")
        return re.sub(r"(?<!\\)\|", r"\\|", text)

    # -- footnotes -------------------------------------------------------------------------------

    def _footnotes(self, blocks: Sequence[Block]) -> list[str]:
        """Return the definitions of the footnotes at the end of a page, or an empty list."""
        last = blocks[-2:]
        if len(last) < 2 or any(block.level for block in last):
            return []
        rule, notes = (_only(block.nodes) for block in last)
        if rule.name != "hr" or notes.name != "ol" or notes.attributes:
            return []
        found: list[tuple[str, list[Node]]] = []
        for item in notes.elements:
            children = list(item.children)
            if not (_is_macro(children[:1], "anchor") and isinstance(children[-1], StorageElement)):
                return []
            name = _parameter(children[0], "")
            back = children[-1].elements
            if not (back and back[0].attributes.get("ac:anchor") == f"{name}-from"):
                return []
            found.append((name, children[1:-1]))
        self._notes = {name: str(number) for number, (name, _nodes) in enumerate(found, 1)}
        definitions = []
        try:
            for name, nodes in found:
                body = StorageElement("li", {}, nodes)
                text, _join = self._item(body)
                definitions.append(indented(f"[^{self._notes[name]}]: ", text, width=4))
        except _NoWords:
            self._notes = {}
            return []
        return definitions

    # -- inline ----------------------------------------------------------------------------------

    def _inline(
        self, nodes: Sequence[Node], *, in_link: bool = False, in_cell: bool = False
    ) -> str:
        written = ""
        nodes = list(_flat(nodes))
        for at, node in enumerate(nodes):
            following = nodes[at + 1] if at + 1 < len(nodes) else ""
            if isinstance(node, Comment):
                raise _NoWords
            if isinstance(node, str):
                before = nodes[at - 1] if at else None
                text = self._text(node, before, following, in_link=in_link)
                written += text.lstrip(" \n") if written.endswith("\n") else text
                continue
            after = following[:1] if isinstance(following, str) else "<"
            written += self._inline_element(node, written[-1:], after, in_link, in_cell)
        return written

    def _text(self, text: str, before: Node | None, following: Node, *, in_link: bool) -> str:
        text = _BLANKS.sub(lambda found: "\n" if "\n" in found[0] else " ", text)
        parts, at = [], 0
        found = [] if in_link else list(markup.bare_addresses(text))
        for begin, address in found:
            parts.append(self._words(text[at:begin], in_link=in_link))
            parts.append(inline_passage(markup.escaped(address)))
            at = begin + len(address)
        rest = self._words(text[at:], in_link=in_link)
        is_linked = isinstance(following, StorageElement) and following.name in ("a", "ac:link")
        if is_linked and rest.endswith("!") and not self._explicit:
            rest = rest[:-1] + "\\!"
        return "".join(parts) + rest

    def _words(self, text: str, *, in_link: bool) -> str:
        if not self._explicit:
            return escaped(text, in_link=in_link)
        parts, at = [], 0
        for found in _AFTER_ELEMENT.finditer(text):
            parts.append(escaped(text[at : found.start()], explicit=True))
            parts.append(inline_passage(markup.escaped(found[0])))
            at = found.end()
        return "".join(parts) + escaped(text[at:], explicit=True)

    def _inline_element(
        self, element: StorageElement, before: str, after: str, in_link: bool, in_cell: bool
    ) -> str:
        name, attributes = element.name, element.attributes
        if name == "br":
            is_edge = before in ("", "\n") or after == ""
            return "<br>" if in_cell or in_link or is_edge else f"{self._style.line_break}\n"
        if name == "a":
            return self._link(element, before, after)
        if name in ("ac:link", "ac:image"):
            write = self._wiki_link if name == "ac:link" else self._picture
            return write(element) or inline_passage(source_of(element))
        if name == "code" and not attributes:
            return self._code_span(element, in_cell=in_cell)
        anchor = _parameter(element, "") if _is_macro([element], "anchor") else ""
        if anchor.split() == [anchor] and not in_link:
            return f'<a id="{markup.attribute(anchor)}"></a>'
        is_formatted = name in _FORMATS and not attributes
        tag = name if is_formatted else _SPANS.get(attributes.get("style", ""), "")
        if not tag or not (is_formatted or (name == "span" and len(attributes) == 1)):
            return inline_passage(source_of(element))
        if name == "sup":  # of a footnote
            links = [one for one in element.elements if one.name == "ac:link"]
            note = links[0].attributes.get("ac:anchor", "") if len(links) == 1 else ""
            if note in self._notes:
                return f"[^{self._notes[note]}]"
        text = self._inline(element.children, in_link=in_link, in_cell=in_cell)
        return self._formatted(tag, text, before, after)

    def _formatted(self, tag: str, text: str, before: str, after: str) -> str:
        """Return a text in marks if possible, else in the tags of raw HTML."""
        marks = {"strong": self._style.strong, "em": self._style.emphasis, "s": "~~"}
        mark = marks.get(tag)
        if mark is None or tag == "s":
            blanks = ("", "")
        else:  # blanks at the edges of emphasis move out of it
            blanks = (
                " " if text.startswith((" ", "\n")) else "",
                " " if text.endswith((" ", "\n")) else "",
            )
            text = text.strip(" \n")
            if not text:
                return blanks[0] or blanks[1]
        before, after = blanks[0] or before, blanks[1] or after
        if mark and not self._explicit and _flanks(before, text, after, mark):
            return f"{blanks[0]}{mark}{text}{mark}{blanks[1]}"
        return f"{blanks[0]}<{tag}>{text}</{tag}>{blanks[1]}"

    def _code_span(self, element: StorageElement, *, in_cell: bool) -> str:
        text = "".join(node for node in element.children if isinstance(node, str))
        if element.elements or "\n" in text or not text.strip(" "):
            if not element.children:
                raise _NoWords
            return f"<code>{self._inline(element.children, in_link=True, in_cell=in_cell)}</code>"
        return code_span(text)

    def _link(self, element: StorageElement, before: str, after: str) -> str:
        href, title = element.attributes.get("href", ""), element.attributes.get("title", "")
        known = {"href", "title"}
        if any(name not in known and not _is_of_editor(name) for name in element.attributes):
            return inline_passage(source_of(element))
        text = "".join(node for node in element.children if isinstance(node, str))
        is_bare = text == href and not element.elements and not title
        if is_bare and not self._explicit:
            bare = list(markup.bare_addresses(href)) == [(0, href)]
            free = not before or before.isspace() or before == "("
            ends = not after or after.isspace() or after in ")"
            if bare and free and ends and not re.search(r"[*_`\[\]<>&\\~{]", href):
                return href
            if re.fullmatch(r"https?://[!#-;=?-\[\]^-z{-~]+", href):
                return f"<{href}>"
        if not is_safe_address(href) or not href or not element.children:
            return inline_passage(source_of(element))
        if not (markup.is_external(href) or self._context.keeps_relative):
            # in Markdown, a relative address leads to a file
            return inline_passage(source_of(element))
        if self._explicit:
            more = f' title="{markup.attribute(title)}"' if title else ""
            inner = self._inline(element.children, in_link=True)
            return f'<a href="{markup.attribute(href)}"{more}>{inner}</a>'
        return self._linked_text(element.children, href, title)

    def _linked_text(self, nodes: Sequence[Node], address: str, title: str = "") -> str:
        text = self._inline(nodes, in_link=True).strip(" \n")
        return f"[{text}]({destination(address, title)})"

    def _wiki_link(self, element: StorageElement) -> str | None:
        """Return a link to a page, an attachment or an anchor, or None if it has no address."""
        known = {"ac:anchor", "ac:card-appearance"}
        anchor = element.attributes.get("ac:anchor", "")
        targets = _targets_of(element)
        bodies = [one for one in element.elements if one.name.endswith("link-body")]
        found = None
        if not (set(element.attributes) - known or len(targets) > 1 or len(bodies) > 1):
            found = self._target(targets[0] if targets else None, anchor)
        if found is None or (bodies and not bodies[0].children):
            return None
        address, target, shown = found
        nodes: Sequence[Node] = bodies[0].children if bodies else [shown]
        self.targets[address] = target
        return self._linked_text(nodes, address)

    def _target(
        self, element: StorageElement | None, anchor: str
    ) -> tuple[str, LinkTarget, str] | None:
        """Return the address of a link, its target and its default text."""
        addresses, space = self._context.addresses, self._context.space
        if element is None:
            if not anchor or target_key(anchor) not in self._anchors:
                return None
            return f"#{quote(anchor)}", LinkTarget("page", "", anchor), anchor
        if element.elements:
            return None
        if element.name == "ri:attachment" and not anchor:
            name = element.attributes.get("ri:filename", "")
            address = addresses.file(name)
            return None if address is None else (address, LinkTarget("file", name), name)
        if element.name != "ri:page" or element.attributes.get("ri:space-key", space) != space:
            return None
        title = element.attributes.get("ri:content-title", "")
        address = addresses.page(title, anchor)
        return None if address is None else (address, LinkTarget("page", title, anchor), title)

    def _picture(self, element: StorageElement) -> str | None:
        """Return an image, or None if Markdown has no form for it."""
        given = {
            name: value
            for name, value in element.attributes.items()
            if name not in _OF_EDITOR and not _is_of_editor(name)
        }
        if "ac:original-width" in element.attributes and "ac:custom-width" not in (
            element.attributes
        ):
            for name in ("ac:width", "ac:height", "ac:align"):
                given.pop(name, None)
        if set(given) - set(_IMAGE) or len(element.elements) != 1:
            return None
        inner = element.elements[0]
        if inner.name == "ri:url":
            address: str | None = inner.attributes.get("ri:value", "")
            if not markup.is_external(str(address)):
                return None
        elif inner.name == "ri:attachment" and not inner.elements:
            name = inner.attributes.get("ri:filename", "")
            address = self._context.addresses.file(name)
            if address is not None:
                self.targets[address] = LinkTarget("file", name)
        else:
            return None
        if not address:
            return None
        alt = escaped(given.get("ac:alt", ""), explicit=self._explicit, in_link=True)
        shown = destination(address, given.get("ac:title", ""))
        sizes = [
            f"{name}={given[f'ac:{name}']}"
            for name in ("width", "height", "align")
            if f"ac:{name}" in given
        ]
        return f"![{alt}]({shown})" + (f"{{{' '.join(sizes)}}}" if sizes else "")


# -- forms -----------------------------------------------------------------------------------------


def passage(source: str) -> str:
    """Return a block in storage format."""
    return fenced(_ADDED.sub("", source), "storage", "```")


def inline_passage(source: str) -> str:
    """Return a passage in storage format within a line."""
    source = _ADDED.sub("", source)
    if "\n" in source:
        raise _NoWords
    return f"{code_span(source)}{{=storage}}"


def fenced(source: str, info: str, fence: str) -> str:
    """Return a block of code."""
    mark = fence[0]
    longest = max((len(run) for run in re.findall(rf"^[ \t]*({mark}+)", source, re.M)), default=0)
    fence = mark * max(len(fence), longest + 1)
    return f"{fence}{info}\n{source}\n{fence}" if source else f"{fence}{info}\n{fence}"


def code_span(text: str) -> str:
    """Return code within a line."""
    runs = set(map(len, re.findall("`+", text)))
    ticks = next(length for length in range(1, len(text) + 2) if length not in runs) * "`"
    pads = text[:1] == "`" or text[-1:] == "`" or (text[:1] == text[-1:] == " " and text.strip(" "))
    return f"{ticks} {text} {ticks}" if pads else f"{ticks}{text}{ticks}"


def destination(address: str, title: str = "") -> str:
    """Return the address and the title in a link."""
    if re.search(r"[\s()<>\\]", address) or not address:
        address = "<" + re.sub(r"([<>\\])", r"\\\1", address) + ">"
    shown = title.replace("\\", "\\\\").replace('"', '\\"')
    return f'{address} "{shown}"' if title else address


def table_text(rows: Sequence[Sequence[str]], aligns: Sequence[str]) -> str:
    """Return a table with columns of equal width, unless that makes lines too long."""
    widths = [max(3, *(len(row[at]) for row in rows)) for at in range(len(aligns))]
    if sum(widths) + 3 * len(widths) > _WIDEST:
        widths = [3] * len(widths)
    rule = [_rule(align, width) for align, width in zip(aligns, widths, strict=True)]
    head, *body = rows
    return "\n".join(table_row(row, widths) for row in (head, rule, *body))


def table_row(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
    return f"| {' | '.join(padded)} |"


def _rule(align: str, width: int) -> str:
    left, right = align in ("left", "center"), align in ("right", "center")
    return ":" * left + "-" * (width - left - right) + ":" * right


#: Width from which on the columns of tables are not aligned.
_WIDEST = 120


def indented(prefix: str, text: str, width: int | None = None) -> str:
    """Return a text after a prefix, with its other lines indented."""
    first, *rest = text.split("\n")
    blank = " " * (len(prefix) if width is None else width)
    return "\n".join([(prefix + first).rstrip(), *((blank + line).rstrip() for line in rest)])


def _prefixed(prefix: str, text: str) -> str:
    return "\n".join((prefix + line).rstrip() for line in text.split("\n"))


def wrapped(text: str, width: int | None) -> str:
    """Return a text in lines of a width."""
    if width is None:
        return text
    lines: list[str] = []
    for part in re.split(r"(?<=\\)\n|(?<=  )\n", text):
        line = ""
        for word in re.split(r"[ \n]+", part):
            starts = bool(_STARTS.match(word)) or re.fullmatch(r"\d+[.)]", word)
            if line and len(line) + 1 + len(word) > width and not starts:
                lines.append(line)
                line = word
            else:
                line = f"{line} {word}" if line else word
        lines.append(line)
    return "\n".join(lines)


def _list_mark(text: str, block: Block) -> str:
    """Return the mark of a list, which a list right after it must not have."""
    node = block.nodes[0]
    if not isinstance(node, StorageElement) or text.startswith(("```", "~~~")):
        return ""
    if node.name in ("ul", "ac:task-list"):
        return text[:1]
    found = re.match(r"\d+([.)])", text)
    return found[1] if node.name == "ol" and found is not None else ""


def grouped(nodes: Sequence[Node]) -> list[StorageElement | list[Node]]:
    """Return blocks, and the texts between them. Blank texts and empty paragraphs are left out."""
    groups: list[StorageElement | list[Node]] = []
    run: list[Node] = []
    for node in (*nodes, None):
        if node is not None and not (isinstance(node, StorageElement) and is_block(node)):
            run.append(node)
            continue
        if any(not isinstance(one, str) or one.strip(" \t\r\n") for one in run):
            groups.append(run)
        run = []
        if isinstance(node, StorageElement) and not (
            node.name == "p" and not node.children and not node.attributes
        ):
            groups.append(node)
    return groups


def is_text(nodes: Sequence[Node]) -> bool:
    return len(nodes) != 1 or not isinstance(nodes[0], StorageElement) or not is_block(nodes[0])


def _targets_of(link: StorageElement) -> list[StorageElement]:
    return [one for one in link.elements if not one.name.endswith("link-body")]


def _only(nodes: Sequence[Node]) -> StorageElement:
    node = nodes[0]
    return node if isinstance(node, StorageElement) else StorageElement("")


def _has_text(element: StorageElement) -> bool:
    return any(
        not isinstance(node, StorageElement) and str(node).strip() for node in (element.children)
    )


def _flat(nodes: Sequence[Node]) -> Iterator[Node]:
    """Yield nodes without marks of the editor, and with joined texts."""
    text = ""
    for node in nodes:
        if isinstance(node, str):
            text += node
            continue
        if text:
            yield text
        text = ""
        yield node
    if text:
        yield text


def _is_macro(nodes: Sequence[Node], name: str) -> bool:
    return (
        len(nodes) == 1
        and isinstance(nodes[0], StorageElement)
        and nodes[0].name == "ac:structured-macro"
        and nodes[0].attributes.get("ac:name") == name
        and (name != "toc" or not nodes[0].elements)
    )


def _parameter(node: Node, name: str) -> str:
    return node.parameters().get(name, "") if isinstance(node, StorageElement) else ""


def _is_of_editor(name: str) -> bool:
    """Return whether an attribute has no meaning for readers."""
    return name in ("ac:local-id", "local-id", "ac:macro-id") or (
        name.startswith("data-") and name != "data-highlight-colour"
    )


def _alignment(cell: StorageElement) -> str:
    """Return the alignment of a cell. Raises `_NoWords` for other attributes."""
    style = ""
    for name, value in cell.attributes.items():
        found = _ALIGNMENT.fullmatch(value.strip()) if name == "style" else None
        if found is None and not _is_of_editor(name):
            raise _NoWords
        style = found[1] if found is not None else style
    return style


def source_of(element: StorageElement) -> str:
    """Return the storage format of an element."""
    attributes = "".join(
        f' {name}="{markup.attribute(value)}"' for name, value in (element.attributes.items())
    )
    if not element.children:
        return f"<{element.name}{attributes}/>"
    inner = ""
    is_plain = element.name in ("ac:plain-text-body", "ac:plain-text-link-body")
    for child in element.children:
        if isinstance(child, StorageElement):
            inner += source_of(child)
        elif isinstance(child, str) and is_plain:
            inner += f"<![CDATA[{child.replace(']]>', ']]]]><![CDATA[>')}]]>"
        elif isinstance(child, str):
            inner += markup.escaped(_BLANKS.sub(" ", child))
    return f"<{element.name}{attributes}>{inner}</{element.name}>"
