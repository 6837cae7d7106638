# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the precedence of variables for a connection option, and the cases that read no variable."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleUndefinedVariable

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.variables import (
    from_variables,
    is_on,
    value_of,
)

URL = "https://repo.example.org/base"
OMIT = "__omit_place_holder__1234"
LOGIN = {"toolchain_repo_token": "{{ vault_token }}"}


def found(given: dict[str, Any], variables: dict[str, Any], service: str = "repo") -> Any:
    values = {"{{ vault_token }}": "a-token", "{{ omit }}": OMIT, "{{ nothing }}": ""}
    return from_variables(
        service,
        given,
        {"omit": OMIT, **variables},
        lambda value: values.get(value, value) if isinstance(value, str) else value,
    )


@pytest.mark.parametrize(
    ("given", "variables", "expected"),
    [
        ({}, {}, {}),
        ({}, {"toolchain_repo_url": URL}, {"url": URL}),
        ({"url": "http://x"}, {"toolchain_repo_url": URL}, {}),
        ({"url": None}, {"toolchain_repo_url": URL}, {"url": URL}),
        ({}, {"toolchain_repo_url": "", "toolchain_repo_timeout": None}, {}),
        ({}, {"toolchain_repo_url": "{{ omit }}", "toolchain_repo_ca_path": "{{ nothing }}"}, {}),
        ({}, {"toolchain_repo_validate_certs": False}, {"validate_certs": False}),
        ({}, {"toolchain_repo_retries": 0}, {"retries": 0}),
        ({}, {"toolchain_tracker_url": URL}, {}),
        ({}, LOGIN, {"token": "a-token"}),
        ({"username": "u"}, LOGIN, {}),
        ({"user": "u"}, LOGIN, {}),
        ({"token": ""}, LOGIN, {}),
        ({"credentials_file": "/f"}, {**LOGIN, "toolchain_repo_url": URL}, {"url": URL}),
        ({"url": "https://me:secret@x"}, LOGIN, {}),
        ({}, {"toolchain_repo_url": "https://me:secret@x/b"}, {"url": "https://me:secret@x/b"}),
        ({"token": "t"}, {"toolchain_repo_url": "https://me:secret@x/b"}, {"url": "https://x/b"}),
        ({"url": "http://[broken"}, LOGIN, {"token": "a-token"}),
    ],
)
def test_each_option_is_read_alone_and_a_login_as_a_whole(
    given: dict[str, Any], variables: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert found(given, variables) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"url": "https://REPO.example.org:443/other"}, {"token": "a-token"}),
        ({"url": "https://repo.example.org:8443/base"}, "invalid"),
        ({"url": "http://repo.example.org/base"}, "invalid"),
        ({"url": "https://me:secret-1@registry.example.org"}, {}),
        ({"url": "https://registry.example.org", "token": "t"}, {}),
        ({"url": "https://registry.example.org?sig=secret-1"}, "invalid"),
    ],
)
def test_login_in_variables_belongs_to_their_address(given: dict[str, Any], expected: Any) -> None:
    variables = {**LOGIN, "toolchain_repo_url": URL}
    if expected != "invalid":
        assert found(given, variables) == expected
        return
    with pytest.raises(ToolchainError, match="in variables belong to https://repo") as caught:
        found(given, variables)
    assert caught.value.kind == "invalid"
    assert "(toolchain_repo_url)" in caught.value.message
    assert "secret-1" not in caught.value.message


def test_analysis_username_alone_is_not_a_login() -> None:
    variables = {"toolchain_analysis_ltoken": "l" * 64, "toolchain_analysis_username": "other"}
    assert found({"username": "me"}, variables, "analysis") == {"ltoken": "l" * 64}
    assert found({"ltoken": "own"}, variables, "analysis") == {}


def test_json_parsed_by_ansible_is_a_string_again() -> None:
    variables = {"toolchain_analysis_token_json": {"user": "me", "token": "t1"}}
    assert found({}, variables, "analysis") == {"token_json": '{"user": "me", "token": "t1"}'}


def test_unneeded_variable_is_not_templated() -> None:
    def template(value: Any) -> Any:
        raise AssertionError(f"templated {value}")

    given = {"url": URL, "token": "t"}
    variables = {"toolchain_repo_url": "{{ undefined }}", "toolchain_repo_password": "{{ no }}"}
    assert from_variables("repo", given, variables, template) == {}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("toolchain_repo_ulr", "did you mean toolchain_repo_url?"),
        ("toolchain_tracker_pasword", "did you mean toolchain_tracker_password?"),
        ("toolchain_in_proces", "did you mean toolchain_in_process?"),
        ("toolchain_9", "no option has this name; rename it"),
    ],
)
def test_misspelt_variable_is_invalid(name: str, hint: str) -> None:
    with pytest.raises(ToolchainError) as caught:
        found({}, {name: "x", "toolchain_repo_url": URL})
    assert caught.value.kind == "invalid"
    assert caught.value.message == f"the variable {name} is unknown: {hint}"


def test_variables_of_the_collection_and_of_others_are_accepted() -> None:
    names = ("toolchain_sealed", "toolchain_report", "toolchain_plan_0a1b", "my_toolchain_x")
    assert found({}, dict.fromkeys(names, "x")) == {}


@pytest.mark.parametrize(
    ("given", "expected"), [(None, True), ("", True), (OMIT, True), ("no", False), (1, True)]
)
def test_switch_without_a_value_has_its_default(given: Any, expected: bool) -> None:
    values = {"toolchain_fail_fast": given, "omit": OMIT}
    assert is_on("toolchain_fail_fast", values, lambda value: value, default=True) is expected


def test_message_names_the_switch_that_is_no_boolean() -> None:
    values = {"toolchain_fail_fast": "maybe"}
    with pytest.raises(ToolchainError, match="variable toolchain_fail_fast is 'maybe': set it to"):
        is_on("toolchain_fail_fast", values, lambda value: value, default=False)


def test_reason_of_an_undefined_name_is_shown_once() -> None:
    class Old(AnsibleUndefinedVariable):
        """The error of ansible-core 2.18, which appends the original error."""

        def __str__(self) -> str:
            return f"{self.args[0]}. {self.args[0]}"

    def template(value: str) -> str:
        raise Old("'nope' is undefined")

    with pytest.raises(ToolchainError, match=r"evaluated: 'nope' is undefined$"):
        value_of("toolchain_ci_url", {"toolchain_ci_url": "{{ nope }}"}, template)


def test_undefined_name_is_reported_with_its_place_in_a_list() -> None:
    def template(value: Any) -> Any:
        if "nope" in str(value):
            raise AnsibleUndefinedVariable("'nope' is undefined")
        return value

    given = {"a": [{"name": "x"}, {"name": "y", "to": {"users": ["{{ nope }}"]}}]}
    with pytest.raises(ToolchainError, match=r"variable a\[1\]\.to\.users\[0\] cannot be"):
        value_of("a", given, template)
