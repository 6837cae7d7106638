# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that permissions are created, changed in part and deleted, by both interfaces."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.access.repo_permission import (
    RepoPermissionOperation,
)
from tests.unit.repo.access import Directory
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply

ALL = {"include_patterns": ["**"], "exclude_patterns": []}
OLD_NAMES = {"artifact": "repo", "build": "build", "release_bundle": "releaseBundle"}


@pytest.fixture(params=[False, True], ids=["access", "older"])
def permissions(server: Server, request: pytest.FixtureRequest) -> Directory:
    made = Directory(server, old=request.param)
    made.rows["users"] = {name: {} for name in ("alice", "bob")}
    made.rows["groups"] = {name: {} for name in ("dev", "ops")}
    return made


def add(permissions: Directory, name: str = "p", **parts: dict[str, Any]) -> None:
    """Store a permission; a part has `targets` (keys), `users` and `groups`."""
    rows: dict[str, Any] = {}
    for kind, part in parts.items():
        actions = {one: part.get(one, {}) for one in ("users", "groups")}
        if permissions.old:
            patterns: dict[str, Any] = {"include-patterns": ["**"], "exclude-patterns": []}
            patterns |= {"repositories": part["targets"], "actions": actions}
            rows[OLD_NAMES[kind]] = patterns
        else:
            upper = {
                who: {name: [each.upper() for each in held] for name, held in one.items()}
                for who, one in actions.items()
            }
            rows[kind] = {"targets": dict.fromkeys(part["targets"], ALL), "actions": upper}
    permissions.rows["permissions"][name] = {
        "name": name,
        **(rows if permissions.old else {"resources": rows}),
    }


def artifact(**given: Any) -> dict[str, Any]:
    return {"name": "p", "resources": {"artifact": given}}


NEW = artifact(
    targets=[{"repo": "a-local"}, {"repo": "b-local", "includes": ["**"], "excludes": []}],
    users={"Alice": ["write", "READ"], "bob": []},
    groups={"dev": ["manage"]},
)


def test_permission_is_created_and_then_unchanged(server: Server, permissions: Directory) -> None:
    plan, values = server.run(RepoPermissionOperation, NEW)
    assert plan.action == "create"
    targets = [{"repo": key, "includes": ["**"], "excludes": []} for key in ("a-local", "b-local")]
    part = {
        "targets": targets,
        "users": {"alice": ["read", "write"]},
        "groups": {"dev": ["manage"]},
    }
    assert values["permission"] == {"name": "p", "resources": {"artifact": part}}
    ((method, _path, body),) = permissions.writes
    assert method == "POST"
    if permissions.old:
        assert body["repo"]["actions"]["users"] == {"alice": ["read", "write"]}
    else:
        actions = {"users": {"alice": ["READ", "WRITE"]}, "groups": {"dev": ["MANAGE"]}}
        expected = {"actions": actions, "targets": {"a-local": ALL, "b-local": ALL}}
        assert body == {"name": "p", "resources": {"artifact": expected}}
    assert not server.run(RepoPermissionOperation, NEW)[0].changed


def test_omitted_options_are_kept(server: Server, permissions: Directory) -> None:
    add(
        permissions,
        artifact={"targets": ["a-local"], "users": {"bob": ["read"]}, "groups": {"dev": ["read"]}},
        build={"targets": ["artifactory-build-info"], "users": {"bob": ["read"]}},
    )
    row = permissions.rows["permissions"]["p"]
    (row if permissions.old else row["resources"])["destination"] = {"targets": {"*": {}}}
    plan, values = server.run(RepoPermissionOperation, artifact(users={"alice": ["read"]}))
    assert [change.field for change in plan.changes] == ["artifact"]
    kept = values["permission"]["resources"]
    assert kept["artifact"]["users"] == {"alice": ["read"]}
    assert kept["artifact"]["groups"] == {"dev": ["read"]}
    assert kept["build"]["users"] == {"bob": ["read"]}
    after = permissions.rows["permissions"]["p"]
    assert "destination" in (after if permissions.old else after["resources"])
    ((method, path, _body),) = permissions.writes
    assert method == "PUT"
    assert path == ("permissions/p" if permissions.old else "permissions/p/artifact")


def test_targets_and_actions_are_added(server: Server, permissions: Directory) -> None:
    add(permissions, artifact={"targets": ["a-local"], "users": {"bob": ["read"]}})
    given = artifact(targets=[{"repo": "b-local"}], users={"bob": ["write"], "alice": ["read"]})
    given["mode"] = "add"
    _plan, values = server.run(RepoPermissionOperation, given)
    part = values["permission"]["resources"]["artifact"]
    assert [target["repo"] for target in part["targets"]] == ["a-local", "b-local"]
    assert part["users"] == {"alice": ["read"], "bob": ["read", "write"]}
    assert not server.run(RepoPermissionOperation, given)[0].changed


def test_targets_and_actions_are_removed(server: Server, permissions: Directory) -> None:
    held = {"bob": ["read", "write"], "alice": ["read"]}
    add(permissions, artifact={"targets": ["a-local", "b-local"], "users": held})
    given = artifact(targets=[{"repo": "b-local"}], users={"bob": ["write"], "alice": ["read"]})
    given["mode"] = "remove"
    _plan, values = server.run(RepoPermissionOperation, given)
    part = values["permission"]["resources"]["artifact"]
    assert [target["repo"] for target in part["targets"]] == ["a-local"]
    assert part["users"] == {"bob": ["read"]}
    assert not server.run(RepoPermissionOperation, given)[0].changed


def test_removal_of_unknown_names_is_unchanged(server: Server, permissions: Directory) -> None:
    """An account that was deleted from the server has no actions left to remove."""
    add(permissions, artifact={"targets": ["a-local"], "users": {"bob": ["read"]}})
    gone = {"users": {"gone": ["read"]}, "groups": {"gone": ["read"]}}
    given = {**artifact(targets=[{"repo": "gone"}], **gone), "mode": "remove"}
    assert not server.run(RepoPermissionOperation, given)[0].changed
    assert server.fails(RepoPermissionOperation, {**given, "mode": "add"}).kind == "not_found"


def test_implicit_removal_of_everything_is_rejected(server: Server, permissions: Directory) -> None:
    add(permissions, artifact={"targets": ["a-local"], "users": {"bob": ["read"]}})
    given = {**artifact(targets=[{"repo": "a-local"}]), "mode": "remove"}
    error = server.fails(RepoPermissionOperation, given)
    assert error.kind == "invalid"
    assert permissions.writes == []


def test_resource_is_removed(server: Server, permissions: Directory) -> None:
    add(
        permissions,
        artifact={"targets": ["a-local"], "users": {"bob": ["read"]}},
        build={"targets": ["artifactory-build-info"], "users": {"bob": ["read"]}},
    )
    build: dict[str, Any] = {"targets": [], "users": {}, "groups": {}}
    given = {"name": "p", "resources": {"build": build}}
    plan, values = server.run(RepoPermissionOperation, given)
    assert set(values["permission"]["resources"]) == {"artifact"}
    assert "build" in plan.before
    assert "build" not in plan.after
    assert not server.run(RepoPermissionOperation, given)[0].changed


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"users": {"zoe": ["read"]}}, "resources.artifact.users: there is no user 'zoe'"),
        ({"groups": {"x": ["read"]}}, "resources.artifact.groups: there is no group 'x'"),
        ({"targets": [{"repo": "c"}]}, "resources.artifact.targets: there is no repository 'c'"),
    ],
)
def test_unknown_names_are_not_found(
    server: Server, permissions: Directory, given: dict[str, Any], said: str
) -> None:
    options = artifact(**{"targets": [{"repo": "a-local"}], **given})
    error = server.fails(RepoPermissionOperation, options)
    assert (error.kind, error.message) == ("not_found", said)
    assert permissions.writes == []


def test_listed_members_of_any_local_are_unchanged(server: Server, permissions: Directory) -> None:
    everything = ["ANY LOCAL", "a-local", "b-local"]
    add(permissions, artifact={"targets": everything, "groups": {"dev": ["read"]}})
    given = artifact(targets=[{"repo": "ANY LOCAL"}], groups={"dev": ["read"]})
    assert not server.run(RepoPermissionOperation, given)[0].changed


def test_member_with_other_patterns_is_removed(server: Server, permissions: Directory) -> None:
    """Only Access has patterns for each target."""
    add(permissions, artifact={"targets": ["ANY LOCAL", "a-local"], "groups": {"dev": ["read"]}})
    if not permissions.old:
        targets = permissions.rows["permissions"]["p"]["resources"]["artifact"]["targets"]
        targets["a-local"] = {"include_patterns": ["x/**"], "exclude_patterns": []}
    given = artifact(targets=[{"repo": "ANY LOCAL"}], groups={"dev": ["read"]})
    assert server.run(RepoPermissionOperation, given)[0].changed is not permissions.old


def test_different_patterns_require_the_access_service(
    server: Server, permissions: Directory
) -> None:
    targets = [{"repo": "a-local", "includes": ["x/**"]}, {"repo": "b-local"}]
    given = artifact(targets=targets, groups={"dev": ["read"]})
    if permissions.old:
        error = server.fails(RepoPermissionOperation, given)
        assert error.kind == "invalid"
        assert "different patterns" in error.message
    else:
        assert server.run(RepoPermissionOperation, given)[0].changed


def test_release_bundles_have_their_own_actions(server: Server, permissions: Directory) -> None:
    part = {"targets": [{"repo": "release-bundles-v2"}], "groups": {"dev": ["scan", "execute"]}}
    given = {"name": "p", "resources": {"release_bundle": part}}
    assert server.run(RepoPermissionOperation, given)[0].changed
    ((_method, _path, body),) = permissions.writes
    found = body["releaseBundle"] if permissions.old else body["resources"]["release_bundle"]
    sent = found["actions"]["groups"]["dev"]
    assert sent == (["distribute", "managedXrayMeta"] if permissions.old else ["EXECUTE", "SCAN"])
    assert not server.run(RepoPermissionOperation, given)[0].changed


def test_permission_is_deleted(server: Server, permissions: Directory) -> None:
    add(permissions, artifact={"targets": ["a-local"]})
    given = {"name": "p", "state": "absent"}
    assert server.run(RepoPermissionOperation, given)[0].action == "delete"
    assert permissions.rows["permissions"] == {}
    assert not server.run(RepoPermissionOperation, given)[0].changed


def test_dropped_field_is_rejected(server: Server, permissions: Directory) -> None:
    add(permissions, artifact={"targets": ["a-local"], "users": {"bob": ["read"]}})
    permissions.apply = lambda _method, _path, _body: Reply(200)
    error = server.fails(RepoPermissionOperation, artifact(users={"alice": ["read"]}))
    assert error.kind == "rejected"


def test_permissions_cost_a_list_and_one_request_each(
    server: Server, permissions: Directory
) -> None:
    names = [f"p{number}" for number in range(30)]
    part = {"targets": ["a-local"], "groups": {"dev": ["read"]}}
    for name in names:
        add(permissions, name, artifact=part)
    given = {"targets": [{"repo": "a-local"}], "groups": {"dev": ["read"]}}
    entries = [{"name": name, "resources": {"artifact": given}} for name in names]
    assert not server.run(RepoPermissionOperation, {"entries": entries})[0].changed
    lacking = 2 if permissions.old else 0  # Access is asked, and its absence is verified
    assert len(server.asked) == 1 + 30 + lacking


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "p", "mode": "add"}, "mode requires resources"),
        ({"name": "p", "mode": "add", "resources": {}}, "mode requires resources"),
        ({**artifact(), "state": "absent"}, "resources cannot be combined with state=absent"),
        (artifact(users={"bob": ["fly"]}), "'fly' is not an action"),
        (artifact(users={"bob": "read"}), "is not a list of actions"),
        ({**artifact(groups={"dev": []}), "mode": "remove"}, "is empty: list the actions"),
        (artifact(targets=[{"repo": "a"}, {"repo": "a"}]), "lists 'a' twice"),
        ({"entries": [{"mode": "exact"}]}, "entries[0]: name is missing"),
    ],
)
def test_invalid_input(server: Server, given: dict[str, Any], said: str) -> None:
    error = server.fails(RepoPermissionOperation, given)
    assert error.kind == "invalid"
    assert said in error.message
    assert server.stub.seen == []
