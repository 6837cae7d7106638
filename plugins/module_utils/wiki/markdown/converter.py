# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert Markdown to storage format [wiki-16]. The result is escaped and well-formed."""

from __future__ import annotations

import html
import posixpath
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol
from urllib.parse import unquote

from .document import MarkdownDocument, parse_markdown, plain_text
from .enclosed import Enclosed, enclosed
from .footnotes import REFERENCE
from .front_matter import split_front_matter
from .raw_html import is_line_break, text_of_html

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

_SCHEME = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:|//)")
#: Characters that XML does not allow, and unpaired surrogates.
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_ALERT = re.compile(r"\[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\]\s*", re.IGNORECASE)
_MACRO_OF_ALERT = {
    "NOTE": "info",
    "TIP": "tip",
    "IMPORTANT": "note",
    "WARNING": "warning",
    "CAUTION": "warning",
}
_TASK = re.compile(r"\[([ xX])\]\s")
#: Languages in Markdown and their names in the code macro, which shows an error for other names.
_LANGUAGES = {
    **{name: name for name in ("bash", "c#", "cpp", "css", "diff", "erlang", "groovy", "html")},
    **{name: name for name in ("java", "js", "perl", "php", "powershell", "py", "ruby", "scala")},
    **{name: name for name in ("sql", "vb", "xml", "yaml")},
    **dict.fromkeys(("sh", "shell", "console", "zsh"), "bash"),
    **dict.fromkeys(("c", "c++", "h", "hpp"), "cpp"),
    **dict.fromkeys(("cs", "csharp"), "c#"),
    **dict.fromkeys(("javascript", "json", "jsx", "ts", "typescript"), "js"),
    "python": "py",
    "python3": "py",
    "patch": "diff",
    "yml": "yaml",
    "rb": "ruby",
    "ps1": "powershell",
    "xhtml": "xml",
    "svg": "xml",
}
#: Languages of diagrams, which the wiki cannot render.
_DIAGRAMS = frozenset({"mermaid", "plantuml", "puml", "dot", "graphviz", "d2", "ditaa"})
_PLAIN_TAGS = {"paragraph": "p", "strong": "strong", "em": "em", "list_item": "li", "tr": "tr"}


@dataclass(frozen=True)
class LinkTarget:
    """Target of a link or an image.

    `name`: an address, the title of a page ("" is the same page), or the name of an attachment.
    `anchor`: heading on the page.
    """

    kind: Literal["address", "page", "file"]
    name: str
    anchor: str = ""


class LinkResolver(Protocol):
    """Resolve the addresses of links and images."""

    def link(self, address: str, line: int) -> LinkTarget:
        """Return the target of a link."""

    def image(self, address: str, line: int) -> LinkTarget:
        """Return the source of an image."""

    def missing_footnote(self, name: str, line: int) -> None:
        """Report a reference to an undefined footnote. It is rendered literally."""


class SingleText:
    """Resolver for a single document: keep links, and resolve images to attachments."""

    def link(self, address: str, line: int) -> LinkTarget:
        if address.startswith("#"):
            return LinkTarget("page", "", unquote(address[1:]))
        return LinkTarget("address", address)

    def image(self, address: str, line: int) -> LinkTarget:
        name = posixpath.basename(unquote(address.partition("?")[0]))
        if is_external(address) or name == "":
            return LinkTarget("address", address)
        return LinkTarget("file", name)

    def missing_footnote(self, name: str, line: int) -> None:
        """Do nothing: a single document has no warnings."""


def storage_format(text: str) -> str:
    """Convert a Markdown document to storage format, without its front matter."""
    document = parse_markdown(split_front_matter(text).text)
    anchors = {unquote(fragment) for fragment in document.fragments()}
    return StorageRenderer(document, SingleText(), anchors).body()


def is_external(address: str) -> bool:
    """Return whether an address has a scheme or a host."""
    return _SCHEME.match(address) is not None


class StorageRenderer:
    """Render a Markdown document as storage format.

    :param anchors: slugs of the headings that are targets of links
    """

    def __init__(
        self, document: MarkdownDocument, resolver: LinkResolver, anchors: Collection[str]
    ) -> None:
        self._document, self._resolver, self._anchors = document, resolver, anchors
        self._headings = iter(document.headings)
        self._line, self._tasks = 1, 0
        #: Footnotes in the order of their first reference.
        self._notes: list[str] = []
        self._special: dict[str, Callable[[SyntaxTreeNode], str]] = {
            "heading": self._heading,
            "paragraph": self._paragraph,
            "blockquote": self._blockquote,
            "bullet_list": self._list,
            "ordered_list": self._list,
            "fence": self._code,
            "code_block": self._code,
            "html_block": self._html_block,
            "html_inline": lambda node: "<br/>" if is_line_break(node.content) else "",
            "hr": lambda _node: "<hr/>",
            "table": self._table,
            "td": self._cell,
            "th": self._cell,
            "text": lambda node: escaped(node.content),
            "code_inline": lambda node: f"<code>{escaped(node.content)}</code>",
            "softbreak": self._soft_break,
            "hardbreak": self._hard_break,
            "s": self._struck_through,
            "link": self._link,
            "image": self._image,
            REFERENCE: self._footnote,
        }

    def body(self) -> str:
        return self._all(self._document.tree.children) + self._all_notes()

    def _all(self, nodes: Sequence[SyntaxTreeNode]) -> str:
        return "".join(
            self._enclosed(node) if isinstance(node, Enclosed) else self._node(node)
            for node in enclosed(nodes)
        )

    def _enclosed(self, part: Enclosed) -> str:
        """Render the content between two HTML tags."""
        content = self._all(part.content)
        if part.tag != "details":
            return f"<{part.tag}>{content}</{part.tag}>"
        first = f"<p>{escaped(part.first)}</p>" if part.first else ""
        title = escaped(part.title)
        title = f'<ac:parameter ac:name="title">{title}</ac:parameter>' if title else ""
        body = f"<ac:rich-text-body>{first}{content}</ac:rich-text-body>"
        return _macro("expand", title + body)

    def _footnote(self, node: SyntaxTreeNode) -> str:
        name = node.content
        if name not in self._document.footnotes:
            self._resolver.missing_footnote(name, self._line)
            return escaped(f"[^{name}]")
        again = name in self._notes
        if not again:
            self._notes.append(name)
        number = self._notes.index(name) + 1
        mark = "" if again else _anchor(f"footnote-{number}-from")
        return f"<sup>{mark}{_jump(f'footnote-{number}', str(number))}</sup>"

    def _all_notes(self) -> str:
        """Return the list of footnotes for the end of the page."""
        items = ""
        # Rendering a footnote may append further footnotes to the list.
        for number, name in enumerate(self._notes, 1):
            back = _jump(f"footnote-{number}-from", "\u21a9")
            text = self._all(self._document.footnotes[name].children)
            mark = _anchor(f"footnote-{number}")
            items += f"<li>{mark}{text}<p>{back}</p></li>"
        return f"<hr/><ol>{items}</ol>" if items else ""

    def _node(self, node: SyntaxTreeNode) -> str:
        if node.map is not None:
            self._line = node.map[0] + 1
        write = self._special.get(node.type)
        if write is not None:
            return write(node)
        content = self._all(node.children)
        tag = _PLAIN_TAGS.get(node.type)
        return content if tag is None else f"<{tag}>{content}</{tag}>"

    # -- blocks --------------------------------------------------------------------------------

    def _heading(self, node: SyntaxTreeNode) -> str:
        heading = next(self._headings, None)  # None for a heading in a footnote
        slug = "" if heading is None else heading.slug
        mark = _anchor(slug) if slug in self._anchors else ""
        return f"<{node.tag}>{mark}{self._all(node.children)}</{node.tag}>"

    def _paragraph(self, node: SyntaxTreeNode) -> str:
        content = self._all(node.children)
        return content if node.hidden else f"<p>{content}</p>"

    def _blockquote(self, node: SyntaxTreeNode) -> str:
        marked = _marked(node, _ALERT)
        if marked is not None:
            mark, after = marked
            if mark.end() == len(mark.string) and (not after or after[0].type == "softbreak"):
                first = self._all(after[1:])
                paragraph = f"<p>{first}</p>" if first else ""
                content = f"{paragraph}{self._all(node.children[1:])}"
                body = f"<ac:rich-text-body>{content}</ac:rich-text-body>"
                return _macro(_MACRO_OF_ALERT[mark[1].upper()], body)
        return f"<blockquote>{self._all(node.children)}</blockquote>"

    def _list(self, node: SyntaxTreeNode) -> str:
        """Render a list. Tasks and other items cannot share a list, so a mixed list is split."""
        start = node.attrs.get("start")
        opening = node.tag if start is None else f'{node.tag} start="{int(start)}"'
        parts: list[tuple[bool, str]] = []
        for item in node.children:
            marked = _marked(item, _TASK)
            written = self._node(item) if marked is None else self._task(item, *marked)
            parts.append((marked is not None, written))
        within: bool | None = None
        written = ""
        for is_task, content in parts:
            if within is not is_task:
                written += _closing(within, node.tag)
                written += "<ac:task-list>" if is_task else f"<{opening}>"
                within = is_task
            written += content
        return written + _closing(within, node.tag)

    def _task(
        self, item: SyntaxTreeNode, mark: re.Match[str], after: Sequence[SyntaxTreeNode]
    ) -> str:
        self._tasks += 1
        number, status = self._tasks, "incomplete" if mark[1] == " " else "complete"
        text = escaped(mark.string[mark.end() :]) + self._all(after)
        return (
            f"<ac:task><ac:task-id>{number}</ac:task-id><ac:task-status>{status}</ac:task-status>"
            f"<ac:task-body>{text}{self._all(item.children[1:])}</ac:task-body></ac:task>"
        )

    def _code(self, node: SyntaxTreeNode) -> str:
        words = node.info.split() if node.type == "fence" else []
        language = _LANGUAGES.get(words[0].lower()) if words else None
        parameter = (
            f'<ac:parameter ac:name="language">{language}</ac:parameter>' if language else ""
        )
        if words and words[0].lower() in _DIAGRAMS:
            shown = f"{escaped(words[0])} diagram, shown as source"
            parameter = f'<ac:parameter ac:name="title">{shown}</ac:parameter>'
        code = _NO_XML.sub("\ufffd", node.content.removesuffix("\n"))
        text = code.replace("]]>", "]]]]><![CDATA[>")
        body = f"<ac:plain-text-body><![CDATA[{text}]]></ac:plain-text-body>"
        return _macro("code", parameter + body)

    def _html_block(self, node: SyntaxTreeNode) -> str:
        text = text_of_html(node.content)
        return f"<p>{escaped(text)}</p>" if text else ""

    def _table(self, node: SyntaxTreeNode) -> str:
        rows = "".join(self._all(part.children) for part in node.children)
        return f"<table><tbody>{rows}</tbody></table>"

    def _cell(self, node: SyntaxTreeNode) -> str:
        align = str(node.attrs.get("style", "")).rpartition(":")[2]
        style = f' style="text-align: {align};"' if align else ""
        return f"<{node.tag}{style}>{self._all(node.children)}</{node.tag}>"

    # -- within a line -------------------------------------------------------------------------

    def _soft_break(self, _node: SyntaxTreeNode) -> str:
        self._line += 1
        return "\n"

    def _hard_break(self, _node: SyntaxTreeNode) -> str:
        self._line += 1
        return "<br/>"

    def _struck_through(self, node: SyntaxTreeNode) -> str:
        style = "text-decoration: line-through;"
        return f'<span style="{style}">{self._all(node.children)}</span>'

    def _link(self, node: SyntaxTreeNode) -> str:
        target = self._resolver.link(str(node.attrs.get("href", "")), self._line)
        content = self._all(node.children)
        if target.kind == "address":
            return f'<a href="{attribute(target.name)}">{content}</a>'
        if (target.kind, target.name, target.anchor) == ("page", "", ""):
            return content  # a link to the top of the same page
        anchor = f' ac:anchor="{attribute(target.anchor)}"' if target.anchor else ""
        inner = ""
        if target.kind == "file":
            inner = _attachment(target.name)
        elif target.name:
            inner = f'<ri:page ri:content-title="{attribute(target.name)}"/>'
        return f"<ac:link{anchor}>{inner}<ac:link-body>{content}</ac:link-body></ac:link>"

    def _image(self, node: SyntaxTreeNode) -> str:
        target = self._resolver.image(str(node.attrs.get("src", "")), self._line)
        words = {"alt": plain_text(node), "title": str(node.attrs.get("title", ""))}
        shown = "".join(
            f' ac:{name}="{attribute(text)}"' for name, text in words.items() if text.strip()
        )
        source = f'<ri:url ri:value="{attribute(target.name)}"/>'
        source = source if target.kind == "address" else _attachment(target.name)
        return f"<ac:image{shown}>{source}</ac:image>"


def escaped(text: str) -> str:
    """Escape a string for use between tags."""
    return html.escape(_NO_XML.sub("\ufffd", text), quote=False)


def attribute(text: str) -> str:
    """Escape a string for use as an attribute value."""
    return html.escape(_NO_XML.sub("\ufffd", text))


def _marked(
    block: SyntaxTreeNode, pattern: re.Pattern[str]
) -> tuple[re.Match[str], Sequence[SyntaxTreeNode]] | None:
    """Match the start of the first paragraph of a block.

    Return the match and the inline nodes after the matched text, or None without a match.
    """
    first = block.children[0] if block.children else None
    if first is None or first.type != "paragraph" or not first.children:
        return None
    inline = first.children[0].children
    if not inline or inline[0].type != "text":
        return None
    found = pattern.match(inline[0].content)
    return None if found is None else (found, inline[1:])


def _macro(name: str, content: str) -> str:
    return f'<ac:structured-macro ac:name="{name}">{content}</ac:structured-macro>'


def _anchor(name: str) -> str:
    return _macro("anchor", f'<ac:parameter ac:name="">{escaped(name)}</ac:parameter>')


def _jump(anchor: str, text: str) -> str:
    """Return a link to an anchor of the same page."""
    return f'<ac:link ac:anchor="{anchor}"><ac:link-body>{text}</ac:link-body></ac:link>'


def _attachment(name: str) -> str:
    return f'<ri:attachment ri:filename="{attribute(name)}"/>'


def _closing(within: bool | None, tag: str) -> str:
    if within is None:
        return ""
    return "</ac:task-list>" if within else f"</{tag}>"
