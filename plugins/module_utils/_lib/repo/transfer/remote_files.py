# SPDX-License-Identifier: GPL-3.0-or-later
"""Find files with their digests: by paths, patterns, lists and properties, or those of a build
[C2.2, C8.1, C8.2, repo-27].
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from posixpath import commonpath
from typing import Annotated, Any, ClassVar, TypeAlias

from ...core.concurrency import bounded, spread
from ...core.errors import ToolchainError, invalid, not_found, rejected, shorten
from ...core.globs import Patterns, fixed_part, has_wildcards, hint, matcher
from ...core.module.typed_options import Option, Positive
from .. import aql, properties, repositories
from ..builds.recorded_files import Paths, RecordedFile, lacking, lacking_items, recorded_files
from ..builds.records import Aggregated, AggregatedBuild, BuildKey, read_builds
from ..client import RepoClient, join, refuse_matrix, repository_key, segments
from ..items import listing
from ..items.listing import UNKNOWN_ITEM, StoredItem
from ..properties import Properties

#: Path and SHA-1 of the files of each build to which a build refers.
FilesOfBuilds: TypeAlias = dict[BuildKey, Collection[tuple[str, str | None]]]
#: Maximum number of items that are read without a listing.
_FEW = 2
_DIGESTS = ("size", "sha256", "actual_sha1")


@dataclass(frozen=True)
class RemoteFile:
    """A file in a repository.

    :param below: path relative to the requested folder
    """

    repo: str
    path: str
    below: str
    stored: StoredItem

    @property
    def name(self) -> str:
        return f"{self.repo}/{self.path}"


@dataclass
class Filter:
    """Conditions for files: properties that they must have, and patterns that exclude them.

    :param option: name of the option with the properties
    :param hints: suggested corrections for paths that match nothing, by path
    """

    properties: Properties = field(default_factory=dict)
    exclude: Patterns = field(default_factory=lambda: Patterns("exclude", ()))
    option: str = "properties"
    hints: dict[str, str] = field(default_factory=dict)

    def keeps(self, file: RemoteFile) -> bool:
        return not self.exclude.fits(file.below, file.path)


def names_many(path: str) -> bool:
    """Return whether a path is a folder (trailing slash) or a pattern."""
    return path.endswith("/") or has_wildcards(path)


def find_files(client: RepoClient, repo: str, path: str, wanted: Filter) -> list[RemoteFile]:
    """Return the files that a path selects: a file, the files in a folder, or those of a pattern.

    In check mode, the result includes the changes that earlier tasks of the run would make. Raises
    `not_found` if the repository does not exist.
    """
    if names_many(path):
        stored = _many(client, repo, path, wanted)
        folder, is_match = _matcher_of(path)
    else:
        single = join(*segments(path))
        stored = list(filter(wanted.keeps, _single(client, repo, single)))
        folder, is_match = single.rpartition("/")[0], single.__eq__
        if not stored:
            repositories.require(client, [repo])
        stored = _having(client, stored, wanted.properties)
    if not client.predictions.active:
        return stored
    found = {file.path: file for file in stored}
    items: dict[str, StoredItem | None] = {
        item_path: StoredItem(**value)
        for item_path, value in client.predictions.all("item", repo).items()
        if is_match(item_path)
    }
    if wanted.properties:
        marked = client.predictions.all("properties", repo)
        found = {file_path: file for file_path, file in found.items() if file_path not in marked}
        items = {
            item_path: items.get(item_path) or listing.head(client, repo, item_path)
            for item_path, has in marked.items()
            if is_match(item_path) and _has_all(has, wanted.properties)
        }
    for item_path, item in items.items():
        below = item_path[len(folder) :].strip("/")
        file = _remote(repo, item_path, below, item or UNKNOWN_ITEM)
        if wanted.keeps(file):
            found[item_path] = file
    return [found[file_path] for file_path in sorted(found)]


def _single(client: RepoClient, repo: str, wanted: str) -> list[RemoteFile]:
    path = listing.existing_form(client, repo, wanted)
    stored = listing.head(client, repo, path)
    if stored is not None and stored.sha256 is None and stored.sha1 is None:
        # server fact [repo-26]: a HEAD request for a folder also succeeds, but returns no digests
        listed = listing.find(client, repo, path)
        if listed is None and stored == UNKNOWN_ITEM:
            stored = None
        elif listed is not None and (listed.folder or listed.sha1 is not None):
            stored = listed
    if stored is None:
        return []
    if stored.folder:
        raise not_found(f"'{repo}/{path}' is a folder: end path with a slash to select its files")
    return [_remote(repo, path, wanted.rpartition("/")[2], stored)]


def _many(client: RepoClient, repo: str, path: str, wanted: Filter) -> list[RemoteFile]:
    """Return the stored files of a folder or a pattern, with one query if that is possible."""
    queries = client.dialect.query_by_property
    if wanted.properties and queries:
        found = _queried(client, repo, path, wanted)
        if found:
            return list(filter(wanted.keeps, found))
        _response, known = repositories.listed(client)
        kinds = repositories.kinds_of(known)
        if repo not in kinds:
            repositories.require(client, [repo])
        if kinds.get(repo) != "VIRTUAL":  # queries do not find items of virtual repositories
            return []
    folder = _matcher_of(path)[0]
    listed = listing.listing(client, repo, folder, deep=True)
    if listed is not None:
        files = {file: stored for file, stored in sorted(listed.items()) if not stored.folder}
        found = _matching(repo, path, files, wanted)
    elif queries:
        # server fact [repo-6]: listing requires a licence, queries do not
        found = _queried(client, repo, path, replace(wanted, properties={}))
    else:
        raise rejected(f"the server cannot list '{repo}/{folder}'")
    found = list(filter(wanted.keeps, found))
    if not found:
        repositories.require(client, [repo])
    return _having(client, found, wanted.properties)


def _matching(
    repo: str, path: str, files: Mapping[str, StoredItem], wanted: Filter
) -> list[RemoteFile]:
    """Return the files that a path selects, or add a hint to `wanted` if it selects none.

    :param files: all files of the folder that :func:`_matcher_of` returns
    """
    folder, is_match = _matcher_of(path)
    found = [
        _remote(repo, file, file[len(folder) :].strip("/"), stored)
        for file, stored in files.items()
        if is_match(file)
    ]
    if not found:
        wanted.hints[path] = hint(path.strip("/"), files)
    return found


def _matcher_of(path: str) -> tuple[str, Callable[[str], bool]]:
    """Return the folder that contains all files of a path, and a function that tests a file."""
    if not has_wildcards(path):
        folder = join(*segments(path))
        inside = f"{folder}/" if folder else ""
        return folder, lambda file: file.startswith(inside)
    pattern = f"{path}**" if path.endswith("/") else path
    segments(pattern)
    is_match = matcher(unicodedata.normalize("NFC", pattern.lstrip("/")))
    return fixed_part(pattern), lambda file: is_match(unicodedata.normalize("NFC", file))


def _queried(client: RepoClient, repo: str, path: str, wanted: Filter) -> list[RemoteFile]:
    folder = _matcher_of(path)[0]
    criteria = {"repo": repo, "type": "file", **aql.below(folder), **having(wanted.properties)}
    rows = query(client, f"searching for files below '{repo}/{folder}'", criteria)
    found = sorted(map(of_row, rows), key=lambda file: file.path)
    inside = f"{folder}/" if folder else ""
    files = {file.path: file.stored for file in found if file.path.startswith(inside)}
    return _matching(repo, path, files, wanted)


def having(wanted: Properties) -> dict[str, Any]:
    """Return AQL criteria for items that have all wanted property values."""
    if not wanted:
        return {}
    return {"$and": [{f"@{name}": value} for name, values in wanted.items() for value in values]}


def query(client: RepoClient, purpose: str, criteria: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Query items with their sizes and digests. Raises `failed` if the result is truncated."""
    found = aql.ask(client, purpose, aql.items(criteria, _DIGESTS))
    if found.trimmed:
        raise ToolchainError(
            "failed", f"{purpose}: the server truncated the result ({found.trimmed})"
        )
    return found.rows


def of_row(row: Mapping[str, Any]) -> RemoteFile:
    """Return the file of a query row; its relative path is the whole path."""
    path = aql.path_in(row)
    size = str(row.get("size"))
    stored = StoredItem(
        int(size) if size.isdecimal() else None,
        str(row["sha256"]).lower() if row.get("sha256") else None,
        str(row["actual_sha1"]).lower() if row.get("actual_sha1") else None,
    )
    return _remote(str(row.get("repo")), path, path, stored)


def _remote(repo: str, path: str, below: str, stored: StoredItem) -> RemoteFile:
    """Return a file. Raises `rejected` for a path that could escape from a destination folder."""
    parts = path.split("/")
    is_path = not any(part in ("", ".", "..") for part in parts) and "\0" not in path
    try:
        path.encode()
    except UnicodeEncodeError:
        is_path = False
    if not is_path:
        raise rejected(
            f"the server returned the item {path!r} in '{repo}', which is not a valid path"
        )
    return RemoteFile(repo, path, below, stored)


def _having(client: RepoClient, found: list[RemoteFile], wanted: Properties) -> list[RemoteFile]:
    """Return the files that have the wanted properties; send a request for each file."""
    if not wanted or not found:
        return found

    def has(file: RemoteFile) -> bool:
        there = properties.read(client, file.repo, file.path)
        if there is None:
            raise rejected(
                f"cannot select '{file.name}' by its properties: the server does not return"
                " properties"
            )
        return _has_all(there, wanted)

    matches = bounded(client.connections, has, found)
    return [file for file, is_match in zip(found, matches, strict=True) if is_match]


def _has_all(there: Properties, wanted: Properties) -> bool:
    return all(set(values) <= set(there.get(name, [])) for name, values in wanted.items())


def refuse_path(place: str, path: str) -> None:
    """Raise `invalid` for a path that no item can have.

    :param place: location in the options, for the message
    """
    refuse_matrix(place, path)
    segments(path, place)


def wanted_properties(values: Mapping[str, Any] | None, option: str = "properties") -> Properties:
    """Return the properties that files must have.

    Raises `invalid` for a property without a value, because it would not restrict the selection.
    """
    for name, value in (values or {}).items():
        if value is None:
            raise invalid(f"{option}.{name} is null: set a value, or remove the property")
    return properties.properties_of(values)


@dataclass(frozen=True)
class ChosenArtifactOptions:
    """The suboptions of `artifacts`."""

    path: str
    repo: str | None = None


@dataclass(frozen=True, kw_only=True)
class ChosenFilesOptions:
    """The options that select a single item, or files."""

    constraints: ClassVar[dict[str, Any]] = {
        "mutually_exclusive": [["path", "artifacts"]],
        "required_one_of": [["path", "artifacts"]],
        "required_by": {"path": ("repo",)},
    }

    repo: str | None = None
    path: str | None = None
    artifacts: Annotated[list[ChosenArtifactOptions] | None, Option(empty=False)] = None
    exclude: list[str] | None = None
    max_items: Positive = 1000
    parallel: Positive = 4

    @property
    def is_many(self) -> bool:
        """Return whether the options select files instead of a single item."""
        many = self.artifacts is not None or has_wildcards(self.path or "")
        return many or bool(self.exclude)


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


def chosen_paths(options: ChosenFilesOptions) -> list[ChosenPath]:
    """Return the selected paths: those of the option `artifacts`, or otherwise `repo` and `path`.

    Raises `invalid` for malformed paths and for an entry without a repository.
    """
    if options.artifacts is None:
        refuse_path("path", options.path or "")
        key = repository_key("repo", options.repo or "")
        return [ChosenPath("path", key, options.path or "")]
    found = []
    for number, entry in enumerate(options.artifacts):
        place = f"artifacts[{number}]"
        repo = entry.repo or options.repo
        if repo is None:
            raise invalid(f"{place}.repo is missing: set it, or set repo for all entries")
        refuse_path(f"{place}.path", entry.path)
        if entry.path.strip("/") == "":
            raise invalid(f"{place}.path is empty, which would mean the whole repository: set it")
        found.append(ChosenPath(place, repository_key(f"{place}.repo", repo), entry.path))
    return found


def select_files(
    client: RepoClient,
    paths: Sequence[ChosenPath],
    wanted: Filter,
    limit: int,
    is_settled: Callable[[ChosenPath], bool],
) -> list[tuple[ChosenPath, RemoteFile]]:
    """Find the files that paths select; return each with the path that selected it.

    :param limit: maximum number of files
    :param is_settled: returns whether an earlier run of the task has already changed or moved the
        files of a path
    :raises ToolchainError: `not_found` if a path selects no file and is not settled, `invalid` for
        more files than the limit
    """
    found_at = spread(
        client.connections,
        lambda chosen: find_files(client, chosen.repo, chosen.path, wanted),
        paths,
    )
    for path, files in zip(paths, found_at, strict=True):
        if not files and not is_settled(path):
            repositories.require(client, [path.repo])
            narrows = wanted.properties or wanted.exclude
            conditions = f" (check {wanted.option} and exclude)" if narrows else ""
            note = wanted.hints.get(path.path, "")
            raise not_found(
                f"{path.place}: found no file for '{path.path}' in"
                f" '{path.repo}'{conditions}{note and f'; {note}'}"
            )
    found = [(path, file) for path, files in zip(paths, found_at, strict=True) for file in files]
    count = len({file.name for _path, file in found})
    if count > limit:
        raise invalid(f"{count} files match, more than max_items ({limit}): nothing was changed")
    return found


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

    def read(path: str) -> StoredItem | None:
        found = listing.head(client, repo, path)
        if found is None or not found.has_digest:
            # server fact [repo-28]: if the target is a folder, the server puts the file into it
            found = listing.find(client, repo, path)
        return found

    found = spread(client.connections, read, paths)
    return {path: item for path, item in zip(paths, found, strict=True) if item is not None}


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
        raise rejected(
            f"cannot find the files of {key}: queries of this server do not support properties"
            " (check the option dialect)"
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
    # promotions copy files between repositories
    unique: dict[tuple[str, str | None], RemoteFile] = {}
    for file in files:
        unique.setdefault((file.path, file.stored.sha1), file)
    return sorted(unique.values(), key=lambda file: file.path), aggregated


def _files_of(
    client: RepoClient, build: AggregatedBuild, repo: str | None, wanted: Filter
) -> list[RemoteFile]:
    """Return the files of a single build.

    :param build: with a project, only content in the build record counts, because the properties
        of a file do not contain its project
    :param repo: repository to search; `None` means all repositories. The members of a virtual
        repository are searched, because queries do not find items of the virtual repository
    """
    key, recorded = build.key, recorded_files(build.record)

    def items(criteria: Mapping[str, Any]) -> list[RemoteFile]:
        purpose = f"searching for the files of {key}"
        asked = {"type": "file", **criteria, **having(wanted.properties)}
        rows = query(client, purpose, asked if repo is None else {**asked, "repo": repo})
        members = repositories.members(client, repo) if not rows and repo is not None else [repo]
        if members != [repo]:
            inside = {"$or": [{"repo": member} for member in members]}
            rows = query(client, purpose, {**asked, "$and": [inside]})
        return sorted(map(of_row, rows), key=lambda file: (file.path, file.repo))

    found = items(key.criteria)
    if key.project is not None:
        contents = {file.sha1 for file in recorded}
        found = [file for file in found if file.stored.sha1 in contents]
    unmarked = lacking(recorded, _paths(found))
    contents_of = aql.by_sha1({file.sha1 for file in unmarked})
    copies = [copy for criteria in contents_of for copy in items(criteria)]
    found += _assigned(unmarked, copies, _paths(found))
    if wanted.properties:
        return list(filter(wanted.keeps, found))
    for file in unmarked:  # those that earlier tasks in check mode would deploy
        there = file.repo or ""
        stored = listing.predicted(client, there, file.path)
        if stored is not None and repo in (None, there):
            found.append(RemoteFile(there, file.path, file.path, stored))
    if repo is None:
        # all copies have been found, so that a repeated entry without one is the same file
        items_left = lacking_items(client, None, recorded, _paths(found))
        missing = [file.label for file in items_left if not file.is_repeated]
        if missing:
            raise not_found(
                f"{len(missing)} of {len(recorded)} artifacts of {key} are not"
                f" in any visible repository: {shorten(', '.join(missing), 300)}"
            )
    return list(filter(wanted.keeps, found))


def _paths(files: Iterable[RemoteFile]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for file in files:
        found.setdefault(file.stored.sha1 or "", set()).add(file.path)
    return found


def _assigned(
    wanted: Iterable[RecordedFile], copies: Iterable[RemoteFile], known: Paths
) -> list[RemoteFile]:
    """Return a file of a different path for each recorded file, as far as there are enough.

    A file with the recorded path, repository or name is preferred.

    :param known: paths of the files that have already been found, by SHA-1
    """
    by_content: dict[str, list[RecordedFile]] = {}
    for file in wanted:
        by_content.setdefault(file.sha1, []).append(file)
    places: dict[str | None, dict[str, list[RemoteFile]]] = {}
    for copy in copies:
        if copy.path not in known.get(copy.stored.sha1 or "", ()):
            places.setdefault(copy.stored.sha1, {}).setdefault(copy.path, []).append(copy)
    chosen = []
    for sha1, same in by_content.items():
        at = places.get(sha1, {})
        # files at their recorded path first, so that no other recorded file takes their place
        for recorded in sorted(same, key=lambda file: file.path not in at):
            if at:
                candidates = at.get(recorded.path) or chain.from_iterable(at.values())
                best = max(candidates, key=partial(_likeness, recorded))
                del at[best.path]
                chosen.append(best)
    return chosen


def _likeness(recorded: RecordedFile, file: RemoteFile) -> tuple[bool, bool, bool]:
    return (
        file.path == recorded.path,
        file.repo == recorded.repo,
        file.path.rpartition("/")[2] == recorded.file_name,
    )
