# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert repositories of JFrog's Terraform provider to entries for `repo_repository`.

The names are from jfrog/terraform-provider-artifactory 12 (commit 1616e9f).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from ...core.errors import ToolchainError, invalid
from ...core.json_text import member
from ...core.module import typed_options
from .entry import RepositoryEntry, is_known, settings_name

_TYPE = re.compile(r"artifactory_(local|remote|virtual|federated)_(\w+)_repository")
#: Names in resource types, each with its package type and the settings that it implies.
_PACKAGES: Mapping[str, tuple[str, dict[str, Any]]] = {
    "docker_v1": ("docker", {"dockerApiVersion": "V1"}),
    "docker_v2": ("docker", {"dockerApiVersion": "V2"}),
    "terraform_module": ("terraform", {"terraformType": "module"}),
    "terraform_provider": ("terraform", {"terraformType": "provider"}),
}
#: Terraform attributes, and the options with the same meaning.
_OPTIONS = {
    "key": "key",
    "description": "description",
    "notes": "notes",
    "project_environments": "environments",
    "username": "remote_username",
    "repositories": "repositories",
    "default_deployment_repo": "default_deployment_repo",
}
#: Attributes whose name in the server's API is not their camel case.
_SETTINGS = {
    "anonymous_access": "cargoAnonymousAccess",
    "api_version": "dockerApiVersion",
    "download_direct": "downloadRedirect",
    "enable_sparse_index": "cargoInternalIndex",
    "helm_charts_base_url": "chartsBaseUrl",
    "hex_primary_keypair_ref": "primaryKeyPairRef",
    "index_compression_formats": "optionalIndexCompressionFormats",
    "metadata_retrieval_timeout_seconds": "metadataRetrievalTimeoutSecs",
    "missed_cache_period_seconds": "missedRetrievalCachePeriodSecs",
    "primary_keypair_ref": "primaryKeyPairRef",
    "project_id": "dockerProjectId",
    "public_key": "hexPublicKey",
    "pypi_registry_url": "pyPIRegistryUrl",
    "pypi_repository_suffix": "pyPIRepositorySuffix",
    "resolve_oci_tags_by_timestamp": "resolveDockerTagsByTimestamp",
    "retrieval_cache_period_seconds": "retrievalCachePeriodSecs",
    "secondary_keypair_ref": "secondaryKeyPairRef",
    "tag_retention": "dockerTagRetention",
    "trivial_layout": "debianTrivialLayout",
}
_HEADERS = "custom_http_headers"
_VIRTUAL = {"retrieval_cache_period_seconds": "virtualRetrievalCachePeriodSecs"}
#: Attributes that are not fields of a repository, and the headers, whose values may be secret.
_OTHER = (
    "id",
    _HEADERS,
    "package_type",
    "cleanup_on_delete",
    "password_wo",
    "password_wo_version",
    "timeouts",
)
#: Attributes that :func:`_special` converts.
_SPECIAL = (
    "includes_pattern",
    "excludes_pattern",
    "repo_layout_ref",
    "url",
    "project_key",
    "password",
    "member",
    "content_synchronisation",
)


def repositories_of(
    document: Mapping[str, Any], ignore: Collection[str], warn: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Convert the repositories in the output of `terraform show -json` to entries.

    :param ignore: names of attributes to leave out
    :param warn: called for each value that is left out because it may be secret
    :raises ToolchainError: `invalid` if there are no repositories, or an attribute is unknown
    """
    values = document.get("values") or document.get("planned_values")
    root = values.get("root_module") if isinstance(values, Mapping) else None
    found = [
        (resource, match[1], match[2])
        for resource in _resources(root)
        if (match := _TYPE.fullmatch(str(resource.get("type"))))
        and resource.get("mode", "managed") == "managed"
    ]
    if not found:
        raise invalid(
            "it contains no repository of the provider artifactory: use the output of `terraform"
            " show -json` for a state or a plan"
        )
    for resource, _rclass, _name in found:
        headers = member(resource, "values", _HEADERS)
        if headers and _HEADERS not in ignore:
            warn(
                f"{resource.get('address')} has {_HEADERS}, which are left out, because their"
                " values may be secret: the repository keeps the headers that it has"
            )
    return [_entry(resource, rclass, name, ignore) for resource, rclass, name in found]


def _resources(module: Any) -> Iterator[Mapping[str, Any]]:
    if not isinstance(module, Mapping):
        return
    yield from (
        resource for resource in module.get("resources") or [] if isinstance(resource, Mapping)
    )
    for child in module.get("child_modules") or []:
        yield from _resources(child)


def _entry(
    resource: Mapping[str, Any], rclass: str, name: str, ignore: Collection[str]
) -> dict[str, Any]:
    package, implied = _PACKAGES.get(name, (name, {}))
    address = str(resource.get("address"))
    values = resource.get("values")
    if not isinstance(values, Mapping) or not values.get("key"):
        raise invalid(f"the resource {address} has no value for key")
    entry: dict[str, Any] = {"key": values["key"], "rclass": rclass, "package_type": package}
    settings = dict(implied)
    for attribute, value in values.items():
        if value is None or attribute in _OTHER or attribute in ignore:
            continue
        if attribute in _OPTIONS:
            entry[_OPTIONS[attribute]] = value
        elif attribute in _SPECIAL:
            _special(attribute, value, entry, settings)
        else:
            setting = setting_of(attribute, rclass)
            if setting is None:
                raise invalid(
                    f"{address} has the unknown attribute {attribute}: add it to ignore, and"
                    " convert it by hand"
                )
            settings[setting] = value
    if settings:
        entry["settings"] = settings
    checked = {option: value for option, value in entry.items() if option != "remote_password"}
    try:
        typed_options.parse(RepositoryEntry, checked)
    except ToolchainError as error:
        raise invalid(f"{address}: {error.message}") from None
    return entry


def _special(attribute: str, value: Any, entry: dict[str, Any], settings: dict[str, Any]) -> None:
    """Convert an attribute whose format differs from its option; add it to entry or settings."""
    if attribute in ("includes_pattern", "excludes_pattern"):
        parts = [part.strip() for part in str(value).split(",")]
        entry[attribute.removesuffix("_pattern")] = [part for part in parts if part]
    elif attribute in ("repo_layout_ref", "url"):
        if value:
            entry["layout" if attribute == "repo_layout_ref" else "remote_url"] = value
    elif attribute == "project_key":
        entry["project"] = "" if value == "default" else value
    elif attribute == "password":
        if value:
            word = re.sub(r"\W", "_", str(entry["key"]))
            entry["remote_password"] = {"from": f"repo_password_{word}"}
    elif attribute == "member":
        entry["members"] = [
            {"url": member["url"], "enabled": member.get("enabled") is not False}
            for member in value
        ]
    elif value:
        on = {name: bool(flag) for name, flag in value[0].items()}
        settings["contentSynchronisation"] = {
            "enabled": on.get("enabled", False),
            "statistics": {"enabled": on.get("statistics_enabled", False)},
            "properties": {"enabled": on.get("properties_enabled", False)},
            "source": {"originAbsenceDetection": on.get("source_origin_absence_detection", False)},
        }


def setting_of(attribute: str, rclass: str) -> str | None:
    """Return the name of an attribute in the server's API, a known setting, or `None`."""
    first, *others = attribute.split("_")
    camel = first + "".join(word.title() for word in others)
    of_class = _VIRTUAL if rclass == "virtual" else {}
    found = of_class.get(attribute) or _SETTINGS.get(attribute) or camel
    return found if is_known(settings_name(found)) else None
