# SPDX-License-Identifier: GPL-3.0-or-later
"""Download files from repositories, selected by path or by build [C8.1]."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from posixpath import commonpath
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from ...core.concurrency import bounded, spread
from ...core.errors import ToolchainError, invalid, not_found, rejected, shorten
from ...core.files import make_folders, require_replaceable, safe_paths
from ...core.globs import Patterns
from ...core.http.file_download import Fetched, RemoteContent, download_file, fetch_digests
from ...core.module.descriptor import Descriptor, reads
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.transfer_progress import TransferProgress
from ...core.module.typed_options import NotNegative, Option, PathText, Positive, Segment
from ...core.plan import Action, Plan
from ...core.times import moment_of
from .. import aql
from ..builds.records import Aggregated, BuildKey
from ..client import RepoClient, item_path, join, object_of, repository_key, segments
from ..items.listing import UNKNOWN_ITEM, Digests, digests_of
from ..service import SERVICE
from .remote_files import (
    ChosenArtifactOptions,
    FilesOfBuilds,
    Filter,
    RemoteFile,
    find_build_files,
    find_files,
    names_many,
    refuse_path,
    wanted_properties,
)

SortKey: TypeAlias = Literal["created", "modified", "name"]
#: Maximum number of files that are read without a query.
_FEW = 2
#: Sort keys, and the members of the item information with their times.
_INFO = {"created": "created", "modified": "lastModified"}


def newest_files(
    client: RepoClient, files: Sequence[RemoteFile], count: int, key: SortKey
) -> list[RemoteFile]:
    """Return the `count` newest files, in the order of `files`.

    :param key: time by which files are compared; with `name`, the last file names are the newest
    """
    if len(files) <= count:
        return list(files)
    if key == "name":
        ranked = sorted(files, key=lambda file: (file.path.rpartition("/")[2], file.path))
    else:
        times: dict[str, datetime] = {}
        for repo in sorted({file.repo for file in files}) if len(files) > _FEW else ():
            folder = commonpath([f.path.rpartition("/")[0] for f in files if f.repo == repo])
            criteria = {"repo": repo, "type": "file", **aql.below(folder)}
            purpose = f"reading the times of files below '{repo}/{folder}'"
            for row in aql.ask(client, purpose, aql.items(criteria, [key])).rows:
                time = moment_of(row.get(key))
                if time is not None:
                    times[f"{repo}/{aql.path_in(row)}"] = time
        # a query may leave out files
        missing = [file for file in files if file.name not in times]
        read = bounded(client.connections, partial(_time, client, key), missing)
        times |= {file.name: time for file, time in zip(missing, read, strict=True)}
        ranked = sorted(files, key=lambda file: (times[file.name], file.path))
    chosen = {file.name for file in ranked[-count:]}
    return [file for file in files if file.name in chosen]


def _time(client: RepoClient, key: str, file: RemoteFile) -> datetime:
    response = client.transport.read(
        f"reading the time of '{file.name}'", f"api/storage/{item_path(file.repo, file.path)}"
    )
    info: Mapping[str, Any] = object_of(response, "information about an item")
    time = moment_of(info.get(_INFO[key]))
    if time is None:
        raise rejected(
            f"cannot sort by {key}: the server does not return that time of '{file.name}'"
        )
    return time


@dataclass(frozen=True)
class TargetFile:
    """A file to download and its local path, which must be inside the folder `root`."""

    remote: RemoteFile
    root: str
    path: str


def refuse_clashes(files: Sequence[TargetFile]) -> list[TargetFile]:
    """Return the files without duplicates.

    Raises `invalid` if two different files have the same destination, or if the destination of a
    file is also a folder of another file.
    """
    places: dict[str, TargetFile] = {}
    for file in files:
        place = os.path.abspath(file.path)
        other = places.setdefault(place, file)
        if (other.remote.repo, other.remote.path) != (file.remote.repo, file.remote.path):
            raise invalid(
                f"'{other.remote.name}' and '{file.remote.name}' would both be written to"
                f" '{file.path}'"
            )
    folders = {os.path.dirname(place) for place in places}
    for place, file in places.items():
        if place in folders:
            raise invalid(
                f"'{file.remote.name}' would be written to '{file.path}', which is also the folder"
                " of other files"
            )
    return list(places.values())


def present(file: TargetFile) -> os.stat_result | None:
    """Return the state of an existing regular file at the destination.

    Returns `None` if nothing exists there, or a symbolic link, which the download replaces. Raises
    `invalid` if the destination cannot be replaced, for example because it is a folder.
    """
    try:
        found = os.lstat(file.path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise invalid(f"dest: cannot read '{file.path}': {error}") from None
    require_replaceable(file.path, found)
    return found if stat.S_ISREG(found.st_mode) else None


def digests_at(path: str) -> Digests:
    """Return size and digests of a local file. Raises `invalid` if it cannot be read."""
    try:
        with open(path, "rb", buffering=0) as stream:
            return digests_of(stream)
    except OSError as error:
        raise invalid(f"dest: cannot read '{path}': {error.strerror}") from None


class TargetFolders:
    """The folders of the destinations: checked before the download, and created when needed."""

    def __init__(self) -> None:
        self._checked: set[tuple[str, str]] = set()
        self._created: list[str] = []
        self._existing: set[str] = set()
        self._lock = threading.Lock()

    def check(self, file: TargetFile) -> None:
        """Raise `invalid` if a parent of the destination is a file or a link out of the root."""
        folder = os.path.dirname(file.path) or "."
        if (file.root, folder) in self._checked:
            return
        root, real = os.path.realpath(file.root), os.path.realpath(folder)
        if os.path.commonpath([root, real]) != root:
            raise invalid(
                f"dest: cannot write '{file.path}': '{folder}' is a symbolic link out of"
                f" '{file.root}'"
            )
        nearest = real
        while not os.path.lexists(nearest):
            nearest = os.path.dirname(nearest)
        if not os.path.isdir(nearest):
            raise invalid(f"dest: '{nearest}' is a file, but must be a folder")
        self._checked.add((file.root, folder))

    def make(self, file: TargetFile) -> None:
        """Create the folder of a file, and check again that it is inside the root."""
        folder = os.path.dirname(file.path) or "."
        if folder in self._existing:
            return
        with self._lock:
            if folder not in self._existing:
                self._created += make_folders(folder)
                self._checked.discard((file.root, folder))
                self.check(file)
                self._existing.add(folder)

    def remove_empty(self) -> None:
        """Remove the folders that this task created, if they are empty."""
        for folder in sorted(self._created, key=len, reverse=True):
            with suppress(OSError):
                os.rmdir(folder)


def targets_of(
    found: Sequence[RemoteFile], dest: str, *, flat: bool, is_file: bool
) -> list[TargetFile]:
    """Return files with their destinations, which are always inside `dest`.

    :param flat: whether files lose their folders
    :param is_file: whether `dest` may be the destination of a single file: it is, unless it is an
        existing folder or ends with a slash
    """
    if is_file and not dest.endswith("/") and not os.path.isdir(dest):
        return [TargetFile(file, os.path.dirname(dest) or ".", dest) for file in found]
    paths = safe_paths(dest, (file.below for file in found), flat=flat)
    return [TargetFile(file, dest, paths[file.below]) for file in found]


def mode_of(text: str | None) -> int | None:
    """Parse the option `mode`. Raises `invalid` unless it is `0` and three octal digits."""
    if text is None:
        return None
    if len(text) != 4 or not text.startswith("0") or not set(text) <= set("01234567"):
        raise invalid(
            f"mode is '{text}': write the permissions as four octal digits in quotes, such as"
            " '0644'; YAML reads an unquoted 0644 as 420"
        )
    return int(text, 8)


@dataclass(frozen=True)
class FetchedArtifactOptions(ChosenArtifactOptions):
    """The suboptions of `artifacts`."""

    dest: PathText | None = None


#: Suffixes of files that may contain HTML.
_PAGES = (".html", ".htm", ".xhtml")
_SELECTIONS = ("path", "build_name", "artifacts")


@dataclass(frozen=True)
class ArtifactDownloadOptions:
    """The options of `artifact_download`."""

    constraints: ClassVar[dict[str, Any]] = {
        "mutually_exclusive": [_SELECTIONS],
        "required_one_of": [_SELECTIONS, ("dest", "artifacts")],
        "required_together": [("build_name", "build_number")],
        "required_by": {"path": ("repo",), "project": ("build_name",)},
    }
    option_rules: ClassVar[tuple[Rule, ...]] = (
        Rule("sort_by", requires="newest"),
        Rule("aggregated", requires="build_name"),
        Rule("max_deletions", requires="sync"),
    )

    repo: str | None = None
    path: str | None = None
    build_name: Segment | None = None
    build_number: Segment | None = None
    project: str | None = None
    aggregated: Aggregated = "fail"
    artifacts: Annotated[list[FetchedArtifactOptions] | None, Option(empty=False)] = None
    properties: Annotated[dict[str, Any] | None, Option(values="text", empty=False)] = None
    exclude: list[str] | None = None
    dest: PathText | None = None
    flat: bool = False
    newest: Positive | None = None
    sort_by: SortKey = "created"
    sync: bool = False
    max_deletions: NotNegative = 0
    parallel: Positive = 4
    mode: str | None = None
    allow_empty: bool = False


@dataclass(frozen=True)
class DownloadRequest:
    """Files to download and their destination.

    :param place: location in the options, for messages
    :param path: path of the files; `None` means the files of the build
    :param dest: local file or folder
    """

    place: str
    repo: str | None
    path: str | None
    dest: str

    def __str__(self) -> str:
        return f"'{self.path}' in '{self.repo}'"


@dataclass(frozen=True)
class Fetch:
    """Planned action for a file.

    :param action: `downloaded`, `mode` (only change the mode) or `unchanged`
    :param before: size, digest and mode of the current local file; `None` if it does not exist
    :param size: size of the file on the server; `None` if unknown
    :param sha256: digest of the file on the server; `None` if unknown
    """

    target: TargetFile
    action: str
    before: Mapping[str, Any] | None = None
    size: int | None = None
    sha256: str | None = None

    def as_dict(self, fetched: Fetched | None = None) -> dict[str, Any]:
        return {
            "repo": self.target.remote.repo,
            "path": self.target.remote.path,
            "dest": self.target.path,
            "size": self.size if fetched is None else fetched.size,
            "sha256": self.sha256 if fetched is None else fetched.sha256,
            "action": self.action,
        }


class ArtifactDownloadOperation:
    """Download the files whose local content differs from the server."""

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {**dict.fromkeys(("file", "folder", "build"), reads("read")), "plain store": reads()},
    )

    def __init__(self, task: Task, options: ArtifactDownloadOptions) -> None:
        self._task, self._options = task, options
        self._mode = mode_of(options.mode)
        self._requests = _requests(options)
        _refuse_contradictions(options, self._requests)
        self._filter = Filter(
            wanted_properties(options.properties), Patterns("exclude", options.exclude)
        )
        self._client = RepoClient(task, connections=options.parallel)
        self._folders = TargetFolders()

    def plan(self) -> Plan:
        found = spread(self._options.parallel, self._find, self._requests)
        for warning in self._filter.exclude.warnings("none of the selected files"):
            self._task.warn(warning)
        targets = refuse_clashes([target for targets, _aggregated in found for target in targets])
        for target in targets:
            self._folders.check(target)
        fetches = spread(self._options.parallel, self._compare, targets)
        files = [fetch.as_dict() for fetch in fetches]
        sizes = [fetch.size or 0 for fetch in fetches if fetch.action == "downloaded"]
        result: dict[str, Any] = {"files": files, "downloaded_bytes": sum(sizes)}
        if self._options.build_name is not None:
            changing = {
                (fetch.target.remote.path, fetch.target.remote.stored.sha1)
                for fetch in fetches
                if fetch.action != "unchanged"
            }
            result["aggregated"] = [
                {**key.as_dict(), "changed": not changing.isdisjoint(found_files)}
                for key, found_files in found[0][1].items()
            ]
        surplus: dict[str, int] = {}  # local files that `sync` deletes, with their sizes
        if self._options.sync:
            folders = [request.dest for request in self._requests]
            paths = [target.path for target in targets]
            surplus = surplus_files(folders, paths, self._options.max_deletions)
            result["deleted"] = sorted(surplus)
        differing = [fetch for fetch in fetches if fetch.action != "unchanged"]
        if not differing and not surplus:
            return Plan({}, {}, result=result)
        before: dict[str, Any] = {path: {"size": size} for path, size in surplus.items()}
        before |= {
            fetch.target.path: fetch.before for fetch in differing if fetch.before is not None
        }
        mode = {} if self._options.mode is None else {"mode": self._options.mode}
        after = {
            fetch.target.path: {"size": fetch.size, "sha256": fetch.sha256, **mode}
            for fetch in differing
        }
        action: Action = "update" if before else "create"
        return Plan(before, after, action, result=result, data=(fetches, surplus))

    def _find(self, request: DownloadRequest) -> tuple[list[TargetFile], FilesOfBuilds]:
        """Find the files of a request; return them with their destinations.

        The second part has the files of each build to which the build refers.
        """
        options = self._options
        aggregated: FilesOfBuilds = {}
        if request.path is None:
            key = BuildKey(options.build_name or "", options.build_number or "", options.project)
            found, aggregated = find_build_files(
                self._client, key, options.aggregated, request.repo, self._filter
            )
        else:
            found = find_files(self._client, request.repo or "", request.path, self._filter)
        if options.newest is not None:
            found = newest_files(self._client, found, options.newest, options.sort_by)
        note = "" if found else self._filter.hints.get(request.path or "", "")
        if not found and not options.allow_empty:
            selection = f"for {request}"
            if request.path is None:
                selection = f"for the build '{options.build_name}' #{options.build_number}"
                selection += "" if request.repo is None else f" in '{request.repo}'"
            conditions = [name for name in ("properties", "exclude") if getattr(options, name)]
            filtered = f" with the given {' and '.join(conditions)}" if conditions else ""
            raise not_found(
                f"{request.place}: found no files {selection}{filtered}: set allow_empty: true to"
                f" allow that{note and f'; {note}'}"
            )
        if note:
            self._task.warn(f"{request.place}: {note}")
        is_file = request.path is not None and not names_many(request.path)
        return targets_of(found, request.dest, flat=options.flat, is_file=is_file), aggregated

    def _compare(self, target: TargetFile) -> Fetch:
        """Compare a file with the local file, and return the planned action.

        If the server does not return digests, the content is downloaded for the comparison.
        """
        stored, current = target.remote.stored, present(target)
        if current is None:
            return Fetch(target, "downloaded", None, stored.size, stored.sha256)
        if stored.size not in (None, current.st_size):
            size = {"size": current.st_size}
            return Fetch(target, "downloaded", size, stored.size, stored.sha256)
        local = digests_at(target.path)
        before: dict[str, Any] = {"size": local.size, "sha256": local.sha256}
        if self._mode is not None:
            before["mode"] = f"{current.st_mode & 0o7777:04o}"
        same = stored.holds(local)
        if same is None:
            file = target.remote
            purpose, path = f"comparing '{file.name}'", item_path(file.repo, file.path)
            content = _expected_content(file)
            found = fetch_digests(self._client.transport, purpose, path, content=content)
            same = found.sha256 == local.sha256
        if not same:
            return Fetch(target, "downloaded", before, stored.size, stored.sha256)
        same_mode = self._mode in (None, current.st_mode & 0o7777)
        return Fetch(target, "unchanged" if same_mode else "mode", before, local.size, local.sha256)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        fetches: list[Fetch]
        fetches, surplus = plan.data
        done: dict[str, Fetched] = {}
        differing = [fetch for fetch in fetches if fetch.action != "unchanged"]
        size = plan.result["downloaded_bytes"]

        def work(fetch: Fetch) -> None:
            path, file = fetch.target.path, fetch.target.remote
            if fetch.action == "mode" and self._mode is not None:
                try:
                    os.chmod(path, self._mode)
                except OSError as error:
                    message = f"changing the mode of {path}: {error.strerror}"
                    raise ToolchainError("failed", message) from None
                done[path] = Fetched(fetch.size or 0, fetch.sha256 or "")
                return
            self._folders.make(fetch.target)
            done[path] = download_file(
                self._client.transport,
                f"downloading '{file.name}'",
                item_path(file.repo, file.path),
                path,
                content=_expected_content(file),
                mode=self._mode,
            )

        try:
            with TransferProgress(
                self._task, "downloading", "received", done=done, files=len(differing), size=size
            ):
                spread(self._client.connections, work, differing)
            delete_files(surplus)  # only after all downloads have succeeded
        except ToolchainError as error:
            self._folders.remove_empty()
            changed = bool(done) or bool(error.result.get("changed"))
            error.result.update(_result(fetches, done), changed=changed)
            raise
        return _result(fetches, done)


def _expected_content(file: RemoteFile) -> RemoteContent:
    # server fact [repo-20]: files from older releases have no SHA-256
    stored = file.stored
    algorithm = "sha1" if stored.sha256 is None and stored.sha1 is not None else "sha256"
    return RemoteContent(
        stored.size,
        algorithm,
        stored.sha256 or stored.sha1,
        # server fact [repo-26]: the server returns an HTML page for a folder
        may_be_page=file.path.lower().endswith(_PAGES),
    )


def _result(fetches: list[Fetch], done: Mapping[str, Fetched]) -> dict[str, Any]:
    files = [
        fetch.as_dict(done.get(fetch.target.path))
        for fetch in fetches
        if fetch.action == "unchanged" or fetch.target.path in done
    ]
    received = [file["size"] for file in files if file["action"] == "downloaded"]
    return {"files": files, "downloaded_bytes": sum(received)}


def _refuse_contradictions(
    options: ArtifactDownloadOptions, requests: Sequence[DownloadRequest]
) -> None:
    """Raise `invalid` if two requests for a single file have the same destination, and unless every
    `dest` is a folder, as `sync` requires.

    This check needs no request to the server. Destinations may be equal if an option allows that a
    file is missing or left out.
    """
    single = [each for each in requests if each.path is not None and not names_many(each.path)]
    if not (options.allow_empty or options.exclude or options.properties):
        targets = []
        for request in single:
            path = join(*segments(request.path or ""))
            file = RemoteFile(request.repo or "", path, path.rpartition("/")[2], UNKNOWN_ITEM)
            targets += targets_of([file], request.dest, flat=options.flat, is_file=True)
        refuse_clashes(targets)
    for request in single if options.sync else ():
        if not request.dest.endswith("/"):
            raise invalid(
                f"{request.place}: with sync, dest must be a folder: end '{request.dest}' with a"
                " slash"
            )


def _requests(options: ArtifactDownloadOptions) -> list[DownloadRequest]:
    if options.repo is not None:
        repository_key("repo", options.repo)
    if options.artifacts is not None:
        found = []
        for number, entry in enumerate(options.artifacts):
            place = f"artifacts[{number}]"
            repo, dest = entry.repo or options.repo, entry.dest or options.dest
            for name, value in (("repo", repo), ("dest", dest)):
                if value is None:
                    raise invalid(f"{place}.{name} is missing: set it, or {name} for all entries")
            refuse_path(f"{place}.path", entry.path)
            repo = repository_key(f"{place}.repo", repo or "")
            found.append(DownloadRequest(place, repo, entry.path, dest or ""))
        return found
    if options.path is not None:
        refuse_path("path", options.path)
        return [DownloadRequest("path", options.repo, options.path, options.dest or "")]
    return [DownloadRequest("build_name", options.repo, None, options.dest or "")]


def surplus_files(folders: Iterable[str], desired: Iterable[str], limit: int) -> dict[str, int]:
    """Return the surplus regular files below the folders, with their sizes in bytes.

    Symbolic links are neither followed nor returned.

    :param desired: paths of the files to keep
    :param limit: maximum number of surplus files; raises `invalid` if there are more
    """
    known = {os.path.abspath(path) for path in desired}
    found: dict[str, int] = {}
    for folder in sorted(set(folders)):
        if os.path.islink(folder.rstrip("/")):
            raise invalid(
                f"dest: '{folder}' is a symbolic link, which sync does not follow: use its target"
            )
        for parent, _folders, names in os.walk(folder):
            for name in names:
                path = os.path.join(parent, name)
                state = os.lstat(path)
                if stat.S_ISREG(state.st_mode) and os.path.abspath(path) not in known:
                    found[path] = state.st_size
    if len(found) > limit:
        named = shorten(", ".join(sorted(found)), 300)
        raise invalid(
            f"sync would delete {len(found)} files, more than max_deletions ({limit}), so nothing"
            f" was changed: {named}"
        )
    return found


def delete_files(files: Mapping[str, Any]) -> None:
    """Delete local files. Raises `failed`."""
    for number, path in enumerate(files):
        try:
            os.remove(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise ToolchainError(
                "failed",
                f"deleting '{path}': {error.strerror or error}",
                result={"changed": number > 0},
            ) from None
