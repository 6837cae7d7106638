# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify the permission of every action of the sandbox's code analysis server.

A user without the permission is rejected. A role with the permission, assigned in the project only,
is enough for the actions of that project.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import requests

from sandbox.client import Sandbox

TOKEN = "5555" * 16
ALICE = ("alice", "aaaabbbb33334444" * 4)
PERMISSIONS = (
    *("create_project", "manage_roles", "manage_users", "access_source_files", "assign_role"),
    *("change_project_settings", "create_build", "delete_build", "delete_project"),
    *("manage_modules", "use_local_configuration", "change_issue_status"),
    *("webapi_access", "execute_kwxsync"),
)
IN_PROJECT = {"project": "toolchain"}
SOURCE = {
    "sourceURL": "https://old-analysis.example.com:8080",
    "sourceAdmin": "admin",
    "sourcePassword": "source-password-1234567890",
}
MODULE = {**IN_PROJECT, "name": "new", "allow_all": "true", "paths": "**"}

# action, permission, parameters, and whether a role in the project is sufficient
TABLE: list[tuple[str, str, dict[str, str], bool]] = [
    ("create_role", "manage_roles", {"name": "new"}, False),
    ("delete_role", "manage_roles", {"name": "Developer"}, False),
    ("create_user", "manage_users", {"name": "new"}, False),
    ("delete_user", "manage_users", {"name": "bob"}, False),
    ("create_group", "manage_users", {"name": "new"}, False),
    ("update_role_assignment", "assign_role", {"name": "Developer", "account": "bob"}, False),
    ("import_project", "create_project", {"project": "imported", **SOURCE}, False),
    ("update_project", "change_project_settings", {"name": "toolchain", "new_name": "n"}, True),
    ("create_view", "change_project_settings", {**IN_PROJECT, "name": "n", "query": "x"}, True),
    ("delete_project", "delete_project", {"name": "toolchain"}, True),
    ("create_module", "manage_modules", MODULE, True),
    ("update_status", "change_issue_status", {**IN_PROJECT, "ids": "101", "status": "Fix"}, True),
]


def allow(sandbox: Sandbox, permissions: list[str], project: str | None = None) -> None:
    """Give the user `limited` a single role with these permissions."""
    role = {
        "name": "Limited",
        "permissions": permissions,
        "status_permissions": [{"from": "Any", "to": "Any"}],
        "assignments": [{"name": "limited", "projectId": project, "group": False}],
    }
    credentials = {"users": {"limited": {"ltoken": TOKEN}}}
    data = {"credentials": credentials, "users": [{"name": "limited"}], "roles": [role]}
    sandbox.seed({"analysis": data})


def act(
    sandbox: Sandbox, action: str, user: str = "limited", token: str = TOKEN, **values: str
) -> requests.Response:
    form = {"user": user, "ltoken": token, "action": action, **values}
    return requests.post(sandbox.urls["analysis"] + "/review/api", data=form, timeout=10)


def refused(response: requests.Response) -> str:
    assert response.status_code == 403, response.text
    return str(json.loads(response.text)["message"])


def project_id(sandbox: Sandbox) -> str:
    lines = act(sandbox, "projects", *ALICE).text.splitlines()
    found = [json.loads(line) for line in lines]
    return str(next(one["id"] for one in found if one["name"] == "toolchain"))


@pytest.mark.parametrize(("action", "permission", "values", "inside"), TABLE)
def test_action_requires_its_permission(
    sandbox: Sandbox, action: str, permission: str, values: dict[str, str], inside: bool
) -> None:
    number = project_id(sandbox)
    allow(sandbox, [one for one in PERMISSIONS if one != permission])
    words = refused(act(sandbox, action, **values))
    assert permission.replace("_", " ").capitalize() in words
    allow(sandbox, [permission], project=number)
    if not inside:
        assert permission.replace("_", " ").capitalize() in refused(act(sandbox, action, **values))
        allow(sandbox, [permission])
    assert act(sandbox, action, **values).status_code == 200


def test_reading_requires_no_role(sandbox: Sandbox) -> None:
    allow(sandbox, [])
    for action, values in (("projects", {}), ("roles", {}), ("builds", IN_PROJECT)):
        assert act(sandbox, action, **values).status_code == 200


def test_group_grants_its_roles_and_transitions(sandbox: Sandbox) -> None:
    def status(wanted: str) -> requests.Response:
        values: dict[str, Any] = {**IN_PROJECT, "ids": "101", "status": wanted}
        return act(sandbox, "update_status", *ALICE, **values)

    before = json.loads(act(sandbox, "issue_details", *ALICE, **IN_PROJECT, id="101").text)
    assert before["status"] == "Analyze"
    assert "from Analyze to Ignore" in refused(status("Ignore"))
    assert status("Fix").status_code == 200
    assert "from Fix to Analyze" in refused(status("Analyze"))
    assert status("Defer").status_code == 200
    assert "Manage modules" in refused(act(sandbox, "create_module", *ALICE, **MODULE))


def test_server_without_access_control_allows_everything(sandbox: Sandbox) -> None:
    sandbox.settings("analysis", access_control=False)
    assert act(sandbox, "create_role", "anybody", "", name="new").status_code == 200
