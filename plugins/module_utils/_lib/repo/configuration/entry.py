# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of a repository, and checks for contradictions between them [C11.2].

A field is named like its option, or `settings.NAME` for an entry of the option `settings`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from ...core.errors import conflict, invalid
from ...core.json_text import as_text
from ...core.module.input_check import Place, check_options
from ...core.module.rules import Rule
from ...core.module.typed_options import Option
from ...core.plan import Comparison, exact, unordered

#: Options, and the names of their fields in the server's API.
NAMES = {
    "description": "description",
    "notes": "notes",
    "includes": "includesPattern",
    "excludes": "excludesPattern",
    "layout": "repoLayoutRef",
    "project": "projectKey",
    "environments": "environments",
    "remote_url": "url",
    "remote_username": "username",
    "remote_password": "password",
    "repositories": "repositories",
    "default_deployment_repo": "defaultDeploymentRepo",
    "members": "members",
}
#: Options that the server stores as a single string.
PATTERNS = frozenset({"includes", "excludes"})
_OPTION_OF = {
    **{name: option for option, name in NAMES.items()},
    "key": "key",
    "rclass": "rclass",
    "packageType": "package_type",
}
#: Options whose fields some releases omit if they are empty.
_EMPTY_TEXTS = ("description", "notes", "remote_username", "default_deployment_repo")
_EVERYTHING = "**/*"
_SETTINGS = "settings."

_BOOLEANS = """
    allowAnyHostAuth archiveBrowsingEnabled artifactoryRequestsCanRetrieveRemoteArtifacts blackedOut
    blockMismatchingMimeTypes blockPushingSchema1 bypassHeadRequests calculateYumMetadata
    cargoAnonymousAccess cargoInternalIndex cdnRedirect curated ddebSupported debianTrivialLayout
    disableProxy disableUrlNormalization downloadRedirect enableConanSupport enableCookieManagement
    enableFileListsIndexing enableTokenAuthentication externalDependenciesEnabled fetchJarsEagerly
    fetchSourcesEagerly forceConanAuthentication forceMavenAuthentication forceMetadataNameVersion
    forceNonDuplicateChart forceNugetAuthentication handleReleases handleSnapshots hardFail
    listRemoteFolderItems offline passThrough priorityResolution propagateQueryParams
    rejectInvalidJars resolveDockerTagsByTimestamp retrieveSha256FromServer shareConfiguration
    storeArtifactsLocally suppressPomConsistencyChecks synchronizeProperties useNamespaces xrayIndex
"""
_NUMBERS = """
    assumedOfflinePeriodSecs dockerTagRetention maxUniqueSnapshots maxUniqueTags
    metadataRetrievalTimeoutSecs missedRetrievalCachePeriodSecs retrievalCachePeriodSecs
    socketTimeoutMillis unusedArtifactsCleanupPeriodHours virtualRetrievalCachePeriodSecs
    yumRootDepth
"""
_TEXTS = """
    bowerRegistryUrl chartsBaseUrl clientTlsCertificate composerRegistryUrl
    debianDefaultArchitectures dockerProjectId downloadContextPath externalDependenciesRemoteRepo
    feedContextPath gitRegistryUrl hexPublicKey keyPair localAddress
    mismatchingMimeTypesOverrideList podsSpecsRepoUrl primaryKeyPairRef proxy pyPIRegistryUrl
    pyPIRepositorySuffix queryParams remoteRepoLayoutRef secondaryKeyPairRef symbolServerUrl
    terraformProvidersUrl terraformRegistryUrl terraformType v3FeedUrl vcsGitDownloadUrl
    vcsGitProvider vcsType yumGroupFileNames
"""
_LISTS = "externalDependenciesPatterns optionalIndexCompressionFormats p2Urls propertySets"
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
#: Argument specs of the known settings, which docs/interfaces/repository_settings.md lists with
#: their sources. Other settings are sent to the server unchanged.
KNOWN_SETTINGS: dict[str, dict[str, Any]] = {
    **{name: {"type": "bool"} for name in _BOOLEANS.split()},
    **{name: {"type": "int"} for name in _NUMBERS.split()},
    **{name: {"type": "str", "empty": True} for name in _TEXTS.split()},
    **{name: {"type": "list", "elements": "str"} for name in _LISTS.split()},
    **{name: {"type": "str"} for name in _CHOICES},
    "contentSynchronisation": {"type": "dict"},
}


def checked_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with converted types, without `None` values.

    Raises `invalid` for a value of the wrong type, and for a setting that has a separate option.
    """
    for name in settings:
        option = _OPTION_OF.get(str(name))
        if option is not None:
            raise invalid(f"settings.{name}: use the option {option} instead")
    known = {name: settings[name] for name in settings if name in KNOWN_SETTINGS}
    found = {**settings, **check_options(KNOWN_SETTINGS, known, Place("settings"))}
    for name, choices in _CHOICES.items():
        if found.get(name) is not None and found[name] not in choices:
            raise invalid(
                f"settings.{name} is '{found[name]}', but must be one of {', '.join(choices)}"
            )
    return {name: value for name, value in found.items() if value is not None}


def is_known(name: str) -> bool:
    """Return whether a field has an option or is a known setting."""
    return not name.startswith(_SETTINGS) or name.removeprefix(_SETTINGS) in KNOWN_SETTINGS


def server_name(name: str) -> str:
    """Return the name of a field in the server's API."""
    return name.removeprefix(_SETTINGS) if name.startswith(_SETTINGS) else NAMES[name]


def state_of(config: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields of a configuration in the format of the options.

    A field that the server omits is left out, unless its wanted value is empty.

    :param names: fields to return, with their wanted values
    """
    found: dict[str, Any] = {}
    for name, wanted in names.items():
        value = _from_server(name, config.get(server_name(name)))
        if value is None and wanted in ("", []) and is_known(name):
            value = wanted
        if value is None and name == "settings.disableProxy":
            # server fact [repo-60]: some releases omit it; it has no effect if a proxy is set
            value = not config.get("proxy") and wanted
        if value is not None:
            found[name] = value
    return found


def payload_of(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields with the names and formats of the server's API."""
    patterns = {name: ",".join(state[name]) for name in PATTERNS & state.keys()}
    if patterns.get("includes") == "":
        patterns["includes"] = _EVERYTHING
    return {server_name(name): value for name, value in {**state, **patterns}.items()}


def project_of(config: Mapping[str, Any] | None) -> str:
    """Return the project key of a repository; "" without a project.

    Server fact [repo-60]: the project `default` means no project.
    """
    found = (config or {}).get("projectKey")
    return "" if found in (None, "default") else str(found)


def patterns_of(text: str) -> list[str]:
    """Return the patterns that the server reads from a string."""
    return [part for pattern in text.split(",") if (part := pattern.strip())]


def _from_server(name: str, value: Any) -> Any:
    if name in PATTERNS:
        return patterns_of(str(value or ""))
    if name == "project":
        return project_of({"projectKey": value})
    if name == "members" and isinstance(value, list):
        return [
            {"url": as_text(member.get("url")), "enabled": member.get("enabled") is not False}
            for member in value
            if isinstance(member, Mapping)
        ]
    if value is None and name in _EMPTY_TEXTS:
        return ""
    return [] if value is None and name in ("environments", "repositories") else value


def _included(current: Any, desired: Any) -> tuple[bool, Any]:
    return (current or [_EVERYTHING]) == (desired or [_EVERYTHING]), desired


def _member_list(current: Any, desired: Any) -> tuple[bool, Any]:
    by_url = {member["url"].rstrip("/"): member["enabled"] for member in current or []}
    return by_url == {member["url"].rstrip("/"): member["enabled"] for member in desired}, desired


def _merged(current: Any, desired: Any) -> tuple[bool, Any]:
    """Compare only the wanted members of a mapping; other members keep their values."""
    after = merge(current, desired)
    return after == current, after


def merge(current: Any, wanted: Any) -> Any:
    """Merge the wanted members into a mapping recursively; replace any other value."""
    if not isinstance(current, Mapping) or not isinstance(wanted, Mapping):
        return wanted
    merged = {name: merge(current.get(name), value) for name, value in wanted.items()}
    return {**current, **merged}


_OF_OPTIONS: Mapping[str, Comparison] = {
    "includes": _included,
    "environments": unordered,
    "members": _member_list,
}


def comparison(name: str, wanted: Any) -> Comparison:
    """Return the function that compares a field with its wanted value."""
    if name.removeprefix(_SETTINGS) in _LISTS.split():
        return unordered
    return _merged if isinstance(wanted, Mapping) else _OF_OPTIONS.get(name, exact)


def settings_name(name: str) -> str:
    """Return the field name of a setting."""
    return f"{_SETTINGS}{name}"


RepositoryClass: TypeAlias = Literal["local", "remote", "virtual", "federated"]
_BAD_KEY = re.compile(r"[\s/\\:|?*\"<>\x00-\x1f]")
_WEB = re.compile(r"https?://[^/\s]", re.IGNORECASE)
_LONGEST_KEY = 64
#: Options that only one class of repositories has.
_CLASS_OF = {
    "remote_url": "remote",
    "remote_username": "remote",
    "remote_password": "remote",
    "repositories": "virtual",
    "default_deployment_repo": "virtual",
    "members": "federated",
}
_OF_ABSENT = ("key", "state", "force", "rclass", "package_type", "update_password")


@dataclass(frozen=True)
class FederatedMember:
    """The suboptions of `members`: a member of a federated repository."""

    url: str
    enabled: bool = True


@dataclass(frozen=True)
class RepositoryEntry:
    """The suboptions of `entries`."""

    option_rules: ClassVar[tuple[Rule, ...]] = (
        Rule("state=absent", allows=_OF_ABSENT),
        Rule("update_password=always", requires="remote_password"),
    )

    key: Annotated[str, Option(secret=False)]
    rclass: RepositoryClass | None = None
    package_type: str | None = None
    description: Annotated[str | None, Option(empty=True)] = None
    notes: Annotated[str | None, Option(empty=True)] = None
    includes: list[str] | None = None
    excludes: list[str] | None = None
    layout: str | None = None
    project: Annotated[str | None, Option(empty=True)] = None
    environments: list[str] | None = None
    remote_url: str | None = None
    remote_username: Annotated[str | None, Option(empty=True)] = None
    remote_password: Annotated[str | None, Option(secret=True, empty=True)] = field(
        default=None, repr=False
    )
    update_password: Annotated[Literal["on_create", "always"], Option(secret=False)] = "on_create"
    repositories: list[str] | None = None
    default_deployment_repo: Annotated[str | None, Option(empty=True)] = None
    members: list[FederatedMember] | None = None
    settings: Annotated[dict[str, Any] | None, Option(values="json", private=True)] = None
    state: Literal["present", "absent"] = "present"
    force: bool = False

    def settings_of_server(self) -> Mapping[str, Any]:
        """Return `settings` with converted types. Raises `invalid` for a wrong type."""
        return checked_settings(self.settings or {})

    def check(self) -> None:
        """Raise `invalid` for an invalid key, URL or setting, and for options of another class."""
        if _BAD_KEY.search(self.key) or len(self.key) > _LONGEST_KEY or self.key in (".", ".."):
            raise invalid(
                f"key: '{self.key}' is not a valid repository key: use at most {_LONGEST_KEY}"
                ' characters, without blanks and /\\:|?*"<>'
            )
        urls = {f"members[{n}].url": member.url for n, member in enumerate(self.members or ())}
        for option, url in {"remote_url": self.remote_url, **urls}.items():
            if url is not None and not _WEB.match(url):
                raise invalid(f"{option} must begin with http:// or https:// and a host name")
        if self.rclass is not None:
            self.require_class(self.rclass)
        self.settings_of_server()

    def require_class(self, rclass: str) -> None:
        """Raise `invalid` if an option is set that repositories of this class do not have."""
        for option, wanted in _CLASS_OF.items():
            if getattr(self, option) is not None and wanted != rclass:
                raise invalid(
                    f"{option} applies to a {wanted} repository, but '{self.key}' is {rclass}:"
                    " omit it"
                )

    def require_creation(self) -> None:
        """Raise `invalid` if an option is missing that a new repository requires."""
        needed = ["rclass", "package_type", *(["remote_url"] if self.rclass == "remote" else [])]
        missing = [name for name in needed if getattr(self, name) is None]
        if missing:
            raise invalid(
                f"the repository '{self.key}' does not exist yet: set {' and '.join(missing)}"
            )

    def require_same(self, config: Mapping[str, Any]) -> None:
        """Raise `conflict` if the repository has another class or package type."""
        for option, name in (("rclass", "rclass"), ("package_type", "packageType")):
            wanted, current = getattr(self, option), str(config.get(name) or "")
            if wanted is not None and canonical(wanted) != canonical(current):
                raise conflict(
                    f"the {option} of the repository '{self.key}' is '{current}' and cannot be"
                    f" changed to '{wanted}': use another key, or delete the repository first"
                )


def canonical(kind: str) -> str:
    """Return a repository class or package type as newer servers write it, such as `rpm`."""
    lower = kind.lower()
    return "rpm" if lower == "yum" else lower
