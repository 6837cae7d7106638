# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the hidden parts of options: strings hidden wherever they occur, and options that are always
hidden.
"""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.masking import (
    HIDDEN,
    OptionSecrets,
    mask_keys,
    names_of,
    private_options,
)

SPEC: dict[str, dict[str, Any]] = {
    "url": {"type": "str"},
    "password": {"type": "str", "no_log": True, "aliases": ["pw"]},
    "arguments": {"type": "dict", "private": True},
    "properties": {"type": "dict"},
    "users": {
        "type": "list",
        "elements": "dict",
        "options": {"name": {"type": "str"}, "password": {"type": "str", "no_log": True}},
    },
}


def hidden(given: dict[str, Any], *, failed: bool = False) -> tuple[dict[str, Any], set[str]]:
    secrets = OptionSecrets(SPEC, failed=failed)
    return secrets.shown(given), secrets.found


@pytest.mark.parametrize(
    ("given", "shown", "found"),
    [
        ({"pw": "hunter"}, {"pw": HIDDEN}, {"hunter"}),
        ({"password": ["hunter", {"a": 471147}]}, {"password": HIDDEN}, {"hunter", "471147"}),
        ({"password": "x"}, {"password": HIDDEN}, set()),
        ({"url": "https://ann:hunter@host/x"}, {"url": "https://host/x"}, {"hunter"}),
        (
            {"users": [{"name": "ann", "password": "hunter"}, "bob:geheim"]},
            {"users": [{"name": "ann", "password": HIDDEN}, HIDDEN]},
            {"hunter"},
        ),
        ({"users": "bob:geheim"}, {"users": HIDDEN}, set()),
        ({"users": [{"pasword": "hunter"}]}, {"users": [{"pasword": HIDDEN}]}, set()),
        ({"pasword": "hunter"}, {"pasword": HIDDEN}, set()),
        ({"arguments": "db_pwd=hunter;b=c"}, {"arguments": HIDDEN}, set()),
        (
            {"arguments": {"db_pwd": "abc", "n": "d"}},
            {"arguments": {"db_pwd": HIDDEN, "n": "d"}},
            set(),
        ),
        (
            {"arguments": {"headers": [{"name": "X-A", "value": "geheim", "sensitive": True}]}},
            {"arguments": {"headers": [{"name": "X-A", "value": HIDDEN, "sensitive": True}]}},
            {"geheim"},
        ),
        (
            {"arguments": {"env": [{"key": "DB_PASSWORD", "value": "abc"}, {"key": "N"}]}},
            {"arguments": {"env": [{"key": "DB_PASSWORD", "value": HIDDEN}, {"key": "N"}]}},
            set(),
        ),
        (
            {"arguments": {"users": [{"id": "operator", "password": "operator"}]}},
            {"arguments": {"users": [{"id": "operator", "password": HIDDEN}]}},
            set(),
        ),
        (
            {"arguments": {"jenkins": {"message": "x", "realm": {"password": "jenkins"}}}},
            {"arguments": {"jenkins": {"message": "x", "realm": {"password": HIDDEN}}}},
            set(),
        ),
        ({"properties": {"issue.key": "REL-1"}}, {"properties": {"issue.key": "REL-1"}}, set()),
    ],
)
def test_secret_options_are_hidden(given: Any, shown: Any, found: set[str]) -> None:
    assert hidden(given) == (shown, found)


def test_all_values_are_hidden_if_the_task_failed() -> None:
    arguments = {"A": "x", "flag": True, "none": None, "list": ["y", {"z": 5}]}
    shown, _found = hidden({"arguments": arguments}, failed=True)
    assert shown["arguments"] == {
        "A": HIDDEN,
        "flag": True,
        "none": None,
        "list": [HIDDEN, {"z": HIDDEN}],
    }


def test_secret_names_are_recognized_at_any_depth() -> None:
    arguments = {
        "passwd": "abcd",
        "size": "abcdefg",
        "servers": [{"url": "https://x", "api_key": "key-of-x"}, {1: None}],
        "tokens": ["token-one", "x"],
        "credentials": {"user": "builder", "my_secret": "deep-down", "secret_pin": 987654},
        "token_needed": True,
        "token_said": "true",
        "passphrase": "4711",
    }
    secrets = OptionSecrets({"arguments": {"type": "dict", "private": True}})
    secrets.shown({"arguments": arguments})
    assert secrets.found == {"abcd", "key-of-x", "token-one", "deep-down", "987654"}


@pytest.mark.parametrize("failed", [True, False])
@pytest.mark.parametrize("given", ["<value>abcd5</value>", ["<value>abcd5</value>"]])
def test_private_string_is_hidden(given: Any, *, failed: bool) -> None:
    """A short secret in it is not masked elsewhere, and only the operation could find it."""
    options = {"config": {"type": "str", "private": True}}
    assert OptionSecrets(options, failed=failed).shown({"config": given}) == {"config": HIDDEN}


def test_secrets_in_free_text_are_masked() -> None:
    spec: dict[str, dict[str, Any]] = {
        "xml": {"type": "str"},
        "script": {"type": "str", "private": True},
        "arguments": {"type": "dict", "private": True},
        "items": {"type": "list", "elements": "dict"},
    }
    text = "curl http://u:hunter@host --password=hunter"
    given = {"xml": text, "script": text, "arguments": {"a": text}, "items": [{"b": text}]}
    shown = OptionSecrets(spec).shown(given)
    masked = "curl http://u:***@host --password=***"
    assert shown == {
        "xml": masked,
        "script": HIDDEN,
        "arguments": {"a": masked},
        "items": [{"b": masked}],
    }


def test_keys_of_shown_options_contain_no_secret() -> None:
    options: dict[str, dict[str, Any]] = {
        "settings": {"type": "dict"},
        "entries": {"options": {"key": {"aliases": ["id"]}}},
    }
    assert names_of(options) == {"settings", "entries", "key", "id"}
    shown = {"settings": {"hunter": 1, "a-Hunter2": 2}, "entries": [{"id": 3, "key": 4}]}
    assert mask_keys(shown, {"hunter", "Hunter2", "key", "id"}, names_of(options)) == {
        "settings": {"********": 1, "a-********": 2},
        "entries": [{"id": 3, "key": 4}],
    }


def test_options_with_unknown_secrets_are_found_at_any_depth() -> None:
    private = {"type": "dict", "private": True}
    entries = {"type": "list", "options": {"settings": private}}
    src: dict[str, Any] = {"type": "path"}
    assert private_options({"entries": entries, "src": src, "name": {}}) == {"entries", "src"}
    public = {"entries": {"options": {"key": {"no_log": True}}}, "src": src, "name": {}}
    assert not private_options(public)
