# SPDX-License-Identifier: GPL-3.0-or-later
"""Test repositories as a desired state: entries of `repo_repository`, or left out by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.yaml import yaml_load

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.access.repo_group import (
    RepoGroupOperation,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.access.repo_permission import (
    RepoPermissionOperation,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.access.repo_user import (
    RepoUserOperation,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.configuration.repo_export import (
    RepoExportOperation,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.configuration.repo_repository import (
    RepoRepositoryOperation,
)
from tests.unit.repo.access import Directory
from tests.unit.repo.conftest import Server
from tests.unit.repo.test_repo_repository import Manager, local, remote, virtual

#: Options of an export of repositories only.
OTHERS = dict.fromkeys(("groups", "users", "permissions"), False)


def export(server: Server, folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the result of an export, and the entries that it wrote."""
    _plan, values = server.run(RepoExportOperation, {"dest": str(folder), **OTHERS})
    written = yaml_load((folder / "repo.yml").read_text("utf-8"))
    return values, written["repositories"]


def test_repositories_are_exported_as_module_options(server: Server, tmp_path: Path) -> None:
    Manager(
        server,
        remote("r", includesPattern="a/**,b/**", password="", projectKey="default", hardFail=True),
        virtual("v", "r", defaultDeploymentRepo=""),
    )
    _values, (one, two) = export(server, tmp_path)
    assert one == {
        "key": "r",
        "rclass": "remote",
        "package_type": "generic",
        "description": "",
        "notes": "",
        "includes": ["a/**", "b/**"],
        "excludes": [],
        "project": "",
        "remote_url": "https://a.example",
        "remote_username": "",
        "settings": {"hardFail": True},
    }
    assert (two["repositories"], two["default_deployment_repo"]) == (["r"], "")


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("password", "AM.encrypted", "it is a secret"),
        ("accessToken", "abc", "it is a secret"),
        ("customHttpHeaders", [{"name": "n", "value": "v", "sensitive": True}], "it is a secret"),
        ("socketTimeoutMillis", "soon", "expected an integer"),
        ("maxUniqueTags", "5", "unknown form"),
    ],
)
def test_field_that_cannot_be_exported_is_named(
    server: Server, tmp_path: Path, field: str, value: Any, reason: str
) -> None:
    Manager(server, remote("r", **{"password": "", field: value}))
    values, (entry,) = export(server, tmp_path)
    (left_out,) = values["left_out"]
    assert left_out["name"] == f"r: {field}"
    assert reason in left_out["reason"]
    assert field not in entry.get("settings", {})


def test_fields_named_like_secrets_are_exported(server: Server, tmp_path: Path) -> None:
    Manager(server, local("a", primaryKeyPairRef="signing", enableTokenAuthentication=True))
    values, (entry,) = export(server, tmp_path)
    assert values["left_out"] == []
    assert entry["settings"] == {"primaryKeyPairRef": "signing", "enableTokenAuthentication": True}


def test_headers_are_not_exported(server: Server, tmp_path: Path) -> None:
    header = {"name": "Authorization", "value": "Bearer s3cret", "sensitive": False}
    Manager(server, local("a", customHttpHeaders=[header]))
    values, (entry,) = export(server, tmp_path)
    assert "s3cret" not in str((values, entry))
    assert [one["name"] for one in values["left_out"]] == ["a: customHttpHeaders"]


def test_internal_repositories_are_omitted(server: Server, tmp_path: Path) -> None:
    Manager(server, local("a"), local("b-build-info", packageType="BuildInfo"))
    values, entries = export(server, tmp_path)
    assert [entry["key"] for entry in entries] == ["a"]
    assert [one["name"] for one in values["left_out"]] == ["b-build-info"]


def test_many_repositories_cost_few_requests(server: Server, tmp_path: Path) -> None:
    manager = Manager(
        server,
        *(local(f"r{number}", xrayIndex=False, maxUniqueTags=5) for number in range(250)),
    )
    manager.short = {"maxUniqueTags"}
    _values, entries = export(server, tmp_path)
    assert len(server.asked) == 1 + 3
    plan, _values = server.run(RepoRepositoryOperation, {"entries": entries})
    assert not plan.changed
    assert len(server.asked) == 2 * (1 + 3)
    manager.configs["r7"]["maxUniqueTags"] = 6
    plan, values = server.run(RepoRepositoryOperation, {"entries": entries}, check=True)
    changed = [item for item in values["results"] if item["action"] != "unchanged"]
    assert [(item["name"], item["changes"]) for item in changed] == [
        ("r7", [{"field": "settings.maxUniqueTags", "before": 6, "after": 5}])
    ]


def test_older_server_is_exported_individually(server: Server, tmp_path: Path) -> None:
    manager = Manager(server, local("a"), local("b"))
    manager.lists = manager.batches = False
    _values, entries = export(server, tmp_path)
    assert [entry["key"] for entry in entries] == ["a", "b"]


def test_restricted_account_exports_nothing(server: Server, tmp_path: Path) -> None:
    manager = Manager(server, local("a"))
    manager.lists, manager.partial = False, True
    assert server.fails(RepoExportOperation, {"dest": str(tmp_path), **OTHERS}).kind == "permission"
    assert list(tmp_path.iterdir()) == []


def test_export_without_kinds_is_invalid(server: Server, tmp_path: Path) -> None:
    nothing = {"dest": str(tmp_path), **OTHERS, "repositories": False}
    error = server.fails(RepoExportOperation, nothing)
    assert (error.kind, server.asked) == ("invalid", [])


@pytest.mark.parametrize("old", [False, True])
def test_access_is_exported_as_module_options(server: Server, tmp_path: Path, old: bool) -> None:
    access = Directory(server, old=old)
    access.rows["groups"]["dev"] = {"name": "dev", "description": "x"}
    access.rows["groups"]["dev"] |= {"userNames": ["bob"]} if old else {"members": ["bob"]}
    flags = {"internalPasswordDisabled": True, "internal_password_disabled": True}
    access.rows["users"] = {
        "bob": {"email": "bob@example.org", "groups": ["dev"]},
        "eve": {"email": "eve@example.org", **flags},
        "sam": {"realm": "saml"},
    }
    part = {"repositories": ["a-local"], "actions": {"groups": {"dev": ["read"]}}}
    resource = {"targets": {"a-local": {}}, "actions": {"groups": {"dev": ["READ"]}}}
    access.rows["permissions"] = {
        "p": {"name": "p", "repo": part} if old else {"resources": {"artifact": resource}},
        "other": {"name": "other", "resources": {"destination": {}}},
    }
    given = {"dest": str(tmp_path), "repositories": False}
    _plan, values = server.run(RepoExportOperation, given)
    written = yaml_load((tmp_path / "repo.yml").read_text("utf-8"))
    assert "members" not in written["groups"][0]
    only = {"dest": str(tmp_path / "members"), "repositories": False, **OTHERS}
    only |= {"groups": True, "members": True}
    server.run(RepoExportOperation, only)
    again = yaml_load((tmp_path / "members/repo.yml").read_text("utf-8"))
    assert again["groups"][0]["members"] == ["bob"]
    assert [(user["name"], user["groups"]) for user in written["users"]] == [
        ("bob", ["dev"]),
        ("eve", []),
    ]
    left_out = [(one["kind"], one["name"]) for one in values["left_out"]]
    assert left_out == [("password", "bob"), ("user", "sam"), ("permission", "other")]
    objects = (
        "2 objects were not exported; left_out and the comments at the top of repo.yml list them"
    )
    passwords = "the passwords of 1 users are not in repo.yml"
    assert server.warnings == [objects, passwords]
    server.run(RepoExportOperation, given)
    assert server.warnings == [objects, passwords, objects]
    for operation, kind in (
        (RepoGroupOperation, "groups"),
        (RepoUserOperation, "users"),
        (RepoPermissionOperation, "permissions"),
    ):
        assert not server.run(operation, {"entries": written[kind]})[0].changed
