# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that groups are created, changed and deleted, by Access and by the older interface."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.secret import Secret
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.access.repo_group import (
    RepoGroupOperation,
)
from tests.unit.repo.access import Directory
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply


@pytest.fixture(params=[False, True], ids=["access", "older"])
def groups(server: Server, request: pytest.FixtureRequest) -> Directory:
    made = Directory(server, old=request.param)
    made.rows["users"] = {name: {} for name in ("alice", "bob", "carol")}
    return made


def row(groups: Directory, **fields: Any) -> dict[str, Any]:
    """Return a group as the interface shows it."""
    old = {"external_id": "externalId", "auto_join": "autoJoin", "members": "userNames"}
    old["admin_privileges"] = "adminPrivileges"
    given = {"name": "dev", "realm": "internal", **fields}
    return {old.get(k, k) if groups.old else k: value for k, value in given.items()}


def members(groups: Directory) -> list[str]:
    found = groups.rows["groups"]["dev"]["userNames" if groups.old else "members"]
    return sorted(found)


def test_group_is_created_and_then_unchanged(server: Server, groups: Directory) -> None:
    given = {
        "name": "dev",
        "description": "Developers",
        "external_id": "uuid-1",
        "auto_join": True,
        "admin_privileges": False,
        "members": ["Bob", "alice"],
    }
    plan, values = server.run(RepoGroupOperation, given)
    assert plan.action == "create"
    stored = row(groups, **{**given, "members": ["alice", "bob"]})
    assert {"realm": "internal", **groups.rows["groups"]["dev"]} == stored
    assert values["group"] == {**given, "members": ["alice", "bob"]}
    assert not server.run(RepoGroupOperation, given)[0].changed
    assert len(groups.writes) == 1


def test_name_that_the_server_stores_with_other_letter_case_is_no_error(
    server: Server, groups: Directory
) -> None:
    def lower(_method: str, path: str, body: Any) -> None:
        body["name"] = "dev"
        groups.rows["groups"]["Dev"] = row(groups, **body)

    groups.apply = lower
    given = {"name": "Dev", "description": "Developers"}
    assert server.run(RepoGroupOperation, given)[1]["group"]["name"] == "dev"


def test_omitted_options_are_kept(server: Server, groups: Directory) -> None:
    groups.rows["groups"]["dev"] = row(groups, description="x", auto_join=True, members=["bob"])
    plan, values = server.run(RepoGroupOperation, {"name": "dev", "description": ""})
    assert [change.field for change in plan.changes] == ["description"]
    assert [body for _method, _path, body in groups.writes] == [{"description": ""}]
    assert values["group"]["auto_join"] is True
    assert members(groups) == ["bob"]


@pytest.mark.parametrize(
    ("mode", "given", "after"),
    [
        ("exact", ["carol"], ["carol"]),
        ("exact", [], []),
        ("add", ["carol", "bob"], ["alice", "bob", "carol"]),
        ("remove", ["bob", "zoe"], ["alice"]),
    ],
)
def test_members_are_updated(
    server: Server, groups: Directory, mode: str, given: list[str], after: list[str]
) -> None:
    groups.rows["groups"]["dev"] = row(groups, members=["alice", "bob"])
    options = {"name": "dev", "members": given, "members_mode": mode}
    plan, _values = server.run(RepoGroupOperation, options)
    assert plan.after["members"] == members(groups) == after
    assert not server.run(RepoGroupOperation, options)[0].changed
    if not groups.old:
        ((method, path, body),) = groups.writes
        assert (method, path) == ("PATCH", "groups/dev/members")
        assert set(body) == {"add", "remove"}


def test_unknown_members_are_not_found(server: Server, groups: Directory) -> None:
    given = {"name": "dev", "members": ["alice", "zoe"]}
    error = server.fails(RepoGroupOperation, given)
    assert (error.kind, error.message) == ("not_found", "members: there is no user 'zoe'")
    assert groups.writes == []


def test_members_of_a_directory_group_are_not_changed(server: Server, groups: Directory) -> None:
    groups.rows["groups"]["dev"] = row(groups, realm="ldap", members=["alice"])
    same = {"name": "dev", "members": ["alice"], "description": "x"}
    assert server.run(RepoGroupOperation, same)[0].changed
    error = server.fails(RepoGroupOperation, {"name": "dev", "members": []})
    assert error.kind == "invalid"
    assert "the realm 'ldap'" in error.message


def test_group_is_deleted(server: Server, groups: Directory) -> None:
    groups.rows["groups"]["dev"] = row(groups)
    given = {"name": "dev", "state": "absent"}
    assert server.run(RepoGroupOperation, given)[0].action == "delete"
    assert groups.rows["groups"] == {}
    assert not server.run(RepoGroupOperation, given)[0].changed


def test_dropped_field_is_rejected(server: Server, groups: Directory) -> None:
    groups.rows["groups"]["dev"] = row(groups, description="x")
    groups.apply = lambda _method, _path, _body: Reply(200)
    error = server.fails(RepoGroupOperation, {"name": "dev", "description": "y"})
    assert error.kind == "rejected"
    assert "did not save description" in error.message


def test_automatic_administrator_group_is_rejected(server: Server, groups: Directory) -> None:
    groups.rows["groups"]["dev"] = row(groups, auto_join=True)
    error = server.fails(RepoGroupOperation, {"name": "dev", "admin_privileges": True})
    assert error.kind == "invalid"
    assert groups.writes == []


def test_many_groups_in_one_task(server: Server, groups: Directory) -> None:
    groups.rows["groups"] = {
        name: {**row(groups, description="same"), "name": name} for name in ("a", "b", "x")
    }
    entries = [
        {"name": "a", "description": "same"},
        {"name": "b", "description": "other"},
        {"name": "new"},
        {"name": "gone", "state": "absent"},
    ]
    plan, values = server.run(RepoGroupOperation, {"entries": entries})
    actions = {result["name"]: result["action"] for result in values["results"]}
    assert actions == {"a": "unchanged", "b": "updated", "new": "created", "gone": "unchanged"}
    assert set(plan.before) == set(plan.after) == {"b", "new"}
    assert values["results"][1]["description"] == "other"


def test_groups_cost_a_list_and_one_request_each(server: Server, groups: Directory) -> None:
    names = [f"g{number}" for number in range(20)]
    groups.rows["groups"] = {name: {**row(groups), "name": name} for name in names}
    entries = [{"name": name, "description": ""} for name in names]
    assert not server.run(RepoGroupOperation, {"entries": entries})[0].changed
    lacking = 2 if groups.old else 0  # Access is asked, and its absence is verified
    assert len(server.asked) == 1 + 20 + lacking


def test_pages_of_list_are_followed(server: Server) -> None:
    pages = [
        Reply(body={"groups": [{"group_name": "a"}], "cursor": "2"}),
        Reply(body={"groups": [{"group_name": "b"}], "cursor": None}),
    ]
    server.on["GET /access/api/v2/groups"] = pages[0]
    server.on["GET /access/api/v2/groups?cursor=2"] = pages[1]
    for name in "ab":
        server.on[f"GET /access/api/v2/groups/{name}"] = Reply(body={"name": name})
    entries = [{"name": "a"}, {"name": "b"}]
    assert not server.run(RepoGroupOperation, {"entries": entries})[0].changed


def test_list_that_a_count_proves_to_be_cut_is_an_error(server: Server) -> None:
    page = {"groups": [{"group_name": "a"}], "cursor": "2", "total": 3}
    for query in ("", "?cursor=2"):
        server.on[f"GET /access/api/v2/groups{query}"] = Reply(body=page)
    error = server.fails(RepoGroupOperation, {"entries": [{"name": "a"}, {"name": "b"}]})
    assert error.kind == "protocol"
    assert "reports 3 entries, but sent 1" in error.message


def test_404_of_older_access_service_is_not_an_absent_group(server: Server) -> None:
    missing = Reply(404, {"errors": [{"code": "NOT_FOUND", "message": "HTTP 404 Not Found"}]})
    server.on["GET /access/api/v2/groups/dev"] = server.on["GET /access/api/v2/groups"] = missing
    server.on["GET /api/security/groups/dev?includeUsers=true"] = Reply(body={"name": "dev"})
    plan, _values = server.run(RepoGroupOperation, {"name": "dev"})
    assert not plan.changed
    error = server.fails(RepoGroupOperation, {"name": "other", "state": "absent"})
    assert error.kind == "not_found"


def test_members_hidden_by_access_service_are_read_elsewhere(server: Server) -> None:
    server.on["GET /access/api/v2/groups/dev"] = Reply(body={"name": "dev"})
    older = Reply(body={"name": "dev", "userNames": ["bob"]})
    server.on["GET /api/security/groups/dev?includeUsers=true"] = older
    plan, _values = server.run(RepoGroupOperation, {"name": "dev", "members": ["bob"]})
    assert not plan.changed
    assert not server.run(RepoGroupOperation, {"name": "dev", "description": ""})[0].changed
    assert len(server.asked) <= 3


def test_list_without_pages_is_accepted(server: Server) -> None:
    server.on["GET /access/api/v2/groups"] = Reply(body='[{"name": "a"}, {"name": "b"}]')
    for name in "ab":
        server.on[f"GET /access/api/v2/groups/{name}"] = Reply(body={"name": name})
    entries = [{"name": "a"}, {"name": "b"}]
    assert not server.run(RepoGroupOperation, {"entries": entries})[0].changed


def test_missing_permission_is_reported_without_access_service(server: Server) -> None:
    server.on["GET /api/security/groups/dev?includeUsers=true"] = Reply(403, "no")
    error = server.fails(RepoGroupOperation, {"name": "dev"})
    assert error.kind == "permission"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "x", "members_mode": "add"}, "members_mode requires members"),
        (
            {"name": "x", "auto_join": True, "admin_privileges": True},
            "cannot be combined with auto_join=true",
        ),
        ({"name": "x", "state": "absent", "description": "x"}, "description cannot be combined"),
        ({"entries": [{"name": "x"}, {"name": "x"}]}, "entries[1]"),
        ({"entries": [{"description": "x"}]}, "entries[0]: name is missing"),
        (
            {"entries": [{"name": "x"}], "description": "y"},
            "description cannot be combined with entries",
        ),
    ],
)
def test_invalid_input(server: Server, given: dict[str, Any], said: str) -> None:
    error = server.fails(RepoGroupOperation, given)
    assert error.kind == "invalid"
    assert said in error.message
    assert server.stub.seen == []


OLDER = "GET /api/security/groups/dev?includeUsers=true"
NEWER = "GET /access/api/v2/groups/dev"
REFUSED = Reply(401, {"errors": [{"code": "UNAUTHORIZED", "message": "Token is required"}]})


@pytest.mark.parametrize("accepted", [True, False])
def test_api_key_rejected_by_access_service_uses_older_interface(
    server: Server, monkeypatch: pytest.MonkeyPatch, accepted: bool
) -> None:
    task = server.task()
    connection = replace(task.connection, api_key=Secret("key-1234"))
    monkeypatch.setattr(server, "task", lambda check=False: Task(connection, task.warn, check))
    server.on[NEWER] = REFUSED
    server.on[OLDER] = Reply(body={"name": "dev"}) if accepted else Reply(401, "no")
    if accepted:
        assert not server.run(RepoGroupOperation, {"name": "dev"})[0].changed
        return
    error = server.fails(RepoGroupOperation, {"name": "dev"})
    assert error.kind == "auth"
    assert "may require an access token: set token" in error.message


BLOCKED = Reply(406, "<html><title>406 Not Acceptable</title><hr>nginx</html>")


def test_proxy_that_blocks_the_older_interface_is_named(server: Server) -> None:
    """Seen in public: GET passes the proxy, and PUT is a 406 with a page."""
    server.on[NEWER] = Reply(404, "<html>not here</html>")
    server.on[OLDER] = BLOCKED
    error = server.fails(RepoGroupOperation, {"name": "dev"})
    assert "requires Artifactory" in error.message
    server.on[OLDER] = Reply(body={"name": "dev", "description": ""})
    server.on["POST /api/security/groups/dev"] = BLOCKED
    written = server.fails(RepoGroupOperation, {"name": "dev", "description": "x"})
    for message in (error.message, written.message):
        assert "406 at api/security/groups, which a proxy may block: set token" in message


@pytest.mark.parametrize("status", [404, 405])
def test_proxy_without_access_service_is_not_an_absent_group(server: Server, status: int) -> None:
    server.on[NEWER] = Reply(status, "<html><body>not here</body></html>")
    server.on[OLDER] = Reply(body={"name": "dev"})
    assert not server.run(RepoGroupOperation, {"name": "dev"})[0].changed


def test_unavailable_access_service_is_not_an_absent_group(server: Server) -> None:
    server.on[NEWER] = Reply(500, "<html><body>bad gateway</body></html>")
    error = server.fails(RepoGroupOperation, {"name": "dev"})
    assert (error.kind, error.status) == ("server", 500)
