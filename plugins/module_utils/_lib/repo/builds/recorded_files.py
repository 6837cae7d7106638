# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the artifacts of a build record with the files of a repository [C2.6, repo-27].

Two artifacts with the same content are two files. A promotion may change the path of a file, so
its copies are counted wherever they are in the target repository.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ...core.errors import ToolchainError
from ...core.json_text import as_text, json_objects
from .. import aql
from ..client import RepoClient
from ..items import listing
from ..items.layouts import index_test, is_checksum, left_out
from .records import BuildKey, aggregated_modules

#: Key of the files whose SHA-1 the server does not return.
_UNKNOWN = ""
#: Paths of files by SHA-1.
Paths: TypeAlias = Mapping[str, set[str]]


@dataclass(frozen=True)
class RecordedFile:
    """An artifact of a build record that has a SHA-1.

    :param path: path in the repository; "" if the record does not have it
    :param repo: repository to which the build deployed the file; `None` if unknown
    :param is_repeated: whether an earlier entry without a path has the same module, name and
        content, so that it may be the same file
    """

    name: str
    path: str
    sha1: str
    sha256: str | None = None
    repo: str | None = None
    is_repeated: bool = False

    @property
    def label(self) -> str:
        return self.path or self.name

    @property
    def file_name(self) -> str:
        return self.label.rpartition("/")[2]


def recorded_files(record: Mapping[str, Any]) -> list[RecordedFile]:
    """Return the artifacts of all modules of a record; a repeated path is a single file.

    Artifacts without a SHA-1 cannot be compared and are left out.
    """
    found: dict[tuple[str, ...], RecordedFile] = {}
    repeated: list[RecordedFile] = []
    for module in json_objects(record.get("modules")):
        for artifact in json_objects(module.get("artifacts")):
            if artifact.get("sha1"):
                repo, sha256 = artifact.get("originalDeploymentRepo"), artifact.get("sha256")
                file = RecordedFile(
                    as_text(artifact.get("name")),
                    path_of(artifact),
                    str(artifact["sha1"]).lower(),
                    str(sha256 or "").lower() or None,
                    str(repo) if repo else None,
                )
                place = (file.path,) if file.path else ("", as_text(module.get("id")), file.name)
                first = found.setdefault((*place, file.sha1), file)
                if first is not file and not file.path:
                    repeated.append(replace(file, is_repeated=True))
    return [*found.values(), *repeated]


def _has_no_artifacts(record: Mapping[str, Any]) -> bool:
    """Return whether a record certainly has no artifacts, not even some without a SHA-1."""
    modules = record.get("modules") or []
    well_formed = json_objects(modules) == modules
    return well_formed and not any(module.get("artifacts") for module in modules)


def path_of(artifact: Mapping[str, Any]) -> str:
    """Return the path of a recorded artifact; "" if the record does not have it.

    Server fact [repo-29]: clients record the path `.` for a file before they upload it.
    """
    path = as_text(artifact.get("path")).strip("/")
    return "" if path == "." else path


def lacking(recorded: Iterable[RecordedFile], paths: Paths) -> list[RecordedFile]:
    """Return the recorded files for which there are not enough copies, sorted by path.

    :param paths: paths of the existing files, by SHA-1
    """
    by_content: dict[str, list[RecordedFile]] = {}
    for file in recorded:
        by_content.setdefault(file.sha1, []).append(file)
    found: list[RecordedFile] = []
    for sha1, files in by_content.items():
        there = paths.get(sha1, set())
        spare = {path.rpartition("/")[2] for path in there - {file.path for file in files}}
        # files at their path are there, and most likely also those whose name occurs elsewhere
        files.sort(key=lambda file: (file.path in there, file.file_name in spare, file.label))
        files.sort(key=lambda file: not file.is_repeated)
        found += files[: max(0, len(files) - len(there))]
    return sorted(found, key=lambda file: file.label)


def missing_files(
    client: RepoClient, record: Mapping[str, Any], target: str, source: str | None
) -> list[str] | None:
    """Return the paths of the recorded artifacts that the target repository lacks.

    An artifact without a path is returned by name. Returns `None` if the target cannot be listed,
    or if the list has files without a digest, which may be the missing ones.

    :param source: repository to which the artifacts were deployed; artifacts that were deployed to
        another repository are ignored. `None` means all artifacts
    """
    recorded = recorded_files(record)
    wanted = [file for file in recorded if source is None or file.repo in (None, source)]
    if not wanted:
        return []
    there = _paths_in(client, record, target)
    if there is None:
        return None
    missing = lacking_items(client, target, wanted, there)
    if any(file.is_repeated for file in missing):
        # repeated entries for which the source has no copy are not missing
        left = _copies_in_source(client, record, missing, target, source)
        for sha1, paths in there.items():
            left.subtract((sha1, path.rpartition("/")[2]) for path in paths)
        found = []
        # the first entry of a file uses its copies before the repeated ones
        for file in sorted(missing, key=lambda file: (file.is_repeated, file.label)):
            content = file.sha1, file.file_name
            left[content] -= 1
            if not file.is_repeated or left[content] >= 0:
                found.append(file)
        missing = sorted(found, key=lambda file: file.label)
    return None if missing and _UNKNOWN in there else [file.label for file in missing]


#: SHA-1 and name of a file.
_Content: TypeAlias = tuple[str, str]


def _copies_in_source(
    client: RepoClient,
    record: Mapping[str, Any],
    missing: Iterable[RecordedFile],
    target: str,
    source: str | None,
) -> Counter[_Content]:
    """Return the number of copies of repeated files in the source of a promotion.

    These are the files with the properties of the build, otherwise those with the same content.

    :param source: `None` means the repository with the most copies
    """
    if not client.dialect.query_by_property:
        return Counter()
    repo: dict[str, Any] = {"repo": {"$ne": target} if source is None else source}
    purpose = "counting the copies of the build's files in the source"
    build = {"@build.name": record.get("name"), "@build.number": record.get("number")}
    by_content = aql.by_sha1({file.sha1 for file in missing if file.is_repeated})
    paths: dict[str, set[tuple[_Content, str]]] = {}
    for criteria in (build, *by_content):
        rows = aql.ask_if_supported(client, purpose, {**repo, **criteria}, ["actual_sha1"]) or ()
        for row in rows:
            content = as_text(row.get("actual_sha1")).lower(), as_text(row.get("name"))
            paths.setdefault(as_text(row.get("repo")), set()).add((content, aql.path_in(row)))
        if criteria is build and rows:
            break
    copies: Counter[_Content] = Counter()
    for key, found in paths.items():
        if source is not None or key != target:
            copies |= Counter(content for content, _path in found)
    return copies


def lacking_items(
    client: RepoClient, repo: str | None, recorded: Sequence[RecordedFile], there: Paths
) -> list[RecordedFile]:
    """Return the recorded files that are missing, without those that the server computes.

    :param repo: repository of the files; `None` means that of each file in the record
    """
    found = lacking(recorded, there)
    known = {file.label for file in recorded}
    computed = {
        file.label
        for file in found
        if is_checksum(file.label, known) or index_test(client, repo or file.repo or "")(file.label)
    }
    left_out(client, computed, "compared with the build record")
    return [file for file in found if file.label not in computed]


def _paths_in(client: RepoClient, record: Mapping[str, Any], target: str) -> Paths | None:
    """Return the paths of a build's files in a repository; `None` if they cannot be read.

    Server fact [repo-27]: a single query finds them, because the server joins items and builds by
    SHA-1. If the server does not support such queries, the whole repository is listed.
    """
    if client.dialect.query_by_property:
        criteria = {
            "repo": target,
            "artifact.module.build.name": record.get("name"),
            "artifact.module.build.number": record.get("number"),
        }
        purpose = f"comparing the files in '{target}' with the build record"
        rows = aql.ask_if_supported(client, purpose, criteria, ["actual_sha1"])
        if rows:
            return _by_content(rows)
        if rows is None:
            return None
    # server fact [repo-14]: without the permission to read, a query omits the items silently, but a
    # listing is rejected
    try:
        items = listing.listing(client, target, "", deep=not client.dialect.query_by_property)
    except ToolchainError as error:
        if error.kind not in ("permission", "not_found"):
            raise
        return None
    if items is None:
        return None
    found: dict[str, set[str]] = {}
    for path, item in items.items():
        found.setdefault(item.sha1 or _UNKNOWN, set()).add(path)
    return found


def _by_content(rows: Iterable[Mapping[str, Any]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(as_text(row.get("actual_sha1")).lower(), set()).add(aql.path_in(row))
    return found


def relocated(
    client: RepoClient, record: Mapping[str, Any], build: BuildKey, target: str, *, copied: bool
) -> bool | None:
    """Return whether a promotion without a status was carried out; `None` if unknown.

    Server fact [repo-15, repo-30]: such a promotion leaves no entry in the record. It was
    carried out if all files with the properties `build.name` and `build.number` are in the target
    repository, and after a move in no other repository. A build without files has nothing to
    promote.

    :param build: the properties do not contain the project of a build; so with a project, only
        files whose SHA-1 is in the record count
    :param target: key of the target repository
    """
    if not client.dialect.query_by_property:
        return None
    purpose = f"searching for the files of {build}"
    rows = aql.ask_if_supported(client, purpose, build.criteria, ["actual_sha1"])
    if rows is None:
        return None
    recorded = recorded_files(record)
    if not rows and _has_no_artifacts(record):
        # an aggregated build has no files of its own; another one may have been published too early
        if not aggregated_modules(record):
            client.warn(
                f"{build} has no files, so there is nothing to promote to '{target}': publish its"
                " files with build_publish, or set status"
            )
        return True
    if build.project is not None:
        contents = {file.sha1 for file in recorded}
        rows = [row for row in rows if as_text(row.get("actual_sha1")).lower() in contents]
    keys = {as_text(row.get("repo")) for row in rows}
    per_repo = {key: _by_content(row for row in rows if row.get("repo") == key) for key in keys}
    there = per_repo.pop(target, {})
    missing = lacking_items(client, target, recorded, there)
    # for a repeated entry, the copies in the other repositories are compared below
    if not there or not all(file.is_repeated for file in missing):
        return False
    if not copied:  # a move has left no file in another repository
        return not any(per_repo.values())
    return all(
        len(there.get(sha1, ())) >= len(paths)
        for other in per_repo.values()
        for sha1, paths in other.items()
    )


def predict_files(client: RepoClient, record: Mapping[str, Any], target: str) -> None:
    """Store the files that a promotion would put into its target, for later check-mode tasks."""
    for file in recorded_files(record):
        if file.path:
            item = listing.StoredItem(None, file.sha256, file.sha1)
            listing.predict(client, target, file.path, item)
