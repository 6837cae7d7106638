# SPDX-License-Identifier: GPL-3.0-or-later
"""Edit values in YAML files, and keep every other byte."""

from __future__ import annotations

import copy
import difflib
import random
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
