# SPDX-License-Identifier: GPL-3.0-or-later
"""Render text, links, images and other elements within a line as storage format."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from . import markup
from .document import MarkdownDocument, is_safe_address, target_key
from .elements import BLOCKS, Element, Node
from .footnotes import REFERENCE
from .targets import LinkResolver

_TAGS = {
    **{tag: (f"<{tag}>", f"</{tag}>") for tag in ("strong", "em", "u", "sub", "sup", "code")},
    "b": ("<strong>", "</strong>"),
    "i": ("<em>", "</em>"),
    "ins": ("<u>", "</u>"),
    "kbd": ("<code>", "</code>"),
    **dict.fromkeys(("s", "del"), ('<span style="text-decoration: line-through;">', "</span>")),
    "mark": ('<span style="background-color: rgb(255,240,179);">', "</span>"),
}
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
        slug = [element.slug] if target_key(element.slug) in self._linked else []
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
        if node.tag == "br":
            return "<br/>"
        if node.tag == "img":
            return self.anchors(node) + self._image(node)
        if node.tag == REFERENCE:
            return self._footnote(node)
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

    def _footnote(self, element: Element) -> str:
        name = element.attributes["name"]
        if name not in self._document.footnotes:
            self._resolver.warn(f"the footnote '{name}' is not defined", element.line)
            return markup.escaped(f"[^{name}]")
        mark = ""
        if name not in self._numbers:
            self.notes.append(name)
            self._numbers[name] = len(self.notes)
            mark = markup.anchor(f"{self.note}{len(self.notes)}-from")
        number = self._numbers[name]
        return f"<sup>{mark}{markup.jump(f'{self.note}{number}', str(number))}</sup>"
