# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that users are created, changed and deleted, by Access and by the older interface."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.access.repo_user import (
    RepoUserOperation,
)
from tests.unit.repo.access import Directory
from tests.unit.repo.conftest import Server

OLD = {
    "profile_updatable": "profileUpdatable",
    "disable_ui_access": "disableUIAccess",
    "internal_password_disabled": "internalPasswordDisabled",
}
FLAGS = {"admin": False, "profile_updatable": True, "disable_ui_access": False}
FLAGS["internal_password_disabled"] = False


@pytest.fixture(params=[False, True], ids=["access", "older"])
def users(server: Server, request: pytest.FixtureRequest) -> Directory:
    made = Directory(server, old=request.param)
    made.rows["groups"] = {name: {} for name in ("dev", "ops", "readers")}
    return made


def add(users: Directory, name: str = "bob", **fields: Any) -> None:
    given = {"email": "bob@example.org", **FLAGS, "groups": [], **fields}
    row = {OLD.get(k, k) if users.old else k: value for k, value in given.items()}
    users.rows["users"][name] = {"name" if users.old else "username": name, **row}


def value(users: Directory, field: str, name: str = "bob") -> Any:
    return users.rows["users"][name].get(OLD.get(field, field) if users.old else field)


NEW = {"name": "Bob", "email": "bob@example.org", "user_password": "s3cret-word"}


def test_user_is_created_and_then_unchanged(server: Server, users: Directory) -> None:
    given = {**NEW, **FLAGS, "groups": ["ops", "dev"]}
    plan, values = server.run(RepoUserOperation, given)
    assert plan.action == "create"
    assert values["user"] == {
        "name": "bob",
        "email": "bob@example.org",
        **FLAGS,
        "groups": ["dev", "ops"],
    }
    assert "s3cret" not in repr((plan, values))
    assert value(users, "password") == "s3cret-word"
    assert not server.run(RepoUserOperation, given)[0].changed
    assert len(users.writes) == 1


@pytest.mark.parametrize(
    ("mode", "given", "after"),
    [
        ("exact", ["ops"], ["ops"]),
        ("exact", [], []),
        ("add", ["ops"], ["dev", "ops", "readers"]),
        ("remove", ["dev"], ["readers"]),
    ],
)
def test_groups_are_updated(
    server: Server, users: Directory, mode: str, given: list[str], after: list[str]
) -> None:
    add(users, groups=["dev", "readers"])
    options = {"name": "bob", "groups": given, "groups_mode": mode}
    plan, _values = server.run(RepoUserOperation, options)
    assert plan.after["groups"] == sorted(value(users, "groups")) == after
    assert not server.run(RepoUserOperation, options)[0].changed


def test_automatic_groups_of_a_new_user_are_removed(server: Server) -> None:
    users = Directory(server)
    users.rows["groups"] = {"dev": {}, "readers": {}}

    def create(method: str, path: str, body: Any) -> None:
        if method == "POST":
            body["groups"] = [*body.get("groups", []), "readers"]

    users.apply = create
    _plan, values = server.run(RepoUserOperation, {**NEW, "groups": ["dev"]})
    assert values["user"]["groups"] == ["dev"]
    assert users.writes[-1][1:] == ("users/bob/groups", {"add": [], "remove": ["readers"]})


def test_unknown_group_is_not_found(server: Server, users: Directory) -> None:
    error = server.fails(RepoUserOperation, {**NEW, "groups": ["dev", "nobody", "Ops"]})
    assert error.kind == "not_found"
    # only the names of users have no case
    assert error.message.endswith("there is no group 'Ops', 'nobody'")
    assert users.writes == []


def test_password_is_sent_only_on_request(server: Server, users: Directory) -> None:
    add(users)
    assert not server.run(RepoUserOperation, NEW)[0].changed
    plan, _values = server.run(RepoUserOperation, {**NEW, "update_password": "always"})
    assert plan.changed
    assert [body for _m, _p, body in users.writes] == [{"password": "s3cret-word"}]
    assert "s3cret" not in repr(plan)


def test_omitted_fields_are_kept(server: Server, users: Directory) -> None:
    add(users, profile_updatable=False)
    server.run(RepoUserOperation, {"name": "bob", "email": "new@example.org"})
    assert [body for _m, _p, body in users.writes] == [{"email": "new@example.org"}]


@pytest.mark.parametrize("name", ["bob", "admin", "anonymous"])
@pytest.mark.parametrize(
    "change",
    [
        {"state": "absent"},
        {"admin": False},
        {"disable_ui_access": True, "admin": False, "profile_updatable": False},
        {"internal_password_disabled": True},
    ],
)
def test_required_accounts_are_not_deleted(
    server: Server, name: str, change: dict[str, Any]
) -> None:
    users = Directory(server)
    users.me = "bob"
    add(users, name, admin=True)
    error = server.fails(RepoUserOperation, {"name": name, **change})
    assert error.kind == "invalid"
    assert "this requires force=true" in error.message
    assert users.writes == []
    assert server.run(RepoUserOperation, {"name": name, **change, "force": True})[0].changed


def test_user_is_deleted(server: Server, users: Directory) -> None:
    add(users)
    given = {"name": "bob", "state": "absent"}
    assert server.run(RepoUserOperation, given)[0].action == "delete"
    assert users.rows["users"] == {}
    assert not server.run(RepoUserOperation, given)[0].changed


def test_many_users_in_one_task(server: Server, users: Directory) -> None:
    add(users)
    add(users, "eve")
    entries = [
        {"name": "bob", "email": "bob@example.org"},
        {"name": "eve", "admin": True},
        {"name": "new", "email": "new@example.org", "user_password": "s3cret-word"},
    ]
    _plan, values = server.run(RepoUserOperation, {"entries": entries})
    assert [result["action"] for result in values["results"]] == ["unchanged", "updated", "created"]
    assert "s3cret" not in repr(values)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "new", "user_password": "x1234567"}, "email is missing"),
        ({"name": "new", "email": "a@b.c"}, "set user_password"),
    ],
)
def test_incomplete_new_user_is_rejected(server: Server, given: dict[str, Any], said: str) -> None:
    users = Directory(server)
    error = server.fails(RepoUserOperation, given)
    assert error.kind == "invalid"
    assert said in error.message
    without = {"name": "new", "email": "a@b.c", "internal_password_disabled": True}
    assert server.run(RepoUserOperation, without)[0].changed
    assert len(users.writes) == 1


def test_contradictory_flags_are_rejected(server: Server, users: Directory) -> None:
    add(users)
    error = server.fails(RepoUserOperation, {"name": "bob", "disable_ui_access": True})
    assert "set profile_updatable to false as well" in error.message


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "x", "groups_mode": "add"}, "groups_mode requires groups"),
        (
            {"name": "x", "disable_ui_access": True, "admin": True},
            "admin=true cannot be combined with disable_ui_access=true",
        ),
        (
            {"name": "x", "update_password": "always"},
            "update_password=always requires user_password",
        ),
        (
            {"name": "x", "state": "absent", "user_password": "abcdefgh"},
            "user_password cannot be combined",
        ),
        ({"entries": [{"name": "x"}, {"name": "X"}]}, "entries[1]"),
        ({"entries": [{"email": "x"}]}, "entries[0]: name is missing"),
        ({"entries": [{"name": "x"}], "force": True}, "force cannot be combined with entries"),
    ],
)
def test_invalid_input(server: Server, given: dict[str, Any], said: str) -> None:
    error = server.fails(RepoUserOperation, given)
    assert error.kind == "invalid"
    assert said in error.message
    assert server.stub.seen == []


def test_new_password_counts_as_change_if_another_field_is_lost(
    server: Server, users: Directory
) -> None:
    add(users)

    def without_email(_method: str, _path: str, body: Any) -> None:
        body.pop("email")

    users.apply = without_email
    given = {**NEW, "email": "new@example.org", "update_password": "always"}
    error = server.fails(RepoUserOperation, given)
    assert (error.kind, error.result["changed"]) == ("rejected", True)
    assert "did not save email" in error.message
    assert value(users, "password") == "s3cret-word"
