# SPDX-License-Identifier: GPL-3.0-or-later
"""The sources of a release bundle: their request body and their current content [repo-33]."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from ...core.concurrency import first_alone
from ...core.errors import ToolchainError, invalid, shorten
from ...core.json_text import as_text
from ...core.module.task import Task
from ...core.module.typed_options import Option
from .. import aql
from ..builds import records
from ..builds.aggregates import BuildKey, named, references
from ..client import RepoClient, objects, refuse_glob, repository_key, segments
from ..items import listing
from .lifecycle import Bundle, BundleOptions, check_names

_PARALLEL = 4
_MANIFESTS = ("manifest.json", "list.manifest.json")
_BUILD_RECORDS = "-build-info"


@dataclass(frozen=True)
class BundledBuildOptions:
    """The suboptions of `sources.builds`."""

    build_name: str
    build_number: str
    project: str | None = None
    build_repository: str | None = None
    include_dependencies: bool = False


@dataclass(frozen=True)
class BundledArtifactOptions:
    """The suboptions of `sources.artifacts`."""

    repo: str
    path: str
    sha256: str | None = None


@dataclass(frozen=True)
class BundledBundleOptions:
    """The suboptions of `sources.bundles`."""

    name: str
    version: str
    project: str | None = None


@dataclass(frozen=True)
class BundleSourcesOptions:
    """The suboptions of `sources`."""

    builds: Annotated[list[BundledBuildOptions] | None, Option(empty=False)] = None
    artifacts: Annotated[list[BundledArtifactOptions] | None, Option(empty=False)] = None
    aql: str | None = None
    bundles: Annotated[list[BundledBundleOptions] | None, Option(empty=False)] = None


@dataclass
class BundleContent:
    """The artifacts that a bundle should have. Two paths with the same content are two artifacts.

    :param wanted: label of each artifact for messages, by SHA-256 and path; the path is empty if
        it is unknown
    :param exact: whether the bundle must have no other artifacts; false if the artifacts of a
        source are not completely known
    """

    wanted: dict[str, dict[str, str]] = field(default_factory=dict)
    exact: bool = True

    def add(self, sha256: str, path: Any, label: str) -> None:
        self.wanted.setdefault(sha256.lower(), {})[as_text(path).strip("/")] = label

    def labels(self) -> list[str]:
        return sorted(label for paths in self.wanted.values() for label in paths.values())

    def differences(self, recorded: Sequence[Mapping[str, Any]]) -> list[str]:
        """Compare the artifacts of a bundle; return a message for each missing or extra artifact.

        :param recorded: artifacts in the record of the bundle
        """
        current: dict[str, dict[str, str]] = {}
        for artifact in recorded:
            if not _is_build_record(artifact):
                path = as_text(artifact.get("path")).strip("/")
                current.setdefault(digest_of(artifact), {})[path] = path
        missing = [f"it lacks {label}" for label in _surplus(self.wanted, current)]
        extra = [f"it also has {path}" for path in _surplus(current, self.wanted) if self.exact]
        return missing + extra


def _surplus(
    wanted: Mapping[str, Mapping[str, str]], there: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """Return the labels of the artifacts for which `there` has not enough copies."""
    found: list[str] = []
    for sha256, paths in wanted.items():
        known = there.get(sha256, {})
        # without a path it is unknown which of these artifacts a source means
        labels = {path: label for path, label in paths.items() if path} or paths
        # labels and paths of bundles may begin with the repository
        seen = {*known, *known.values()}
        ordered = sorted(labels, key=lambda path: path in seen or labels[path] in seen)
        found += [labels[path] for path in ordered[: max(0, len(labels) - len(known))]]
    return found


def digest_of(artifact: Mapping[str, Any]) -> str:
    """Return the SHA-256 of an artifact in a bundle record in lower case; "" without one."""
    return str(artifact.get("checksum") or artifact.get("sha256") or "").lower()


def _is_build_record(artifact: Mapping[str, Any]) -> bool:
    """Return whether an artifact is a build record, which the server adds to a bundle itself."""
    repo = str(artifact.get("source_repository_key") or "")
    return repo.endswith(_BUILD_RECORDS) or artifact.get("package_type") == "buildinfo"


class Sources:
    """The sources from which a release bundle is created.

    :param skips_manifests: whether the server does not add the layers of container images
    """

    def __init__(
        self, task: Task, bundle: Bundle, options: BundleSourcesOptions, *, skips_manifests: bool
    ) -> None:
        self._task, self._bundle, self._options = task, bundle, options
        self._client = RepoClient(task, connections=_PARALLEL)
        self._skips_manifests = skips_manifests
        _check(options)
        self._bundles = [self._source_bundle(source) for source in options.bundles or ()]

    def body(self) -> dict[str, Any]:
        """Return the sources as members of the request body.

        Sources of a single kind are sent in the older format, which more servers support.
        """
        named = self._named_sources()
        if len(named) == 1:
            ((kind, source),) = named.items()
            return {"source_type": kind, "source": {kind: source}}
        return {"sources": [{"source_type": kind, kind: source} for kind, source in named.items()]}

    def _named_sources(self) -> dict[str, Any]:
        options = self._options
        sources = {
            "builds": [self._build(build) for build in options.builds or ()],
            "artifacts": [_artifact(artifact) for artifact in options.artifacts or ()],
            "release_bundles": [_of_bundle(bundle) for bundle in self._bundles],
            "aql": options.aql,
        }
        return {kind: source for kind, source in sources.items() if source}

    def _project(self, project: str | None) -> str | None:
        return self._bundle.project if project is None else project

    def _build(self, build: BundledBuildOptions) -> dict[str, Any]:
        project = self._project(build.project)
        return {
            "build_repository": build.build_repository or _build_records_key(project),
            "build_name": build.build_name,
            "build_number": build.build_number,
            "include_dependencies": build.include_dependencies,
        }

    def _source_bundle(self, source: BundledBundleOptions) -> Bundle:
        options = BundleOptions(
            name=source.name, version=source.version, project=self._project(source.project)
        )
        check_names(options)
        return Bundle(self._task, options, self._bundle.client)

    def content(self, recorded: Sequence[Mapping[str, Any]] | None = None) -> BundleContent:
        """Read the current artifacts of the sources.

        :param recorded: artifacts of the existing bundle, or `None` before it is created. If the
            bundle exists, its items may have been moved and its build records deleted
        :raises ToolchainError: `not_found` if a source is missing, `conflict` if the digest of an
            item differs from the options
        """
        found = BundleContent(exact=self._options.aql is None)
        self._add_artifacts(found, recorded)
        for build in self._options.builds or ():
            self._add_build(found, build, exists=recorded is not None)
        for bundle in self._bundles:
            for artifact in objects(bundle.record().get("artifacts")):
                found.add(digest_of(artifact), artifact.get("path"), as_text(artifact.get("path")))
        names = {label.rpartition("/")[2] for label in found.labels()}
        if not self._skips_manifests and not names.isdisjoint(_MANIFESTS):
            # the server also adds the layers of the images, which the sources do not list
            found.exact = False
        return found

    def _add_artifacts(
        self, found: BundleContent, recorded: Sequence[Mapping[str, Any]] | None
    ) -> None:
        sources = self._options.artifacts or []
        stored = first_alone(
            _PARALLEL,
            lambda source: listing.expected(self._client, source.repo, source.path.strip("/")),
            sources,
        )
        missing, wrong = [], []
        for source, item in zip(sources, stored, strict=True):
            sha256, label = (source.sha256 or "").lower(), f"{source.repo}/{source.path.strip('/')}"
            digest = _recorded_digest(source, recorded or ()) if item is None else item.sha256
            if item is None and digest is None:
                missing.append(label)
            elif sha256 and digest and digest != sha256:
                wrong.append(f"'{label}' has the sha256 {digest}, not {sha256}")
            elif digest or sha256:
                found.add(digest or sha256, source.path, label)
            else:
                found.exact = False  # the server returns no digest
        if missing:
            raise ToolchainError("not_found", f"there is no {shorten(', '.join(missing), 400)}")
        if wrong:
            raise ToolchainError("conflict", shorten("; ".join(wrong), 600))

    def _add_build(self, found: BundleContent, build: BundledBuildOptions, *, exists: bool) -> None:
        label = f"the build '{build.build_name}' #{build.build_number}"
        project = self._project(build.project)
        if build.build_repository is not None:
            project = build.build_repository.removesuffix(_BUILD_RECORDS)
            project = None if project == "artifactory" else project
        try:
            record = records.expected_record(
                self._client, build.build_name, build.build_number, project
            )
        except ToolchainError as error:
            if error.kind != "not_found" or not exists:
                raise
            self._task.warn(
                f"the record of {label} no longer exists: {self._bundle.label} is not compared with"
                " this build"
            )
            found.exact = False
            return
        self._warn_of_references(found, BuildKey(build.build_name, build.build_number), record)
        files = list(_files_of(record, dependencies=build.include_dependencies))
        digests = self._with_sha256(files)
        for file in files:
            sha256 = file.get("sha256") or digests.get(str(file.get("sha1") or "").lower())
            if sha256:
                label = str(file.get("path") or file.get("name") or file.get("id"))
                found.add(str(sha256), file.get("path"), label)
            else:
                found.exact = False

    def _warn_of_references(
        self, found: BundleContent, key: BuildKey, record: Mapping[str, Any]
    ) -> None:
        """Warn if a build refers to other builds: it is unknown whether the server adds their files
        [repo-35].
        """
        if others := references(record, key):
            self._task.warn(
                f"{key} refers to other builds ({named(others)}): {self._bundle.label} is not"
                " compared with their files. List them in sources.builds"
            )
            found.exact = False

    def _with_sha256(self, files: Iterable[Mapping[str, Any]]) -> dict[str, str]:
        """Query the SHA-256 of the files whose record has only a SHA-1; return it by SHA-1."""
        unknown = {
            str(file["sha1"]).lower()
            for file in files
            if not file.get("sha256") and file.get("sha1")
        }
        found: dict[str, str] = {}
        for some in aql.by_sha1(unknown):
            purpose = f"reading the digests of {len(some['$or'])} files"
            rows = aql.ask_if_supported(self._client, purpose, some, ["actual_sha1", "sha256"])
            found |= {
                str(row["actual_sha1"]).lower(): str(row["sha256"])
                for row in rows or ()
                if row.get("sha256")
            }
        return found


def _check(options: BundleSourcesOptions) -> None:
    """Raise `invalid` if the sources are empty or malformed, before the first request."""
    if not any((options.builds, options.artifacts, options.aql, options.bundles)):
        raise invalid("sources: set at least one of builds, artifacts, aql and bundles")
    for number, artifact in enumerate(options.artifacts or ()):
        place = f"sources.artifacts[{number}]"
        repository_key(f"{place}.repo", artifact.repo)
        refuse_glob(artifact.path)
        if not segments(artifact.path):
            raise invalid(f"{place}.path is '{artifact.path}', but must name a file")
    for number, build in enumerate(options.builds or ()):
        for name in ("project", "build_repository"):
            if (value := getattr(build, name)) is not None:
                repository_key(f"sources.builds[{number}].{name}", value)


def _of_bundle(bundle: Bundle) -> dict[str, Any]:
    # server fact [repo-33]: clients use both names for the project key, so send both
    names = () if bundle.project is None else ("project", "project_key")
    return {
        **dict.fromkeys(names, bundle.project),
        "repository_key": bundle.repository,
        "release_bundle_name": bundle.name,
        "release_bundle_version": bundle.version,
    }


def _build_records_key(project: str | None) -> str:
    """Return the key of the repository that stores a project's build records [repo-32]."""
    named = "artifactory" if project in (None, "default") else project
    return f"{named}{_BUILD_RECORDS}"


def _artifact(source: BundledArtifactOptions) -> dict[str, Any]:
    digest = {} if source.sha256 is None else {"sha256": source.sha256.lower()}
    return {"path": f"{source.repo}/{source.path.strip('/')}", **digest}


def _recorded_digest(
    source: BundledArtifactOptions, recorded: Sequence[Mapping[str, Any]]
) -> str | None:
    """Return the SHA-256 of a source's path in the bundle record; `None` if it is not listed."""
    path = source.path.strip("/")
    for artifact in recorded:
        recorded_path = str(artifact.get("path") or "").strip("/")
        if recorded_path in (path, f"{source.repo}/{path}"):
            return digest_of(artifact) or None
    return None


def _files_of(record: Mapping[str, Any], *, dependencies: bool) -> Iterable[Mapping[str, Any]]:
    for module in objects(record.get("modules")):
        yield from objects(module.get("artifacts"))
        if dependencies:
            yield from objects(module.get("dependencies"))
