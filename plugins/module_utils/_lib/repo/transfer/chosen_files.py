# SPDX-License-Identifier: GPL-3.0-or-later
"""Select files by patterns, lists, properties and exclusions [C2.2, C8.2]."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from posixpath import commonpath

from ...core.concurrency import spread
from ...core.errors import ToolchainError, invalid
from ...core.globs import fixed_part, has_wildcards, matcher
from .. import repositories
from ..client import RepoClient, join, repository_key
from ..items import listing
from ..items.listing import StoredItem
from .remote_files import Filter, RemoteFile, find_files, refuse_path

#: Maximum number of items that are read without a listing.
_FEW = 2


@dataclass(frozen=True)
class ChosenArtifactOptions:
    """The suboptions of `artifacts`."""

    path: str
    repo: str | None = None


@dataclass(frozen=True)
class ChosenPath:
    """A file, a folder (with a trailing slash) or a pattern.

    :param place: location in the options, for messages
    """

    place: str
    repo: str
    path: str

    def contains(self, path: str) -> bool:
        """Return whether a pattern or a folder contains a path."""
        if has_wildcards(self.path):
            return matcher(self.path.lstrip("/"))(path)
        return self.path.endswith("/") and matcher(f"{self.path.strip('/')}/**")(path)

    def moved(self, folder: str | None) -> str:
        """Return the path that selects the same files in the target after an earlier move.

        :param folder: target folder; `None` means that files keep their paths
        """
        if folder is None:
            return self.path
        if has_wildcards(self.path):
            return join(folder, self.path.strip("/")[len(fixed_part(self.path)) :])
        if self.path.endswith("/"):
            return f"{join(folder)}/"
        return join(folder, self.path.rpartition("/")[2])


def chosen_paths(
    repo: str | None, path: str | None, artifacts: Sequence[ChosenArtifactOptions] | None
) -> list[ChosenPath]:
    """Return the selected paths: those of the option `artifacts`, or otherwise `repo` and `path`.

    Raises `invalid` for malformed paths and for an entry without a repository.
    """
    if artifacts is None:
        refuse_path("path", path or "")
        return [ChosenPath("path", repository_key("repo", repo or ""), path or "")]
    found = []
    for number, entry in enumerate(artifacts):
        place = f"artifacts[{number}]"
        key = entry.repo or repo
        if key is None:
            raise invalid(f"{place}.repo is missing: set it, or set repo for all entries")
        refuse_path(f"{place}.path", entry.path)
        if entry.path.strip("/") == "":
            raise invalid(f"{place}.path is empty, which would mean the whole repository: set it")
        found.append(ChosenPath(place, repository_key(f"{place}.repo", key), entry.path))
    return found


class FileSelection:
    """Selection of files by paths and conditions.

    :param wanted: conditions for the files
    :param limit: maximum number of files
    """

    def __init__(
        self, client: RepoClient, paths: Sequence[ChosenPath], wanted: Filter, limit: int
    ) -> None:
        self.client, self._paths, self.wanted, self._limit = client, paths, wanted, limit

    def files(
        self, is_settled: Callable[[ChosenPath], bool]
    ) -> list[tuple[ChosenPath, RemoteFile]]:
        """Find the files; return each with the path that selected it.

        :param is_settled: returns whether an earlier run of the task has already changed or moved
            the files of a path
        :raises ToolchainError: `not_found` if a path selects no file and is not settled, `invalid`
            for more files than the limit
        """
        per_path = spread(
            self.client.connections,
            lambda chosen: find_files(self.client, chosen.repo, chosen.path, self.wanted),
            self._paths,
        )
        for path, files in zip(self._paths, per_path, strict=True):
            if not files and not is_settled(path):
                raise self._not_found(path)
        names = {file.name for files in per_path for file in files}
        if len(names) > self._limit:
            raise invalid(
                f"{len(names)} files match, more than max_items ({self._limit}): nothing was"
                " changed",
            )
        return [
            (path, file)
            for path, files in zip(self._paths, per_path, strict=True)
            for file in files
        ]

    def _not_found(self, path: ChosenPath) -> ToolchainError:
        repositories.require(self.client, [path.repo])
        conditions = f" (check {self.wanted.option} and exclude)" if self.wanted.narrows else ""
        note = self.wanted.hints.get(path.path, "")
        return ToolchainError(
            "not_found",
            f"{path.place}: found no file for '{path.path}' in"
            f" '{path.repo}'{conditions}{note and f'; {note}'}",
        )


def chosen_files(
    selection: FileSelection, target_repo: str, folder: str | None, *, move: bool
) -> dict[str, RemoteFile]:
    """Find the files to copy or move; return them by their path in the target repository, sorted.

    :param folder: target folder; `None` means that files keep their paths
    :raises ToolchainError: `not_found` if a path selects no file, unless an earlier run has moved
        its files to the target; `invalid` if two files have the same target, or a file would be
        copied onto itself or into the selected files
    """

    def is_settled(path: ChosenPath) -> bool:
        moved = path.moved(folder)
        return move and bool(find_files(selection.client, target_repo, moved, Filter()))

    found: dict[str, RemoteFile] = {}
    for path, file in selection.files(is_settled):
        target = file.path if folder is None else join(folder, file.below)
        other = found.setdefault(target, file)
        if other.name != file.name:
            raise invalid(
                f"{path.place}: '{file.name}' and '{other.name}' would both be written to"
                f" '{target_repo}/{target}'"
            )
        if file.repo == target_repo and (target == file.path or path.contains(target)):
            raise invalid(
                f"target_path: '{target_repo}/{target}' is the item itself, or also matches"
                f" {path.place}: use another folder"
            )
    return dict(sorted(found.items()))


def items_at(client: RepoClient, repo: str, paths: Sequence[str]) -> Mapping[str, StoredItem]:
    """Return the files and folders that exist at the paths, by path.

    Many paths with a common folder are read with a single listing, others with a request for each
    path. A listing also contains other items of the folder.
    """
    folder = commonpath([path.rpartition("/")[0] for path in paths]) if len(paths) > _FEW else ""
    if folder:
        listed = listing.listing(client, repo, folder, deep=True, folders=True)
        if listed is not None:
            return listed
    found = spread(client.connections, lambda path: _item_at(client, repo, path), paths)
    return {path: item for path, item in zip(paths, found, strict=True) if item is not None}


def _item_at(client: RepoClient, repo: str, path: str) -> StoredItem | None:
    found = listing.head(client, repo, path)
    if found is None or not found.has_digest:
        # server fact [repo-28]: if the target is a folder, the server puts the file into it
        found = listing.find(client, repo, path)
    return found
