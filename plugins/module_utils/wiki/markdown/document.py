# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse Markdown: CommonMark with tables, tasks, strikethrough, footnotes and raw HTML."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from ...core.errors import invalid
from .brackets import add_brackets
from .elements import DEEPEST, HEADINGS, Element, TreeBuilder
from .footnotes import add_footnotes, definitions_of

try:
    import markdown_it

    MARKDOWN_MISSING = None
except ImportError:
    MARKDOWN_MISSING = traceback.format_exc()

#: Maximum number of characters: the library is slow for some inputs, and real pages are smaller.
LONGEST = 1_000_000
_NOT_IN_A_SLUG = re.compile(r"[^\w\- ]")
_ID = re.compile(r"\s*\{:?\s*#(?P<id>[^\s{}#]+)\s*\}\s*\Z")


@dataclass(frozen=True)
class MarkdownDocument:
    """A parsed Markdown document.

    `footnotes`: their content by name.
    `targets`: ids of the targets of links, by the key of `target_key`.
    `unknown`: line numbers of the elements without an equivalent, by name.
    """

    tree: Element
    footnotes: Mapping[str, Element] = field(default_factory=dict)
    targets: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, list[int]] = field(default_factory=dict)

    def links(self) -> Iterator[str]:
        """Yield the addresses of all links."""
        for tree in (self.tree, *self.footnotes.values()):
            for element in tree.walk():
                if element.tag == "a" and "href" in element.attributes:
                    yield element.attributes["href"]

    def title(self) -> Element | None:
        """Return the heading with the title: the first of level 1, else the first one."""
        headings = [one for one in self.tree.walk() if one.tag in HEADINGS and title_of(one)]
        first = headings[0] if headings else None
        return next((one for one in headings if one.tag == "h1"), first)


def title_of(heading: Element) -> str:
    """Return the text of a heading, or the alternative text of its images."""
    images = [one.attributes.get("alt", "") for one in heading.walk() if one.tag == "img"]
    return heading.text() or " ".join(" ".join(images).split())


def target_key(fragment: str) -> str:
    """Return the key of a target: ids compare without regard to case."""
    return fragment.lower()


def require_markdown() -> None:
    """Raise `invalid` if markdown-it-py is missing."""
    if MARKDOWN_MISSING is not None:
        raise invalid(
            "converting Markdown requires the Python library markdown-it-py on the host where it"
            " runs: pip install markdown-it-py"
        )


def parse_markdown(text: str) -> MarkdownDocument:
    """Parse Markdown.

    Raises `invalid` if the library is missing, or the source is too long, nested too deeply or has
    too many brackets.
    """
    require_markdown()
    if len(text) > LONGEST:
        raise invalid(
            f"line 1: the file has {len(text)} characters, but the maximum is {LONGEST}: split it"
        )
    environment: dict[str, object] = {}
    main = TreeBuilder()
    main.add(_parser().parse(text, environment))
    footnotes, unknown = {}, dict(main.unknown)
    for name, (line, note) in definitions_of(environment).items():
        builder = TreeBuilder(line)
        builder.add(_parser().parse(note, {**environment}))
        footnotes[name] = builder.root
        for tag, lines in builder.unknown.items():
            unknown.setdefault(tag, []).extend(lines)
    targets = _targets(main.root, footnotes)
    return MarkdownDocument(main.root, footnotes, targets, unknown)


@cache
def _parser() -> markdown_it.MarkdownIt:
    # The library silently drops content that is nested deeper than `maxNesting`, but the tree
    # rejects it before.
    parser = markdown_it.MarkdownIt("commonmark", {"maxNesting": 2 * DEEPEST})
    add_brackets(parser)
    add_footnotes(parser)
    return parser.enable(["table", "strikethrough"])


def is_safe_address(address: str) -> bool:
    """Return whether an address of raw HTML is one that Markdown also allows."""
    return _parser().validateLink(address)


def _targets(tree: Element, footnotes: Mapping[str, Element]) -> dict[str, str]:
    """Set the slugs of headings, and return all targets. The first element with an id has it."""
    found: dict[str, str] = {}
    taken: dict[str, int] = {}
    for root in (tree, *footnotes.values()):
        for element in root.walk():
            names = list(element.ids)
            if root is tree and element.tag in HEADINGS:
                names += _explicit_id(element)
                element.slug = _slug(element.text(), taken)
                names.append(element.slug)
            own: list[str] = []
            for name in names:
                if name and target_key(name) not in found:
                    found[target_key(name)] = name
                    own.append(name)
            element.slug = element.slug if element.slug in own[-1:] else ""
            element.ids = [name for name in own if name != element.slug]
    return found


def _explicit_id(heading: Element) -> list[str]:
    """Remove the id `{#id}` at the end of a heading of Markdown, and return it."""
    last = heading.children[-1] if heading.children and not heading.raw else None
    found = _ID.search(last) if isinstance(last, str) else None
    if found is None:
        return []
    heading.children[-1] = found.string[: found.start()]
    return [found["id"]]


def _slug(text: str, taken: dict[str, int]) -> str:
    """Return GitHub's anchor of a heading: that of "A first step" is `a-first-step`.

    :param taken: the slugs of the headings before it, with the last number added to each
    """
    slug = base = _NOT_IN_A_SLUG.sub("", text.lower()).replace(" ", "-")
    while slug in taken:
        taken[base] += 1
        slug = f"{base}-{taken[base]}"
    taken[slug] = 0
    return slug
