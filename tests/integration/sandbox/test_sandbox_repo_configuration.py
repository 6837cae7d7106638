# SPDX-License-Identifier: GPL-3.0-or-later
"""Test how the sandbox manages configurations of repositories [repo-60, repo-61]."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.client import Sandbox
from tests.integration.sandbox.clients import Client

ONE, BATCH = "/api/repositories/new", "/api/v2/repositories/batch"
LOCAL: dict[str, Any] = {"key": "new", "rclass": "local", "packageType": "docker"}
STAGING = "generic-staging-local"


#: Flavour of the fixture `sandbox`.
FLAVOUR = "real"


class Manager(Client):
    """Send requests with the token of an account."""

    def __init__(self, sandbox: Sandbox, token: str = "repo-admin-token-1234567890") -> None:
        super().__init__(sandbox, "repo", None, Authorization=f"Bearer {token}")


@pytest.fixture
def manager(sandbox: Sandbox) -> Manager:
    return Manager(sandbox)


def test_repository_is_created_updated_and_deleted(manager: Manager) -> None:
    said = manager("PUT", ONE, {**LOCAL, "maxUniqueTags": 5, "nonsense": 1})
    assert (said.status_code, said.text.strip()) == (200, "Successfully created repository 'new'")
    found = manager("GET", ONE).json()
    assert (found["maxUniqueTags"], found["dockerApiVersion"]) == (5, "V2")
    assert found["repoLayoutRef"] == "simple-default"
    assert "nonsense" not in found
    assert manager("PUT", ONE, LOCAL).status_code == 400
    assert (
        manager(
            "PUT", ONE.upper().replace("/API/REPOSITORIES", "/api/repositories"), LOCAL
        ).status_code
        == 400
    )
    assert manager("POST", ONE, {"notes": "x"}).status_code == 200
    assert manager("POST", ONE, {"rclass": "virtual"}).status_code == 400
    found = manager("GET", ONE).json()
    assert (found["notes"], found["maxUniqueTags"]) == ("x", 5)
    assert manager("DELETE", ONE).status_code == 200
    assert manager("GET", ONE).status_code == manager("DELETE", ONE).status_code == 400


@pytest.mark.parametrize(
    "given",
    [
        {"packageType": "npm"},
        {"rclass": "remote", "packageType": "npm"},
        {"rclass": "virtual", "packageType": "npm", "repositories": ["nowhere"]},
    ],
)
def test_invalid_configuration_is_rejected(manager: Manager, given: dict[str, Any]) -> None:
    assert manager("PUT", ONE, given).status_code == 400
    assert manager("GET", ONE).status_code == 400


def test_restricted_accounts_see_a_part(sandbox: Sandbox) -> None:
    found = Manager(sandbox, "repo-token-1234567890")("GET", f"/api/repositories/{STAGING}").json()
    assert set(found) == {"key", "rclass", "packageType", "description"}


def test_password_is_returned_encrypted(manager: Manager) -> None:
    given = {"rclass": "remote", "packageType": "npm", "url": "https://a.example"}
    manager("PUT", ONE, {**given, "password": "secret-1234"})
    assert manager("GET", ONE).json()["password"].startswith("AM.")


def test_deleted_repository_is_removed_from_virtual_repositories(manager: Manager) -> None:
    manager("DELETE", f"/api/repositories/{STAGING}")
    found = manager("GET", "/api/repositories/generic").json()
    assert found["repositories"] == ["generic-release-local"]


def test_all_configurations_have_the_fields_of_their_class(manager: Manager) -> None:
    manager("PUT", ONE, LOCAL)
    found = manager("GET", "/api/repositories/configurations").json()
    assert sorted(found) == ["LOCAL", "REMOTE", "VIRTUAL"]
    (one,) = [each for each in found["LOCAL"] if each["key"] == "new"]
    assert "xrayIndex" in one
    assert "maxUniqueTags" not in one
    path = "/api/repositories/configurations?repoType=local&packageType=npm"
    assert manager("GET", path).json() == {}


def test_batches_are_created_and_updated(sandbox: Sandbox, manager: Manager) -> None:
    other = {**LOCAL, "key": "other"}
    assert manager("PUT", BATCH, [LOCAL, other]).status_code == 201
    assert manager("POST", BATCH, [{"key": "new", "notes": "x"}]).status_code == 200
    found = manager("GET", f"{BATCH}?names=new&names=nowhere").json()
    assert (list(found), found["new"]["notes"]) == (["new"], "x")
    third = {**LOCAL, "key": "third"}
    assert manager("PUT", BATCH, [third, LOCAL]).status_code == 400
    assert manager("GET", "/api/repositories/third").status_code == 400
    assert manager("GET", BATCH).status_code == 400
    names = "&".join(f"names={number}" for number in range(101))
    assert "limit exceeded" in manager("GET", f"{BATCH}?{names}").text
    sandbox.settings("repo", repository_batch=False, repository_configurations=False)
    assert manager("GET", f"{BATCH}?names=new").status_code == 404
    assert manager("GET", "/api/repositories/configurations").status_code == 400


def test_change_may_be_delayed(sandbox: Sandbox, manager: Manager) -> None:
    sandbox.settings("repo", repository_lag=2)
    manager("PUT", ONE, LOCAL)
    assert [manager("GET", ONE).status_code for _time in range(3)] == [400, 400, 200]


def test_changes_may_collide(sandbox: Sandbox, manager: Manager) -> None:
    sandbox.settings("repo", descriptor_conflicts=1)
    assert "Could not merge" in manager("PUT", ONE, LOCAL).text
    assert manager("GET", ONE).status_code == 400
    assert manager("PUT", ONE, LOCAL).status_code == 200


def test_empty_deployment_repository_may_be_ignored(sandbox: Sandbox, manager: Manager) -> None:
    sandbox.settings("repo", empties_deployment_repo=False)
    path = "/api/repositories/generic"
    manager("POST", path, {"defaultDeploymentRepo": ""})
    assert manager("GET", path).json()["defaultDeploymentRepo"] == STAGING
    manager("POST", path, {"defaultDeploymentRepo": "nowhere"})
    assert manager("GET", path).json()["defaultDeploymentRepo"] == ""


def test_repository_is_attached_to_a_project(sandbox: Sandbox, manager: Manager) -> None:
    path = f"/access/api/v1/projects/_/attach/repositories/{STAGING}"
    one = f"/api/repositories/{STAGING}"
    manager("POST", one, {"environments": ["PROD"]})
    assert manager("GET", one).json()["environments"] == []
    assert manager("PUT", f"{path}/app").status_code == 204
    manager("POST", one, {"environments": ["PROD"]})
    found = manager("GET", one).json()
    assert (found["projectKey"], found["environments"]) == ("app", ["PROD"])
    assert manager("PUT", f"{path}/other").status_code == 409
    assert manager("PUT", f"{path}/other?force=true").status_code == 204
    assert manager("DELETE", path).status_code == 204
    assert manager("PUT", f"{path.replace(STAGING, 'nowhere')}/app").status_code == 404
    other = Manager(sandbox, "repo-token-1234567890")
    assert other("PUT", f"{path}/app").status_code == 403
