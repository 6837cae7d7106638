# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse Markdown: CommonMark with tables, tasks, strikethrough, footnotes and raw HTML."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from ...core.errors import invalid
from .dialects import INCLUDE, LONGEST, Include, add_dialects, footnotes_of
from .elements import DEEPEST, HEADINGS, INLINE_PASSAGE, PASSAGE, TIGHT, Element, TreeBuilder
from .mdx import without_components
from .parser import StorageElement, parse
from .passages import require_passage

if TYPE_CHECKING:
    from markdown_it.token import Token

try:
    import markdown_it

    MARKDOWN_MISSING = None
except ImportError:
    MARKDOWN_MISSING = traceback.format_exc()

#: Follows a code span that is a passage in storage format.
_RAW = "{=storage}"
_DEFINITION = re.compile(r"[ \t]*:[ \t]+\S")
_NOT_IN_A_SLUG = re.compile(r"[^\w\- ]")
#: Attributes after an image or a link, and at the end of a heading: ids, classes, and others.
_ONE = r"""(?:[#.][^\s{}#="']+|[\w:-]+=(?:"[^"{}]*"|'[^'{}]*'|[^\s"'{}]+))"""
_ATTRIBUTES = re.compile(rf"[ \t]*\{{:?[ \t]*(?P<list>{_ONE}(?:[ \t]+(?:{_ONE}|[\w-]+))*)[ \t]*\}}")
_ATTRIBUTE = re.compile(
    r"""(?P<sign>[#.])(?P<id>[^\s{}#="']+)"""
    r"""|(?P<name>[\w:-]+)=(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>\S+))"""
)


@dataclass(frozen=True)
class MarkdownDocument:
    """A parsed Markdown document.

    `footnotes`: their content by name.
    `targets`: ids of the targets of links, by the key of `target_key`.
    `unknown`: line numbers of the elements without an equivalent, by name.
    `templates`: line numbers of the tags of site generators, by tag.
    `components`: line numbers of the components of MDX, by name.
    `definitions`: line numbers of lists of definitions, which stay text.
    """

    tree: Element
    footnotes: Mapping[str, Element] = field(default_factory=dict)
    targets: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, list[int]] = field(default_factory=dict)
    templates: Mapping[str, list[int]] = field(default_factory=dict)
    components: Mapping[str, list[int]] = field(default_factory=dict)
    definitions: Sequence[int] = ()

    def links(self) -> Iterator[str]:
        """Yield the addresses of all links."""
        for tree in (self.tree, *self.footnotes.values()):
            for element in tree.walk():
                if element.tag == "a" and "href" in element.attributes:
                    yield element.attributes["href"]

    def passages(self) -> Iterator[Element]:
        """Yield the passages in storage format."""
        for tree in (self.tree, *self.footnotes.values()):
            yield from (one for one in tree.walk() if one.tag in (PASSAGE, INLINE_PASSAGE))

    def headings(self) -> Iterator[Element]:
        """Yield the headings that have a text."""
        return (one for one in self.tree.walk() if one.tag in HEADINGS and title_of(one))

    def title(self) -> Element | None:
        """Return the heading with the title: the first of level 1, else the first one."""
        first = next(self.headings(), None)
        return next((one for one in self.headings() if one.tag == "h1"), first)


def title_of(heading: Element) -> str:
    """Return the text of a heading, or the alternative text of its images."""
    images = [one.attributes.get("alt", "") for one in heading.walk() if one.tag == "img"]
    return heading.text() or " ".join(" ".join(images).split())


def target_key(fragment: str) -> str:
    """Return the key of a target: ids compare without regard to case."""
    return fragment.lower()


def loose_key(slug: str) -> str:
    """Return the slug of generators of sites: that of "A & B" is `a-b`, but GitHub's `a--b`."""
    return re.sub("-+", "-", target_key(slug)).strip("-")


def require_markdown() -> None:
    """Raise `invalid` if markdown-it-py is missing."""
    if MARKDOWN_MISSING is not None:
        raise invalid(
            "converting Markdown requires the Python library markdown-it-py on the host where it"
            " runs: pip install markdown-it-py"
        )


def parse_markdown(
    text: str, include: Include | None = None, *, mdx: bool = False
) -> MarkdownDocument:
    """Parse Markdown.

    :param include: returns included files; None if they stay text
    :param mdx: whether it is MDX, with modules and components

    Raises `invalid` if the library is missing, or the source is too long, nested too deeply or has
    too many brackets.
    """
    require_markdown()
    if len(text) > LONGEST:
        raise invalid(
            f"line 1: the file has {len(text)} characters, but the maximum is {LONGEST}: split it"
        )
    text, components = without_components(text) if mdx else (text, {})
    environment: dict[str, object] = {INCLUDE: include}
    main = TreeBuilder()
    tokens = _parser().parse(text, environment)
    main.add(tokens)
    footnotes, unknown, templates = {}, dict(main.unknown), dict(main.templates)
    for name, (line, note) in footnotes_of(environment).items():
        builder = TreeBuilder(line)
        builder.add(_parser().parse(note, {**environment}))
        footnotes[name] = builder.root
        for known, found in ((unknown, builder.unknown), (templates, builder.templates)):
            for tag, lines in found.items():
                known.setdefault(tag, []).extend(lines)
    for root in (main.root, *footnotes.values()):
        _mark_passages(root)
        _take_attributes(root)
    targets = _targets(main.root, footnotes)
    definitions = list(_definitions(tokens))
    document = MarkdownDocument(
        main.root, footnotes, targets, unknown, templates, components, definitions
    )
    for passage in document.passages():
        source = passage.attributes["source"]
        require_passage(source, passage.line + (passage.tag == PASSAGE))
        for name in anchors_of(parse(source)):
            targets.setdefault(target_key(name), name)
    return document


def _definitions(tokens: Sequence[Token]) -> Iterator[int]:
    """Yield the lines of definitions, such as `: text` below the line of a term.

    Extensions of Markdown have them, but CommonMark and GitHub show them as text.
    """
    types = ["", "", *(token.type for token in tokens)]
    for (before, opening), token in zip(pairwise(types), tokens, strict=False):
        if opening != "paragraph_open" or token.map is None:
            continue
        lines = enumerate(token.content.split("\n"))
        # the first line belongs to the term above, if there is one
        found = (at for at, line in lines if _DEFINITION.match(line))
        first = next((at for at in found if at or before == "paragraph_close"), None)
        if first is not None:
            yield token.map[0] + first + 1


def anchors_of(tree: StorageElement) -> Iterator[str]:
    """Yield the names of the anchor macros in storage format."""
    for element in tree.walk():
        if element.attributes.get("ac:name") == "anchor":
            yield element.parameters().get("", "")


@cache
def _parser() -> markdown_it.MarkdownIt:
    # The library silently drops content that is nested deeper than `maxNesting`, but the tree
    # rejects it before.
    parser = markdown_it.MarkdownIt("commonmark", {"maxNesting": 2 * DEEPEST})
    add_dialects(parser)
    return parser.enable(["table", "strikethrough"])


def blocks_in(text: str, kind: str = "", level: int = 0) -> list[tuple[int, int]]:
    """Return the first line and the line after the end of each block of a level.

    :param kind: type of the tokens; by default all blocks
    """
    tokens = _parser().parse(text, {INCLUDE: None})
    found = (token for token in tokens if token.level == level and token.nesting >= 0)
    return [
        (token.map[0], token.map[1])
        for token in found
        if token.map is not None and kind in ("", token.type)
    ]


def is_safe_address(address: str) -> bool:
    """Return whether an address of raw HTML is one that Markdown also allows."""
    return _parser().validateLink(address)


def slug_of(text: str, taken: dict[str, int]) -> str:
    """Return the unique slug of a heading.

    :param taken: slugs of the headings above, with the last number added to each; updated
    """
    slug = base = _NOT_IN_A_SLUG.sub("", text.lower()).replace(" ", "-")
    while slug in taken:
        taken[base] += 1
        slug = f"{base}-{taken[base]}"
    taken[slug] = 0
    return slug


def _targets(tree: Element, footnotes: Mapping[str, Element]) -> dict[str, str]:
    """Set the slugs of headings, and return all targets. The first element with an id has it.

    The slug is GitHub's anchor of a heading: that of "A first step" is `a-first-step`.
    """
    found: dict[str, str] = {}
    #: Slugs of the headings, with the last number added to each.
    taken: dict[str, int] = {}
    for root in (tree, *footnotes.values()):
        for element in root.walk():
            names = list(element.ids)
            if root is tree and element.tag in HEADINGS:
                slug = element.slug = slug_of(element.text(), taken)
                names.append(slug)
            own: list[str] = []
            for name in names:
                if name and target_key(name) not in found:
                    found[target_key(name)] = name
                    own.append(name)
            element.slug = element.slug if element.slug in own[-1:] else ""
            element.ids = [name for name in own if name != element.slug]
    slugs = {loose_key(element.slug): element.slug for element in tree.walk() if element.slug}
    return {**slugs, **found}


def _mark_passages(root: Element) -> None:
    """Replace code spans that are passages in storage format."""
    for element in root.walk():
        children = element.children
        for at, after in enumerate(children[1:]):
            code = children[at]
            if isinstance(code, str) or code.tag != "code" or code.raw:
                continue
            if isinstance(after, str) and after.startswith(_RAW):
                source = "".join(map(str, code.children))
                children[at] = Element(INLINE_PASSAGE, {"source": source}, [], code.line)
                children[at + 1] = after.removeprefix(_RAW)


def _take_attributes(root: Element) -> None:
    """Move attributes such as `{ #id .class width=300 }` to their image, link, heading or
    paragraph.
    """
    for element in root.walk():
        children = element.children
        for at, child in enumerate(children[:-1], 1):
            after = children[at]
            if isinstance(child, str) or child.raw or child.tag not in ("img", "a"):
                continue
            found = _ATTRIBUTES.match(after) if isinstance(after, str) else None
            if found is not None:
                children[at] = found.string[found.end() :]
                _set_attributes(child, found)
        if element.raw or not children:
            continue
        last, found = children[-1], None
        text = last.rstrip() if isinstance(last, str) else ""
        if element.tag in HEADINGS:  # at the end of its text
            found = _ATTRIBUTES.match(text, text.rfind("{"))
        elif element.tag in ("p", TIGHT) and children[-2:-1] in ([], ["\n"]):  # as its last line
            found = _ATTRIBUTES.fullmatch(text)
        if found is not None and found.end() == len(text):
            children[-1] = text[: found.start()].rstrip()
            _set_attributes(element, found)


def _set_attributes(element: Element, found: re.Match[str]) -> None:
    """Set ids, size and alignment of an element. Other attributes are dropped."""
    for one in _ATTRIBUTE.finditer(found["list"]):
        value = one["double"] or one["single"] or one["bare"] or ""
        if one["sign"] == "#" or one["name"] == "id":
            element.ids.insert(0, one["id"] or value)
        elif one["name"] in ("width", "height", "align"):
            element.attributes[one["name"]] = value
