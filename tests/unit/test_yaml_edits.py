# SPDX-License-Identifier: GPL-3.0-or-later
"""Edit values in YAML files, and keep every other byte."""

from __future__ import annotations

import copy
import difflib
import random
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
