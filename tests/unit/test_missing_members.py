# SPDX-License-Identifier: GPL-3.0-or-later
"""A missing member is never a name: `str(record.get("name"))` of a null equals the name "None"."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.analysis.issues import (
    issue_search,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.server import ci_node
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.json_text import as_text
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo import aql

PLUGINS = Path(__file__).parents[2] / "plugins"
#: Files without a match have no such comparison; a parse of all files takes long.
LIKELY = re.compile(r"\bstr\([^()]*(\([^()]*\)[^()]*)*\.get\(")
#: Calls whose first argument is a key.
KEYED = ("setdefault", "frozenset", "set", "add")


def compared(node: ast.AST) -> list[ast.AST]:
    """Return the expressions that the node compares for equality, or uses as a key."""
    if isinstance(node, ast.Compare):
        equal = all(isinstance(each, (ast.Eq, ast.NotEq)) for each in node.ops)
        return [node.left, *(node.comparators if equal else [])]
    if isinstance(node, ast.SetComp):
        return [node.elt]
    if isinstance(node, ast.DictComp):
        return [node.key]
    if isinstance(node, ast.Subscript):
        return [node.slice]
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        return list(node.args[:1]) if name in KEYED else []
    return []


def named_none(source: str) -> Iterator[int]:
    """Yield the lines that compare the string of a member which may be missing."""
    for node in ast.walk(ast.parse(source)):
        for part in compared(node):
            for call in ast.walk(part):
                if (
                    isinstance(call, ast.Call)
                    and getattr(call.func, "id", "") == "str"
                    and isinstance(call.args[0], ast.Call)
                    and getattr(call.args[0].func, "attr", "") == "get"
                    and len(call.args[0].args) == 1
                ):
                    yield call.lineno


def test_no_missing_member_is_compared_as_a_string() -> None:
    found = [
        f"{path.relative_to(PLUGINS)}:{line}"
        for path in PLUGINS.rglob("*.py")
        if LIKELY.search(text := path.read_text(encoding="utf-8"))
        for line in named_none(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "str(one.get('name')).lower() == name",
        "name != str(one.get('name'))",
        "str(one.get('id')) in ids",
        "{str(one.get('name')) for one in many}",
        "{str(one.get('name')): one for one in many}",
        "found.setdefault(str(one.get('name')), [])",
        "found[str(one.get('id'))]",
        "frozenset(str(one.get('key')) for one in many)",
    ],
)
def test_rule_finds_a_comparison(line: str) -> None:
    assert LIKELY.search(line)
    assert list(named_none(line)) == [1]


@pytest.mark.parametrize(
    "line",
    ["'x' in str(one.get('class'))", "str(one.get('name') or '') == name", "f(str(one.get('a')))"],
)
def test_rule_accepts_other_strings(line: str) -> None:
    assert not list(named_none(line))


def test_missing_member_is_empty() -> None:
    assert [as_text(value) for value in (None, "", "none", 0, False)] == [
        "",
        "",
        "none",
        "0",
        "False",
    ]


def test_objects_without_a_name_match_no_name() -> None:
    assert not issue_search.names_build("+None", [{"name": None}])
    assert not issue_search.names_build("None", [{"id": None}])
    assert aql.properties_in({"properties": [{"key": "a", "value": None}, {"key": None}]}) == {
        "a": [""],
        "": [""],
    }
    shown: dict[str, Any] = {"assignedLabels": [{"name": "None"}, {"name": None}, {"name": "n"}]}
    assert ci_node._state("n", shown).labels == ("None",)
