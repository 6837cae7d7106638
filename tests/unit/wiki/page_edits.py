# SPDX-License-Identifier: GPL-3.0-or-later
"""Edit pages like people in the editor of the wiki, at random."""

from __future__ import annotations

import copy
from random import Random

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.formats.markdown_writer import (
    source_of,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.formats.parser import (
    StorageElement,
    parse,
)

_NEW = (
    "<p>A new <strong>paragraph</strong> with * and _ and <code>code</code>.</p>",
    "<h2>New heading</h2>",
    "<ul><li><p>new</p></li><li><p>list</p></li></ul>",
    "<ol><li><p>first</p><ul><li><p>inner</p></li></ul></li></ol>",
    "<table><tbody><tr><th><p>a</p></th></tr><tr><td><p>b</p></td></tr></tbody></table>",
    (
        '<ac:structured-macro ac:name="code"><ac:parameter ac:name="language">py</ac:parameter>'
        "<ac:plain-text-body><![CDATA[x = 1]]></ac:plain-text-body></ac:structured-macro>"
    ),
    '<ac:structured-macro ac:name="children" ac:schema-version="2"/>',
    "<blockquote><p>quoted</p></blockquote>",
)
_TEXTS = ("p", "li", "td", "th", "h1", "h2", "h3", "h4", "h5", "h6")


def edited(page: str, seed: int) -> str:
    """Return a page after one to three edits."""
    chance = Random(seed)
    root = copy.deepcopy(parse(page))
    for _ in range(chance.randint(1, 3)):
        chance.choice([_type, _type, _type, _remove, _insert, _swap, _item, _remove_item])(
            root, chance
        )
    return "".join(
        source_of(node) if isinstance(node, StorageElement) else "" for node in root.children
    )


def _type(root: StorageElement, chance: Random) -> None:
    """Type a word at the end of a text."""
    texts = [one for one in root.walk() if one.name in _TEXTS]
    if texts:
        one = chance.choice(texts)
        nodes = [at for at, node in enumerate(one.children) if isinstance(node, str)]
        word = chance.choice([" typed", " a*b", ". More [text]", " <x>"])
        if nodes:
            at = chance.choice(nodes)
            one.children[at] = f"{str(one.children[at]).rstrip()}{word}"
        else:
            one.children.insert(0, word.strip())


def _remove(root: StorageElement, chance: Random) -> None:
    if len(root.children) > 1:
        del root.children[chance.randrange(len(root.children))]


def _insert(root: StorageElement, chance: Random) -> None:
    new = copy.deepcopy(parse(chance.choice(_NEW)).children)
    at = chance.randint(0, len(root.children))
    root.children[at:at] = new


def _swap(root: StorageElement, chance: Random) -> None:
    if len(root.children) > 1:
        at = chance.randrange(len(root.children) - 1)
        children = root.children
        children[at], children[at + 1] = children[at + 1], children[at]


def _lists(root: StorageElement) -> list[StorageElement]:
    return [one for one in root.walk() if one.name in ("ul", "ol", "tbody")]


def _item(root: StorageElement, chance: Random) -> None:
    """Add an item or a row, as a copy with another text."""
    lists = _lists(root)
    if lists:
        one = chance.choice(lists)
        if one.children:
            at = chance.randrange(len(one.children))
            new = copy.deepcopy(one.children[at])
            one.children.insert(at + 1, new)
            if isinstance(new, StorageElement):
                _type(new, chance)


def _remove_item(root: StorageElement, chance: Random) -> None:
    lists = [one for one in _lists(root) if len(one.children) > 2]
    if lists:
        children = chance.choice(lists).children
        del children[chance.randrange(1, len(children))]
