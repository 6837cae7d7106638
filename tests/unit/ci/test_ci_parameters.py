# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.builds import parameters
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from tests.unit.ci.server import build, definition

JOB = {
    "property": [
        None,
        {},
        {
            "parameterDefinitions": [
                definition("VERSION", "String", "0.0.0"),
                definition("PUBLISH", "Boolean", True),
                definition("CHANNEL", "Choice", "stable", choices=["stable", "beta"]),
                definition("HOSTS", "ExtendedChoice", ""),
                definition("PASSWORD", "Password"),
                definition("FILE", "File"),
            ]
        },
    ]
}
DEFAULTS = {"VERSION": "0.0.0", "PUBLISH": True, "CHANNEL": "stable", "HOSTS": ""}


def wanted(
    given: Mapping[str, Any], style: str = "repeat", job: Any = None
) -> parameters.WantedParameters:
    definitions = parameters.definitions_of(JOB if job is None else job)
    return parameters.wanted(given, definitions, style, "the job")


def test_omitted_parameter_is_compared_by_its_default() -> None:
    found = wanted({"CHANNEL": "beta", "VERSION": None})
    assert found.form == [("CHANNEL", "beta")]
    assert found.expected == {
        "VERSION": "0.0.0",
        "PUBLISH": "true",
        "CHANNEL": "beta",
        "HOSTS": "",
    }
    assert found.incomparable == ["PASSWORD", "FILE"]


def test_password_is_sent_but_not_shown() -> None:
    found = wanted({"PASSWORD": "geheim"})
    assert found.form == [("PASSWORD", "geheim")]
    assert found.secrets == ["geheim"]
    assert "geheim" not in str(found.shown)


@pytest.mark.parametrize(
    ("given", "style", "form"),
    [
        ({"PUBLISH": False}, "repeat", [("PUBLISH", "false")]),
        ({"PUBLISH": "True"}, "repeat", [("PUBLISH", "true")]),
        ({"VERSION": 1.5}, "repeat", [("VERSION", "1.5")]),
        ({"VERSION": True}, "repeat", [("VERSION", "true")]),
        ({"VERSION": ""}, "repeat", [("VERSION", "")]),
        ({"VERSION": ["1"]}, "repeat", [("VERSION", "1")]),
        ({"VERSION": [1, 2]}, "comma", [("VERSION", "1,2")]),
        ({"VERSION": [1, 2]}, "repeat", [("VERSION", "1"), ("VERSION", "2")]),
        ({"HOSTS": ["a", "b"]}, "repeat", [("HOSTS", "a"), ("HOSTS", "b")]),
        ({"HOSTS": ["a", "b"]}, "comma", [("HOSTS", "a,b")]),
        ({"HOSTS": []}, "repeat", [("HOSTS", "")]),
    ],
)
def test_values_are_sent_in_the_format_of_the_server(
    given: dict[str, Any], style: str, form: list[tuple[str, str]]
) -> None:
    assert wanted(given, style).form == form


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({"VERSOIN": 1}, "rejected", "VERSOIN: it has VERSION, PUBLISH"),
        ({"CHANNEL": "nightly"}, "rejected", "one of .stable., .beta."),
        ({"PUBLISH": "yes"}, "rejected", "true or false"),
    ],
)
def test_ambiguous_value_is_rejected(given: dict[str, Any], kind: str, words: str) -> None:
    with pytest.raises(ToolchainError, match=words) as caught:
        wanted(given)
    assert caught.value.kind == kind


def test_repeated_parameter_with_a_single_value_type_is_detected() -> None:
    given = {"VERSION": [1, 2], "HOSTS": ["a", "b"], "CHANNEL": "beta"}
    assert wanted(given).repeated == ["VERSION"]
    assert wanted(given, "comma").repeated == []
    assert wanted(given, job={}).repeated == ["VERSION", "HOSTS"]


def test_parameter_type_is_derived_from_the_class() -> None:
    one = {"name": "KEY", "_class": "hudson.model.PasswordParameterDefinition"}
    found = wanted({"KEY": "geheim"}, job={"property": [{"parameterDefinitions": [None, one]}]})
    assert found.secrets == ["geheim"]


def test_parameter_listed_twice_is_sent_once() -> None:
    """[ci-11]: some servers have the property of a job twice."""
    holder = {"parameterDefinitions": [{"name": "A", "type": "StringParameterDefinition"}]}
    assert wanted({"A": 1}, job={"property": [holder, holder]}).form == [("A", "1")]


def test_parameters_for_job_without_any_are_rejected() -> None:
    with pytest.raises(ToolchainError, match="it has none") as caught:
        wanted({"A": 1}, job={"property": []})
    assert caught.value.kind == "rejected"
    assert wanted({}, job={"property": []}).form == []


def test_parameters_are_sent_unchecked_if_the_job_lists_none() -> None:
    found = wanted({"A": [1, 2], "B": True}, job={})
    assert found.form == [("A", "1"), ("A", "2"), ("B", "true")]
    assert parameters.equal(found, build(1, values={"A": "1,2", "B": True}))
    assert not parameters.equal(found, build(1, values={"A": "1,2", "B": True, "C": ""}))


@pytest.mark.parametrize(
    ("changes", "equal"),
    [
        ({}, True),
        ({"PUBLISH": "true"}, True),
        ({"PUBLISH": False}, False),
        ({"VERSION": "1"}, False),
        ({"VERSION": ...}, True),
        ({"PASSWORD": ..., "UNDEFINED": "x"}, True),
        ({"HOSTS": None}, True),
    ],
)
def test_builds_are_compared_by_the_values_shown(changes: dict[str, Any], equal: bool) -> None:
    shown = build(1, values={**DEFAULTS, **changes})
    assert parameters.equal(wanted({}), shown) is equal


@pytest.mark.parametrize(
    ("sent", "stored", "equal"),
    [
        (" 1.0 ", "1.0", True),
        ("1.0", "1.0\n", True),
        ("one\r\ntwo\r\n", "one\ntwo", True),
        ("one\ntwo", "one\r\ntwo\r\n", True),
        ("   ", "", True),
        ("a b", "a  b", False),
        ("one\n\ntwo", "one\ntwo", False),
        ("1.0\N{NO-BREAK SPACE}", "1.0", False),
    ],
)
def test_outer_blanks_and_line_ends_are_no_difference(sent: str, stored: str, equal: bool) -> None:
    """[ci-7]: a parameter with `trim` is stored without outer blanks."""
    shown = build(1, values={**DEFAULTS, "VERSION": stored})
    assert parameters.equal(wanted({"VERSION": sent}), shown) is equal


def test_all_values_of_a_repeated_parameter_are_shown() -> None:
    found = wanted({"HOSTS": ["a", "b"]}, job={})
    entries = [None, {"name": "HOSTS", "value": "a"}, {"name": "HOSTS", "value": "b"}]
    shown = {"actions": [None, {"parameters": None}, {"parameters": entries}]}
    assert parameters.displayed(shown) == {"HOSTS": ["a", "b"]}
    assert parameters.equal(found, shown)
    twice = {"actions": [{"parameters": entries[1:2]}, {"parameters": entries[2:]}]}
    assert parameters.displayed(twice) == {"HOSTS": "b"}


def test_build_without_a_parameter_differs() -> None:
    values = {name: value for name, value in DEFAULTS.items() if name != "HOSTS"}
    assert not parameters.equal(wanted({}), build(1, values=values))


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=5) | st.booleans() | st.integers()))
def test_build_with_the_sent_values_is_equal(values: dict[str, Any]) -> None:
    job = {
        "property": [{"parameterDefinitions": [definition(name, "String", "") for name in values]}]
    }
    found = wanted(values, job=job)
    assert parameters.equal(found, build(1, values=dict(found.form)))
