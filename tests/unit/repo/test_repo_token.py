# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that tokens are created, renewed and revoked by name, and that no secret is lost or kept."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.access.repo_token import (
    RepoTokenOperation,
)
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply, Seen

LIST = "GET /access/api/v1/tokens?description=toolchain:app:*"
CREATE = "POST /access/api/v1/tokens"
DAY = 86_400
MARK = "01234567-89ab-4cde-8f01-23456789abcd"
APP: dict[str, Any] = {"name": "app", "return_value": True}


class Access:
    """Tokens of a server. `lost` responses to creations are cut after the token was made."""

    def __init__(self, server: Server) -> None:
        self.rows: list[dict[str, Any]] = []
        self.lost, self.made, self.kept = 0, 0, server.response
        self.refused: set[str] = set()
        #: Members of the response to a creation that differ, of the list, and the own token.
        self.changes: dict[str, Any] = {}
        self.page: dict[str, Any] = {}
        self.own: dict[str, Any] | Reply | None = None
        server.stub.response = self.response

    def add(self, number: str, *, days: float, age: float = 1, **fields: Any) -> None:
        now = int(time.time())
        row = {"token_id": number, "subject": "jfac@1/users/bob", "refreshable": False}
        row |= {"description": f"toolchain:app:{MARK}", "issued_at": now - int(age * DAY)}
        self.rows.append({**row, "expiry": now + int(days * DAY), **fields})

    @property
    def ids(self) -> list[str]:
        return [row["token_id"] for row in self.rows]

    def response(self, seen: Seen) -> Reply:
        number = seen.path.rpartition("/")[2]
        if seen.method == "POST":
            return self._create(json.loads(seen.body))
        if seen.method == "DELETE" and number in self.refused:
            return Reply(403, {"errors": [{"code": "FORBIDDEN", "message": "no"}]})
        if seen.method == "DELETE":
            self.rows = [row for row in self.rows if row["token_id"] != number]
            return Reply(200)
        if number == "me" and self.own is not None:
            return self.own if isinstance(self.own, Reply) else Reply(200, self.own)
        if number != "tokens":
            there = number in self.ids
            return Reply(200 if there else 404, {"errors": [{"code": "NOT_FOUND"}]})
        return Reply(200, {"tokens": self.rows, **self.page})

    def _create(self, body: dict[str, Any]) -> Reply:
        self.made += 1
        number, lifetime = f"made-{self.made}", body.get("expires_in", 365 * DAY)
        self.add(number, days=lifetime / DAY, age=0, description=body["description"])
        if self.lost:
            self.lost -= 1
            return Reply(cut=True)
        shown = {"token_id": number, "access_token": f"secret-{number}", "expires_in": lifetime}
        return Reply(200, {**shown, **self.changes})


@pytest.fixture
def access(server: Server) -> Access:
    return Access(server)


def bodies(server: Server) -> list[Any]:
    return [json.loads(seen.body) for seen in server.stub.seen if seen.method == "POST"]


def test_token_is_created_once(server: Server, access: Access) -> None:
    given = {
        **APP,
        "token_username": "bob",
        "scopes": ["applied-permissions/user", "system:metrics:r"],
        "expires_in": "90d",
        "refreshable": True,
        "project": "tools",
    }
    plan, values = server.run(RepoTokenOperation, given)
    assert plan.action == "create"
    assert values["token"]["value"] == "secret-made-1"
    (body,) = bodies(server)
    assert body.pop("description").startswith("toolchain:app:")
    assert body == {
        "grant_type": "client_credentials",
        "username": "bob",
        "scope": "applied-permissions/user system:metrics:r",
        "expires_in": 90 * DAY,
        "refreshable": True,
        "project_key": "tools",
    }
    plan, values = server.run(RepoTokenOperation, given)
    assert not plan.changed
    assert values["token"]["id"] == "made-1"
    assert "value" not in values["token"]


def test_check_mode_predicts_and_creates_nothing(server: Server, access: Access) -> None:
    checked, values = server.run(RepoTokenOperation, APP, check=True)
    assert access.rows == []
    assert values["token"] == {"id": None, "name": "app", "created": None, "expires": None}
    plan, _values = server.run(RepoTokenOperation, APP)
    assert (plan.before, plan.after) == (checked.before, checked.after)


@pytest.mark.parametrize(
    "description",
    ["app", f"toolchain:app2:{MARK}", f"toolchain:my:app:{MARK}", f"toolchain:app:{MARK}x", ""],
)
def test_tokens_of_other_names_are_ignored(
    server: Server, access: Access, description: str
) -> None:
    access.add("other", days=50, description=description)
    server.run(RepoTokenOperation, {**APP, "revoke_older": True})
    server.run(RepoTokenOperation, {"name": "app", "state": "absent"})
    assert access.ids == ["other"]


def test_expiring_token_is_renewed(server: Server, access: Access) -> None:
    access.add("old", days=10)
    given = {**APP, "expires_in": "30d"}
    assert not server.run(RepoTokenOperation, {**given, "renew_before": "9d"})[0].changed
    assert server.run(RepoTokenOperation, {**given, "renew_before": "11d"})[0].changed
    assert access.ids == ["old", "made-1"]
    plan, values = server.run(
        RepoTokenOperation, {**given, "renew_before": "11d", "revoke_older": True}
    )
    assert plan.action == "update"
    assert values["token"]["id"] == "made-1"
    assert access.ids == ["made-1"]


def test_token_without_expiry_is_kept(server: Server, access: Access) -> None:
    access.add("old", days=0, expiry=0)
    plan, values = server.run(RepoTokenOperation, {**APP, "renew_before": "52w"})
    assert not plan.changed
    assert values["token"]["expires"] is None
    access.rows.clear()
    server.run(RepoTokenOperation, {**APP, "expires_in": "0"})
    assert bodies(server)[0]["expires_in"] == 0


def test_expired_tokens_are_ignored(server: Server, access: Access) -> None:
    access.add("old", days=-1)
    assert server.run(RepoTokenOperation, APP)[0].changed


@pytest.mark.parametrize("lost", [1, 2])
def test_token_of_a_lost_response_is_revoked(server: Server, access: Access, lost: int) -> None:
    access.lost = lost
    _plan, values = server.run(RepoTokenOperation, APP)
    assert access.ids == [f"made-{lost + 1}"]
    assert values["token"]["value"] == f"secret-made-{lost + 1}"


def test_repeatedly_lost_responses_are_an_error(server: Server, access: Access) -> None:
    access.lost = 9
    error = server.fails(RepoTokenOperation, APP)
    assert error.kind == "network"
    assert "were revoked" in error.message
    assert error.result == {"changed": False}
    assert access.ids == []


def test_irrevocable_token_with_lost_secret_is_reported(server: Server, access: Access) -> None:
    access.lost, access.refused = 1, {"made-1"}
    error = server.fails(RepoTokenOperation, APP)
    assert "the token made-1 was created, but its secret was lost" in error.message


def test_dest_contains_the_secret(server: Server, access: Access, tmp_path: Path) -> None:
    dest = tmp_path / "token"
    given = {"name": "app", "dest": str(dest)}
    _plan, values = server.run(RepoTokenOperation, given)
    assert dest.read_text() == "secret-made-1"
    assert stat.S_IMODE(dest.stat().st_mode) == 0o600
    assert "value" not in values["token"]
    assert not server.run(RepoTokenOperation, given)[0].changed
    dest.unlink()
    server.run(RepoTokenOperation, {**given, "revoke_older": True})
    assert (dest.read_text(), access.ids) == ("secret-made-2", ["made-2"])


def test_invalid_dest_creates_no_token(
    server: Server, access: Access, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder").mkdir()
    for wrong in ("missing/token", "folder"):
        given = {"name": "app", "dest": str(tmp_path / wrong)}
        assert server.fails(RepoTokenOperation, given).kind == "invalid"
    assert access.made == 0

    def fail(_source: str, _target: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    given = {"name": "app", "dest": str(tmp_path / "token")}
    assert server.fails(RepoTokenOperation, given).kind == "failed"
    assert (access.made, access.ids, os.listdir(tmp_path)) == (1, [], ["folder"])
    access.refused = {"made-2"}
    message = server.fails(RepoTokenOperation, given).message
    assert f"the token made-2 was created, but {given['dest']} could not be written" in message


def test_failed_revocation_returns_the_new_secret(server: Server, access: Access) -> None:
    access.add("old", days=1)
    access.refused = {"old"}
    given = {**APP, "renew_before": "2d", "expires_in": "30d", "revoke_older": True}
    _plan, values = server.run(RepoTokenOperation, given)
    assert values["token"]["value"] == "secret-made-1"
    assert "the older token old is still valid" in server.warnings[0]
    assert server.fails(RepoTokenOperation, given).kind == "permission"


def test_token_is_renewed_on_request(server: Server, access: Access) -> None:
    access.add("old", days=10)
    _plan, values = server.run(RepoTokenOperation, {**APP, "renew": True})
    assert values["token"]["value"] == "secret-made-1"
    assert [token["id"] for token in values["tokens"]] == ["old"]
    assert access.ids == ["old", "made-1"]


def test_tokens_in_use_are_not_revoked(server: Server, access: Access) -> None:
    for number, name in enumerate(("newest", "used", "old")):
        access.add(name, days=10, age=number + 1)
    given = {**APP, "revoke_older": True, "in_use": ["used", "gone"]}
    plan, values = server.run(RepoTokenOperation, given)
    assert plan.changed
    assert [token["id"] for token in plan.after["tokens"]] == ["newest", "used"]
    assert values["token"]["id"] == "newest"
    assert access.ids == ["newest", "used"]
    assert not server.run(RepoTokenOperation, given)[0].changed


EVE, OWN = "jfac@1/users/Eve", {"token_id": "own", "subject": "jfac@1/users/eve"}


def test_token_of_another_user_is_a_conflict(server: Server, access: Access) -> None:
    access.add("old", days=10)
    given: dict[str, Any] = {**APP, "token_username": "Bob"}
    assert not server.run(RepoTokenOperation, given)[0].changed
    access.add("eves", days=9, age=2, subject=EVE)
    for options in (given, APP, {"name": "app", "state": "absent"}):
        for further in ({}, {"renew": True}, {"revoke_older": True}):
            if "state" in options and further:
                continue
            error = server.fails(RepoTokenOperation, {**options, **further})
            assert error.kind == "conflict"
            assert "token_username" in error.message
    assert (access.ids, access.made) == (["old", "eves"], 0)
    server.run(RepoTokenOperation, {"name": "app", "token_username": "eve", "state": "absent"})
    assert access.ids == ["old"]


def test_token_for_the_login_conflicts_with_another_user(server: Server, access: Access) -> None:
    access.own = OWN
    access.add("old", days=10)
    error = server.fails(RepoTokenOperation, {**APP, "renew": True})
    assert "belong to 'bob', not to 'eve': set token_username" in error.message
    assert access.made == 0


def test_token_of_the_own_login_is_never_revoked(server: Server, access: Access) -> None:
    access.own = OWN
    for number, name in enumerate(("newest", "own", "old")):
        access.add(name, days=10, age=number + 1, subject=EVE)
    assert server.run(RepoTokenOperation, {**APP, "revoke_older": True})[0].changed
    assert (
        "the token own was not revoked, because the task is logged in with it" in server.warnings[0]
    )
    assert access.ids == ["newest", "own"]
    server.run(RepoTokenOperation, {"name": "app", "state": "absent"})
    assert access.ids == ["own"]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405])
@pytest.mark.parametrize("body", [b"", "<html>no</html>", {"errors": [{"message": "no"}]}])
def test_server_that_does_not_know_the_own_token_is_no_obstacle(
    server: Server, access: Access, status: int, body: Any
) -> None:
    access.own = Reply(status, body)
    access.add("old", days=10)
    server.run(RepoTokenOperation, {**APP, "renew": True, "revoke_older": True})
    assert access.ids == ["made-1"]


@pytest.mark.parametrize(
    "changes",
    [
        {"token_id": None},
        {"token_id": ""},
        {"issued_at": "2026-05-01T08:00:00Z"},
        {"expiry": "2026-05-01T08:00:00Z"},
        {"expiry": 1_777_000_000_000_000},
        {"expiry": True},
        {"expiry": -1},
    ],
)
def test_unreadable_token_creates_no_token(
    server: Server, access: Access, changes: dict[str, Any]
) -> None:
    access.add("old", days=10, **changes)
    for given in ({}, {"renew": True, "revoke_older": True}, {"state": "absent"}):
        assert server.fails(RepoTokenOperation, {"name": "app", **given}).kind == "protocol"
    assert (len(access.rows), access.made) == (1, 0)


@pytest.mark.parametrize("page", [{"cursor": "next"}, {"tokens": "none"}, {"tokens": ["x"]}])
def test_partial_list_creates_no_token(
    server: Server, access: Access, page: dict[str, Any]
) -> None:
    access.page = page
    assert server.fails(RepoTokenOperation, {"name": "app", "state": "absent"}).kind == "protocol"
    assert server.fails(RepoTokenOperation, APP).kind == "protocol"
    assert access.made == 0


@pytest.mark.parametrize(
    "changes",
    [{"token_id": None}, {"access_token": ""}, {"expires_in": "90d"}, {"expires_in": 10**400}],
)
def test_token_of_an_unusable_response_is_revoked(
    server: Server, access: Access, changes: dict[str, Any]
) -> None:
    access.changes = changes
    error = server.fails(RepoTokenOperation, APP)
    assert (error.kind, access.made, access.ids) == ("network", 3, [])
    assert "secret-made" not in f"{error.message} {error.detail}"


def test_short_lifetime_gives_a_warning(server: Server, access: Access) -> None:
    server.run(RepoTokenOperation, {**APP, "expires_in": "2h"})
    assert "do not store" in server.warnings[0]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "a*"}, "name must have"),
        ({"name": "a" * 201}, "name must have"),
        ({"name": " app"}, "name must have"),
        ({"name": "app\t"}, "name must have"),
        ({"name": "a\x85b"}, "name must have"),
        ({"name": "\ud83d"}, "name contains an unpaired surrogate"),
        ({"expires_in": "9999w"}, "expires_in is 9999w: write at most 36500d"),
        ({"renew_before": "9999w"}, "renew_before is 9999w: write at most 36500d"),
        ({"scopes": ["a b"]}, "scopes: 'a b' contains a blank"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["a" * 501]}, "scopes have more than"),
        ({"token_username": "a" * 256}, "token_username has more"),
        ({"expires_in": "10d", "renew_before": "2w"}, "renew_before is 2w"),
        ({"expires_in": "soon"}, "expires_in: 'soon' is not an age"),
        ({"renew_before": "1x"}, "renew_before: '1x' is not an age"),
        ({"state": "absent", "dest": "x"}, "dest cannot be combined"),
        ({"in_use": ["x"]}, "in_use requires revoke_older"),
        ({"state": "absent", "revoke_older": True}, "revoke_older cannot be combined"),
    ],
)
def test_invalid_input(server: Server, access: Access, given: dict[str, Any], said: str) -> None:
    error = server.fails(RepoTokenOperation, {"name": "app", **given})
    assert error.kind == "invalid"
    assert said in error.message
    assert server.stub.seen == []


def test_server_without_access_service_is_reported(server: Server) -> None:
    page: Callable[[Seen], Reply] = lambda _seen: Reply(404, "<html>no</html>")  # noqa: E731
    server.stub.response = page
    error = server.fails(RepoTokenOperation, {"name": "app", "state": "absent"})
    assert error.kind == "not_found"
    assert "/access" in error.message
