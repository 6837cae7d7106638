# SPDX-License-Identifier: GPL-3.0-or-later
"""Test `ci_token` against the API tokens of the sandbox's CI server."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.client import ADMINISTER
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.credentials.ci_token import (
    CiTokenOperation,
    CiTokenOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from sandbox.client import Sandbox
from tests.helpers.ci import Ci
from tests.unit.stub import connection_to

OLD, NEW = "2.541", "2.548"
MARK = "01234567-89ab-4cde-8f01-23456789abcd"
APP: dict[str, Any] = {"name": "app", "return_value": True}
PROPERTY = "descriptorByName/jenkins.security.ApiTokenProperty"
GENERATE = f"POST /user/builder/{PROPERTY}/generateNewToken"
REVOKE = f"POST /user/builder/{PROPERTY}/revoke"


@pytest.fixture
def ci(fresh: Callable[[str], Sandbox]) -> Ci:
    sandbox = fresh("real")
    sandbox.settings("ci", version=NEW)
    return Ci(sandbox, CiTokenOperation, CiTokenOptions)


def add(ci: Ci, number: str, name: str = f"toolchain:app:{MARK}", **fields: Any) -> None:
    token = {"id": number, "user": "builder", "name": name, "secret": number, "age": 1, **fields}
    ci.sandbox.seed({"ci": {"api_tokens": [token]}})


def ids(ci: Ci, **given: Any) -> list[str]:
    return [token["id"] for token in ci.run(check=True, **APP, **given)["tokens"]]


def status_of(ci: Ci, user: str, secret: str) -> int:
    url = f"{ci.sandbox.urls['ci']}/api/json"
    return requests.get(url, auth=(user, secret), timeout=10).status_code


def test_token_logs_in_until_revoked(ci: Ci) -> None:
    made = ci.lives(**APP, expires_in="90d", renew_before="14d")
    secret = made["token"]["value"]
    assert status_of(ci, "builder", secret) == 200
    assert status_of(ci, "viewer", secret) == 401
    assert "value" not in ci.run(**APP)["token"]
    assert ci.lives(name="app", state="absent")["changed"]
    assert status_of(ci, "builder", secret) == 401


def test_expiring_token_is_renewed(ci: Ci) -> None:
    add(ci, "old", days=10)
    given: dict[str, Any] = {**APP, "expires_in": "30d"}
    assert not ci.run(**given, renew_before="9d")["changed"]
    made = ci.run(**given, renew_before="11d", revoke_older=True)["token"]
    assert ci.writes() == [GENERATE, REVOKE]
    assert ids(ci) == [made["id"]]
    listed = ci.run(**given)["token"]
    assert listed["expires"] == made["expires"]


def test_token_without_expiry_is_kept(ci: Ci) -> None:
    for expires_in in (None, "0"):
        assert ci.lives(**APP, expires_in=expires_in, renew_before="52w")["token"]["id"]
        assert ci.run(**APP)["token"]["expires"] is None
        ci.run(name="app", state="absent")


def test_expired_tokens_are_ignored(ci: Ci) -> None:
    add(ci, "old", days=-1)
    assert ci.run(name="app", state="absent")["changed"] is False
    assert ci.run(**APP)["changed"]


def test_tokens_of_an_old_server_are_renewed_by_age(ci: Ci) -> None:
    ci.sandbox.settings("ci", version=OLD)
    add(ci, "old", age=80)
    given: dict[str, Any] = {**APP, "expires_in": "90d"}
    assert not ci.run(**given, renew_before="9d")["changed"]
    assert not ci.run(**APP, renew_before="11d")["changed"]
    made = ci.run(**given, renew_before="11d")
    assert made["token"]["expires"] is None
    assert "Jenkins before 2.548" in ci.warnings[0]
    assert set(ids(ci)) == {"old", made["token"]["id"]}
    assert ci.run(**given, revoke_older=True)["token"]["id"] == made["token"]["id"]
    assert ids(ci) == [made["token"]["id"]]


def test_token_is_renewed_on_request(ci: Ci) -> None:
    add(ci, "old")
    made = ci.run(**APP, renew=True)["token"]
    assert ids(ci) == [made["id"], "old"]


def test_tokens_in_use_are_not_revoked(ci: Ci) -> None:
    for age, number in enumerate(("newest", "used", "old")):
        add(ci, number, age=age)
    assert ci.lives(**APP, revoke_older=True, in_use=["used"])["token"]["id"] == "newest"
    assert ids(ci) == ["newest", "used"]


@pytest.mark.parametrize(
    "name", ["app", f"toolchain:app2:{MARK}", f"toolchain:app:x:{MARK}", f"toolchain:app:{MARK}x"]
)
def test_tokens_of_other_names_are_ignored(ci: Ci, name: str) -> None:
    add(ci, "other", name)
    add(ci, "another", user="viewer")
    assert ci.run(**APP, revoke_older=True)["changed"]
    assert ci.run(name="app", state="absent")["changed"]
    assert ci.writes() == [GENERATE, REVOKE]
    assert status_of(ci, "builder", "other") == 200


def test_token_of_the_own_login_is_never_revoked(ci: Ci) -> None:
    ci.token = ci.run(**APP)["token"]["value"]
    made = ci.run(**APP, renew=True, revoke_older=True)
    assert "because the task is logged in with it" in ci.warnings[0]
    assert len(ids(ci)) == 2
    gone = ci.run(name="app", state="absent")
    assert gone["changed"]
    assert not ci.run(name="app", state="absent")["changed"]
    assert status_of(ci, "builder", made["token"]["value"]) == 401
    assert status_of(ci, "builder", ci.token) == 200


def test_secret_is_written_to_a_file(ci: Ci, tmp_path: Path) -> None:
    dest = tmp_path / "token"
    values = ci.lives(name="app", dest=str(dest))
    assert "value" not in values["token"]
    assert stat.S_IMODE(dest.stat().st_mode) == 0o600
    assert status_of(ci, "builder", dest.read_text()) == 200
    dest.unlink()
    ci.lives(name="app", dest=str(dest), revoke_older=True)
    assert status_of(ci, "builder", dest.read_text()) == 200


def test_token_with_lost_secret_is_revoked(ci: Ci) -> None:
    ci.sandbox.fault(service="ci", path="/generateNewToken", cut=True, after=True)
    made = ci.run(**APP)["token"]
    assert ci.writes() == [GENERATE, REVOKE, GENERATE]
    assert ids(ci) == [made["id"]]
    assert status_of(ci, "builder", made["value"]) == 200


def test_error_in_a_200_is_an_error(ci: Ci) -> None:
    refusal = {"status": "error", "message": "no more tokens"}
    ci.sandbox.fault(service="ci", path="/generateNewToken", status=200, body=refusal)
    with pytest.raises(ToolchainError, match="no more tokens") as caught:
        ci.run(**APP)
    assert caught.value.kind == "rejected"
    assert ids(ci) == []


LISTED = {"id": "a", "name": f"toolchain:app:{MARK}", "created": 1000, "expires": None}


def list_tokens(ci: Ci, tokens: Any, **changes: Any) -> None:
    """Replace the list of tokens by a list that a server may return."""
    found = {"user": "builder", "may_create": True, "stores_ends": True, "tokens": tokens}
    rule = {"match": "tokenListSortedByName", "result": {**found, **changes}}
    ci.sandbox.settings("ci", scripts=[rule])


@pytest.mark.parametrize(
    "tokens",
    [
        None,
        ["a"],
        [{**LISTED, "id": None}],
        [{**LISTED, "id": ""}],
        [{**LISTED, "created": "yesterday"}],
        [{**LISTED, "expires": "tomorrow"}],
        [LISTED, {**LISTED, "created": 2000}],
    ],
)
def test_unreadable_list_creates_no_token(ci: Ci, tokens: Any) -> None:
    list_tokens(ci, tokens)
    ci.fails("protocol", **APP)
    ci.fails("protocol", name="app", state="absent")


def test_clock_of_the_server_decides(ci: Ci) -> None:
    list_tokens(ci, [{**LISTED, "expires": 4_000_000_000_000}], now=3_900_000_000_000)
    assert not ci.run(**APP, check=True)["changed"]
    assert ci.run(**APP, renew_before="1200d", check=True)["changed"]
    list_tokens(ci, [{**LISTED, "expires": 2_000_000}], now=1_000_000)
    assert not ci.run(**APP, check=True)["changed"]


def test_secret_of_any_success_is_returned(ci: Ci) -> None:
    made = {"status": "ok", "data": {"tokenUuid": "x", "tokenValue": "the-secret"}}
    ci.sandbox.fault(service="ci", path="/generateNewToken", status=203, body=made)
    assert ci.run(**APP)["token"]["value"] == "the-secret"


def test_task_without_login_creates_no_token(ci: Ci) -> None:
    ci.sandbox.seed({"ci": {"credentials": {"anonymous_permissions": [ADMINISTER]}}})
    task = Task(connection_to(ci.sandbox.urls["ci"], "ci"), ci.warnings.append, True)
    with pytest.raises(ToolchainError, match="set username") as caught:
        CiTokenOperation(task, CiTokenOptions("app")).plan()
    assert caught.value.kind == "auth"


def test_token_of_another_user_requires_server_support(ci: Ci) -> None:
    given: dict[str, Any] = {"name": "app", "token_username": "viewer", "return_value": True}
    ci.fails("permission", "only the user 'viewer'", "adminCanGenerateNewTokens", **given)
    ci.sandbox.settings("ci", admin_creates_tokens=True)
    made = ci.lives(**given)["token"]
    assert status_of(ci, "viewer", made["value"]) == 200
    ci.sandbox.settings("ci", admin_creates_tokens=False)
    assert ci.lives(name="app", token_username="viewer", state="absent")["changed"]
    assert status_of(ci, "viewer", made["value"]) == 401


def test_unknown_user_is_named(ci: Ci) -> None:
    ci.fails("not_found", "the user 'nobody' does not exist", **APP, token_username="nobody")


def test_login_without_administer_permission_creates_no_token(ci: Ci) -> None:
    ci.username, ci.token = "operator", "operator-api-token-1234567890"
    ci.fails("permission", "Hudson.Administer", "script console", **APP)


def test_lifetime_with_part_of_a_day_is_rejected(ci: Ci) -> None:
    error = ci.fails("invalid", "whole days", **APP, expires_in="36h")
    assert error.kind == "invalid"
    assert ci.sandbox.requests("ci") == []
