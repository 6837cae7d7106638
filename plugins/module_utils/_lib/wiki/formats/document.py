# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse Markdown: CommonMark with tables, tasks, strikethrough, footnotes and raw HTML."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from ...core.errors import invalid
from .elements import (
    DEEPEST,
    HEADINGS,
    TIGHT,
    Element,
    Node,
    TreeBuilder,
    add_footnotes,
    definitions_of,
)
from .mdx import without_components
from .notes import add_notes
from .templates import INCLUDE, LONGEST, Include, add_templates

if TYPE_CHECKING:
    from collections.abc import Callable

    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline

try:
    import markdown_it

    MARKDOWN_MISSING = None
except ImportError:
    MARKDOWN_MISSING = traceback.format_exc()

_NOT_IN_A_SLUG = re.compile(r"[^\w\- ]")
#: Attributes after an image or a link, and at the end of a heading: ids, classes, and others.
_ONE = r"""(?:[#.][^\s{}#="']+|[\w:-]+=(?:"[^"{}]*"|'[^'{}]*'|[^\s"'{}]+))"""
_ATTRIBUTES = re.compile(rf"[ \t]*\{{:?[ \t]*(?P<list>{_ONE}(?:[ \t]+(?:{_ONE}|[\w-]+))*)[ \t]*\}}")
_ATTRIBUTE = re.compile(
    r"""(?P<sign>[#.])(?P<id>[^\s{}#="']+)"""
    r"""|(?P<name>[\w:-]+)=(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>\S+))"""
)
_BRACKET = re.compile(r"[\[\]]")
#: Number of open brackets from which on brackets are counted, and the maximum of that count. The
#: library takes up to a millisecond for a bracket.
_DEEP, _MAX_DEEP = 10, 3000


@dataclass(frozen=True)
class MarkdownDocument:
    """A parsed Markdown document.

    `footnotes`: their content by name.
    `targets`: ids of the targets of links, by the key of `target_key`.
    `unknown`: line numbers of the elements without an equivalent, by name.
    `templates`: line numbers of the tags of site generators, by tag.
    `components`: line numbers of the components of MDX, by name.
    """

    tree: Element
    footnotes: Mapping[str, Element] = field(default_factory=dict)
    targets: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, list[int]] = field(default_factory=dict)
    templates: Mapping[str, list[int]] = field(default_factory=dict)
    components: Mapping[str, list[int]] = field(default_factory=dict)

    def links(self) -> Iterator[str]:
        """Yield the addresses of all links."""
        for tree in (self.tree, *self.footnotes.values()):
            for element in tree.walk():
                if element.tag == "a" and "href" in element.attributes:
                    yield element.attributes["href"]

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
    main.add(_parser().parse(text, environment))
    footnotes, unknown, templates = {}, dict(main.unknown), dict(main.templates)
    for name, (line, note) in definitions_of(environment).items():
        builder = TreeBuilder(line)
        builder.add(_parser().parse(note, {**environment}))
        footnotes[name] = builder.root
        for known, found in ((unknown, builder.unknown), (templates, builder.templates)):
            for tag, lines in found.items():
                known.setdefault(tag, []).extend(lines)
    for root in (main.root, *footnotes.values()):
        _take_attributes(root)
    targets = _targets(main.root, footnotes)
    return MarkdownDocument(main.root, footnotes, targets, unknown, templates, components)


@cache
def _parser() -> markdown_it.MarkdownIt:
    # The library silently drops content that is nested deeper than `maxNesting`, but the tree
    # rejects it before.
    parser = markdown_it.MarkdownIt("commonmark", {"maxNesting": 2 * DEEPEST})
    add_brackets(parser)
    add_footnotes(parser)
    add_notes(parser)
    add_templates(parser)
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
                element.slug = _slug(element.text(), taken)
                names.append(element.slug)
            own: list[str] = []
            for name in names:
                if name and target_key(name) not in found:
                    found[target_key(name)] = name
                    own.append(name)
            element.slug = element.slug if element.slug in own[-1:] else ""
            element.ids = [name for name in own if name != element.slug]
    slugs = {loose_key(element.slug): element.slug for element in tree.walk() if element.slug}
    return {**slugs, **found}


def _take_attributes(root: Element) -> None:
    """Move attributes such as `{ #id .class width=300 }` to their image, link, heading or
    paragraph.
    """
    for element in root.walk():
        children = element.children
        for number, child in enumerate(children):
            if isinstance(child, Element) and child.tag in ("img", "a") and not child.raw:
                _apply(child, children, number + 1, _ATTRIBUTES.match)
        if element.raw or not children:
            continue
        if element.tag in HEADINGS:
            _apply(element, children, len(children) - 1, _last_attributes)
        elif element.tag in ("p", TIGHT) and children[-2:-1] in ([], ["\n"]):
            _apply(element, children, len(children) - 1, _only_attributes)


def _only_attributes(text: str) -> re.Match[str] | None:
    """Return the attributes that are the last line of a paragraph, or None."""
    return _ATTRIBUTES.fullmatch(text.rstrip())


def _last_attributes(text: str) -> re.Match[str] | None:
    """Return the attributes at the end of a string, or None."""
    end = text.rstrip()
    found = _ATTRIBUTES.match(text, end.rfind("{")) if end.endswith("}") else None
    return found if found is not None and found.end() == len(end) else None


def _apply(
    element: Element,
    children: list[Node],
    number: int,
    find: Callable[[str], re.Match[str] | None],
) -> None:
    """Apply the attributes in one of the children, and remove them. Unknown ones are dropped."""
    text = children[number] if number < len(children) else None
    found = find(text) if isinstance(text, str) else None
    if found is None:
        return
    rest = found.string[: found.start()], found.string[found.end() :]
    children[number] = "".join(rest) if element.tag not in HEADINGS else rest[0].rstrip()
    for one in _ATTRIBUTE.finditer(found["list"]):
        value = one["double"] or one["single"] or one["bare"] or ""
        if one["sign"] == "#" or one["name"] == "id":
            element.ids.insert(0, one["id"] or value)
        elif one["name"] in ("width", "height", "align"):
            element.attributes[one["name"]] = value


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


def add_brackets(parser: MarkdownIt) -> None:
    """Make a parser skip opening brackets that no bracket closes, and reject too many others."""
    from markdown_it.rules_inline import image, link

    parser.core.ruler.before("inline", "brackets", _require_few)
    parser.inline.ruler.at("link", _if_closed(link))
    parser.inline.ruler.at("image", _if_closed(image))


def _if_closed(
    rule: Callable[[StateInline, bool], bool],
) -> Callable[[StateInline, bool], bool]:
    def parse(state: StateInline, silent: bool) -> bool:
        return state.pos < _last_closing(state.src) and rule(state, silent)

    return parse


@lru_cache(maxsize=1)
def _last_closing(text: str) -> int:
    return text.rfind("]")


def _require_few(state: StateCore) -> None:
    """Raise `invalid` for too many brackets inside others that no bracket closes at once."""
    deep = 0
    for token in state.tokens:
        content = token.content if token.type == "inline" else ""
        depth = 0
        for found in _BRACKET.finditer(content, 0, content.rfind("]") + 1):
            depth = depth + 1 if found[0] == "[" else max(0, depth - 1)
            deep += found[0] == "[" and depth > _DEEP
        if deep > _MAX_DEEP:
            line = 1 if token.map is None else token.map[0] + 1
            raise invalid(
                f"line {line}: the file has more than {_MAX_DEEP} brackets '[' within others: write"
                " \\[ for those that are no links, or use a code block"
            )
