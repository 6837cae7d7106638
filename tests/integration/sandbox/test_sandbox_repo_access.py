# SPDX-License-Identifier: GPL-3.0-or-later
"""Test third-party clients that manage groups and users on the sandbox's repository manager."""

from __future__ import annotations

import pytest
import rtpy
from artifactory import ArtifactoryPath, Group, User

from sandbox.client import Sandbox

ADMIN = ("admin", "admin-password")


@pytest.fixture
def python(real: Sandbox) -> ArtifactoryPath:
    return ArtifactoryPath(f"{real.urls['repo']}/", auth=ADMIN)


@pytest.fixture
def security(real: Sandbox) -> rtpy.RtpySecurity:
    settings = {"af_url": real.urls["repo"], "username": ADMIN[0], "password": ADMIN[1]}
    return rtpy.Rtpy(settings).security


def test_client_manages_a_group(python: ArtifactoryPath) -> None:
    group = Group(python, "testers")
    assert not group.read()
    group.description, group.users = "Test", ["reader"]
    group.create()
    group.description, group.users = "Test twice", ["reader", "deployer"]
    group.update()
    again = python.find_group("testers")
    assert (again.description, again.realm) == ("Test twice", "internal")
    again.delete()
    assert not group.read()


def test_client_lists_and_manages_groups(security: rtpy.RtpySecurity) -> None:
    security.create_or_replace_group({"group_name": "testers", "description": "Test"})
    assert "testers" in [row["name"] for row in security.get_groups()]
    security.update_group({"group_name": "testers", "adminPrivileges": True})
    found = security.get_group_details("testers")
    assert (found["description"], found["adminPrivileges"]) == ("Test", True)
    security.delete_group("testers")
    with pytest.raises(security.AfApiError, match="Unable to find group"):
        security.get_group_details("testers")


def test_client_manages_a_user(python: ArtifactoryPath) -> None:
    user = User(python, "tester", "tester@example.org", "Secret-1234")
    assert not user.read()
    user.create()
    user.email, user.admin = "other@example.org", True
    user.update()
    again = python.find_user("tester")
    assert (again.email, again.admin) == ("other@example.org", True)
    again.delete()
    assert not user.read()


def test_client_lists_and_manages_users(security: rtpy.RtpySecurity) -> None:
    params = {"name": "tester", "email": "tester@example.org", "password": "Secret-1234"}
    security.create_or_replace_user({**params, "groups": ["developers"]})
    assert "tester" in [row["name"] for row in security.get_users()]
    security.update_user({"name": "tester", "groups": ["readers"]})
    assert security.get_user_details("tester")["groups"] == ["readers"]
    security.delete_user("tester")
    with pytest.raises(security.AfApiError, match="not found"):
        security.get_user_details("tester")
