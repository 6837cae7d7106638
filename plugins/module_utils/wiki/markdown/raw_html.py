# SPDX-License-Identifier: GPL-3.0-or-later
"""Split raw HTML in Markdown into text and tags, in linear time."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

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
class Text:
    """Text between tags, without character references."""

    content: str


@dataclass(frozen=True)
class Tag:
    """A start tag or an end tag. `line`: number of lines before it. `closed`: ends with `/>`."""

    name: str
    line: int
    ends: bool = False
    closed: bool = False
    attributes: dict[str, str] = field(default_factory=dict)


def split_html(source: str) -> Iterator[Text | Tag]:
    """Yield the text and the tags of raw HTML, without comments, scripts and styles."""
    at = line = 0
    while (found := _MARKUP.search(source, at)) is not None:
        if found.start() > at:
            yield Text(html.unescape(source[at : found.start()]))
        line += source.count("\n", at, found.start())
        at = found.start()
        if found["tag"] is not None:
            tag = _tag(found, line)
            yield tag
            if tag.name in INVISIBLE and not (tag.ends or tag.closed):
                line += source.count("\n", at, found.end())
                at = found.end()
                found = _CONTENT_ENDS[tag.name].search(source, at) or found
        line += source.count("\n", at, found.end())
        at = found.end()
    if at < len(source):
        yield Text(html.unescape(source[at:]))


def _tag(found: re.Match[str], line: int) -> Tag:
    name, rest = found["tag"].lower(), found["rest"].strip()
    if found["end"] or rest in ("", "/"):
        return Tag(name, line, bool(found["end"]), rest == "/")
    parser = _Attributes()
    parser.feed(found[0])
    return Tag(name, line, closed=_CLOSED.search(rest) is not None, attributes=parser.found)


class _Attributes(HTMLParser):
    """Parse the attributes of a single start tag. The first of several equal names counts."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            self.found.setdefault(name, value or "")
