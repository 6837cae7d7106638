# SPDX-License-Identifier: GPL-3.0-or-later
"""Fields of repositories: the server's names and types, and how they are compared [repo-60]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.errors import invalid
from ...core.module.input_check import Place, check_options
from ...core.plan import Comparison, exact, unordered

#: Options to the server's names.
NAMES = {
    "description": "description",
    "notes": "notes",
    "includes": "includesPattern",
    "excludes": "excludesPattern",
    "layout": "repoLayoutRef",
    "project": "projectKey",
    "environments": "environments",
    "url": "url",
    "username": "username",
    "password": "password",
    "repositories": "repositories",
    "default_deployment_repo": "defaultDeploymentRepo",
    "members": "members",
}
_OPTION_OF = {
    **{name: option for option, name in NAMES.items()},
    "key": "key",
    "rclass": "rclass",
    "packageType": "package_type",
}
#: In the flat form these options carry a prefix.
_PREFIXED = ("url", "username", "password")
_EVERYTHING = "**/*"
_SETTINGS = "settings."

_BOOLEANS = """
    allowAnyHostAuth archiveBrowsingEnabled artifactoryRequestsCanRetrieveRemoteArtifacts blackedOut
    blockMismatchingMimeTypes blockPushingSchema1 bypassHeadRequests calculateYumMetadata
    cargoAnonymousAccess cdnRedirect ddebSupported debianTrivialLayout disableProxy
    disableUrlNormalization downloadRedirect enableCookieManagement enableFileListsIndexing
    enableTokenAuthentication externalDependenciesEnabled fetchJarsEagerly fetchSourcesEagerly
    forceMavenAuthentication forceNugetAuthentication handleReleases handleSnapshots hardFail
    listRemoteFolderItems offline priorityResolution propagateQueryParams rejectInvalidJars
    resolveDockerTagsByTimestamp retrieveSha256FromServer shareConfiguration storeArtifactsLocally
    suppressPomConsistencyChecks synchronizeProperties xrayIndex
"""
_NUMBERS = """
    assumedOfflinePeriodSecs dockerTagRetention maxUniqueSnapshots maxUniqueTags
    metadataRetrievalTimeoutSecs missedRetrievalCachePeriodSecs retrievalCachePeriodSecs
    signedUrlTtl socketTimeoutMillis unusedArtifactsCleanupPeriodHours
    virtualRetrievalCachePeriodSecs xrayDataTtl yumRootDepth
"""
_TEXTS = """
    clientTlsCertificate dockerProjectId externalDependenciesRemoteRepo keyPair localAddress
    mismatchingMimeTypesOverrideList primaryKeyPairRef proxy pyPIRegistryUrl pyPIRepositorySuffix
    queryParams remoteRepoLayoutRef secondaryKeyPairRef terraformType vcsGitDownloadUrl
    yumGroupFileNames
"""
_LISTS = "externalDependenciesPatterns optionalIndexCompressionFormats propertySets"
_CHOICES = {
    "checksumPolicyType": ("client-checksums", "server-generated-checksums"),
    "dockerApiVersion": ("V1", "V2"),
    "pomRepositoryReferencesCleanupPolicy": (
        "discard_active_reference",
        "discard_any_reference",
        "nothing",
    ),
    "remoteRepoChecksumPolicyType": (
        "generate-if-absent",
        "fail",
        "ignore-and-generate",
        "pass-thru",
    ),
    "snapshotVersionBehavior": ("unique", "non-unique", "deployer"),
}
#: Settings to their argument spec. Other names are passed to the server as they are.
_TABLE: dict[str, dict[str, Any]] = {
    **{name: {"type": "bool"} for name in _BOOLEANS.split()},
    **{name: {"type": "int"} for name in _NUMBERS.split()},
    **{name: {"type": "str", "empty": True} for name in _TEXTS.split()},
    **{name: {"type": "list", "elements": "str"} for name in _LISTS.split()},
    **{name: {"type": "str"} for name in _CHOICES},
    "contentSynchronisation": {"type": "dict"},
}


def checked_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with the types of the server. Raises `invalid`."""
    for name in settings:
        option = _OPTION_OF.get(str(name))
        if option is not None:
            prefix = "remote_" if option in _PREFIXED else ""
            raise invalid(f"settings.{name}: use the option {prefix}{option} instead")
    known = {name: settings[name] for name in settings if name in _TABLE}
    found = {**settings, **check_options(_TABLE, known, Place("settings"))}
    for name, choices in _CHOICES.items():
        if found.get(name) is not None and found[name] not in choices:
            raise invalid(
                f"settings.{name} is '{found[name]}', but must be one of {', '.join(choices)}"
            )
    return {name: value for name, value in found.items() if value is not None}


def is_known(name: str) -> bool:
    """Return whether servers are known to have a field, by its option name."""
    return not name.startswith(_SETTINGS) or name.removeprefix(_SETTINGS) in _TABLE


def server_name(name: str) -> str:
    """Return the server's name of a field."""
    return name.removeprefix(_SETTINGS) if name.startswith(_SETTINGS) else NAMES[name]


def state_of(config: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a configuration in terms of the options.

    A field that the server omits is left out, unless omitted means empty.
    """
    found: dict[str, Any] = {}
    for name, wanted in names.items():
        value = _of_server(name, config.get(server_name(name)))
        if value is None and wanted in ("", []) and is_known(name):
            value = wanted
        if value is None and name == "settings.disableProxy":
            # server fact [repo-60]: some releases omit it; it has no effect next to a proxy
            value = not config.get("proxy") and wanted
        if value is not None:
            found[name] = value
    return found


def payload_of(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields in the server's names and formats."""
    return {server_name(name): _for_server(name, value) for name, value in state.items()}


def project_of(config: Mapping[str, Any] | None) -> str:
    """Return the project of a repository, "" for none. Server fact [repo-60]: `default` is none."""
    found = (config or {}).get("projectKey")
    return "" if found in (None, "default") else str(found)


def _of_server(name: str, value: Any) -> Any:
    if name in ("includes", "excludes"):
        return [part for each in str(value or "").split(",") if (part := each.strip())]
    if name == "project":
        return project_of({"projectKey": value})
    if name == "members" and isinstance(value, list):
        return [
            {"url": str(each.get("url")), "enabled": each.get("enabled") is not False}
            for each in value
            if isinstance(each, Mapping)
        ]
    if value is None and name in ("description", "notes", "username", "default_deployment_repo"):
        return ""
    return [] if value is None and name in ("environments", "repositories") else value


def _for_server(name: str, value: Any) -> Any:
    if name == "includes":
        return ",".join(value) or _EVERYTHING
    return ",".join(value) if name == "excludes" else value


def _included(current: Any, desired: Any) -> tuple[bool, Any]:
    return (current or [_EVERYTHING]) == (desired or [_EVERYTHING]), desired


def _member_list(current: Any, desired: Any) -> tuple[bool, Any]:
    by_url = {each["url"].rstrip("/"): each["enabled"] for each in current or []}
    return by_url == {each["url"].rstrip("/"): each["enabled"] for each in desired}, desired


def _merged(current: Any, desired: Any) -> tuple[bool, Any]:
    """Compare the given members of a mapping only; the others stay."""
    after = merge(current, desired)
    return after == current, after


def merge(current: Any, wanted: Any) -> Any:
    """Return a value whose members are replaced by the wanted members, at any depth."""
    if not isinstance(current, Mapping) or not isinstance(wanted, Mapping):
        return wanted
    return {**current, **{name: merge(current.get(name), one) for name, one in wanted.items()}}


_OF_OPTIONS: Mapping[str, Comparison] = {
    "includes": _included,
    "environments": unordered,
    "members": _member_list,
}


def comparison(name: str, wanted: Any) -> Comparison:
    """Return the comparison of a field."""
    if name.removeprefix(_SETTINGS) in _LISTS.split():
        return unordered
    return _merged if isinstance(wanted, Mapping) else _OF_OPTIONS.get(name, exact)


def settings_name(name: str) -> str:
    """Return the field of a setting."""
    return f"{_SETTINGS}{name}"
