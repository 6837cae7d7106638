# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core import plan
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.plan import Change

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), VALUES)
CURRENT: dict[str, Any] = {"name": "x", "tags": ["b", "a"], "size": 1, "nested": {"k": [1]}}


def test_equal_fields_are_unchanged() -> None:
    found = plan.plan(CURRENT, {"name": "x", "size": 1})
    assert not found.changed
    assert found.action == "none"
    assert found.before == found.after == CURRENT
    assert found.changes == ()


def test_none_is_not_managed_and_empty_value_empties() -> None:
    assert not plan.plan(CURRENT, {"tags": None, "size": None}).changed
    emptied = plan.plan(CURRENT, {"tags": []})
    assert emptied.changes == (Change("tags", ["b", "a"], []),)
    assert emptied.after == {**CURRENT, "tags": []}


@pytest.mark.parametrize("value", [0, False, "", {}])
def test_false_values_are_managed(value: Any) -> None:
    assert plan.plan(CURRENT, {"size": value}).changes == (Change("size", 1, value),)


def test_missing_object_is_created_with_managed_fields() -> None:
    found = plan.plan(None, {"name": "x", "tags": None, "size": 0})
    assert (found.action, found.before, found.after) == ("create", {}, {"name": "x", "size": 0})
    assert found.changes == (Change("name", None, "x"), Change("size", None, 0))


def test_absence_deletes_only_an_existing_object() -> None:
    found = plan.plan({"name": "x"}, None)
    assert (found.action, found.before, found.after) == ("delete", {"name": "x"}, {})
    assert found.changes == (Change("name", "x", None),)
    assert not plan.plan(None, None).changed


@pytest.mark.parametrize(
    ("comparison", "current", "wanted", "expected"),
    [
        (plan.exact, [1, 2], [2, 1], (False, [2, 1])),
        (plan.exact, None, None, (True, None)),
        (plan.unordered, ["a", "b"], ["b", "a"], (True, ["b", "a"])),
        (plan.unordered, ["a"], ["a", "a"], (True, ["a", "a"])),
        (plan.unordered, None, [], (True, [])),
        (plan.unordered, None, ["a"], (False, ["a"])),
        (plan.unordered, [1], ["1"], (False, ["1"])),
        (plan.unordered, [{"a": 1, "b": 2}], [{"b": 2, "a": 1}], (True, [{"b": 2, "a": 1}])),
        (plan.unordered, ["ä"], ["a"], (False, ["a"])),
    ],
)
def test_comparison_of_values(comparison: Any, current: Any, wanted: Any, expected: Any) -> None:
    assert comparison(current, wanted) == expected


def test_comparison_returns_the_resulting_value() -> None:
    def longer(current: str, desired: str) -> tuple[bool, str]:
        return False, current + desired

    found = plan.plan({"p": "a"}, {"p": "b"}, {"p": longer})
    assert found.after == {"p": "ab"}


def test_plan_carries_additional_results() -> None:
    found = plan.plan(CURRENT, {"size": 2}).with_result(one=1).with_result(two=2)
    assert dict(found.result) == {"one": 1, "two": 2}
    assert found.changed


def test_reading_is_unchanged() -> None:
    found = plan.unchanged({"found": 3})
    assert not found.changed
    assert (found.before, found.after, found.result) == ({}, {}, {"found": 3})
    with pytest.raises(AssertionError):
        plan.ReadOnly().apply(found)


def test_without_none_keeps_selected_values() -> None:
    assert plan.without_none({"a": None, "b": 0, "c": ""}) == {"b": 0, "c": ""}
    assert plan.without_none({"a": 1, "b": 2}, ["b", "missing"]) == {"b": 2}


@given(OBJECTS | st.none(), OBJECTS | st.none())
def test_planning_keeps_its_input_and_is_idempotent(
    current: dict[str, Any] | None, desired: dict[str, Any] | None
) -> None:
    given_both = copy.deepcopy((current, desired))
    found = plan.plan(current, desired)
    assert (current, desired) == given_both
    assert found.changed == (found.before != found.after or found.action in ("create", "delete"))
    after = None if desired is None else found.after
    assert not plan.plan(after, desired).changed


@given(OBJECTS, OBJECTS)
def test_plan_is_independent_of_its_input(current: dict[str, Any], desired: dict[str, Any]) -> None:
    found = plan.plan(current, desired)
    before = copy.deepcopy((found.before, found.after))
    for values in (current, desired):
        for value in values.values():
            if isinstance(value, (list, dict)):
                value.clear()
    assert (found.before, found.after) == before
