# SPDX-License-Identifier: GPL-3.0-or-later
"""Rewrite page bodies on save, like the server [wiki-5].

The result depends only on the body and the space, because ids are derived from the content.
Rewriting a rewritten body changes nothing.

- Elements get `ac:macro-id`, `ac:schema-version`, `local-id`, `ac:local-id` and
  `ri:version-at-save`. Tasks get an `ac:task-uuid`.
- A `ri:space-key` that refers to the page's own space is removed.
- Tables get a `tbody`.
- Parameters are sorted by name.
- Whitespace between blocks is removed.
- `storage.serialize()` sorts attributes, closes empty elements like `<br />`, replaces named
  entities with characters, and splits CDATA sections differently than clients.
"""

from __future__ import annotations

import uuid

from lxml import etree

from sandbox.wiki.storage import Element, name_of, parse, qualified, serialize

_IDS = uuid.UUID("6f0d7f0e-2f5b-5d0c-9a53-3b6a0c1b7c11")
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_BLOCKS = ("p", *_HEADINGS, "div", "table", "ul", "ol", "dl", "blockquote", "pre", "hr")
_BLOCKS_OF_WIKI = ("ac:structured-macro", "ac:layout", "ac:task-list")
# Elements without text, in which whitespace is insignificant.
_STRUCTURES = (
    *("table", "thead", "tbody", "tfoot", "tr", "colgroup", "ul", "ol", "dl"),
    *("ac:layout", "ac:layout-section", "ac:task-list", "ac:task"),
    *("ac:structured-macro", "ac:link", "ac:image"),
)
_BODIES = ("xml", "ac:rich-text-body", "ac:layout-cell")
_FLOWS = (*_BODIES, "div", "td", "th", "li", "blockquote", "ac:task-body")
_WITH_LOCAL_ID = ("p", *_HEADINGS, "table", "ul", "ol")
_WITH_AC_LOCAL_ID = ("ac:structured-macro", "ac:task-list", "ac:task")
_VERSIONED = ("ri:page", "ri:attachment")


def rewrite(body: str, space: str) -> str:
    """Return a body as the server stores it. Raises `StorageError` if it is malformed.

    :param space: key of the page's space
    """
    root = parse(body)
    _drop_whitespace(root)
    _insert_table_bodies(root)
    _drop_own_space(root, space)
    _number_macros(root)
    _number_tasks(root)
    _mark_links(root)
    _add_local_ids(root)
    _sort_parameters(root)
    return serialize(root)


class _Ids:
    """Generate unused ids that depend only on the content of elements."""

    def __init__(self, used: set[str]) -> None:
        self.used = used

    def fresh(self, element: Element) -> str:
        seed = f"{element.tag}:{''.join(map(str, element.itertext()))}"
        count = 0
        while (found := str(uuid.uuid5(_IDS, f"{seed}:{count}"))) in self.used:
            count += 1
        self.used.add(found)
        return found


def _elements(root: Element, *names: str) -> list[Element]:
    return [element for element in root.iter(etree.Element) if name_of(element) in names]


def _blank(text: str | None) -> bool:
    return text is not None and text.strip(" \t\r\n") == ""


def _drop_whitespace(root: Element) -> None:
    for element in root.iter(etree.Element):
        name = name_of(element)
        if name in _STRUCTURES:
            _drop_all_blanks(element)
        elif name in _FLOWS:
            _drop_blanks_at_blocks(element, wide=name in _BODIES)
    if len(root) > 0:
        root.text = (root.text or "").lstrip()
        root[-1].tail = (root[-1].tail or "").rstrip()
    else:
        root.text = (root.text or "").strip()


def _drop_all_blanks(element: Element) -> None:
    if _blank(element.text):
        element.text = None
    for child in element:
        if _blank(child.tail):
            child.tail = None


def _drop_blanks_at_blocks(element: Element, *, wide: bool) -> None:
    blocks = _BLOCKS + _BLOCKS_OF_WIKI if wide else _BLOCKS
    children = list(element)
    is_block = [name_of(child) in blocks for child in children]
    if children and is_block[0] and _blank(element.text):
        element.text = None
    for index, child in enumerate(children):
        next_is_block = index + 1 < len(children) and is_block[index + 1]
        if (is_block[index] or next_is_block) and _blank(child.tail):
            child.tail = None


def _insert_table_bodies(root: Element) -> None:
    for table in _elements(root, "table"):
        body: Element | None = None
        for child in list(table):
            if name_of(child) != "tr":
                body = None
                continue
            if body is None:
                body = etree.Element("tbody")
                child.addprevious(body)
            body.append(child)


def _drop_own_space(root: Element, space: str) -> None:
    key = qualified("ri:space-key")
    for page in _elements(root, "ri:page"):
        if page.get(key) == space:
            del page.attrib[key]


def _number_macros(root: Element) -> None:
    """Add macro ids. Existing ids are kept, except for the second of two equal ids."""
    key, version = qualified("ac:macro-id"), qualified("ac:schema-version")
    macros = _elements(root, "ac:structured-macro")
    ids = _Ids({str(macro.get(key)) for macro in macros})
    seen: set[str] = set()
    for macro in macros:
        current = macro.get(key)
        if current is None or current in seen:
            macro.set(key, ids.fresh(macro))
        seen.add(str(macro.get(key)))
        if macro.get(version) is None:
            macro.set(version, "1")


def _number_tasks(root: Element) -> None:
    ids = _Ids({str(element.text) for element in _elements(root, "ac:task-uuid")})
    for task in _elements(root, "ac:task"):
        names = [name_of(child) for child in task]
        if "ac:task-uuid" in names:
            continue
        mark = etree.Element(qualified("ac:task-uuid"))
        mark.text = ids.fresh(task)
        task.insert(names.index("ac:task-id") + 1 if "ac:task-id" in names else 0, mark)


def _mark_links(root: Element) -> None:
    key = qualified("ri:version-at-save")
    for target in _elements(root, *_VERSIONED):
        if target.get(key) is None:
            target.set(key, "1")


def _add_local_ids(root: Element) -> None:
    for key, names in (
        ("local-id", _WITH_LOCAL_ID),
        (qualified("ac:local-id"), _WITH_AC_LOCAL_ID),
    ):
        elements = _elements(root, *names)
        ids = _Ids({str(element.get(key)) for element in elements})
        for element in elements:
            if element.get(key) is None:
                element.set(key, ids.fresh(element))


def _sort_parameters(root: Element) -> None:
    """Move the parameters of macros to the front, sorted by name (stable)."""
    key = qualified("ac:name")
    for macro in _elements(root, "ac:structured-macro"):
        parameters = [child for child in macro if name_of(child) == "ac:parameter"]
        parameters.sort(key=lambda parameter: str(parameter.get(key) or ""))
        for index, parameter in enumerate(parameters):
            macro.insert(index, parameter)
