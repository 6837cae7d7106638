# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse Markdown into a tree: CommonMark with tables, tasks, strikethrough and footnotes."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from ...core.errors import invalid
from .footnotes import add_footnotes, definitions_of

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

try:
    import markdown_it.tree

    MARKDOWN_MISSING = None
except ImportError:
    MARKDOWN_MISSING = traceback.format_exc()

#: Maximum nesting depth: the library silently drops deeper content.
_DEEPEST = 60
#: Maximum number of characters: the library is slow for some inputs, and real pages are smaller.
LONGEST = 1_000_000
_NOT_IN_A_SLUG = re.compile(r"[^\w\- ]")


@dataclass(frozen=True)
class Heading:
    """A heading: its plain text, and its anchor for links."""

    text: str
    slug: str


@dataclass(frozen=True)
class MarkdownDocument:
    """A parsed Markdown document. `headings`: in document order. `footnotes`: by name."""

    tree: SyntaxTreeNode
    headings: list[Heading] = field(default_factory=list)
    footnotes: dict[str, SyntaxTreeNode] = field(default_factory=dict)

    @property
    def slugs(self) -> frozenset[str]:
        return frozenset(heading.slug for heading in self.headings)

    def fragments(self) -> frozenset[str]:
        """Return the fragments of links within this document."""
        return frozenset(link[1:] for link in self.links() if link.startswith("#"))

    def links(self) -> Iterator[str]:
        """Yield the addresses of all links."""
        for tree in (self.tree, *self.footnotes.values()):
            for node in nodes(tree, "link"):
                yield str(node.attrs.get("href", ""))


def require_markdown() -> None:
    """Raise `invalid` if markdown-it-py is missing."""
    if MARKDOWN_MISSING is not None:
        raise invalid(
            "converting Markdown requires the Python library markdown-it-py on the host where it"
            " runs: pip install markdown-it-py"
        )


def parse_markdown(text: str) -> MarkdownDocument:
    """Parse Markdown.

    Raises `invalid` if the library is missing, or the source is too long or nested too deeply.
    """
    require_markdown()
    if len(text) > LONGEST:
        raise invalid(
            f"line 1: the file has {len(text)} characters, but the maximum is {LONGEST}: split it"
        )
    environment: dict[str, object] = {}
    tree = _tree(text, environment)
    footnotes = {
        name: _tree(note, {**environment}) for name, note in definitions_of(environment).items()
    }
    return MarkdownDocument(tree, _headings(tree), footnotes)


def _tree(text: str, environment: dict[str, object]) -> SyntaxTreeNode:
    tokens = _parser().parse(text, environment)
    for token in tokens:
        inline = token.children or []
        if token.level >= _DEEPEST - 1 or any(one.level >= _DEEPEST - 1 for one in inline):
            line = token.map[0] + 1 if token.map else 1
            raise invalid(
                f"line {line}: elements are nested deeper than {_DEEPEST} levels: use fewer"
            )
    return markdown_it.tree.SyntaxTreeNode(tokens)


@cache
def _parser() -> markdown_it.MarkdownIt:
    parser = markdown_it.MarkdownIt("commonmark", {"maxNesting": _DEEPEST})
    add_footnotes(parser)
    return parser.enable(["table", "strikethrough"])


def nodes(tree: SyntaxTreeNode, kind: str) -> Iterator[SyntaxTreeNode]:
    """Yield the nodes of a type in document order."""
    return (node for node in tree.walk() if node.type == kind)


def plain_text(node: SyntaxTreeNode) -> str:
    """Return the text of a node without formatting, on a single line."""
    parts = []
    for child in node.walk():
        if child.type in ("text", "code_inline"):
            parts.append(child.content)
        elif child.type in ("softbreak", "hardbreak"):
            parts.append(" ")
    return " ".join("".join(parts).split())


def _headings(tree: SyntaxTreeNode) -> list[Heading]:
    """Return the headings with GitHub's anchors: that of "A first step" is `a-first-step`."""
    found: list[Heading] = []
    seen: dict[str, int] = {}
    for node in nodes(tree, "heading"):
        text = plain_text(node)
        slug = _NOT_IN_A_SLUG.sub("", text.lower()).replace(" ", "-")
        times = seen.get(slug, 0)
        seen[slug] = times + 1
        found.append(Heading(text, f"{slug}-{times}" if times else slug))
    return found
