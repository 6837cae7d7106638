# SPDX-License-Identifier: GPL-3.0-or-later
"""Get and set elements of an XML configuration; parse the options `config` and `src`."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.errors import invalid
from ..core.files import read_text
from . import xml_reader
from .xml_reader import XmlElement


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
    found = child_of(root, name)
    if found is None:
        found = XmlElement(name)
        root.children.append(found)
    if rest:
        found.attributes = {"class": (classes or {})[name]} if name in (classes or {}) else {}
        put(found, rest, text)
    else:
        found.text, found.children = text, []


def child_of(root: XmlElement, name: str) -> XmlElement | None:
    return next((child for child in root.children if child.name == name), None)


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
        root = xml_reader.parse(str(text))
    except xml_reader.UnreadableXml as error:
        raise invalid(f"{option} is not the configuration of a {noun}: {error}") from None
    if text_of(root, "name") not in ("", name):
        raise invalid(f"{option} has the name '{text_of(root, 'name')}', but name is '{name}'")
    put(root, "name", name)
    return root
