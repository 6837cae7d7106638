# SPDX-License-Identifier: GPL-3.0-or-later
"""Edit values in YAML files, and keep every other byte."""

from __future__ import annotations

import copy
import difflib
import random
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import yaml_edits

KEYS = ("name", "key")
FOLDER = """\
# the repositories of the product
---
x: &team [alice, 'bob']   # both
repositories:
  # libraries
  - &base
    key: libs   # short
    rclass: "local"
    description: >-
      Several
      lines
    includes: ['**/*', "a"]
    members: *team

  - <<: *base
    key: apps
    environments:
      # where
      - DEV  # dev
      - "PROD"
    settings: {a: 1, b: 'x'}
    secret: !vault |
      $ANSIBLE_VAULT;1.1;AES256
      6162
jobs: []
on: yes
"""


def change(text: str, *path: Any, to: Any) -> dict[str, Any]:
    """Return the values of a document with another value at a place; `...` removes it."""
    wanted: Any = copy.deepcopy(yaml_edits.load(text))
    inner = wanted
    for step in path[:-1]:
        inner = inner[step]
    if to is ...:
        del inner[path[-1]]
    elif path[-1] == "+":
        inner.append(to)
    else:
        inner[path[-1]] = to
    return dict(wanted)


REPOS = "repositories"
CHANGES: list[tuple[tuple[Any, ...], Any, list[str]]] = [
    ((REPOS, 1, "environments"), "1.0", ["-      - DEV  # dev", '-      - "PROD"', "+      '1.0'"]),
    # a key that the entry inherits is set in the entry
    ((REPOS, 1, "rclass"), "virtual", ["+    rclass: virtual"]),
    (
        (REPOS, 1, "settings", "a"),
        2,
        ["-    settings: {a: 1, b: 'x'}", "+    settings: {a: 2, b: 'x'}"],
    ),
    (
        (REPOS, 1, "settings", "c"),
        "d, e",
        ["-    settings: {a: 1, b: 'x'}", "+    settings: {a: 1, b: 'x', c: 'd, e'}"],
    ),
    ((REPOS, 1, "environments", 0), ..., ["-      - DEV  # dev"]),
    ((REPOS, 1, "environments", "+"), "TEST", ["+      - TEST"]),
    ((REPOS, 1, "environments"), ["DEV", "QA", "PROD"], ["+      - QA"]),
    ((REPOS, 1, "environments"), ["QA", "PROD"], ["-      - DEV  # dev", "+      - QA"]),
    (
        ("jobs", "+"),
        {"job": "a/b", "folder": True},
        ["-jobs: []", "+jobs:", "+  - job: a/b", "+    folder: true"],
    ),
    (("more",), [1], ["+more:", "+  - 1"]),
    (
        (REPOS, 1, "config"),
        "<a>\n  b\n</a>\n",
        ["+    config: |", "+      <a>", "+        b", "+      </a>"],
    ),
    (
        (REPOS, 1, "secret"),
        ...,
        ["-    secret: !vault |", "-      $ANSIBLE_VAULT;1.1;AES256", "-      6162"],
    ),
    (
        (REPOS, 1),
        ...,
        [
            "-  - <<: *base",
            "-    key: apps",
            "-    environments:",
            "-      # where",
            "-      - DEV  # dev",
            '-      - "PROD"',
            "-    settings: {a: 1, b: 'x'}",
            "-    secret: !vault |",
            "-      $ANSIBLE_VAULT;1.1;AES256",
            "-      6162",
        ],
    ),
]


@pytest.mark.parametrize(("path", "to", "lines"), CHANGES)
def test_only_lines_of_the_value_change(path: tuple[Any, ...], to: Any, lines: list[str]) -> None:
    wanted = change(FOLDER, *path, to=to)
    text = yaml_edits.edited(FOLDER, wanted, KEYS)
    assert yaml_edits.load(text) == wanted
    found = difflib.unified_diff(FOLDER.splitlines(), text.splitlines(), n=0, lineterm="")
    assert [line for line in found if line[:2] not in ("--", "++", "@@")] == lines


def test_other_users_of_an_anchor_keep_their_value() -> None:
    wanted = change(FOLDER, REPOS, 0, "rclass", to="remote")
    text = yaml_edits.edited(FOLDER, wanted, KEYS)
    assert "    key: apps\n" in text
    assert "    rclass: local\n" in text
    wanted = change(FOLDER, "x", to=["carol"])
    text = yaml_edits.edited(FOLDER, wanted, KEYS)
    assert "x: &team [carol]   # both\n" in text
    assert yaml_edits.load(text)[REPOS][0]["members"] == ["alice", "bob"]


def test_random_changes_give_the_wanted_values() -> None:
    chance = random.Random(7)
    values: list[Any] = [
        "a",
        "true",
        "1.0",
        "- x",
        "# y",
        "",
        "ü: z",
        3,
        True,
        None,
        ["p", "q"],
        [],
        {"k": ["v"]},
        "l1\nl2\n",
        " x\n\ny",
    ]
    for _number in range(80):
        wanted = copy.deepcopy(yaml_edits.load(FOLDER))
        for _change in range(chance.randint(1, 4)):
            _mutate(chance, wanted, values)
        if any(entry["key"] == "libs" for entry in wanted[REPOS] if "key" in entry):
            assert yaml_edits.load(yaml_edits.edited(FOLDER, wanted, KEYS)) == wanted
            continue
        with suppress(yaml_edits.EditError):  # entries use the anchor of the removed entry
            assert yaml_edits.load(yaml_edits.edited(FOLDER, wanted, KEYS)) == wanted


def _mutate(chance: random.Random, wanted: dict[str, Any], values: list[Any]) -> None:
    repositories = wanted[REPOS]
    if chance.random() < 0.2 and repositories:
        repositories.pop(chance.randrange(len(repositories)))
    elif chance.random() < 0.3 or not repositories:
        repositories.append({"key": f"new{chance.random()}", "n": chance.choice(values)})
    else:
        entry = chance.choice(repositories)
        entry[chance.choice([*entry, "extra"])] = copy.deepcopy(chance.choice(values))


FLOW = "g: [\n  {name: a, m: [x,\n     y]}, # ca\n  {name: b}, # cb\n  {name: d} # cd\n]\n"
JSON = '{\n  "g": [\n    {"name": "a", "d": "old", "m": ["x", "y"]},\n    {"name": "b"}\n  ]\n}\n'
BLOCK = "g:\n- name: a\n  m: # members\n    - x\n    - y # d\n  # e\n- name: b\n"
CRLF = BLOCK.replace("\n", "\r\n")
MIXED = BLOCK.replace("m:", "n: 1\n  m:").replace("\n", "\r\n").replace("1\r", "1")
KEEP = "g:\n- name: a\n  d: |+\n    one\n\n- name: b\n"
DASH = "g:\n-  # some - comment\n  name: a\n- name: b\n"
EDITS: list[tuple[str, Callable[[Any], Any], str, str]] = [
    # all members of a list go
    (
        BLOCK,
        lambda g: g[0].update(m=[]),
        "m: # members\n    - x\n    - y # d\n",
        "m: [] # members\n",
    ),
    (BLOCK, lambda g: g.clear(), BLOCK, "g: []\n"),
    # new lines end as the others
    (CRLF, lambda g: g[0]["m"].append("z"), "y # d\r\n", "y # d\r\n    - z\r\n"),
    (CRLF, lambda g: g[1].update(d="one\ntwo\n"), "b\r\n", "b\r\n  d: |\r\n    one\r\n    two\r\n"),
    # in a file with both line ends, lines that stay keep theirs
    (MIXED, lambda g: g[0]["m"].append("z"), "y # d\r\n", "y # d\r\n    - z\r\n"),
    # a JSON file stays one, with an object a line
    (JSON, lambda g: g[0].update(d="new"), '"old"', '"new"'),
    (JSON, lambda g: g[0].update(m=["y", "z"]), '["x", "y"]', '["y", "z"]'),
    (
        JSON,
        lambda g: g.append({"name": "c", "is": True}),
        '{"name": "b"}',
        '{"name": "b"},\n    {"name": "c", "is": true}',
    ),
    (JSON, lambda g: g.pop(), ',\n    {"name": "b"}', ""),
    # lists in brackets keep lines, comments and quotes
    (FLOW, lambda g: g.pop(1), "{name: b}, # cb\n  ", ""),
    (FLOW, lambda g: g.append({"name": "e"}), "{name: d}", "{name: d},\n  {name: e}"),
    (FLOW, lambda g: g.insert(0, {"name": "e"}), "{name: a", "{name: e},\n  {name: a"),
    ("g:\n- {name: a, d: 'old'}\n", lambda g: g[0].update(d="new"), "'old'", "'new'"),
    # dashes in comments
    (DASH, lambda g: g.pop(0), "-  # some - comment\n  name: a\n", ""),
    (DASH, lambda g: g.append({"name": "c"}), "- name: b\n", "- name: b\n- name: c\n"),
    # blank lines that are a part of a value
    (KEEP, lambda g: g[0].update(n="x"), "one\n\n", "one\n\n  n: x\n"),
    (BLOCK, lambda g: g[1].update(n="x\n\n"), "- name: b\n", "- name: b\n  n: |+\n    x\n\n"),
    (
        "g:\n- name: a\n  d: >-\n    one\n",
        lambda g: g[0].update(d="x\n\n"),
        ">-\n    one\n",
        "|+\n    x\n\n",
    ),
]


@pytest.mark.parametrize(("text", "change", "old", "new"), EDITS)
def test_layouts_stay(text: str, change: Callable[[Any], Any], old: str, new: str) -> None:
    wanted = copy.deepcopy(yaml_edits.load(text))
    change(wanted["g"])
    assert yaml_edits.edited(text, wanted, ["name"]) == text.replace(old, new, 1)


#: Edits of the test below. Thousands have been run by hand.
RANDOM_EDITS = 40
#: Scalars with the texts by which files write them.
SCALARS: list[tuple[Any, list[str]]] = [
    ("plain", ["plain", "'plain'", '"plain"']),
    ("a: b", ["'a: b'", '"a: b"']),
    ("5", ["'5'", '"5"']),
    ("${X}", ["${X}", "'${X}'", '"${X}"']),
    ("# no comment", ["'# no comment'"]),
    ("it's", ["it's", "'it''s'", '"it\\u0027s"']),
    (5, ["5", "0x5", "005"]),
    (True, ["true", "yes", "True"]),
    (None, ["null", "~"]),
    ("", ["''", '""']),
]
LINES = "one {}\n  two\n\nthree # four\n"


class Written:
    """A random document. Its lines have the path of the value to which they belong."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.lines: list[tuple[tuple[Any, ...], str]] = []
        self.comments = 0
        self.list_indent = chance.choice((0, 2))
        self.values = self._mapping((), 0, 3)

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for _path, line in self.lines)

    def _comment(self) -> str:
        self.comments += 1
        return f"  # c{self.comments:03}." if self.chance.random() < 0.5 else ""

    def _above(self, path: tuple[Any, ...], indent: int) -> None:
        if self.chance.random() < 0.25:
            self.comments += 1
            self.lines.append((path, f"{' ' * indent}# c{self.comments:03}."))

    def _mapping(self, path: tuple[Any, ...], indent: int, depth: int, first: str = "") -> Any:
        found = {}
        for number in range(self.chance.randint(2, 4)):
            key = f"k{number}" if number or not first or self.chance.random() < 0.5 else "name"
            inner, head = (*path, key), f"{first or ' ' * indent}{key}:"
            if not first:
                self._above(inner, indent)
            if key == "name":
                found[key] = f"n{len(self.lines)}"
                self.lines.append((inner, f"{head} {found[key]}{self._comment()}"))
            else:
                found[key] = self._value(inner, head, indent, depth)
            first = ""
        return found

    def _list(self, path: tuple[Any, ...], indent: int, depth: int) -> Any:
        found = []
        for number in range(self.chance.randint(1, 4)):
            inner = (*path, number)
            self._above(inner, indent)
            dash = f"{' ' * indent}-"
            if depth and self.chance.random() < 0.6:
                found.append(self._mapping(inner, indent + 2, depth - 1, f"{dash} "))
            else:
                found.append(self._value(inner, dash, indent, 0))
            if found[-1] in found[:-1]:  # which one changes would not be clear
                found[-1] = f"u{len(self.lines)}"
                self.lines[-1] = (inner, f"{dash} {found[-1]}")
        return found

    def _value(self, path: tuple[Any, ...], head: str, indent: int, depth: int) -> Any:
        kind = self.chance.random()
        if depth and kind < 0.25:
            self.lines.append((path, f"{head}{self._comment()}"))
            return self._mapping(path, indent + 2, depth - 1)
        if depth and kind < 0.5:
            self.lines.append((path, f"{head}{self._comment()}"))
            return self._list(path, indent + self.list_indent, depth - 1)
        if kind < 0.6:
            self.lines.append((path, f"{head} |{self._comment()}"))
            value = LINES.format(len(self.lines))
            body = [f"{' ' * (indent + 2)}{line}".rstrip() for line in value[:-1].split("\n")]
            self.lines += [(path, line) for line in body]
            return value
        if kind < 0.8:
            items = self.chance.sample(SCALARS, self.chance.randint(1, 3))
            texts = [self.chance.choice(texts[-2:]) for _value, texts in items]
            if self.chance.random() < 0.5:
                self.lines.append((path, f"{head} [{', '.join(texts)}]{self._comment()}"))
                return [value for value, _texts in items]
            inner = ", ".join(f"m{number}: {text}" for number, text in enumerate(texts))
            self.lines.append((path, f"{head} {{{inner}}}{self._comment()}"))
            return {f"m{number}": value for number, (value, _texts) in enumerate(items)}
        value, texts = self.chance.choice(SCALARS)
        self.lines.append((path, f"{head} {self.chance.choice(texts)}{self._comment()}"))
        return value


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        members = list(value.items())
    else:
        members = list(enumerate(value)) if isinstance(value, list) else []
    return [path, *(place for key, inner in members for place in _places(inner, (*path, key)))]


def _edit(chance: random.Random, values: Any) -> tuple[str, tuple[Any, ...]]:
    """Change a value at random. Return the kind of the change and its place."""
    path = chance.choice([place for place in _places(values)[1:] if place[-1] != "name"])
    above = values
    for step in path[:-1]:
        above = above[step]
    inner, last = above[path[-1]], path[-1]
    new = copy.deepcopy(chance.choice([*(value for value, _texts in SCALARS), LINES, "x\n", ["p"]]))
    kind = chance.choice(("set", "remove", "add", "move"))
    if kind == "remove" and len(above) > 1:
        del above[last]
    elif kind == "add" and isinstance(inner, dict):
        inner["new"] = new
    elif kind == "add" and isinstance(inner, list):
        inner.insert(chance.randint(0, len(inner)), new)
    elif kind == "move" and isinstance(inner, list):
        chance.shuffle(inner)
    else:
        kind, above[last] = "set", new
    return kind, path


def _check_random_edit(seed: int) -> None:
    chance = random.Random(seed)
    document = Written(chance)
    wanted = copy.deepcopy(document.values)
    assert yaml_edits.load(document.text) == document.values
    kind, path = _edit(chance, wanted)
    text = yaml_edits.edited(document.text, wanted, KEYS)
    shown = f"seed {seed}: {kind} {path}\n{document.text}\n{text}"
    assert yaml_edits.canonical(yaml_edits.load(text)) == yaml_edits.canonical(wanted), shown
    left = [line.lstrip(" -") for line in text.split("\n")]
    flows = {place for place, line in document.lines if re.search(r"[:-] [\[{]", line)}
    for place, line in document.lines:
        is_inside = place[: len(path)] == path
        changed_line = place == path or (place in flows and path[: len(place)] == place)
        if kind in ("remove", "set") and is_inside and place != path:
            continue
        if changed_line:
            comment = re.search(r"#? ?c\d+\.$", line)
            # a value of a list goes with its comment
            if comment and kind != "remove" and not (kind == "set" and isinstance(path[-1], int)):
                assert comment[0] in text, shown
            continue
        plain = line.lstrip(" -")
        assert plain in left, f"{line!r} {shown}"
        if kind != "move":
            left = left[left.index(plain) + 1 :]


@pytest.mark.parametrize("seed", range(RANDOM_EDITS))
def test_random_edits_keep_all_other_lines(seed: int) -> None:
    _check_random_edit(seed)
