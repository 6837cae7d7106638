# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the conversion of repositories of the Terraform provider to entries."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible.utils.display import Display

from ansible_collections.delivery.toolchain.plugins.filter.terraform_repositories import (
    terraform_repositories,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.configuration import (
    entry,
    terraform,
)
from sandbox.repo import repository_fields
from tests.helpers import repository_settings


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
    document = state(("artifactory_remote_npm_repository", {"key": "k", "spoiled": True}))
    with pytest.raises(AnsibleFilterError, match="has the unknown attribute spoiled"):
        terraform_repositories(document)
    assert terraform_repositories(document, ignore=["spoiled"])["repositories"]


# --- the vendor's programs as witnesses

SOURCES = repository_settings.sources()
GO = repository_settings.fields_of(SOURCES["go_client"])
PROVIDER = repository_settings.fields_of(SOURCES["terraform"])
RESOURCES = repository_settings.attributes_of(SOURCES["terraform"])
KINDS = {"bool": "bool", "int": "int", "str": "text", "list": "list", "dict": "other"}
VALUES = {"bool": True, "int": 5, "text": "x", "list": ["x"]}
#: Values of the attributes that have a format.
SPECIAL: dict[str, Any] = {
    "key": "k",
    "url": "https://x.example",
    "repositories": ["x"],
    "default_deployment_repo": "x",
    "project_environments": ["DEV"],
    "member": [{"url": "https://x.example/k"}],
    "content_synchronisation": [{"enabled": True}],
    "api_version": "V2",
    "snapshot_version_behavior": "unique",
    "checksum_policy_type": "client-checksums",
    "remote_repo_checksum_policy_type": "fail",
    "pom_repository_references_cleanup_policy": "nothing",
}


def test_each_known_setting_is_in_a_program_of_the_vendor() -> None:
    for name, spec in entry.KNOWN_SETTINGS.items():
        kinds = {fields[name] for fields in (GO, PROVIDER) if name in fields}
        assert kinds == {KINDS[spec["type"]]}, name


def test_each_field_of_the_vendor_is_known() -> None:
    """The headers are left out, because their values may be secret."""
    options = {"key", "rclass", "packageType", *entry.NAMES.values(), "customHttpHeaders"}
    assert {*GO, *PROVIDER} - options == set(entry.KNOWN_SETTINGS)


@pytest.mark.parametrize("rclass", ["local", "remote", "virtual", "federated"])
def test_all_resources_of_the_provider_are_converted(rclass: str) -> None:
    for (of_class, package), attributes in RESOURCES.items():
        if of_class != rclass:
            continue
        names = {name: terraform.setting_of(name, rclass) for name in attributes}
        values = {
            name: SPECIAL.get(name, VALUES.get(PROVIDER.get(names[name] or "", ""), "x"))
            for name in attributes
        }
        document = state((f"artifactory_{rclass}_{package}_repository", values))
        (found,) = terraform_repositories(document)["repositories"]
        settings = {name for name in names.values() if name}
        assert set(found.get("settings", ())) >= settings, (package, found)
        assert set(found.get("settings", ())) <= set(PROVIDER)
        assert {
            option for option in ("remote_url", "members", "repositories") if option in found
        } == (
            {"remote": {"remote_url"}, "federated": {"members"}, "virtual": {"repositories"}}
        ).get(rclass, set())


def test_each_field_of_the_vendor_is_kept_by_the_sandbox() -> None:
    tables = (*repository_fields.OWN_FIELDS.values(), *repository_fields.TYPE_FIELDS.values())
    kept = {name for table in tables for name in table} | repository_fields.OTHER_FIELDS
    assert {*GO, *PROVIDER} - kept == {"key", "rclass", "packageType"}


def test_headers_are_left_out_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    warned: list[str] = []
    monkeypatch.setattr(Display, "warning", lambda _display, text: warned.append(text))
    header = {"name": "X-Token", "value": "s3cret-value", "sensitive": True}
    resource = "remote_generic", {"custom_http_headers": [header]}
    assert "s3cret" not in str(converted(resource[0], **resource[1]))
    assert ["custom_http_headers" in text and "s3cret" not in text for text in warned] == [True]
    converted("remote_generic", custom_http_headers=[])
    assert len(warned) == 1


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
