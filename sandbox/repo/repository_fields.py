# SPDX-License-Identifier: GPL-3.0-or-later
"""Fields of repository configurations, and their defaults [repo-60, repo-61]."""

from __future__ import annotations

from typing import Any

_COMMON: dict[str, Any] = {
    "description": "",
    "notes": "",
    "includesPattern": "**/*",
    "excludesPattern": "",
    "projectKey": "",
    "environments": [],
}
_STORING = {
    "blackedOut": False,
    "xrayIndex": False,
    "propertySets": [],
    "archiveBrowsingEnabled": False,
    "downloadRedirect": False,
    "priorityResolution": False,
    "cdnRedirect": False,
}
#: Fields that every repository of a class has.
OWN_FIELDS: dict[str, dict[str, Any]] = {
    "local": {**_COMMON, "repoLayoutRef": "", **_STORING},
    "remote": {
        **_COMMON,
        "repoLayoutRef": "",
        "url": "",
        "username": "",
        "password": "",
        "proxy": "",
        "hardFail": False,
        "offline": False,
        "blackedOut": False,
        "xrayIndex": False,
        "priorityResolution": False,
        "storeArtifactsLocally": True,
        "socketTimeoutMillis": 15000,
        "localAddress": "",
        "retrievalCachePeriodSecs": 7200,
        "missedRetrievalCachePeriodSecs": 60,
        "metadataRetrievalTimeoutSecs": 60,
        "assumedOfflinePeriodSecs": 300,
        "unusedArtifactsCleanupPeriodHours": 0,
        "synchronizeProperties": False,
        "blockMismatchingMimeTypes": True,
        "allowAnyHostAuth": False,
        "enableCookieManagement": False,
        "bypassHeadRequests": False,
        "propertySets": [],
        "listRemoteFolderItems": False,
        "contentSynchronisation": {
            "enabled": False,
            "statistics": {"enabled": False},
            "properties": {"enabled": False},
            "source": {"originAbsenceDetection": False},
        },
    },
    "virtual": {
        **_COMMON,
        "repoLayoutRef": "",
        "repositories": [],
        "defaultDeploymentRepo": "",
        "artifactoryRequestsCanRetrieveRemoteArtifacts": False,
    },
    "federated": {**_COMMON, "repoLayoutRef": "", **_STORING, "members": []},
}
_MAVEN = {
    "checksumPolicyType": "client-checksums",
    "snapshotVersionBehavior": "unique",
    "maxUniqueSnapshots": 0,
    "handleReleases": True,
    "handleSnapshots": True,
    "suppressPomConsistencyChecks": False,
}
#: Additional fields of repositories of a package type, except virtual ones.
TYPE_FIELDS: dict[str, dict[str, Any]] = {
    "docker": {
        "dockerApiVersion": "V2",
        "maxUniqueTags": 0,
        "dockerTagRetention": 1,
        "blockPushingSchema1": True,
    },
    "maven": _MAVEN,
    "gradle": _MAVEN,
    "rpm": {"yumRootDepth": 0, "calculateYumMetadata": False, "yumGroupFileNames": ""},
    "debian": {"debianTrivialLayout": False, "optionalIndexCompressionFormats": ["bz2"]},
    "nuget": {"maxUniqueSnapshots": 0, "forceNugetAuthentication": False},
}
_OTHER = """
    bowerRegistryUrl cargoAnonymousAccess cargoInternalIndex chartsBaseUrl clientTlsCertificate
    composerRegistryUrl curated customHttpHeaders ddebSupported debianDefaultArchitectures
    disableProxy disableUrlNormalization dockerProjectId downloadContextPath enableConanSupport
    enableFileListsIndexing enableTokenAuthentication externalDependenciesEnabled
    externalDependenciesPatterns externalDependenciesRemoteRepo feedContextPath fetchJarsEagerly
    fetchSourcesEagerly forceConanAuthentication forceMavenAuthentication forceMetadataNameVersion
    forceNonDuplicateChart gitRegistryUrl hexPublicKey keyPair mismatchingMimeTypesOverrideList
    p2Urls passThrough podsSpecsRepoUrl pomRepositoryReferencesCleanupPolicy primaryKeyPairRef
    propagateQueryParams pyPIRegistryUrl pyPIRepositorySuffix queryParams rejectInvalidJars
    remoteRepoChecksumPolicyType remoteRepoLayoutRef resolveDockerTagsByTimestamp
    retrieveSha256FromServer secondaryKeyPairRef shareConfiguration symbolServerUrl
    terraformProvidersUrl terraformRegistryUrl terraformType useNamespaces v3FeedUrl
    vcsGitDownloadUrl vcsGitProvider vcsType virtualRetrievalCachePeriodSecs
"""
#: Fields of other package types. The sandbox returns them only after they were set.
OTHER_FIELDS = frozenset(_OTHER.split())
_LAYOUTS = {
    **dict.fromkeys(("maven", "gradle", "ivy", "sbt"), "maven-2-default"),
    **{
        name: f"{name}-default"
        for name in ("npm", "nuget", "bower", "composer", "conan", "go", "ansible", "nix", "puppet")
    },
}


def defaults(rclass: str, package: str) -> dict[str, Any]:
    """Return the default values of all fields of a repository, by field."""
    found = {**OWN_FIELDS[rclass], "repoLayoutRef": _LAYOUTS.get(package, "simple-default")}
    if rclass != "virtual":
        found.update(TYPE_FIELDS.get(package, {}))
    return found
