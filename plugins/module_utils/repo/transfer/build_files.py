# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the files of a build by properties and by the digests in its record [C8.1, repo-27]."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...core.errors import ToolchainError, shorten
from ...core.json_text import as_text
from .. import aql, repositories
from ..builds import records
from ..client import RepoClient
from ..items import listing
from .remote_files import Filter, RemoteFile, having, of_row, query


def find_build_files(
    client: RepoClient,
    name: str,
    number: str,
    repo: str | None,
    wanted: Filter,
    *,
    project: str | None,
) -> list[RemoteFile]:
    """Return the files of a build, without files of the same path and content.

    :param repo: repository to search; `None` means all repositories
    :param project: if set, only content in the build record counts, because the properties of a
        file do not contain its project
    :raises ToolchainError: `not_found` if neither `repo` nor properties restrict the search and a
        recorded artifact does not exist
    """
    if not client.dialect.query_by_property:
        raise ToolchainError(
            "rejected",
            f"cannot find the files of the build '{name}' #{number}: queries of this server do not"
            " support properties (check the option dialect)",
        )
    record = records.expected_record(client, name, number, project)
    recorded = {str(artifact["sha1"]).lower(): artifact for artifact in records.artifacts(record)}
    search = _BuildSearch(client, f"'{name}' #{number}", wanted)
    found = search.items({"@build.name": name, "@build.number": number}, repo)
    if project is not None:
        found = [file for file in found if file.stored.sha1 in recorded]
    there = {file.stored.sha1 for file in found}
    unmarked = {sha1: entry for sha1, entry in recorded.items() if sha1 not in there}
    found += search.copies(unmarked, repo)
    if not wanted.properties:
        found += _predicted(client, unmarked.values(), repo)
    if repo is None and not wanted.properties:
        search.require_all(recorded, found)
    if repo is not None and not found:
        repositories.require(client, [repo])
    return list(filter(wanted.keeps, _without_copies(found)))


def _predicted(
    client: RepoClient, recorded: Iterable[Mapping[str, Any]], repo: str | None
) -> Iterator[RemoteFile]:
    """Yield the recorded files that earlier tasks in check mode would deploy."""
    for artifact in recorded:
        there, path = (as_text(artifact.get(name)) for name in ("originalDeploymentRepo", "path"))
        stored = listing.predicted(client, there, path)
        if stored is not None and repo in (None, there):
            yield RemoteFile(there, path, path, stored)


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
        purpose = f"searching for the files of the build {self._label}"
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
        self, recorded: Mapping[str, Mapping[str, Any]], repo: str | None
    ) -> list[RemoteFile]:
        """Find files by the SHA-1 of recorded artifacts. Return a single file per SHA-1.

        A file with the recorded path, repository or name is preferred.

        :param recorded: artifacts of the build record, by SHA-1
        """
        found: dict[str, list[RemoteFile]] = {}
        for some in _slices(recorded):
            contents = [{"actual_sha1": sha1} for sha1 in some]
            for file in self.items({"$or": contents}, repo):
                found.setdefault(file.stored.sha1 or "", []).append(file)
        return [
            max(files, key=lambda file: _likeness(file, recorded[sha1]))
            for sha1, files in found.items()
            if sha1 in recorded
        ]

    def require_all(
        self, recorded: Mapping[str, Mapping[str, Any]], found: Iterable[RemoteFile]
    ) -> None:
        there = {file.stored.sha1 for file in found}
        missing = [
            str(artifact.get("name")) for sha1, artifact in recorded.items() if sha1 not in there
        ]
        if missing:
            raise ToolchainError(
                "not_found",
                f"{len(missing)} of {len(recorded)} artifacts of the build {self._label} are not"
                f" in any visible repository: {shorten(', '.join(missing), 300)}",
            )


def _slices(sha1s: Iterable[str]) -> list[list[str]]:
    ordered = sorted(sha1s)
    size = aql.DIGESTS_AT_ONCE
    return [ordered[begin : begin + size] for begin in range(0, len(ordered), size)]


def _likeness(file: RemoteFile, artifact: Mapping[str, Any]) -> tuple[bool, bool, bool]:
    return (
        file.path == str(artifact.get("path") or "").strip("/"),
        file.repo == artifact.get("originalDeploymentRepo"),
        file.path.rpartition("/")[2] == artifact.get("name"),
    )


def _without_copies(found: Iterable[RemoteFile]) -> list[RemoteFile]:
    """Drop files with the same path and content, because promotions copy files between
    repositories.
    """
    unique: dict[tuple[str, str | None], RemoteFile] = {}
    for file in found:
        unique.setdefault((file.path, file.stored.sha1), file)
    return sorted(unique.values(), key=lambda file: file.path)
