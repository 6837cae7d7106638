# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse and write XML of the CI server. Documents with a document type, which can expand entities
without end, are rejected.

Server fact [ci-14]: configurations declare XML 1.1, which Python's parser rejects. XML 1.1 allows
references to control characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import escape

from ..core.errors import invalid
from ..core.files import read_text

#: Placeholder for a secret in an exported configuration.
KEPT = "(kept by the server)"
_DECLARATION = re.compile(r"\A\ufeff?\s*<\?xml\s[^>]*\?>")
#: A reference to a character. In comments and CDATA sections it is plain text. An open section
#: reaches to the end of the text, so that many of them take linear time.
_REFERENCE = re.compile(
    r"<!--[\s\S]*?(?:-->|\Z)|<!\[CDATA\[[\s\S]*?(?:\]\]>|\Z)"
    r"|&#(?:x([0-9A-Fa-f]{1,6})|([0-9]{1,7}));"
)
#: Private-use characters that replace control characters, which XML 1.0 does not allow.
_PRIVATE_START = 0xE000
_DEEPEST = 200
_NOT_ASCII = re.compile("[^\\x00-\\x7f]")
#: A start tag, in which `>` may be a part of an attribute.
_TAG = re.compile(r"<(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>")
_PRIVATE = re.compile("[\ue000-\ue01f]")


class UnreadableXml(ValueError):
    """Raised for input that is not well-formed XML, or declares a document type."""


@dataclass
class XmlElement:
    """An element with its children. `text` excludes the text of the children."""

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


def parse(text: str) -> XmlElement:
    """Return the root element. Raises `UnreadableXml` for malformed XML and document types."""
    roots: list[XmlElement] = []
    open_ones: list[XmlElement] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        element = XmlElement(name, attributes)
        if len(open_ones) >= _DEEPEST:
            raise UnreadableXml(f"it is nested deeper than {_DEEPEST} levels")
        (open_ones[-1].children if open_ones else roots).append(element)
        open_ones.append(element)

    def end(_name: str) -> None:
        open_ones.pop()

    def data(part: str) -> None:
        open_ones[-1].text += part

    def reject_doctype(*_declared: object) -> None:
        raise UnreadableXml("it has a document type declaration, which is not supported")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = data, reject_doctype
    try:
        parser.Parse(_REFERENCE.sub(_to_private, without_declaration(text)), True)
    except expat.ExpatError as error:
        raise UnreadableXml(f"it is not well-formed: {error}") from None
    if not roots:
        raise UnreadableXml("it has no root element")
    return roots[0]


@dataclass(frozen=True)
class ElementSpan:
    """Place of an element in a document, as indexes of characters.

    :param start: start tag, up to `inner`
    :param inner: content, up to `close`
    :param close: end tag, up to `end`
    """

    start: int
    inner: int
    close: int
    end: int


def spans_of(text: str) -> list[ElementSpan]:
    """Return the place of each element that `parse` returns, in the order of `iterate`.

    :param text: document that `parse` has accepted
    """
    # a document of the same length without characters of several bytes, so that indexes are equal
    plain = _DECLARATION.sub(lambda head: " " * len(head[0]), text, count=1)
    plain = _REFERENCE.sub(
        lambda found: found[0] if _to_private(found) == found[0] else "x" * len(found[0]), plain
    ).replace("\ufeff", " ")
    plain = _NOT_ASCII.sub("x", plain)
    parser = expat.ParserCreate()
    starts: list[int] = []
    ends: dict[int, int] = {}
    open_ones: list[int] = []

    def begin(_name: str, _attributes: dict[str, str]) -> None:
        open_ones.append(len(starts))
        starts.append(parser.CurrentByteIndex)

    def finish(_name: str) -> None:
        ends[open_ones.pop()] = parser.CurrentByteIndex

    parser.StartElementHandler, parser.EndElementHandler = begin, finish
    parser.Parse(plain, True)
    found = []
    for number, start in enumerate(starts):
        tag = _TAG.match(plain, start)
        inner = tag.end() if tag else start
        is_empty = plain[inner - 2] == "/"
        close = inner if is_empty else ends[number]
        end = inner if is_empty else plain.index(">", close) + 1
        found.append(ElementSpan(start, inner, close, end))
    return found


def without_declaration(text: str) -> str:
    """Return the document without its XML declaration."""
    return _DECLARATION.sub("", text, count=1)


def _to_private(reference: re.Match[str]) -> str:
    """Replace a reference to a control character by a private-use character."""
    if reference.lastindex is None:
        return reference[0]
    code = int(reference[1], 16) if reference[1] else int(reference[2])
    return chr(_PRIVATE_START + code) if code < 0x20 and code not in (9, 10, 13) else reference[0]


def shown(element: XmlElement, indent: str = "") -> str:
    """Return an element as indented lines with sorted attributes, for a diff."""
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
    """Serialize an element without added line breaks."""
    head, text = _start_tag_and_text(element)
    inner = "".join(map(written, element.children))
    return f"{head}>{text}{inner}</{element.name}>"


def written_in_lines(element: XmlElement, indent: str = "") -> str:
    """Serialize an element with one line per element. Mixed content stays on a single line."""
    head, text = _start_tag_and_text(element)
    if text or not element.children:
        inner = "".join(map(written, element.children))
        return f"{indent}{head}>{text}{inner}</{element.name}>\n"
    below = "".join(written_in_lines(child, f"{indent}  ") for child in element.children)
    return f"{indent}{head}>\n{below}{indent}</{element.name}>\n"


def _start_tag_and_text(element: XmlElement) -> tuple[str, str]:
    """Return the start tag of an element without its `>`, and the escaped text."""
    attributes = ""
    for name, value in element.attributes.items():
        # parsers would turn line breaks and tabs into blanks
        text = _escaped(value).replace("\t", "&#x9;")
        text = text.replace("\n", "&#xa;").replace("\r", "&#xd;")
        attributes += f' {name}="{text}"'
    content = "" if element.children and not element.text.strip() else element.text
    return f"<{element.name}{attributes}", _escaped(content).replace("\r", "&#xd;")


def _escaped(text: str) -> str:
    """Escape a text or attribute, and restore the references to control characters."""
    escaped = escape(text, {'"': "&quot;"})
    return _PRIVATE.sub(lambda found: f"&#x{ord(found[0]) - _PRIVATE_START:x};", escaped)


def text_of(root: XmlElement, path: str) -> str:
    """Return the text of the element at `path`, for example `scm/url`; "" if it is missing."""
    found = child_of(root, path.partition("/")[0])
    rest = path.partition("/")[2]
    if found is None:
        return ""
    return text_of(found, rest) if rest else found.text.strip()


def put(root: XmlElement, path: str, text: str, classes: Mapping[str, str] | None = None) -> None:
    """Set the text of the element at `path`. Missing elements are added.

    :param classes: values of the attribute `class` for elements on the path, by name
    """
    name, _slash, rest = path.partition("/")
    found = added_child(root, name)
    if rest:
        found.attributes = {"class": (classes or {})[name]} if name in (classes or {}) else {}
        put(found, rest, text)
    else:
        found.text, found.children = text, []


def child_of(root: XmlElement, name: str) -> XmlElement | None:
    return next((child for child in root.children if child.name == name), None)


def added_child(root: XmlElement, name: str) -> XmlElement:
    """Return the child with this name, which is added if it is missing."""
    found = child_of(root, name)
    if found is None:
        found = XmlElement(name)
        root.children.append(found)
    return found


def wanted_configuration(
    noun: str, name: str, config: str | None, src: str | None
) -> XmlElement | None:
    """Return the parsed configuration from the option `config` or `src`; `None` without both.

    The element `name` is set. Raises `invalid` for a configuration that cannot be parsed or has
    another name.

    :param noun: kind of the object, for messages
    """
    if config is None and src is None:
        return None
    if config is not None and src is not None:
        raise invalid("config and src both set the configuration: set only one of them")
    option = "config" if src is None else "src"
    text = config if src is None else read_text(src, "the configuration in src")
    try:
        root = parse(str(text))
    except UnreadableXml as error:
        raise invalid(f"{option} is not the configuration of a {noun}: {error}") from None
    if text_of(root, "name") not in ("", name):
        raise invalid(f"{option} has the name '{text_of(root, 'name')}', but name is '{name}'")
    put(root, "name", name)
    return root
