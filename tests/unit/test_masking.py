# SPDX-License-Identifier: GPL-3.0-or-later
"""Masking in the worker gives what Ansible's own masking gives, to the letter."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest
from ansible.module_utils.common import parameters
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.plugin_utils import masking

ROWS = 150
HIDDEN = "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER"
# Few characters, so that secrets are met; those that JSON writes in another way are among them.
_TEXT = st.text(alphabet='ab1."\\\n\u2028é', max_size=4)
_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-20, 120) | st.floats() | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)


def _shown(value: Any) -> str:
    return json.dumps(value, default=repr)


@given(row=_VALUE, secrets=st.sets(_TEXT, max_size=3), other=_VALUE)
def test_the_result_is_that_of_ansible(row: Any, secrets: set[str], other: Any) -> None:
    result = {"rows": [0] * ROWS + [row], "few": [row], "other": other, "changed": False}
    expected = parameters.remove_values(result, secrets)
    found = masking.masked(result, secrets)
    assert _shown(found) == _shown(expected)
    assert list(found) == list(expected)


def _rows(value: Any) -> dict[str, Any]:
    return {"rows": [{"number": number + 1000, "value": value} for number in range(ROWS)]}


@pytest.mark.parametrize(
    ("value", "secret", "shown"),
    [
        ("the secret is here", "secret", "the ******** is here"),
        ("secret", "secret", HIDDEN),
        (4711, "4711", HIDDEN),
        (47.5, "7.5", HIDDEN),
        ('a "quoted" one', '"quoted"', "a ******** one"),
        ("back\\slash", "k\\s", "bac********lash"),
        ("two\nlines", "o\nl", "tw********ines"),
        (float("nan"), "nan", HIDDEN),
    ],
)
def test_a_secret_in_a_large_list_is_masked(value: Any, secret: str, shown: str) -> None:
    found = masking.masked(_rows(value), {secret})
    assert {row["value"] for row in found["rows"]} == {shown}


def test_a_large_list_without_a_secret_is_not_walked_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Any] = []

    def remove_values(value: Any, secrets: set[str]) -> Any:
        seen.append(value)
        return parameters.remove_values(value, secrets)

    monkeypatch.setattr(masking, "remove_values", remove_values)
    result = {"changed": False, **_rows("none"), "msg": "with a secret"}
    found = masking.masked(result, {"secret"})
    assert found == {**result, "msg": "with a ********"}
    assert list(found) == list(result)
    assert seen == [{"changed": False, "rows": None, "msg": "with a secret"}]


@pytest.mark.parametrize("value", [datetime.date(2026, 1, 5), {1, 2}, b"secret"])
def test_what_json_has_no_word_for_is_left_to_ansible(value: Any) -> None:
    expected = parameters.remove_values(_rows(value), {"secret"})
    assert masking.masked(_rows(value), {"secret"}) == expected


@pytest.mark.parametrize("value", ["a secret", ["secret"], None, 5])
def test_other_than_a_result_is_left_to_ansible(value: Any) -> None:
    expected = parameters.remove_values(value, {"secret"})
    assert masking.masked(value, {"secret"}) == expected
