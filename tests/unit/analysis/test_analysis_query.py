# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.analysis.issues import (
    issue_search,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from sandbox.analysis.search import conditions

# Valid values: no control characters, not both kinds of quotation marks, not only blanks.
VALUES = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1).filter(
    lambda text: text.strip() and not ("'" in text and '"' in text)
)
BUILDS = [{"id": 1, "name": "build_1"}, {"id": 12, "name": "My Build"}]


@pytest.mark.parametrize(
    ("clauses", "text"),
    [
        ({"build": "build_1"}, "build:build_1"),
        ({"build": 12}, "build:12"),
        ({"build_exact": "build_1"}, "build:+build_1"),
        ({"build_exact": "my build"}, "build:+'my build'"),
        ({"build_exact": "it's"}, 'build:+"it\'s"'),
        ({"build_exact": "+1"}, "build:+'+1'"),
        ({"state": "New", "severity": 1}, "state:New severity:1"),
        ({"severity": [1, "2-3"]}, "severity:1,2-3"),
        (
            {"status": ["Fix", "Not a Problem", "Defer"]},
            "status:Fix,Defer status:'Not a Problem'",
        ),
        ({"code": "ABV.*", "file": "/src/**/größe.c"}, "code:ABV.* file:/src/**/größe.c"),
        ({"owner": "Carol, QA"}, "owner:'Carol, QA'"),
        ({"owner": None, "state": "New"}, "state:New"),
        ({"module": "core"}, "module:core"),
        ({"text": "a:b c"}, "'a:b c'"),
        ({"text": ["one", "two"]}, "one two"),
        ({"grouping": False}, "grouping:off"),
    ],
)
def test_search_string_is_built_from_clauses(clauses: dict[str, Any], text: str) -> None:
    assert issue_search.build(clauses) == text


@pytest.mark.parametrize(
    ("clauses", "words"),
    [
        ("state:New", "must be a dict"),
        ({"state": ""}, "state is empty"),
        ({"state": " "}, "state is empty"),
        ({"state": []}, "list of state is empty"),
        ({"state": ["New", ""]}, "state is empty"),
        ({}, "every issue"),
        ({"state": None}, "every issue"),
        ({"state": {"is": "New"}}, "state is a mapping: expected a string"),
        ({"state": 1.5}, "state is the number 1.5"),
        ({"a b": "c"}, "not a search keyword"),
        ({"state:New owner": "c"}, "not a search keyword"),
        ({"owner": 'it\'s "me"'}, "both kinds of quotation marks"),
        ({"owner": "one\ntwo"}, "line break"),
        ({"build": ["a", "b"]}, "2 builds; use only one: a, b"),
        ({"build": "a", "build_exact": "b"}, r"2 builds; use only one: a, \+b"),
        ({"Build": "a", "build": "b"}, "2 builds; use only one"),
    ],
)
def test_invalid_clauses_are_rejected(clauses: Any, words: str) -> None:
    with pytest.raises(ToolchainError, match=words) as caught:
        issue_search.build(clauses)
    assert caught.value.kind == "invalid"


@given(VALUES, st.sampled_from(["owner", "file", "build", "build_exact"]))
def test_value_reaches_the_server_unchanged(value: str, keyword: str) -> None:
    # Parsed by the sandbox's own implementation of a query.
    text = issue_search.build({keyword: value, "state": "New"})
    wanted, warnings = conditions(text)
    assert warnings == []
    name = keyword.partition("_")[0]
    assert set(wanted) == {name, "state"}
    (found,) = wanted[name]
    plus, bare = ("+", found[1:]) if keyword == "build_exact" else ("", found)
    assert found.startswith(plus)
    assert (bare[1:-1] if bare[0] in "'\"" else bare) == value


@given(st.lists(VALUES, min_size=1, max_size=4))
def test_alternatives_reach_the_server_separately(values: list[str]) -> None:
    wanted, _warnings = conditions(issue_search.build({"owner": values}))
    bare = [each[1:-1] if each[0] in "'\"" else each for each in wanted["owner"]]
    assert sorted(bare) == sorted(values)


@given(VALUES)
def test_build_name_is_found_in_its_query(name: str) -> None:
    (value,) = issue_search.builds_of(issue_search.build({"build_exact": name, "state": "New"}))
    assert issue_search.names_build(value, [{"id": 7, "name": name}])
    assert not issue_search.names_build(
        value, [{"id": 7, "name": f"{name}x"}, {"id": 8, "name": "y" * 9}]
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("state:New free text", []),
        ("build:+'my build' state:New", ["+'my build'"]),
        ("STATE:New BUILD:one", ["one"]),
        ("build:a,b", ["a", "b"]),
        ("build:a build:b", ["a", "b"]),
        ("'build:a'", []),
        ("it's build:a", ["a"]),
    ],
)
def test_builds_are_extracted_from_a_search_string(text: str, found: list[str]) -> None:
    assert issue_search.builds_of(text) == found


@pytest.mark.parametrize(
    ("value", "known"),
    [
        ("+build_1", True),
        ("+build", False),
        ("+BUILD_1", True),
        ("+'my build'", True),
        ("uil", True),
        ("'my b'", True),
        ("12", True),
        ("13", False),
        ("any", True),
        ("last", True),
        ("+last", False),
        ("b*d_1", True),
        ("*uil*", True),
        ("'my*d'", True),
        ("b*x", False),
        ("+b*d_1", False),
    ],
)
def test_build_of_the_project_is_recognized(value: str, known: bool) -> None:
    assert issue_search.names_build(value, BUILDS) is known
