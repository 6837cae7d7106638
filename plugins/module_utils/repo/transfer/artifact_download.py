# SPDX-License-Identifier: GPL-3.0-or-later
"""Download files from repositories, by path or by build [C8.1]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from ...core.concurrency import spread
from ...core.errors import ToolchainError, invalid
from ...core.http.file_download import Fetched
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.module.typed_options import Option, PathText
from ...core.paths.globs import Patterns
from ...core.plan import Action, Plan
from ..client import RepoClient, join, repository_key, segments
from ..items.listing import UNKNOWN_ITEM
from ..progress import TransferProgress
from .build_files import find_build_files
from .fetching import Fetcher
from .local_files import delete_files, surplus_files
from .newest_files import SortKey, newest_files
from .remote_files import (
    Filter,
    RemoteFile,
    find_files,
    names_many,
    refuse_path,
    wanted_properties,
)
from .target_files import (
    TargetFile,
    TargetFolders,
    change_mode,
    digests_at,
    mode_of,
    present,
    refuse_clashes,
    targets_of,
)


@dataclass(frozen=True)
class FetchedArtifactOptions:
    """The suboptions of `artifacts`."""

    path: str
    repo: str | None = None
    dest: PathText | None = None


_WHAT = ("path", "build_name", "artifacts")


@dataclass(frozen=True)
class ArtifactDownloadOptions:
    """The options of `artifact_download`."""

    constraints: ClassVar[dict[str, Any]] = {
        "mutually_exclusive": [_WHAT],
        "required_one_of": [_WHAT, ("dest", "artifacts")],
        "required_together": [("build_name", "build_number")],
        "required_by": {"path": ("repo",), "project": ("build_name",)},
    }

    repo: str | None = None
    path: str | None = None
    build_name: str | None = None
    build_number: str | None = None
    project: str | None = None
    artifacts: Annotated[list[FetchedArtifactOptions] | None, Option(empty=False)] = None
    properties: Annotated[dict[str, Any] | None, Option(values="text")] = None
    exclude: list[str] | None = None
    dest: PathText | None = None
    flat: bool = False
    newest: int | None = None
    sort_by: SortKey = "created"
    sync: bool = False
    max_deletions: int = 0
    parallel: int = 4
    mode: str | None = None
    allow_empty: bool = False


@dataclass(frozen=True)
class Wish:
    """Requested files of a path, or of a build if the path is `None`, and their destination."""

    place: str
    repo: str | None
    path: str | None
    dest: str

    def __str__(self) -> str:
        return f"'{self.path}' in '{self.repo}'"


@dataclass(frozen=True)
class Fetch:
    """A file, the current local file, and the planned action. `sha256` is `None` if unknown."""

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
        "repo",
        {**dict.fromkeys(("file", "folder", "build"), reads("read")), "plain store": reads()},
    )

    def __init__(self, task: Task, options: ArtifactDownloadOptions) -> None:
        _require_sense(options)
        self._task, self._options = task, options
        self._mode = mode_of(options.mode)
        self._wishes = _wishes(options)
        _refuse_named_clashes(options, self._wishes)
        if options.sync:
            _require_folders(self._wishes)
        self._filter = Filter(
            wanted_properties(options.properties), Patterns("exclude", options.exclude)
        )
        self._client = RepoClient(task, connections=options.parallel)
        self._fetcher = Fetcher(self._client)
        self._folders = TargetFolders()

    def plan(self) -> Plan:
        targets = [
            target
            for each in spread(self._options.parallel, self._found, self._wishes)
            for target in each
        ]
        for warning in self._filter.exclude.warnings("none of the selected files"):
            self._task.warn(warning)
        targets = refuse_clashes(targets)
        for target in targets:
            self._folders.check(target)
        fetches = spread(self._options.parallel, self._decided, targets)
        files = [fetch.as_dict() for fetch in fetches]
        coming = [fetch.size or 0 for fetch in fetches if fetch.action == "downloaded"]
        result: dict[str, Any] = {"files": files, "downloaded_bytes": sum(coming)}
        surplus: dict[str, int] = {}  # local files that `sync` deletes, with their sizes
        if self._options.sync:
            folders = [wish.dest for wish in self._wishes]
            paths = [target.path for target in targets]
            surplus = surplus_files(folders, paths, self._options.max_deletions)
            result["deleted"] = sorted(surplus)
        differing = [fetch for fetch in fetches if fetch.action != "unchanged"]
        if not differing and not surplus:
            return Plan({}, {}, result=result)
        before: dict[str, Any] = {path: {"size": size} for path, size in surplus.items()}
        before |= {each.target.path: each.before for each in differing if each.before is not None}
        after = {each.target.path: self._after(each) for each in differing}
        action: Action = "update" if before else "create"
        return Plan(before, after, action, result=result, data=(fetches, surplus))

    def _found(self, wish: Wish) -> list[TargetFile]:
        """Return the requested files and their destinations."""
        if wish.path is None:
            found = self._of_build(wish.repo)
        else:
            found = find_files(self._client, wish.repo or "", wish.path, self._filter)
        if self._options.newest is not None:
            found = newest_files(self._client, found, self._options.newest, self._options.sort_by)
        note = "" if found else self._filter.hints.get(wish.path or "", "")
        if not found and not self._options.allow_empty:
            raise ToolchainError("not_found", self._nothing(wish) + (note and f"; {note}"))
        if note:
            self._task.warn(f"{wish.place}: {note}")
        is_file = wish.path is not None and not names_many(wish.path)
        return targets_of(found, wish.dest, flat=self._options.flat, is_file=is_file)

    def _of_build(self, repo: str | None) -> list[RemoteFile]:
        name, number = self._options.build_name or "", self._options.build_number or ""
        return find_build_files(
            self._client, name, number, repo, self._filter, project=self._options.project
        )

    def _nothing(self, wish: Wish) -> str:
        """Return the error message for a request that matches nothing."""
        options = self._options
        looked = f"for {wish}"
        if wish.path is None:
            looked = f"for files of the build '{options.build_name}' #{options.build_number}"
            looked += "" if wish.repo is None else f" in '{wish.repo}'"
        narrowing = [name for name in ("properties", "exclude") if getattr(options, name)]
        leave = "leaves" if len(narrowing) == 1 else "leave"
        message = f" that {' and '.join(narrowing)} {leave}" if narrowing else ""
        return (
            f"{wish.place}: searched {looked}, and found nothing{message}; allow_empty allows that"
        )

    def _decided(self, target: TargetFile) -> Fetch:
        """Return the planned action for a file. If the server has no digests, its
        content is read.
        """
        stored, there = target.remote.stored, present(target)
        if there is None:
            return Fetch(target, "downloaded", None, stored.size, stored.sha256)
        if stored.size not in (None, there.st_size):
            size = {"size": there.st_size}
            return Fetch(target, "downloaded", size, stored.size, stored.sha256)
        local = digests_at(target.path)
        before: dict[str, Any] = {"size": local.size, "sha256": local.sha256}
        if self._mode is not None:
            before["mode"] = f"{there.st_mode & 0o7777:04o}"
        same = stored.holds(local)
        if same is None:
            same = self._fetcher.verify(target.remote).sha256 == local.sha256
        if not same:
            return Fetch(target, "downloaded", before, stored.size, stored.sha256)
        is_open = self._mode in (None, there.st_mode & 0o7777)
        return Fetch(target, "unchanged" if is_open else "mode", before, local.size, local.sha256)

    def _after(self, fetch: Fetch) -> dict[str, Any]:
        shown: dict[str, Any] = {"size": fetch.size, "sha256": fetch.sha256}
        return shown if self._options.mode is None else {**shown, "mode": self._options.mode}

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        fetches: list[Fetch]
        fetches, surplus = plan.data
        done: dict[str, Fetched] = {}
        progress = TransferProgress(self._task, "downloading", "received", len(fetches))

        def work(fetch: Fetch) -> None:
            done[fetch.target.path] = self._carry_out(fetch)
            progress.show(lambda: [one.size for one in list(done.values())])

        try:
            differing = [fetch for fetch in fetches if fetch.action != "unchanged"]
            spread(self._client.connections, work, differing)
            delete_files(surplus)  # only after all downloads have succeeded
        except ToolchainError as error:
            self._folders.remove_empty()
            changed = bool(done) or bool(error.result.get("changed"))
            error.result.update(_result(fetches, done), changed=changed)
            raise
        return _result(fetches, done)

    def _carry_out(self, fetch: Fetch) -> Fetched:
        path = fetch.target.path
        if fetch.action == "mode" and self._mode is not None:
            change_mode(path, self._mode)
            return Fetched(fetch.size or 0, fetch.sha256 or "")
        self._folders.make(fetch.target)
        return self._fetcher.save(fetch.target.remote, path, self._mode)


def _result(fetches: list[Fetch], done: Mapping[str, Fetched]) -> dict[str, Any]:
    files = [
        fetch.as_dict(done.get(fetch.target.path))
        for fetch in fetches
        if fetch.action == "unchanged" or fetch.target.path in done
    ]
    received = [file["size"] for file in files if file["action"] == "downloaded"]
    return {"files": files, "downloaded_bytes": sum(received)}


def _refuse_named_clashes(options: ArtifactDownloadOptions, wishes: Sequence[Wish]) -> None:
    """Raise `invalid` for single files with the same destination, before the first request. Files
    that need not exist, or that are left out, do not clash.
    """
    if options.allow_empty or options.exclude or options.properties:
        return
    targets = []
    for wish in wishes:
        if wish.path is not None and not names_many(wish.path):
            path = join(*segments(wish.path))
            file = RemoteFile(wish.repo or "", path, path.rpartition("/")[2], UNKNOWN_ITEM)
            targets += targets_of([file], wish.dest, flat=options.flat, is_file=True)
    refuse_clashes(targets)


def _require_sense(options: ArtifactDownloadOptions) -> None:
    """Raise `invalid` for a wrong value of a single option."""
    if options.parallel < 1:
        raise invalid("parallel must be at least 1")
    if options.newest is not None and options.newest < 1:
        raise invalid(f"newest must be at least 1, not {options.newest}")
    if options.newest is None and options.sort_by != "created":
        raise invalid(f"sort_by is '{options.sort_by}', but requires newest")
    if options.max_deletions < 0:
        raise invalid(f"max_deletions must be at least 0, not {options.max_deletions}")
    if options.max_deletions and not options.sync:
        raise invalid("max_deletions requires sync: omit it, or set sync")


def _require_folders(wishes: Sequence[Wish]) -> None:
    """Raise `invalid` if `dest` may be a file: `sync` deletes other files below it."""
    for wish in wishes:
        many = wish.path is None or names_many(wish.path)
        if not many and not wish.dest.endswith("/"):
            raise invalid(
                f"{wish.place}: with sync, dest must be a folder: end '{wish.dest}' with a slash"
            )


def _wishes(options: ArtifactDownloadOptions) -> list[Wish]:
    if options.repo is not None:
        repository_key("repo", options.repo)
    if options.artifacts is not None:
        return [_wish(options, number) for number in range(len(options.artifacts))]
    if options.path is not None:
        refuse_path("path", options.path)
        return [Wish("path", options.repo, options.path, options.dest or "")]
    return [Wish("build_name", options.repo, None, options.dest or "")]


def _wish(options: ArtifactDownloadOptions, number: int) -> Wish:
    entry, place = (options.artifacts or [])[number], f"artifacts[{number}]"
    repo, dest = entry.repo or options.repo, entry.dest or options.dest
    for name, value in (("repo", repo), ("dest", dest)):
        if value is None:
            raise invalid(f"{place}.{name} is missing: set it, or {name} for all entries")
    refuse_path(f"{place}.path", entry.path)
    return Wish(place, repository_key(f"{place}.repo", repo or ""), entry.path, dest or "")
