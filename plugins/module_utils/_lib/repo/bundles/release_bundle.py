# SPDX-License-Identifier: GPL-3.0-or-later
"""Create and delete versions of release bundles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from ...core.concurrency import first_alone
from ...core.errors import ToolchainError, invalid, not_found, shorten
from ...core.json_text import as_text, json_objects
from ...core.module import typed_options
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.task import Task
from ...core.module.typed_options import Option, Segment
from ...core.plan import Plan, without_none
from .. import aql
from ..builds import records
from ..builds.records import BuildKey, named, references
from ..client import RepoClient, refuse_glob, repository_key, segments
from ..image_names import MANIFESTS
from ..items import listing
from ..service import SERVICE
from .lifecycle import COMPLETED, Bundle, BundleOptions, BundleWaitOptions, Progress, SigningKey

_DELETING = "DELETING"


_PARALLEL = 4
_BUILD_RECORDS = "-build-info"


@dataclass(frozen=True)
class BundledBuildOptions:
    """The suboptions of `sources.builds`."""

    build_name: Segment
    build_number: Segment
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
            repo = str(artifact.get("source_repository_key") or "")
            # the server adds build records itself
            is_record = repo.endswith(_BUILD_RECORDS) or artifact.get("package_type") == "buildinfo"
            if not is_record:
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
        self._bundles = []
        for source in options.bundles or ():
            project = self._project(source.project)
            named = BundleOptions(name=source.name, version=source.version, project=project)
            typed_options.check(named)
            self._bundles.append(Bundle(task, named, bundle.client))

    def body(self) -> dict[str, Any]:
        """Return the sources as members of the request body.

        Sources of a single kind are sent in the older format, which more servers support.
        """
        options = self._options
        builds = []
        for build in options.builds or ():
            project = self._project(build.project)
            key = "artifactory" if project in (None, "default") else project  # [repo-32]
            builds.append(
                {
                    "build_repository": build.build_repository or f"{key}{_BUILD_RECORDS}",
                    "build_name": build.build_name,
                    "build_number": build.build_number,
                    "include_dependencies": build.include_dependencies,
                }
            )
        sources: dict[str, Any] = {
            "builds": builds,
            "artifacts": [
                without_none(
                    {
                        "path": f"{artifact.repo}/{artifact.path.strip('/')}",
                        "sha256": artifact.sha256 and artifact.sha256.lower(),
                    }
                )
                for artifact in options.artifacts or ()
            ],
            "release_bundles": [
                without_none(
                    {
                        # server fact [repo-33]: clients use both names for the project key
                        "project": bundle.project,
                        "project_key": bundle.project,
                        "repository_key": bundle.repository,
                        "release_bundle_name": bundle.name,
                        "release_bundle_version": bundle.version,
                    }
                )
                for bundle in self._bundles
            ],
            "aql": options.aql,
        }
        named = {kind: source for kind, source in sources.items() if source}
        if len(named) == 1:
            ((kind, source),) = named.items()
            return {"source_type": kind, "source": {kind: source}}
        return {"sources": [{"source_type": kind, kind: source} for kind, source in named.items()]}

    def _project(self, project: str | None) -> str | None:
        return self._bundle.project if project is None else project

    def content(self, recorded: Sequence[Mapping[str, Any]] | None = None) -> BundleContent:
        """Read the current artifacts of the sources.

        :param recorded: artifacts of the existing bundle, or `None` before it is created. If the
            bundle exists, its items may have been moved and its build records deleted
        :raises ToolchainError: `not_found` if a source is missing, `conflict` if the digest of an
            item differs from the options
        """
        found = BundleContent(exact=self._options.aql is None)
        self._add_artifacts(found, recorded or ())
        for build in self._options.builds or ():
            self._add_build(found, build, exists=recorded is not None)
        for bundle in self._bundles:
            for artifact in json_objects(bundle.record().get("artifacts")):
                found.add(digest_of(artifact), artifact.get("path"), as_text(artifact.get("path")))
        names = {label.rpartition("/")[2] for label in found.labels()}
        if not self._skips_manifests and not names.isdisjoint(MANIFESTS):
            # the server also adds the layers of the images, which the sources do not list
            found.exact = False
        return found

    def _add_artifacts(self, found: BundleContent, recorded: Sequence[Mapping[str, Any]]) -> None:
        sources = self._options.artifacts or []
        stored = first_alone(
            _PARALLEL,
            lambda source: listing.expected(self._client, source.repo, source.path.strip("/")),
            sources,
        )
        missing, wrong = [], []
        for source, item in zip(sources, stored, strict=True):
            sha256, path = (source.sha256 or "").lower(), source.path.strip("/")
            label = f"{source.repo}/{path}"
            digest = None if item is None else item.sha256
            for artifact in recorded if item is None else ():
                if as_text(artifact.get("path")).strip("/") in (path, label):
                    digest = digest_of(artifact) or None
                    break
            if item is None and digest is None:
                missing.append(label)
            elif sha256 and digest and digest != sha256:
                wrong.append(f"'{label}' has the sha256 {digest}, not {sha256}")
            elif digest or sha256:
                found.add(digest or sha256, source.path, label)
            else:
                found.exact = False  # the server returns no digest
        if missing:
            raise not_found(f"there is no {shorten(', '.join(missing), 400)}")
        if wrong:
            raise ToolchainError("conflict", shorten("; ".join(wrong), 600))

    def _add_build(self, found: BundleContent, build: BundledBuildOptions, *, exists: bool) -> None:
        project = self._project(build.project)
        if build.build_repository is not None:
            project = build.build_repository.removesuffix(_BUILD_RECORDS)
            project = None if project == "artifactory" else project
        key = BuildKey(build.build_name, build.build_number, project)
        try:
            record = records.expected_record(self._client, key)
        except ToolchainError as error:
            if error.kind != "not_found" or not exists:
                raise
            self._task.warn(
                f"the record of {key} no longer exists: {self._bundle.label} is not compared with"
                " this build"
            )
            found.exact = False
            return
        if others := references(record, key):
            # it is unknown whether the server adds their files [repo-35]
            self._task.warn(
                f"{key} refers to other builds ({named(others)}): {self._bundle.label} is not"
                " compared with their files. List them in sources.builds"
            )
            found.exact = False
        parts = ("artifacts", "dependencies") if build.include_dependencies else ("artifacts",)
        modules = json_objects(record.get("modules"))
        files = [
            file for each in modules for part in parts for file in json_objects(each.get(part))
        ]
        # the records of some files have only a SHA-1
        unknown = {
            str(file["sha1"]).lower()
            for file in files
            if not file.get("sha256") and file.get("sha1")
        }
        digests: dict[str, str] = {}
        for some in aql.by_sha1(unknown):
            purpose = f"reading the digests of {len(some['$or'])} files"
            rows = aql.ask_if_supported(self._client, purpose, some, ["actual_sha1", "sha256"])
            digests |= {
                str(row["actual_sha1"]).lower(): str(row["sha256"])
                for row in rows or ()
                if row.get("sha256")
            }
        for file in files:
            sha256 = file.get("sha256") or digests.get(str(file.get("sha1") or "").lower())
            if sha256:
                label = str(file.get("path") or file.get("name") or file.get("id"))
                found.add(str(sha256), file.get("path"), label)
            else:
                found.exact = False


def _check(options: BundleSourcesOptions) -> None:
    """Raise `invalid` if the sources are empty or malformed, before the first request."""
    if not any((options.builds, options.artifacts, options.aql, options.bundles)):
        raise invalid("sources: set at least one of builds, artifacts, aql and bundles")
    for number, artifact in enumerate(options.artifacts or ()):
        place = f"sources.artifacts[{number}]"
        repository_key(f"{place}.repo", artifact.repo)
        refuse_glob(artifact.path, f"{place}.path")
        if not segments(artifact.path, f"{place}.path"):
            raise invalid(f"{place}.path is '{artifact.path}', but must name a file")
    for number, build in enumerate(options.builds or ()):
        for name in ("project", "build_repository"):
            if (value := getattr(build, name)) is not None:
                repository_key(f"sources.builds[{number}].{name}", value)


@dataclass(frozen=True, kw_only=True)
class ReleaseBundleOptions(BundleWaitOptions):
    """The options of `release_bundle`."""

    constraints: ClassVar[dict[str, Any]] = {"required_if": [("state", "present", ["sources"])]}

    signing_key: SigningKey = None
    sources: BundleSourcesOptions | None = None
    skip_docker_manifest_resolution: bool = False
    state: Literal["present", "absent"] = "present"
    replace: bool = False


class ReleaseBundleOperation:
    """Create or delete a version, or compare an existing version with its sources.

    Server fact [repo-33]: a version is immutable, so it can only be deleted and created again.
    """

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {
            "read": reads("read"),
            "create": writes("read", unforeseen=("deploy",)),
            "delete": writes("read", unforeseen=("delete",)),
        },
        kind="release bundle",
        name="{project}:{name}/{version}@{repository}",
    )

    def __init__(self, task: Task, options: ReleaseBundleOptions) -> None:
        self._task, self._options = task, options
        self._bundle = Bundle(task, options)
        self._sources: Sources | None = None
        if options.state == "present":
            self._sources = Sources(
                task,
                self._bundle,
                options.sources or BundleSourcesOptions(),
                skips_manifests=options.skip_docker_manifest_resolution,
            )

    def plan(self) -> Plan:
        found = self._bundle.state()
        if self._sources is None:
            return self._removal(found)
        if found is None:
            return self._creation({}, self._sources.content())
        if found.running:
            return Plan({}, {}, result={"bundle": self._bundle.shown(found.status)}, waits=True)
        if found.status == COMPLETED:
            record = self._bundle.record()
            recorded = json_objects(record.get("artifacts"))
            differences = self._sources.content(recorded).differences(recorded)
            if not differences:
                return Plan({}, {}, result={"bundle": self._bundle.shown(COMPLETED, record)})
            if not self._options.replace:
                raise self._conflict(differences)
            paths = [str(artifact.get("path")) for artifact in recorded]
            return self._creation({"artifacts": paths}, self._sources.content())
        if found.status == _DELETING:
            raise ToolchainError(
                "conflict", f"{self._bundle.label} is being deleted: try again later"
            )
        if not self._options.replace:
            kind: Literal["failed", "conflict"] = "failed" if found.failed else "conflict"
            raise ToolchainError(
                kind,
                f"{self._bundle.label} is incomplete: the server reports {found.reported}. Set"
                " replace: true to delete and recreate it",
            )
        return self._creation({"status": found.status}, self._sources.content())

    def _conflict(self, differences: Sequence[str]) -> ToolchainError:
        return ToolchainError(
            "conflict",
            f"{self._bundle.label} already exists with different content:"
            f" {shorten('; '.join(differences), 600)}. Use another version, or set replace: true to"
            " delete and recreate this one",
        )

    def _creation(self, before: Mapping[str, Any], content: BundleContent) -> Plan:
        desired = without_none(
            {
                "name": self._bundle.name,
                "version": self._bundle.version,
                "project": self._bundle.project,
                "artifacts": content.labels() or None,
                "query": None if self._options.sources is None else self._options.sources.aql,
            }
        )
        known = {name: desired[name] for name in ("name", "version", "project") if name in desired}
        result = {"bundle": self._bundle.shown(None)}
        if before:
            return Plan({**known, **before}, desired, "update", result=result, data=content)
        return Plan({}, desired, "create", result=result, data=content)

    def _removal(self, found: Progress | None) -> Plan:
        result = {"bundle": self._bundle.shown(None)}
        if found is None or found.status == _DELETING:
            return Plan({}, {}, result=result, waits=found is not None)
        bundle = self._bundle
        before = {"name": bundle.name, "version": bundle.version, "status": found.status}
        return Plan(before, {}, "delete", result=result)

    def predict(self, plan: Plan) -> None:
        """Record for later tasks in check mode that this task would create the version."""
        if self._sources is not None:
            self._task.predictions.add(*self._bundle.prediction_key, value={})

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        if self._sources is None:
            self._delete(plan, wait=self._options.wait)
            return {}
        if plan.changed:
            if plan.action == "update":
                self._delete(plan, wait=True)
            self._create(self._sources)
        return {"bundle": self._finished(self._sources, plan.data)}

    def _delete(self, plan: Plan, *, wait: bool) -> None:
        bundle, doing = self._bundle, f"deleting {self._bundle.label}"

        def is_going() -> bool:
            found = bundle.state()
            return found is None or found.status == _DELETING

        if plan.changed:
            path = bundle.path("release_bundle/records")
            bundle.write(doing, "DELETE", path, verify=is_going, repeatable=True)
        if not wait:
            return

        def left() -> Progress | None:
            found = bundle.state()
            return None if found is None else Progress("PENDING")

        bundle.follow(doing, left, self._options.polling())

    def _create(self, sources: Sources) -> None:
        options, bundle = self._options, self._bundle
        body = {
            "release_bundle_name": bundle.name,
            "release_bundle_version": bundle.version,
            "skip_docker_manifest_resolution": options.skip_docker_manifest_resolution,
            **sources.body(),
        }
        bundle.write(
            f"creating {bundle.label}",
            "POST",
            "api/v2/release_bundle",
            signing_key=options.signing_key,
            verify=lambda: bundle.state() is not None,
            json=body,
        )

    def _finished(self, sources: Sources, created: BundleContent | None) -> dict[str, Any]:
        """Wait until the version is complete and verify its artifacts; return the return value
        `bundle`.

        :param created: expected artifacts if this task requested the creation; `None` if another
            client did
        """
        bundle = self._bundle
        self._task.unlock()
        if not self._options.wait:
            found = bundle.status()
            return bundle.shown(None if found is None else found.status)

        def status() -> Progress:  # a new version may appear with a delay
            return bundle.status() or Progress("PENDING")

        try:
            found = bundle.follow(f"creating {bundle.label}", status, self._options.polling())
        except ToolchainError as error:
            error.result.setdefault("changed", created is not None)
            raise
        if found is None or found.status != COMPLETED:
            last = "" if found is None else found.status
            message = f"creating {bundle.label}: the version has the status '{last}'"
            raise ToolchainError("failed", message)
        record = bundle.record()
        recorded = json_objects(record.get("artifacts"))
        content = sources.content(recorded) if created is None else created
        differences = content.differences(recorded)
        if differences:
            conflict = self._conflict(differences)
            conflict.result["changed"] = created is not None
            raise conflict
        return bundle.shown(COMPLETED, record)
