# SPDX-License-Identifier: GPL-3.0-or-later
"""Files in storage format: whether a file is one, its title, and its attachments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .canonical import BLOCKS, HEADINGS
from .parser import Malformed, StorageElement, parse

_PREFIXES = ("ac:", "ri:", "at:")
_ELEMENTS = BLOCKS | frozenset(
    (
        *("a", "b", "big", "br", "center", "code", "del", "em", "i", "img", "ins", "kbd", "mark"),
        *("s", "samp", "small", "span", "strong", "sub", "sup", "time", "tt", "u", "var"),
    )
)
#: A comment, or the start of a tag. The name is empty if there is none, as in UTF-16.
_TAG = re.compile(r"<!--.*?(?:-->|\Z)|<(?![?!])(?P<name>[A-Za-z_]?[^\s<>/]*)", re.DOTALL)


@dataclass(frozen=True)
class TitleHeading:
    """The heading of a body that can be the title of the page. `rest`: the body without it."""

    text: str
    rest: str


def may_be_storage_format(source: str) -> bool:
    """Return whether the first tag is an element of storage format, or there is only text."""
    tags = (found["name"] for found in _TAG.finditer(source) if not found[0].startswith("<!--"))
    first = next(tags, None)
    return first is None or _is_known(first)


def is_storage_format(source: str) -> bool:
    """Return whether all root elements are elements of storage format.

    The first tag decides if the source is not well-formed.
    """
    if not may_be_storage_format(source):
        return False
    try:
        return all(_is_known(element.name) for element in parse(source).elements)
    except Malformed:
        return True


def title_heading(body: str) -> TitleHeading | None:
    """Return the first heading of level 1, else the first heading."""
    found = [(one, _text(one)) for one in parse(body).walk() if one.name in HEADINGS]
    found = [(heading, text) for heading, text in found if text]
    if not found:
        return None
    heading, text = next((pair for pair in found if pair[0].name == HEADINGS[0]), found[0])
    source = body.encode()
    images = b"".join(source[image.begin : image.end] for image in _images(heading))
    kept = b"<p>" + images + b"</p>" if images else b""
    return TitleHeading(text, (source[: heading.begin] + kept + source[heading.end :]).decode())


def named_attachments(body: str) -> list[tuple[str, StorageElement]]:
    """Return the attachments of the same page that a body refers to, with their elements."""
    return [
        (element.attributes.get("ri:filename", ""), element)
        for element in parse(body).walk()
        if element.name == "ri:attachment" and not element.elements
    ]


def _is_known(name: str) -> bool:
    return name in _ELEMENTS or name.startswith(_PREFIXES)


def _text(heading: StorageElement) -> str:
    words = [
        child
        for part in heading.walk()
        if part.name != "ac:parameter"
        for child in part.children
        if isinstance(child, str)
    ]
    return " ".join("".join(words).split())


def _images(element: StorageElement) -> Iterator[StorageElement]:
    """Yield the images below an element, with the links around them."""
    for child in element.elements:
        has_image = any(one.name == "ac:image" for one in child.walk())
        if child.name == "ac:image" or (has_image and child.name in ("a", "ac:link")):
            yield child
        else:
            yield from _images(child)
