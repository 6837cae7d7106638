# SPDX-License-Identifier: GPL-3.0-or-later
"""Find users by name, key or email address, and never by display name."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.tracker_user_info import (
    TrackerUserInfoOperation,
    TrackerUserInfoOptions,
)
from tests.helpers.options import build
from tests.unit.stub import Reply, Seen, Stub
from tests.unit.tracker.running import Run

PEOPLE: list[dict[str, Any]] = [
    {"name": "alice", "key": "JIRAUSER1", "displayName": "A", "emailAddress": "a@x.example"},
    {"name": "boris", "key": "boris", "displayName": "alice", "active": False},
]
IN_CLOUD: list[dict[str, Any]] = [
    {"accountId": "1", "displayName": "A", "emailAddress": "A@X.example"},
    {"accountId": "2", "displayName": "a@x.example"},
    {"accountId": "3", "displayName": "B", "emailAddress": "a@x.example.com"},
    {"accountId": "4", "displayName": "C", "emailAddress": None},
]


def site(people: list[dict[str, Any]], kind: str, *, may: bool = True) -> Callable[[Seen], Reply]:
    def respond(seen: Seen) -> Reply:
        query = {name: value[0] for name, value in parse_qs(urlsplit(seen.target).query).items()}
        if seen.path.endswith("serverInfo"):
            return Reply(body={"deploymentType": kind})
        if seen.path.endswith("myself"):
            return Reply(body=people[0]) if people else Reply(404)
        if seen.path.endswith("mypermissions"):
            return Reply(body={"permissions": {"USER_PICKER": {"havePermission": may}}})
        if seen.path.endswith("user/search"):
            return Reply(body=json.dumps(people if may else []))
        wanted = {"name": query.get("username"), **query}
        found = [one for one in people if any(one.get(name) == wanted[name] for name in wanted)]
        return Reply(body=found[0]) if found else Reply(404, {"errorMessages": ["no"]})

    return respond


def users(stub: Stub, **options: Any) -> list[dict[str, Any]]:
    run = Run(stub, TrackerUserInfoOperation, build(TrackerUserInfoOptions, **options))
    found: list[dict[str, Any]] = run(check=True)["users"]
    return found


def test_user_of_a_server_is_found_by_name_and_key() -> None:
    with Stub(response=site(PEOPLE, "Server")) as stub:
        rows = users(stub, users=["alice", "JIRAUSER1", "boris", "A", "alice"])
    alice = {"account": "alice", "key": "JIRAUSER1", "email": "a@x.example", "display_name": "A"}
    assert [row["user"] for row in rows] == ["alice", "JIRAUSER1", "boris", "A"]
    assert rows[0]["matches"] == rows[1]["matches"] == [{**alice, "active": True}]
    assert rows[2]["matches"][0] == {
        "account": "boris",
        "key": "boris",
        "email": None,
        "display_name": "alice",
        "active": False,
    }
    assert rows[3]["matches"] == []


def test_address_of_the_cloud_must_be_equal_or_hidden() -> None:
    with Stub(response=site(IN_CLOUD, "Cloud")) as stub:
        (row,) = users(stub, emails=["a@x.example"])
    found = [(match["account"], match["email"]) for match in row["matches"]]
    assert found == [("1", "A@X.example"), ("2", None), ("4", None)]


def test_other_server_is_an_error() -> None:
    with Stub(response=site([], "Server")) as stub, pytest.raises(ToolchainError) as caught:
        users(stub, users=["alice"])
    assert caught.value.kind == "not_found"


def test_account_that_may_not_browse_users_finds_nobody() -> None:
    with (
        Stub(response=site(IN_CLOUD, "Cloud", may=False)) as stub,
        pytest.raises(ToolchainError) as caught,
    ):
        users(stub, emails=["a@x.example"])
    assert (caught.value.kind, caught.value.message) == (
        "permission",
        "searching for users: the account lacks the permission USER_PICKER",
    )


def test_empty_lists_find_nobody_and_say_so() -> None:
    with Stub(response=site([], "Server")) as stub:
        options = build(TrackerUserInfoOptions, users=[])
        run = Run(stub, TrackerUserInfoOperation, options)
        assert run(check=True)["users"] == []
    assert run.warnings == ["users and emails are empty: nobody is searched for"]
