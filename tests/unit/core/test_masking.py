# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the masking of results with `remove_values` of Ansible."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest
from ansible.module_utils.common import parameters
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import masking

ROWS = 150
HIDDEN = "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER"
# Few characters, so that secrets occur in values; JSON escapes some characters. No
# character occurs in True or False, which 2.16 masks as well.
_TEXT = st.text(alphabet='xy1."\\\n\u2028é', max_size=4)
_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-20, 120) | st.floats() | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)


def _shown(value: Any) -> str:
    return json.dumps(value, default=repr)


@given(row=_VALUE, secrets=st.sets(_TEXT.filter(bool), max_size=3), other=_VALUE)
def test_result_equals_that_of_ansible(row: Any, secrets: set[str], other: Any) -> None:
    result = {"rows": [0] * ROWS + [row], "few": [row], "other": other, "changed": False}
    longest_first = sorted(secrets, key=len, reverse=True)  # 2.16 does not sort them itself
    expected = parameters.remove_values(result, longest_first)
    found = masking.mask_values(result, longest_first)
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
def test_secret_in_large_list_is_masked(value: Any, secret: str, shown: str) -> None:
    found = masking.mask_values(_rows(value), {secret})
    assert {row["value"] for row in found["rows"]} == {shown}


def test_large_list_without_secret_is_not_traversed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    walked: list[Any] = []
    original = masking._masked

    def record(value: Any, secrets: list[str]) -> Any:
        walked.append(value)
        return original(value, secrets)

    monkeypatch.setattr(masking, "_masked", record)
    result = {"changed": False, **_rows("none"), "msg": "with a secret"}
    found = masking.mask_values(result, {"secret"})
    assert found == {**result, "msg": "with a ********"}
    assert list(found) == list(result)
    assert walked == [False, "with a secret"]


@pytest.mark.parametrize("value", [{1, 2}, b"secret"])
def test_values_without_json_form_are_masked_like_ansible(value: Any) -> None:
    expected = parameters.remove_values(_rows(value), {"secret"})
    assert masking.mask_values(_rows(value), {"secret"}) == expected


def test_date_is_left_to_the_encoder() -> None:
    rows = _rows(date(2026, 1, 5))
    assert masking.mask_values(rows, {"secret"}) == rows


@pytest.mark.parametrize("value", ["a secret", ["secret"], None, 5])
def test_part_of_result_is_masked_like_ansible(value: Any) -> None:
    expected = parameters.remove_values(value, {"secret"})
    assert masking.mask_values(value, {"secret"}) == expected


def test_keys_are_masked_except_names_of_return_values() -> None:
    values = {"secret-1": 1, "diff": {"tools[secret-1]": [{"secret-1": 2, "path": 3}]}, "rows": []}
    values["rows"] = [{"a-secret-1": 4}] * ROWS
    assert masking.mask_keys(values, {"secret-1", "path"}) == {
        "secret-1": 1,
        "diff": {"tools[********]": [{"********": 2, "path": 3}]},
        "rows": [{"a-********": 4}] * ROWS,
    }
    assert masking.mask_keys(values, ()) is values
