# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse and serialize storage format: XHTML with elements of the wiki.

Server fact [wiki-3]: the error for a malformed body contains row and column.
"""

from __future__ import annotations

import html.entities
import re
from typing import TypeAlias

from lxml import etree

Element: TypeAlias = "etree._Element"

_NAMESPACES = {
    "ac": "http://atlassian.com/content",
    "ri": "http://atlassian.com/resource/identifier",
    "at": "http://atlassian.com/template",
}
_PREFIXES = {
    **{uri: prefix for prefix, uri in _NAMESPACES.items()},
    "http://www.w3.org/XML/1998/namespace": "xml",
    "http://www.w3.org/1999/xhtml": "",
}
_ROOT = "xml"
_OPENING = "<{}{}>\n".format(
    _ROOT, "".join(f' xmlns:{prefix}="{uri}"' for prefix, uri in _NAMESPACES.items())
)
_XML_ENTITIES = ("amp", "lt", "gt", "quot", "apos")
_OPAQUE_OR_ENTITY = re.compile(
    r"<!\[CDATA\[.*?\]\]>|<!--.*?-->|&([A-Za-z][A-Za-z0-9]*);", re.DOTALL
)
_MISMATCH = re.compile(r"Opening and ending tag mismatch: (\S+) line \d+ and (\S+?),? line")
_PLAIN_BODIES = ("ac:plain-text-body", "ac:plain-text-link-body")


class StorageError(Exception):
    """Error for a malformed body. The string is the error message of the server."""

    def __init__(self, reason: str, row: int, column: int) -> None:
        position = f"at [row,col {{unknown-source}}]: [{row},{column}]"
        super().__init__(f"Error parsing xhtml: {reason}\n {position}")


def qualified(name: str) -> str:
    """Convert a name such as `ac:parameter` to lxml's notation."""
    prefix, colon, local = name.rpartition(":")
    return f"{{{_NAMESPACES[prefix]}}}{local}" if colon else name


def name_of(element: Element) -> str:
    """Return the name of an element, such as `ac:parameter`. Empty for comments and the like."""
    return _prefixed(element.tag) if isinstance(element.tag, str) else ""


def parse(body: str) -> Element:
    """Parse a body below an added root element. Raises `StorageError` if it is malformed."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)
    text = f"{_OPENING}{_decode_entities(body)}\n</{_ROOT}>"
    try:
        root = etree.fromstring(text.encode("utf-8"), parser)
    except etree.XMLSyntaxError as error:
        row, column = error.position
        raise StorageError(_reason(str(error.msg)), max(row - 1, 1), max(column, 1)) from None
    for element in root.iter(etree.Element):
        for name in (element.tag, *element.attrib):
            if etree.QName(name).namespace not in (*_PREFIXES, None):
                raise StorageError(f'Undeclared namespace of "{name!s}"', 1, 1)
    return root


def _decode_entities(body: str) -> str:
    """Replace named entities with characters, except in CDATA sections and comments."""

    def character(match: re.Match[str]) -> str:
        name = match[1]
        if name is None or name in _XML_ENTITIES:
            return match[0]
        if name not in html.entities.name2codepoint:
            before = body[: match.start()]
            row, column = before.count("\n") + 1, match.start() - before.rfind("\n")
            raise StorageError(f'Undeclared general entity "{name}"', row, column)
        return chr(html.entities.name2codepoint[name])

    return _OPAQUE_OR_ENTITY.sub(character, body)


def _reason(message: str) -> str:
    mismatch = _MISMATCH.match(message)
    if mismatch is not None:
        return f"Unexpected close tag </{mismatch[2]}>; expected </{mismatch[1]}>."
    return re.sub(r", line \d+, column \d+.*", "", message).strip() + "."


def serialize(root: Element) -> str:
    """Serialize the content of a root element.

    Attributes are sorted by name. Empty elements are written like `<br />`, plain-text bodies as
    CDATA, and entities as characters.
    """
    return _text(root.text) + "".join(_write(child) for child in root)


def _write(node: Element) -> str:
    tail = _text(node.tail)
    if isinstance(node, etree._Comment):
        return f"<!--{node.text}-->{tail}"
    if not isinstance(node.tag, str):
        return etree.tostring(node, encoding="unicode", with_tail=False) + tail
    name = _prefixed(node.tag)
    opening = name + "".join(
        f' {key}="{_attribute(value)}"'
        for key, value in sorted((_prefixed(str(key)), str(value)) for key, value in node.items())
    )
    content = _cdata(node.text or "") if name in _PLAIN_BODIES else _text(node.text)
    content += "".join(_write(child) for child in node)
    return (f"<{opening}>{content}</{name}>" if content else f"<{opening} />") + tail


def _prefixed(name: str) -> str:
    parts = etree.QName(name)
    prefix = "" if parts.namespace is None else _PREFIXES[parts.namespace]
    return f"{prefix}:{parts.localname}" if prefix else parts.localname


def _text(text: str | None) -> str:
    escaped = (text or "").replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("\r", "&#13;")


def _attribute(value: str) -> str:
    escaped = _text(value).replace('"', "&quot;")
    return escaped.replace("\n", "&#10;").replace("\t", "&#9;")


def _cdata(text: str) -> str:
    """Return a CDATA section. `]]>` is split differently than most clients split it."""
    return "<![CDATA[" + text.replace("]]>", "]]]><![CDATA[]>") + "]]>"
