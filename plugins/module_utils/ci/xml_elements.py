# SPDX-License-Identifier: GPL-3.0-or-later
"""Read and set elements of a configuration by their names."""

from __future__ import annotations

from collections.abc import Mapping

from .xml_reader import XmlElement


def text_of(root: XmlElement, path: str) -> str:
    """Return the text of an element; "" if it is missing."""
    found = child_of(root, path.partition("/")[0])
    rest = path.partition("/")[2]
    if found is None:
        return ""
    return text_of(found, rest) if rest else found.text.strip()


def put(root: XmlElement, path: str, text: str, classes: Mapping[str, str] | None = None) -> None:
    """Set the text of an element, which is added if it is missing."""
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
