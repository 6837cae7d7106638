# SPDX-License-Identifier: GPL-3.0-or-later
"""Choose files by patterns, lists, properties and exclusions [C2.2, C8.2]."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from posixpath import commonpath

from ...core.concurrency import spread
from ...core.errors import ToolchainError, invalid
from ...core.paths.globs import fixed_part, has_wildcards, matcher
from .. import repositories
from ..client import RepoClient, join, repository_key
from ..items import listing
from ..items.listing import StoredItem
from .remote_files import Filter, RemoteFile, find_files, refuse_path

#: Number of items up to which each is read on its own.
_FEW = 2


@dataclass(frozen=True)
class ChosenArtifactOptions:
    """The suboptions of `artifacts`."""

    path: str
    repo: str | None = None


@dataclass(frozen=True)
class ChosenPath:
    """A file, a folder (with a slash at its end) or a pattern; `place` is its option."""

    place: str
    repo: str
    path: str

    def target(self, file: RemoteFile, folder: str | None) -> str:
        """Return the path of a file at the target: its own, or that below a folder."""
        return file.path if folder is None else join(folder, file.below)

    def moved(self, folder: str | None) -> str:
        """Return the path that finds the files of an earlier move."""
        if folder is None:
            return self.path
        if has_wildcards(self.path):
            fixed = fixed_part(self.path)
            return join(folder, self.path.strip("/")[len(fixed) :])
        if self.path.endswith("/"):
            return f"{join(folder)}/"
        return join(folder, self.path.rpartition("/")[2])


def chosen_paths(
    repo: str | None, path: str | None, artifacts: Sequence[ChosenArtifactOptions] | None
) -> list[ChosenPath]:
    """Return the paths of the options. Raises `invalid`."""
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
            raise invalid(f"{place}.path is empty, which would mean the whole repository")
        found.append(ChosenPath(place, repository_key(f"{place}.repo", key), entry.path))
    return found


class FileSelection:
    """Files that are chosen by patterns, lists and conditions, at most `limit` of them."""

    def __init__(
        self, client: RepoClient, paths: Sequence[ChosenPath], wanted: Filter, limit: int
    ) -> None:
        self._client, self._paths, self.wanted, self._limit = client, paths, wanted, limit

    def files(
        self, is_settled: Callable[[ChosenPath], bool]
    ) -> list[tuple[ChosenPath, RemoteFile]]:
        """Return the files with the path that selects them.

        Raises `not_found` for a path without a file, unless it is settled: an earlier run has done
        what the task wants. Raises `failed` for too many files.
        """
        per_path = spread(
            self._client.connections,
            lambda one: find_files(self._client, one.repo, one.path, self.wanted),
            self._paths,
        )
        for path, files in zip(self._paths, per_path, strict=True):
            if not files and not is_settled(path):
                raise self._nothing(path)
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

    def _nothing(self, path: ChosenPath) -> ToolchainError:
        repositories.require(self._client, [path.repo])
        narrowed = f" that {self.wanted.option} and exclude leave" if self.wanted.narrows else ""
        note = self.wanted.hints.get(path.path, "")
        return ToolchainError(
            "not_found",
            f"{path.place}: found no file for '{path.path}' in"
            f" '{path.repo}'{narrowed}{note and f'; {note}'}",
        )


class Choice:
    """Files to copy, with their paths at the target."""

    def __init__(self, client: RepoClient, selection: FileSelection) -> None:
        self._client, self._selection = client, selection

    def files(self, target_repo: str, folder: str | None, *, move: bool) -> list[Chosen]:
        """Return the files, sorted by target.

        Raises `not_found` for a path without a file, unless an earlier move took it to the target;
        `invalid` for two files with the same target, or for a copy onto or below itself.
        """
        found: dict[str, Chosen] = {}
        chosen = self._selection.files(
            lambda path: (
                move and bool(find_files(self._client, target_repo, path.moved(folder), Filter()))
            )
        )
        for path, file in chosen:
            self._add(found, Chosen(file, path.target(file, folder)), path, target_repo)
        return [found[target] for target in sorted(found)]

    def _add(
        self, found: dict[str, Chosen], one: Chosen, path: ChosenPath, target_repo: str
    ) -> None:
        other = found.setdefault(one.target, one)
        if other.file.name != one.file.name:
            raise invalid(
                f"{path.place}: '{one.file.name}' and '{other.file.name}' would both be written to"
                f" '{target_repo}/{one.target}'"
            )
        if one.file.repo != target_repo:
            return
        pattern = path.path if has_wildcards(path.path) else f"{path.path.rstrip('/')}/**"
        inside = (has_wildcards(path.path) or path.path.endswith("/")) and matcher(
            pattern.lstrip("/")
        )
        if one.target == one.file.path or (inside and inside(one.target)):
            raise invalid(
                f"target_path: '{target_repo}/{one.target}' is the item itself, or also matches"
                f" {path.place}"
            )


@dataclass(frozen=True)
class Chosen:
    """A file to copy, and its path in the target repository."""

    file: RemoteFile
    target: str


def items_at(client: RepoClient, repo: str, paths: Sequence[str]) -> Mapping[str, StoredItem]:
    """Return the items at some paths, including folders. Many paths in a common folder are read
    with a single listing, otherwise every path is a request.
    """
    folder = commonpath([path.rpartition("/")[0] for path in paths]) if len(paths) > _FEW else ""
    if folder:
        listed = listing.listing(client, repo, folder, deep=True, folders=True)
        if listed is not None:
            return listed
    found = spread(client.connections, lambda path: _item_at(client, repo, path), paths)
    return {path: one for path, one in zip(paths, found, strict=True) if one is not None}


def _item_at(client: RepoClient, repo: str, path: str) -> StoredItem | None:
    found = listing.head(client, repo, path)
    if found is None or not (found.sha256 or found.sha1):
        # [repo-28]: an existing folder would receive the file as a child
        found = listing.find(client, repo, path)
    return found
