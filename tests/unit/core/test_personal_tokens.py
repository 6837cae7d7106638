# SPDX-License-Identifier: GPL-3.0-or-later
"""Test `tracker_token` and `wiki_token` on a server with the interface of both [tracker-41]."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.input_check import (
    check_options,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.typed_options import (
    argument_spec,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.secret import Secret
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.tracker_token import (
    TrackerTokenOperation,
    TrackerTokenOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.wiki_token import (
    WikiTokenOperation,
    WikiTokenOptions,
)
from tests.helpers.options import build
from tests.unit.stub import Reply, Seen, Stub, connection_to

PATH = "/base/rest/pat/latest/tokens"
MARK = "01234567-89ab-4cde-8f01-23456789abcd"
MODULES: dict[str, tuple[Any, Callable[..., Any]]] = {
    "tracker": (TrackerTokenOptions, TrackerTokenOperation),
    "wiki": (WikiTokenOptions, WikiTokenOperation),
}


@dataclass
class Server:
    """Tokens of an account. `lost` responses to creations are cut after the token was made."""

    service: str
    stub: Stub
    rows: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    lost: int = 0
    made: int = 0
    listing: Callable[[list[dict[str, Any]]], Any] = list
    page: Reply | None = None
    #: Returns the response to a creation, whose token the server keeps.
    creation: Callable[[dict[str, Any]], Reply] = lambda row: Reply(
        201, {**row, "rawToken": f"secret-{row['id']}"}
    )
    #: The response to a revocation that is not carried out.
    refusal: Reply | None = None
    headers: dict[str, str] = field(default_factory=dict)
    #: Tokens that a request creates: a proxy repeats it.
    copies: int = 1

    def add(self, name: str = f"toolchain:app:{MARK}", *, days: int | None, age: int = 1) -> str:
        self.made += 1
        now = datetime.now(timezone.utc)
        expiring = None if days is None else (now + timedelta(days=days)).isoformat()
        created = (now - timedelta(days=age)).isoformat()
        row = {"id": self.made, "name": name, "createdAt": created, "expiringAt": expiring}
        self.rows.append(row)
        return str(self.made)

    @property
    def ids(self) -> list[str]:
        return [str(row["id"]) for row in self.rows]

    def reply(self, seen: Seen) -> Reply:
        if self.page is not None:
            return self.page
        if seen.method == "DELETE" and self.refusal is not None:
            return self.refusal
        if seen.method == "DELETE":
            number = seen.path.rpartition("/")[2]
            found = number in self.ids
            self.rows = [row for row in self.rows if str(row["id"]) != number]
            return Reply(204 if found else 404, b"" if found else {"errorMessages": ["gone"]})
        assert seen.path == PATH
        if seen.method == "GET":
            return Reply(200, json.dumps(self.listing(self.rows)), self.headers)
        body = json.loads(seen.body)
        for _copy in range(self.copies):
            self.add(body["name"], days=body.get("expirationDuration"), age=0)
        if self.lost:
            self.lost -= 1
            return Reply(cut=True)
        return self.creation(self.rows[-1])

    def run(self, *, check: bool = False, **given: Any) -> Mapping[str, Any]:
        kind, operation = MODULES[self.service]
        settings = {"dialect": "auto", "accept_language": None, "retries": 0}
        login = {"username": "bot", "password": Secret("bot-password")}
        connection = connection_to(self.stub.url, self.service, settings=settings, **login)
        if not {"dest", "state", "return_value"} & set(given):
            given["return_value"] = True
        options: Any = build(kind, **check_options(argument_spec(kind), {"name": "app", **given}))
        task = Task(connection, self.warnings.append, read_only=check)
        made = operation(task, options)
        plan = made.plan()
        values = {**plan.result, "changed": plan.changed}
        return {**values, **made.apply(plan)} if plan.changed and not check else values

    def fails(self, **given: Any) -> ToolchainError:
        with pytest.raises(ToolchainError) as caught:
            self.run(**given)
        return caught.value

    @property
    def writes(self) -> list[Seen]:
        return [seen for seen in self.stub.seen if seen.method != "GET"]


@pytest.fixture(params=sorted(MODULES))
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with Stub() as stub:
        made = Server(request.param, stub)
        stub.response = made.reply
        yield made


def test_token_is_created_once(server: Server) -> None:
    values = server.run(expires_in="12w", renew_before="14d")
    assert values["token"]["value"] == "secret-1"
    (write,) = server.writes
    body = json.loads(write.body)
    assert body.pop("name").startswith("toolchain:app:")
    assert body == {"expirationDuration": 84}
    assert write.headers["X-Atlassian-Token"] == "no-check"
    values = server.run(expires_in="12w", renew_before="14d")
    assert (values["changed"], values["token"]["id"], len(server.rows)) == (False, "1", 1)
    assert "value" not in values["token"]


@pytest.mark.parametrize("expires_in", [None, "0"])
def test_token_without_expiry_is_created(server: Server, expires_in: str | None) -> None:
    server.run(expires_in=expires_in)
    assert set(json.loads(server.writes[0].body)) == {"name"}
    assert not server.run(expires_in=expires_in, renew_before="30d")["changed"]


def test_check_mode_creates_no_token(server: Server) -> None:
    values = server.run(check=True, expires_in="30d")
    assert (values["changed"], values["token"]["id"]) == (True, None)
    assert server.writes == []


def test_expiring_token_is_renewed_and_older_tokens_are_revoked(server: Server) -> None:
    server.add(days=3)
    used = server.add(days=4)
    others = server.add("dashboard of a person", days=5)
    given: Any = {"expires_in": "90d", "renew_before": "7d", "revoke_older": True, "in_use": [used]}
    assert server.run(**given)["token"]["value"] == "secret-4"
    assert server.ids == [used, others, "4"]
    assert not server.run(**given)["changed"]


def test_renew_replaces_a_valid_token(server: Server) -> None:
    server.add(days=None)
    assert server.run(renew=True)["token"]["value"] == "secret-2"
    assert server.ids == ["1", "2"]


def test_dest_receives_the_secret(server: Server, tmp_path: Path) -> None:
    dest = tmp_path / "token"
    values = server.run(dest=str(dest))
    assert (dest.read_text(), stat.S_IMODE(dest.stat().st_mode)) == ("secret-1", 0o600)
    assert "value" not in values["token"]


def test_secret_is_returned_only_on_request(server: Server, tmp_path: Path) -> None:
    for check in (True, False):
        with pytest.raises(ToolchainError, match="or return_value: true") as caught:
            server.run(check=check, return_value=False)
        assert caught.value.kind == "invalid"
    assert server.writes == []
    server.add(days=None)
    assert not server.run(return_value=False, revoke_older=True)["changed"]
    values = server.run(dest=str(tmp_path / "token"), return_value=True)
    assert values["token"]["value"] == (tmp_path / "token").read_text()


def test_absent_revokes_only_tokens_of_that_name(server: Server) -> None:
    server.add(days=None)
    others = server.add(f"toolchain:application:{MARK}", days=None)
    assert server.run(state="absent")["changed"]
    assert server.ids == [others]
    assert not server.run(state="absent")["changed"]


@pytest.mark.parametrize(("lost", "copies"), [(1, 1), (2, 1), (1, 2)])
def test_token_with_lost_secret_is_revoked(server: Server, lost: int, copies: int) -> None:
    server.lost, server.copies = lost, copies
    made = str((lost + 1) * copies)
    assert server.run()["token"]["value"] == f"secret-{made}"
    assert server.ids[-1] == made
    assert len(server.ids) == copies


@pytest.mark.parametrize(
    "change",
    [
        {"rawToken": ""},
        {"rawToken": ["hidden-secret"]},
        {"id": None},
        {"id": 1.5},
        {"id": True},
        {"createdAt": "just now"},
        {"expiringAt": "next year"},
    ],
)
def test_token_of_an_unusable_response_is_revoked(server: Server, change: dict[str, Any]) -> None:
    server.creation = lambda row: Reply(201, {**row, "rawToken": "hidden-secret", **change})
    error = server.fails()
    assert (error.kind, server.ids, server.made) == ("network", [], 3)
    assert "hidden-secret" not in f"{error.message} {error.detail}"


def test_token_with_lost_secret_and_unreadable_list_is_reported(server: Server) -> None:
    server.creation = lambda _row: Reply(204)
    server.listing = lambda rows: [{**row, "createdAt": "just now"} for row in rows]
    message = server.fails().message
    assert f"the token '{server.rows[0]['name']}' was created" in message


@pytest.mark.parametrize("status", [200, 202, 203])
def test_secret_of_any_success_is_returned(server: Server, status: int) -> None:
    server.creation = lambda row: Reply(status, {**row, "rawToken": "secret"})
    assert server.run()["token"]["value"] == "secret"


def test_newest_token_decides(server: Server) -> None:
    server.add(days=None, age=9)
    server.add(days=3)
    values = server.run(expires_in="90d", renew_before="7d", revoke_older=True)
    assert (values["token"]["id"], server.ids) == ("3", ["3"])


def test_unknown_order_revokes_nothing(server: Server) -> None:
    server.add(days=None)
    server.add(days=None)
    server.rows[0]["createdAt"] = None
    error = server.fails(revoke_older=True)
    assert error.kind == "protocol"
    assert "the token 1 was created" in error.message
    assert server.writes == []
    assert server.run(renew=True, revoke_older=True)["token"]["id"] == "3"
    assert server.ids == ["3"]


@pytest.mark.parametrize(("days", "ahead", "valid"), [(50, 100, False), (-50, -100, True)])
def test_clock_of_the_server_decides(server: Server, days: int, ahead: int, valid: bool) -> None:
    server.add(days=days, age=60)
    now = datetime.now(timezone.utc) + timedelta(days=ahead)
    server.headers["Date"] = format_datetime(now, usegmt=True)
    assert server.run()["changed"] is not valid


def test_new_token_that_is_due_already_gives_a_warning(server: Server) -> None:
    server.creation = lambda row: Reply(
        201, {**row, "expiringAt": "2030-01-01T00:00:00Z", "rawToken": "secret"}
    )
    server.run(renew_before="9999d")
    assert "the next run creates another token" in server.warnings[0]
    assert "2030-01-01T00:00:00.000Z" in server.warnings[0]


@pytest.mark.parametrize("body", ["<html>blocked</html>", {"errorMessages": ["blocked"]}])
def test_404_of_a_proxy_is_no_revocation(server: Server, body: Any) -> None:
    server.refusal = Reply(404, body)
    server.add(days=None)
    assert server.fails(state="absent").kind == "not_found"
    server.run(renew=True, revoke_older=True)
    assert "the older token 1 is still valid" in server.warnings[0]


@pytest.mark.parametrize("member", ["values", "tokens"])
def test_list_inside_a_member_is_read(server: Server, member: str) -> None:
    server.listing = lambda rows: {member: rows}
    server.add(days=None)
    assert server.run()["token"]["id"] == "1"


@pytest.mark.parametrize(
    "listing",
    [
        lambda _rows: {},
        lambda _rows: None,
        lambda _rows: [{"name": "no id"}],
        lambda rows: [*rows, "another"],
        lambda rows: [{**rows[0], "id": ""}],
        lambda rows: [{**rows[0], "id": True}],
        lambda rows: [{**rows[0], "id": 1.5}],
        lambda rows: [rows[0], {**rows[0], "name": "dashboard of a person"}],
        lambda rows: [{**rows[0], "expiringAt": "next week"}],
        lambda rows: [{**rows[0], "expiringAt": "9999-12-31T23:59:59-05:00"}],
        lambda rows: {"values": rows, "isLast": False},
        lambda rows: {"values": rows, "total": 2},
        lambda rows: {"tokens": rows, "cursor": "x"},
    ],
)
def test_unreadable_list_creates_no_token(
    server: Server, listing: Callable[[list[dict[str, Any]]], Any]
) -> None:
    server.add(days=None)
    server.listing = listing
    assert server.fails().kind == "protocol"
    assert server.writes == []


@pytest.mark.parametrize("status", [404, 405])
def test_missing_interface_is_reported(server: Server, status: int) -> None:
    server.page = Reply(status, "<html>no such page</html>", {"Content-Type": "text/html"})
    assert "Data Center" in server.fails().message
    assert server.writes == []


def test_cloud_site_is_rejected_before_any_request(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server.stub, "url", "https://example.atlassian.net/wiki")
    error = server.fails()
    assert error.kind == "invalid"
    assert "a cloud site has no API for personal access tokens" in error.message


@pytest.mark.parametrize("expires_in", ["36h", "90m"])
def test_lifetime_with_part_of_a_day_is_rejected(server: Server, expires_in: str) -> None:
    error = server.fails(expires_in=expires_in)
    assert error.kind == "invalid"
    assert "whole days" in error.message
    assert server.stub.seen == []
