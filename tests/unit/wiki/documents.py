# SPDX-License-Identifier: GPL-3.0-or-later
"""Generate pages: trees of `(name, attributes, children)`, server rewrites, and edits.

This file does not depend on how the collection parses or compares storage format.
"""

from __future__ import annotations

import html
import random
from itertools import pairwise
from typing import Any, TypeAlias

from hypothesis import strategies as st

Tree: TypeAlias = tuple[str, dict[str, str], list[Any]]

SPACE = "REL"
# Samples instead of free text: a document needs many strings, and each free character costs a draw.
_TEXT = st.sampled_from(
    (
        *("a", "Release", " ", "a b", " a", "a ", "R&D", "a < b > c", "\u2013é\u00a0ß", "\u00a0"),
        *("it's", '"x"', "]]>", "a\nb", "&amp;", "x  y", "\n", "\u2028", "\U0001d11e"),
    )
)
_VALUE = st.sampled_from(["", "a", "A b", "R&D", "<x>", "it's", '"x"', "é\u2013", "\u00a0", " a "])
_CODE = st.sampled_from(
    ["", "a", "a ]]> b", "]]>", " ", "\n a\n\tb ", "if a < b && c:", "]]", "x]]]>>", "&nbsp;"]
)
_BLOCKS = ("p", "h1", "h2", "ul", "ol", "table", "pre", "ac:task-list", "ac:layout")


def _element(name: str, children: Any, attributes: Any = None) -> st.SearchStrategy[Tree]:
    given = st.just({}) if attributes is None else attributes
    return st.tuples(st.just(name), given, children)


_ATTRIBUTES: st.SearchStrategy[dict[str, str]] = st.just({}) | st.builds(
    dict.fromkeys,
    st.sampled_from([["class"], ["title", "class"], ["data-x"], ["style", "href", "id"]]),
    _VALUE,
)
_NOTHING: st.SearchStrategy[list[Any]] = st.just([])
_PAGE = _element(
    "ri:page",
    _NOTHING,
    st.sampled_from(
        [
            {"ri:content-title": "Über uns & so"},
            *(
                {"ri:content-title": "a", "ri:space-key": key, "ri:anchor": ""}
                for key in (SPACE, "OTHER", "rel")
            ),
        ]
    ),
)
_LINK: st.SearchStrategy[Tree] = st.builds(
    lambda page, text: ("ac:link", {}, [page, ("ac:plain-text-link-body", {}, [text])]),
    _PAGE,
    _TEXT,
)


def _parameters(names: list[str]) -> st.SearchStrategy[list[Tree]]:
    given = st.sampled_from([names[at:] for at in range(len(names) + 1)])
    return st.builds(
        lambda chosen, value: [
            ("ac:parameter", {"ac:name": name}, [f"{value}{name}"]) for name in chosen
        ],
        given,
        _TEXT,
    )


_STATUS = st.builds(
    lambda parameters: ("ac:structured-macro", {"ac:name": "status"}, parameters),
    _parameters(["colour", "title"]),
)
_IMAGE: st.SearchStrategy[Tree] = st.builds(
    lambda attributes, source: ("ac:image", attributes, [source]),
    st.sampled_from([{}, {"ac:width": "10"}, {"ac:alt": "R&D", "ac:align": "center"}]),
    _element(
        "ri:attachment", _NOTHING, st.sampled_from([{"ri:filename": "a.png"}, {"ri:filename": "ä"}])
    )
    | _element("ri:url", _NOTHING, st.just({"ri:value": "https://x.example/?a=1&b=2"})),
)
_INLINE = st.recursive(
    _TEXT | _element("br", _NOTHING) | _LINK | _STATUS | _IMAGE,
    lambda inner: st.one_of(
        *(_element(name, st.lists(inner, max_size=3), _ATTRIBUTES) for name in ("b", "em", "a"))
    ),
    max_leaves=4,
)
_INLINES = st.lists(_INLINE, max_size=4)
_CODE_MACRO = st.builds(
    lambda parameters, code, own: (
        "ac:structured-macro",
        {"ac:name": "code", **own},
        [*parameters, ("ac:plain-text-body", {}, [code] if code else [])],
    ),
    _parameters(["language", "theme", "title"]),
    _CODE,
    st.sampled_from([{}, {"ac:schema-version": "1"}, {"ac:macro-id": "mine"}]),
)


def _blocks(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    """Return blocks that contain other blocks, or text."""
    content = _INLINES | st.lists(inner, min_size=1, max_size=2)
    cell = _element("td", content, _ATTRIBUTES) | _element("th", _INLINES)
    row = _element("tr", st.lists(cell, min_size=1, max_size=2))
    body: st.SearchStrategy[Tree] = st.builds(
        lambda blocks: ("ac:rich-text-body", {}, blocks), st.lists(inner, max_size=2)
    )
    task: st.SearchStrategy[Tree] = st.builds(
        lambda status, text: (
            "ac:task",
            {},
            [
                ("ac:task-id", {}, ["1"]),
                ("ac:task-status", {}, [status]),
                ("ac:task-body", {}, text),
            ],
        ),
        st.sampled_from(["complete", "incomplete"]),
        _INLINES,
    )
    return st.one_of(
        _element("ul", st.lists(_element("li", content), min_size=1, max_size=3)),
        _element("table", st.lists(row, min_size=1, max_size=2), _ATTRIBUTES),
        st.builds(
            lambda parameters, inside: (
                "ac:structured-macro",
                {"ac:name": "panel"},
                [*parameters, inside],
            ),
            _parameters(["title", "bgColor"]),
            body,
        ),
        _element("ac:task-list", st.lists(task, min_size=1, max_size=2)),
    )


_SIMPLE = st.one_of(
    *(_element(name, _INLINES, _ATTRIBUTES) for name in ("p", "h1", "h2")),
    _element("pre", st.lists(_CODE.filter(bool), max_size=1)),
    _CODE_MACRO,
)
_NESTED: st.SearchStrategy[Tree] = st.recursive(_SIMPLE, _blocks, max_leaves=5)
_CELL = _element("ac:layout-cell", st.lists(_NESTED, max_size=2))
_SECTION = _element(
    "ac:layout-section",
    st.lists(_CELL, min_size=1, max_size=2),
    st.sampled_from([{"ac:type": "single"}, {"ac:type": "two_equal"}]),
)
_LAYOUT = _element("ac:layout", st.lists(_SECTION, min_size=1, max_size=2))
_ITEMS = ("td", "th", "li", "ac:task-body")
#: Bodies of pages, as lists of blocks.
BODIES = st.lists(_NESTED, min_size=1, max_size=4) | st.lists(_LAYOUT, min_size=1, max_size=1)


# -- writing -------------------------------------------------------------------------------------

_FLOWS = ("", "ac:rich-text-body", "ac:layout-cell")
_STRUCTURES = (
    *("ul", "table", "tbody", "tr", "ac:task-list", "ac:task", "ac:structured-macro"),
    *("ac:layout", "ac:layout-section", "ac:image"),
)
_PLAIN = ("ac:plain-text-body", "ac:plain-text-link-body")


class Writer:
    """Serialize a tree; `chance` selects among equivalent notations, without it the notation is
    always the same.
    """

    def __init__(self, chance: random.Random | None = None) -> None:
        self.chance = chance

    def _maybe(self) -> bool:
        return self.chance is not None and self.chance.random() < 0.5

    def body(self, blocks: list[Any]) -> str:
        inner = self._blank().join(self.node(block) for block in blocks)
        return f"{self._blank()}{inner}{self._blank()}"

    def _blank(self) -> str:
        if self.chance is None or not self._maybe():
            return ""
        return self.chance.choice(["\n", "  ", "\n\t", "\r\n"])

    def node(self, node: Any) -> str:
        if isinstance(node, str):
            return self.text(node)
        name, attributes, children = node
        pairs = list(attributes.items())
        if self.chance is not None:
            self.chance.shuffle(pairs)
        tag = name + "".join(f" {key}={self.value(value)}" for key, value in pairs)
        if name in _PLAIN:
            content = self.cdata("".join(children)) if children else ""
        else:
            join = self._blank if name in _STRUCTURES or name in _FLOWS else str
            content = "".join(f"{self.node(child)}{join()}" for child in children)
        if content:
            return f"<{tag}>{content}</{name}>"
        return f"<{tag}></{name}>" if self._maybe() else f"<{tag}{' ' if self._maybe() else ''}/>"

    def text(self, text: str) -> str:
        return "".join(self.character(character) for character in text)

    def character(self, character: str) -> str:
        named = {"\u00a0": "&nbsp;", "é": "&eacute;", "\u2013": "&ndash;", "ß": "&#223;"}
        if character in named and self._maybe():
            return named[character]
        return html.escape(character, quote=self._maybe())

    def value(self, value: str) -> str:
        if "'" not in value and self._maybe():
            return f"'{html.escape(value, quote=False)}'"
        return f'"{html.escape(value)}"'

    def cdata(self, text: str) -> str:
        """Split the string at random, and always at `]]>`, which would close the section."""
        cuts = [0, *(at + 2 for at in range(len(text)) if text.startswith("]]>", at)), len(text)]
        if self._maybe() and self.chance is not None:
            cuts = sorted({*cuts, self.chance.randrange(len(text) + 1)})
        parts = [text[start:end] for start, end in pairwise(cuts)]
        return "".join(f"<![CDATA[{part}]]>" for part in parts)


def plain(blocks: list[Any]) -> str:
    """Return the body in a fixed notation."""
    return Writer().body(blocks)


# -- what a server does on save --------------------------------------------------------------------


def saved(blocks: list[Any], chance: random.Random) -> str:
    """Return a body after a save, with all or some of the known rewrites by servers."""
    return Writer(chance).body([_rewritten(block, chance) for block in blocks])


def _rewritten(node: Any, chance: random.Random) -> Any:
    if isinstance(node, str):
        return node
    name, attributes, children = node
    has_text = name in _ITEMS and _is_text(children) and chance.random() < 0.5
    children = [_rewritten(child, chance) for child in children]
    attributes = {**({"ac:layout": "center"} if name == "ac:image" else {}), **attributes}
    if name == "ac:structured-macro":
        attributes.setdefault("ac:macro-id", f"id-{chance.random()}")
        attributes.setdefault("ac:schema-version", "1")
        parameters = [child for child in children if child[0] == "ac:parameter"]
        others = [child for child in children if child[0] != "ac:parameter"]
        chance.shuffle(parameters)
        children = [*parameters, *others]
    if name == "ri:page" and attributes.get("ri:space-key") == SPACE:
        del attributes["ri:space-key"]
    if name in _BLOCKS or name == "ac:structured-macro":
        key = chance.choice(["local-id", "ac:local-id", "data-layout"])
        attributes[key] = str(chance.random())
    if name in ("ri:page", "ri:attachment"):
        attributes["ri:version-at-save"] = str(chance.randrange(9))
    if name == "ac:task":
        children.insert(1, ("ac:task-uuid", {}, [str(chance.random())]))
    if name == "table" and chance.random() < 0.5:
        children = [("tbody", {}, children)]
    if name in ("p", "td", "li", "b", "em"):
        children = [_commented(child, chance) for child in children]
    return (name, attributes, [("p", {}, children)] if has_text else children)


def _is_text(children: list[Any]) -> bool:
    """Return whether children are text and inline elements, without blanks at the edges."""
    elements = [child for child in children if not isinstance(child, str)]
    macros = [one for one in elements if one[0] == "ac:structured-macro"]
    if any(one[0] in _BLOCKS for one in elements) or any(
        one[1]["ac:name"] != "status" for one in macros
    ):
        return False
    edges = [child for child in (children[:1] + children[-1:]) if isinstance(child, str)]
    return bool(children) and all(text.strip(" \t\r\n") for text in edges)


def _commented(child: Any, chance: random.Random) -> Any:
    """Return text with an inline comment of a reader."""
    if isinstance(child, str) and chance.random() < 0.2:
        return ("ac:inline-comment-marker", {"ac:ref": str(chance.random())}, [child])
    return child


# -- edits -----------------------------------------------------------------------------------------


def edited(blocks: list[Any], chance: random.Random) -> list[Any]:
    """Return the body after a small edit by its author."""
    root: Tree = ("", {}, blocks)
    places = list(_places(root, ()))
    path = chance.choice(places)
    changed = _at(root, path, chance)
    return list(changed[2])


def _places(node: Any, path: tuple[int, ...]) -> Any:
    if path:
        yield path
    if not isinstance(node, str):
        for index, child in enumerate(node[2]):
            yield from _places(child, (*path, index))


def _at(node: Tree, path: tuple[int, ...], chance: random.Random) -> Tree:
    name, attributes, children = node
    index = path[0]
    child = children[index]
    if len(path) > 1:
        return (name, attributes, _put(children, index, [_at(child, path[1:], chance)]))
    if chance.random() < 0.3:
        return (name, attributes, _put(children, index, chance.choice([[], [child, child]])))
    new = _text_edit(child, chance) if isinstance(child, str) else _tag_edit(child, chance)
    return (name, attributes, _put(children, index, [new]))


def _put(children: list[Any], index: int, new: list[Any]) -> list[Any]:
    return [*children[:index], *new, *children[index + 1 :]]


def _text_edit(text: str, chance: random.Random) -> str:
    at = chance.randrange(len(text) + 1)
    choices = [f"{text[:at]} {text[at:]}", f"{text[:at]}x{text[at:]}", text.swapcase()]
    return chance.choice([choice for choice in choices if choice != text])


def _tag_edit(node: Tree, chance: random.Random) -> Tree:
    name, attributes, children = node
    own = [key for key in attributes if (key, attributes[key]) != ("ri:space-key", SPACE)]
    own = [key for key in own if key != "ac:schema-version"]
    key = chance.choice([*own, "class"])
    left_to_the_server = key == "ac:macro-id" or key.startswith("data-")
    if key in attributes and chance.random() < 0.4 and not left_to_the_server:
        return (name, {k: v for k, v in attributes.items() if k != key}, children)
    return (name, {**attributes, key: f"{attributes.get(key, '')}y"}, children)


def as_seen(blocks: list[Any]) -> list[Any]:
    """Return the normalized body that a real edit must change."""
    seen = _as_seen(blocks)
    while seen and _is_nothing(seen[-1]):
        seen.pop()
    return seen


def _is_nothing(node: Any) -> bool:
    """Return whether a node is an empty paragraph."""
    return (
        not isinstance(node, str)
        and node[0] == "p"
        and not node[2]
        and not set(node[1]) - {"data-x"}
    )


def _as_seen(nodes: list[Any]) -> list[Any]:
    """Return normalized nodes.

    Adjacent strings are joined, parameters are sorted by name. Empty strings, and blanks at the
    edges of elements that contain blocks, are removed. So are members that an editor may have added.
    """
    seen: list[Any] = []
    for node in nodes:
        if isinstance(node, str):
            if seen and isinstance(seen[-1], str):
                seen[-1] += node
            else:
                seen.append(node)
            continue
        name, attributes, children = node
        inner = _as_seen(children)
        if name in _ITEMS:
            inner = [one for at, one in enumerate(inner) if not _blank_edge(inner, at)]
            inner = [] if len(inner) == 1 and _is_nothing(inner[0]) else inner
        if name == "ac:image":
            attributes = {key: attributes[key] for key in attributes if key == "ac:alt"}
        if name == "ac:structured-macro":
            inner.sort(key=lambda one: (one[0] != "ac:parameter", one[1].get("ac:name", "")))
        seen.append((name, attributes, inner))
    return seen


def _blank_edge(nodes: list[Any], at: int) -> bool:
    one = nodes[at]
    return at in (0, len(nodes) - 1) and isinstance(one, str) and not one.strip(" \t\r\n")
