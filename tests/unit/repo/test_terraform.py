# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the conversion of repositories of the Terraform provider to entries."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.delivery.toolchain.plugins.filter.terraform_repositories import (
    terraform_repositories,
)


def state(*resources: tuple[str, dict[str, Any]], child: bool = False) -> dict[str, Any]:
    rows = [
        {"address": f"{kind}.x", "mode": "managed", "type": kind, "name": "x", "values": values}
        for kind, values in resources
    ]
    module = {"child_modules": [{"resources": rows}]} if child else {"resources": rows}
    return {"format_version": "1.0", "values": {"root_module": module}}


def converted(kind: str, **values: Any) -> dict[str, Any]:
    """Return the entry of a resource, without what every entry has."""
    document = state((f"artifactory_{kind}_repository", {"key": "k", "id": "k", **values}))
    (entry,) = terraform_repositories(document)["repositories"]
    return {name: one for name, one in entry.items() if name not in ("key", "rclass")}


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("local_npm", {"xray_index": True}, {"settings": {"xrayIndex": True}}),
        (
            "local_npm",
            {"includes_pattern": "a/**, b/**", "excludes_pattern": "", "repo_layout_ref": ""},
            {"includes": ["a/**", "b/**"], "excludes": []},
        ),
        (
            "local_npm",
            {"project_key": "default", "project_environments": []},
            {"project": "", "environments": []},
        ),
        ("local_npm", {"download_direct": True}, {"settings": {"downloadRedirect": True}}),
        ("remote_npm", {"url": "https://x"}, {"remote_url": "https://x"}),
        ("remote_npm", {"password": "pw"}, {"remote_password": {"from": "repo_password_k"}}),
        ("remote_npm", {"password": "", "proxy": None}, {}),
        (
            "remote_npm",
            {"retrieval_cache_period_seconds": 5, "missed_cache_period_seconds": 6},
            {"settings": {"retrievalCachePeriodSecs": 5, "missedRetrievalCachePeriodSecs": 6}},
        ),
        (
            "remote_npm",
            {"content_synchronisation": [{"enabled": True, "statistics_enabled": True}]},
            {
                "settings": {
                    "contentSynchronisation": {
                        "enabled": True,
                        "statistics": {"enabled": True},
                        "properties": {"enabled": False},
                        "source": {"originAbsenceDetection": False},
                    }
                }
            },
        ),
        (
            "virtual_npm",
            {"repositories": ["a"], "retrieval_cache_period_seconds": 5},
            {"repositories": ["a"], "settings": {"virtualRetrievalCachePeriodSecs": 5}},
        ),
        (
            "federated_npm",
            {"member": [{"url": "https://x/k", "enabled": True, "access_token": "t"}]},
            {"members": [{"url": "https://x/k", "enabled": True}]},
        ),
    ],
)
def test_attributes_become_options(
    kind: str, values: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert converted(kind, **values) == {"package_type": "npm", **expected}


@pytest.mark.parametrize(
    ("kind", "package", "settings"),
    [
        ("local_docker_v2", "docker", {"dockerApiVersion": "V2"}),
        ("local_terraform_module", "terraform", {"terraformType": "module"}),
        ("federated_docker", "docker", None),
        ("local_terraformbackend", "terraformbackend", None),
    ],
)
def test_package_type_is_derived(kind: str, package: str, settings: dict[str, Any] | None) -> None:
    found = converted(kind)
    assert (found["package_type"], found.get("settings")) == (package, settings)


def test_repositories_of_modules_and_plans_are_read() -> None:
    document = state(("artifactory_local_npm_repository", {"key": "a"}), child=True)
    document["values"]["root_module"]["resources"] = [
        {"type": "artifactory_group", "values": {"name": "g"}},
        {"type": "artifactory_local_npm_repository", "mode": "data", "values": {"key": "b"}},
    ]
    keys = [repository["key"] for repository in terraform_repositories(document)["repositories"]]
    assert keys == ["a"]
    assert terraform_repositories({"planned_values": document["values"]})["repositories"]


def test_unknown_attribute_is_rejected() -> None:
    document = state(("artifactory_remote_npm_repository", {"key": "k", "curated": True}))
    with pytest.raises(AnsibleFilterError, match="has the unknown attribute curated"):
        terraform_repositories(document)
    assert terraform_repositories(document, ignore=["curated"])["repositories"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("{}", "parse it with from_json"),
        ({}, "no repository of the provider"),
        (state(("artifactory_local_npm_repository", {})), "npm_repository.x has no value for key"),
        (
            state(("artifactory_local_npm_repository", {"key": "a b"})),
            "is not a valid repository key",
        ),
        (
            state(("artifactory_local_npm_repository", {"key": "a", "repositories": ["b"]})),
            "applies to a virtual repository",
        ),
    ],
)
def test_invalid_input_is_rejected(given: Any, message: str) -> None:
    with pytest.raises(AnsibleFilterError, match=message):
        terraform_repositories(given)
    with pytest.raises(AnsibleFilterError, match="ignore must be a list"):
        terraform_repositories({}, ignore="curated")
