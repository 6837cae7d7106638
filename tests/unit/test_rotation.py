# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the steps of the role `login_rotation`."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import bookkeeping, rotation
from tests.unit.arguments import run_of

NEW = {"id": "new", "created": "2026-05-01T08:00:00.000Z"}
OLD = {"id": "old", "created": "2026-02-01T08:00:00.000Z"}
AFTER, BEFORE = {"timestamp": 1_777_900_000_000}, {"timestamp": 1_777_000_000_000}


def held(token: str, **changes: Any) -> dict[str, Any]:
    description = f"ci (token {token})"
    return {"action": "unchanged", "secret": "different", "description": description, **changes}


def steps(results: list[Any], tokens: list[Any], **given: Any) -> str:
    found = rotation.steps(results, tokens, **{"name": "ci", **given})
    return " ".join(name for name in ("create", "prove", "revoke") if found[name])


@pytest.mark.parametrize(
    ("results", "tokens", "given", "expected"),
    [
        ([held("new")], [NEW], {}, ""),
        ([held("new")], [NEW], {"proof": True, "builds": [BEFORE, AFTER]}, ""),
        ([held("new")], [NEW], {"proof": True, "builds": [BEFORE]}, "prove"),
        ([held("new")], [NEW], {"proof": True}, "prove"),
        ([held("new")], [NEW, OLD], {"proof": True, "builds": [AFTER]}, "prove revoke"),
        ([held("new")], [NEW, OLD], {}, "revoke"),
        ([held("new")], [NEW], {"due": True}, "create revoke"),
        ([held("new"), held("old")], [NEW, OLD], {"proof": True}, "create prove revoke"),
        ([held("new", action="created")], [NEW], {}, "create revoke"),
        ([held("new", action="updated")], [NEW], {}, "create revoke"),
        ([held("new", secret="unknown")], [NEW], {}, "create revoke"),
        ([held("new", description="by hand")], [NEW], {}, "create revoke"),
        ([held("new", description="other (token new)")], [NEW], {}, "create revoke"),
        ([held("new", description="5 (token new)")], [NEW], {"name": 5}, ""),
        ([held("new")], [], {}, "create revoke"),
    ],
)
def test_rotation_step_is_selected(
    results: list[Any], tokens: list[Any], given: dict[str, Any], expected: str
) -> None:
    assert steps(results, tokens, **given) == expected


def test_token_without_creation_time_is_not_proved() -> None:
    assert steps([held("x")], [{"id": "x", "created": None}], proof=True, builds=[AFTER]) == "prove"


def test_tokens_of_credentials_are_recognized() -> None:
    found = rotation.steps([held("new"), held("old"), held("new")], [NEW, OLD], "ci")
    assert (found["held"], found["everywhere"], found["token"]) == (["new", "old"], False, "new")
    assert found["revoked"] == []
    assert rotation.steps([held("old"), held("new")], [NEW], "ci")["revoked"] == ["old"]


def test_credential_entries_are_built() -> None:
    credentials = [{"id": "a", "login_username": "bob", "folder": ""}, {"id": "b", "folder": "f"}]
    one, two = rotation.entries(credentials, "ci", {"id": "t1", "value": "s3cret"})
    assert one == {
        "id": "a",
        "kind": "username_password",
        "login_username": "bob",
        "login_password": "s3cret",
        "description": "ci (token t1)",
    }
    assert two["folder"] == "f"
    assert two["secret"] == "s3cret"
    compared, _two = rotation.entries(credentials, "ci")
    assert compared["update_secret"] == "on_create"
    assert "description" not in compared


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"expires_in": "90"}, "login_rotation_expires_in: '90' is not an age"),
        ({"expires_in": "7d", "renew_before": "14d"}, "login_rotation_renew_before is 14d, but"),
        ({"renew_before": "soon"}, "login_rotation_renew_before: 'soon' is not an age"),
        ({"issuer": "wiki", "expires_in": "12h"}, "login_rotation_expires_in is 12h, but the"),
    ],
)
def test_invalid_lifetime_is_rejected_before_any_request(given: dict[str, Any], words: str) -> None:
    variables = {f"login_rotation_{name}": value for name, value in given.items()}
    with pytest.raises(bookkeeping.StepError, match=words):
        bookkeeping.perform("rotation_options", run_of(**variables), {})
    right = {"login_rotation_expires_in": "90d", "login_rotation_renew_before": ""}
    assert bookkeeping.perform("rotation_options", run_of(**right), {}) == {}
