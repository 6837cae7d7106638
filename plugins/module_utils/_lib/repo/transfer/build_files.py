# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the files of a build by properties and by the digests in its record [C8.1, repo-27]."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

from ...core.errors import ToolchainError, shorten
from .. import aql, repositories
from ..builds.recorded_files import (
    Paths,
    RecordedFile,
    lacking,
    lacking_items,
    recorded_files,
)
from ..builds.records import Aggregated, AggregatedBuild, BuildKey, read_builds
from ..client import RepoClient
from ..items import listing
from .remote_files import Filter, RemoteFile, having, of_row, query

#: Path and SHA-1 of the files of each build to which a build refers.
FilesOfBuilds: TypeAlias = dict[BuildKey, Collection[tuple[str, str | None]]]


def find_build_files(
    client: RepoClient, key: BuildKey, mode: Aggregated, repo: str | None, wanted: Filter
) -> tuple[list[RemoteFile], FilesOfBuilds]:
    """Find the files of a build, and those of the builds to which it refers.

    The first part contains the files of all these builds; files of the same path and content once.

    :param repo: repository to search; `None` means all repositories
    :raises ToolchainError: `not_found` if neither `repo` nor properties restrict the search and a
        recorded artifact does not exist, and the errors of :func:`read_builds`
    """
    if not client.dialect.query_by_property:
        raise ToolchainError(
            "rejected",
            f"cannot find the files of {key}: queries of this server do not support properties"
            " (check the option dialect)",
        )
    own, others = read_builds(client, key, mode)
    files = _files_of(client, own, repo, wanted)
    aggregated: FilesOfBuilds = {}
    for build in others:
        found = _files_of(client, build, repo, wanted)
        aggregated[build.key] = {(file.path, file.stored.sha1) for file in found}
        files += found
    if repo is not None and not files:
        repositories.require(client, [repo])
    return _without_copies(files), aggregated


def _files_of(
    client: RepoClient, build: AggregatedBuild, repo: str | None, wanted: Filter
) -> list[RemoteFile]:
    """Return the files of a single build.

    :param build: with a project, only content in the build record counts, because the properties
        of a file do not contain its project
    """
    key, recorded = build.key, recorded_files(build.record)
    search = _BuildSearch(client, str(key), wanted)
    found = search.items({"@build.name": key.name, "@build.number": key.number}, repo)
    if key.project is not None:
        contents = {file.sha1 for file in recorded}
        found = [file for file in found if file.stored.sha1 in contents]
    unmarked = lacking(recorded, _paths(found))
    found += search.copies(unmarked, _paths(found), repo)
    if not wanted.properties:
        found += _predicted(client, unmarked, repo)
    if repo is None and not wanted.properties:
        search.require_all(recorded, found)
    return list(filter(wanted.keeps, found))


def _predicted(
    client: RepoClient, recorded: Iterable[RecordedFile], repo: str | None
) -> Iterator[RemoteFile]:
    """Yield the recorded files that earlier tasks in check mode would deploy."""
    for file in recorded:
        there = file.repo or ""
        stored = listing.predicted(client, there, file.path)
        if stored is not None and repo in (None, there):
            yield RemoteFile(there, file.path, file.path, stored)


class _BuildSearch:
    """Queries for the files of a build."""

    def __init__(self, client: RepoClient, label: str, wanted: Filter) -> None:
        self._client, self._label = client, label
        self._having = having(wanted.properties)

    def items(self, criteria: Mapping[str, Any], repo: str | None) -> list[RemoteFile]:
        """Return the files that match criteria of a query.

        :param repo: repository to search; `None` means all repositories. The members of a virtual
            repository are searched, because queries do not find items of the virtual repository
        """
        purpose = f"searching for the files of {self._label}"
        within: dict[str, Any] = {} if repo is None else {"repo": repo}
        asked = {"type": "file", **criteria, **self._having}
        rows = query(self._client, purpose, {**asked, **within})
        if not rows and repo is not None:
            members = repositories.members(self._client, repo)
            if members != [repo]:
                inside = {"$or": [{"repo": member} for member in members]}
                rows = query(self._client, purpose, {**asked, "$and": [inside]})
        return sorted(map(of_row, rows), key=lambda file: (file.path, file.repo))

    def copies(
        self, wanted: Sequence[RecordedFile], known: Paths, repo: str | None
    ) -> list[RemoteFile]:
        """Find files by the SHA-1 of recorded files. Return a file for each recorded file.

        A file with the recorded path, repository or name is preferred.

        :param known: paths of the files that have already been found, by SHA-1
        """
        by_content: dict[str, list[RecordedFile]] = {}
        for recorded in wanted:
            by_content.setdefault(recorded.sha1, []).append(recorded)
        found: dict[str, list[RemoteFile]] = {}
        for contents in aql.by_sha1(by_content):
            for file in self.items(contents, repo):
                found.setdefault(file.stored.sha1 or "", []).append(file)
        return [
            file
            for sha1, files in by_content.items()
            for file in _assigned(files, found.get(sha1, ()), known.get(sha1, set()))
        ]

    def require_all(self, recorded: Sequence[RecordedFile], found: Iterable[RemoteFile]) -> None:
        # the search has found all copies, so that a repeated entry without one is the same file
        missing = [
            file
            for file in lacking_items(self._client, None, recorded, _paths(found))
            if not file.is_repeated
        ]
        if missing:
            labels = ", ".join(file.label for file in missing)
            raise ToolchainError(
                "not_found",
                f"{len(missing)} of {len(recorded)} artifacts of {self._label} are not"
                f" in any visible repository: {shorten(labels, 300)}",
            )


def _paths(files: Iterable[RemoteFile]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for file in files:
        found.setdefault(file.stored.sha1 or "", set()).add(file.path)
    return found


def _assigned(
    wanted: Sequence[RecordedFile], found: Iterable[RemoteFile], known: set[str]
) -> list[RemoteFile]:
    """Return a file of a different path for each recorded file, as far as there are enough.

    :param wanted: recorded files with the same content
    :param found: files with this content
    :param known: paths that have already been found
    """
    at: dict[str, list[RemoteFile]] = {}
    for file in found:
        if file.path not in known:
            at.setdefault(file.path, []).append(file)
    chosen = []
    # files at their recorded path first, so that no other recorded file takes their place
    for recorded in sorted(wanted, key=lambda recorded: recorded.path not in at):
        if not at:
            break
        candidates = at.get(recorded.path) or chain.from_iterable(at.values())
        best = max(candidates, key=lambda file: _likeness(file, recorded))
        del at[best.path]
        chosen.append(best)
    return chosen


def _likeness(file: RemoteFile, recorded: RecordedFile) -> tuple[bool, bool, bool]:
    return (
        file.path == recorded.path,
        file.repo == recorded.repo,
        file.path.rpartition("/")[2] == recorded.file_name,
    )


def _without_copies(found: Iterable[RemoteFile]) -> list[RemoteFile]:
    """Drop files with the same path and content, because promotions copy files between
    repositories.
    """
    unique: dict[tuple[str, str | None], RemoteFile] = {}
    for file in found:
        unique.setdefault((file.path, file.stored.sha1), file)
    return sorted(unique.values(), key=lambda file: file.path)
