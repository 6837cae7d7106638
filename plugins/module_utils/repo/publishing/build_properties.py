# SPDX-License-Identifier: GPL-3.0-or-later
"""Read and set the properties that assign items to a build [repo-30]."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.concurrency import bounded, spread
from .. import properties, repositories
from ..client import RepoClient
from ..items import listing
from ..items.file_states import common_folder
from ..properties import Properties
from .published_files import PublishedFile

Place = tuple[str, str]


class BuildProperties:
    """The properties `build.name`, `build.number` and `build.timestamp` of a build's items.

    :param timestamp: start of the build in epoch milliseconds
    """

    def __init__(self, client: RepoClient, name: str, number: str, timestamp: str) -> None:
        self._client = client
        self.wanted: Properties = properties.properties_of(
            {"build.name": name, "build.number": number, "build.timestamp": timestamp}
        )

    def missing(self, files: Sequence[PublishedFile]) -> dict[Place, Properties]:
        """Return the items that lack a build property, with their current build properties.

        Files that are not items of a repository are left out. A file of a virtual repository is
        returned with the repository that contains it.
        """
        by_repo: dict[str, dict[str, PublishedFile]] = {}
        for file in files:
            if file.is_item:
                by_repo.setdefault(file.repo, {})[file.path] = file
        found: dict[Place, Properties] = {}
        for repo, items in by_repo.items():
            there = self._read(repo, list(items))
            lacking = [path for path in items if not properties.are_set(there[path], self.wanted)]
            for path, holder in zip(lacking, self._holders(repo, lacking), strict=True):
                known = there[path] or {}
                found[holder, path] = {name: known[name] for name in self.wanted if name in known}
        return found

    def _read(self, repo: str, paths: Sequence[str]) -> dict[str, Properties | None]:
        """Return the properties of items by path; `None` if the server does not return properties.

        Items that a query does not find are read one by one: queries do not find items of virtual
        repositories.
        """
        folder = common_folder(paths)
        below = None
        if len(paths) > 1 and folder:
            below = properties.read_below(self._client, repo, folder)
        found: dict[str, Properties | None] = {
            path: below[path] for path in paths if below is not None and path in below
        }
        others = [path for path in paths if path not in found]
        asked = bounded(
            self._client.connections,
            lambda path: properties.read(self._client, repo, path),
            others,
        )
        return {**found, **dict(zip(others, asked, strict=True))}

    def _holders(self, repo: str, paths: Sequence[str]) -> list[str]:
        """Return the repository that contains each of the items.

        Properties cannot be set through a virtual repository, so its members are searched.
        """
        members = repositories.members(self._client, repo) if paths else []
        if members in ([], [repo]):
            return [repo for _path in paths]
        return [self._holder(repo, members, path) for path in paths]

    def _holder(self, repo: str, members: Sequence[str], path: str) -> str:
        for member in members:
            if listing.head(self._client, member, path) is not None:
                return member
        return repo

    def write(self, places: Sequence[Place]) -> None:
        """Set the build properties of items, given by repository and path.

        A concurrent publication of the same build may set another timestamp.
        """

        def write(place: Place) -> None:
            properties.write(self._client, *place, self.wanted, contested=("build.timestamp",))

        spread(self._client.connections, write, places)
