# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse XML of the CI server safely: without document types, so without entities and bombs.

Server fact [ci-14]: the header of a configuration declares XML 1.1, which Python's parser rejects,
and which allows references to control characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

_DECLARATION = re.compile(r"\A\ufeff?\s*<\?xml\s[^>]*\?>")
_REFERENCE = re.compile(r"&#(?:x([0-9A-Fa-f]{1,6})|([0-9]{1,7}));")
#: Private characters that stand for control characters, which XML 1.0 does not allow.
_KEPT_AT = 0xE000
_DEEPEST = 200
_KEPT = re.compile("[\ue000-\ue01f]")


class UnreadableXml(ValueError):
    """Raised for input that is not XML, or has a document type."""


@dataclass
class XmlElement:
    """An element with its children. `text` is without the text of the children."""

    name: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[XmlElement] = field(default_factory=list)
    text: str = ""

    def whole_text(self) -> str:
        return self.text + "".join(child.whole_text() for child in self.children)

    def iterate(
        self, parent: XmlElement | None = None
    ) -> Iterator[tuple[XmlElement, XmlElement | None]]:
        """Yield this element and all descendants with their parents."""
        yield self, parent
        for child in self.children:
            yield from child.iterate(self)


class _Builder:
    """Event handlers of the parser."""

    def __init__(self) -> None:
        self.root: XmlElement | None = None
        self._open: list[XmlElement] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        element = XmlElement(name, attributes)
        if len(self._open) >= _DEEPEST:
            raise UnreadableXml(f"it is nested more than {_DEEPEST} levels deep")
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)

    def end(self, name: str) -> None:
        self._open.pop()

    def data(self, text: str) -> None:
        self._open[-1].text += text


def parse(text: str) -> XmlElement:
    """Return the root element. Raises `UnreadableXml` for other input, and for a document type."""
    builder, parser = _Builder(), expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = _refuse
    try:
        parser.Parse(_REFERENCE.sub(_keep, without_declaration(text)), True)
    except expat.ExpatError as error:
        raise UnreadableXml(f"it is not well-formed: {error}") from None
    if builder.root is None:
        raise UnreadableXml("it has no root element")
    return builder.root


def without_declaration(text: str) -> str:
    """Return the document without the header with version and encoding."""
    return _DECLARATION.sub("", text, count=1)


def _refuse(*_declared: object) -> None:
    raise UnreadableXml("it has a document type declaration, which is not supported")


def _keep(reference: re.Match[str]) -> str:
    """Return a reference to a control character as a private character; other
    references unchanged.
    """
    code = int(reference[1], 16) if reference[1] else int(reference[2])
    return chr(_KEPT_AT + code) if code < 0x20 and code not in (9, 10, 13) else reference[0]


def shown(element: XmlElement, indent: str = "") -> str:
    """Return an element as lines, with sorted attributes."""
    attributes = "".join(
        f' {name}="{_escaped(value)}"' for name, value in sorted(element.attributes.items())
    )
    head, text = f"{indent}<{element.name}{attributes}", _escaped(element.text)
    if not element.children:
        return f"{head}/>\n" if text == "" else f"{head}>{text}</{element.name}>\n"
    inner = "".join(shown(child, f"{indent}  ") for child in element.children)
    content = f"{indent}  {text}\n" if text else ""
    return f"{head}>\n{content}{inner}{indent}</{element.name}>\n"


def written(element: XmlElement) -> str:
    """Serialize an element without changes, except for blanks between elements."""
    head, text = _parts_written(element)
    inner = "".join(map(written, element.children))
    return f"{head}>{text}{inner}</{element.name}>"


def written_in_lines(element: XmlElement, indent: str = "") -> str:
    """Serialize an element with a line per element, unless there is text between them."""
    head, text = _parts_written(element)
    if text or not element.children:
        inner = "".join(map(written, element.children))
        return f"{indent}{head}>{text}{inner}</{element.name}>\n"
    below = "".join(written_in_lines(child, f"{indent}  ") for child in element.children)
    return f"{indent}{head}>\n{below}{indent}</{element.name}>\n"


def _parts_written(element: XmlElement) -> tuple[str, str]:
    """Return the start tag of an element, and its own text."""
    attributes = "".join(
        f' {name}="{_line_breaks_kept(value)}"' for name, value in element.attributes.items()
    )
    content = "" if element.children and not element.text.strip() else element.text
    return f"<{element.name}{attributes}", _escaped(content).replace("\r", "&#xd;")


def _line_breaks_kept(value: str) -> str:
    """Escape line breaks in an attribute, which a parser would turn into blanks."""
    text = _escaped(value).replace("\t", "&#x9;")
    return text.replace("\n", "&#xa;").replace("\r", "&#xd;")


def _escaped(text: str) -> str:
    for character, reference in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(character, reference)
    return _KEPT.sub(lambda found: f"&#x{ord(found[0]) - _KEPT_AT:x};", text)
