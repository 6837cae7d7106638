# SPDX-License-Identifier: GPL-3.0-or-later
"""Copy and move items within a server, file by file [C8.2, repo-28].

The requests never name a folder, because the server would put it into an existing target folder.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from ...core.concurrency import spread
from ...core.errors import ToolchainError, conflict, invalid, not_found, shorten
from ...core.finding import Finding, of_row
from ...core.globs import Patterns, has_wildcards
from ...core.module.descriptor import Descriptor, writes
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.plan import Action, Plan
from ...core.progress import ProgressCounter
from ...core.verification import without_effect
from .. import repositories
from ..client import (
    RepoClient,
    item_path,
    join,
    refuse_reported,
    repository_key,
    require_new_path,
    segments,
)
from ..items import listing
from ..items.layouts import index_test, is_checksum, left_out, owners_of
from ..items.listing import StoredItem
from ..service import SERVICE
from .remote_files import (
    ChosenFilesOptions,
    ChosenPath,
    Filter,
    RemoteFile,
    chosen_paths,
    find_files,
    items_at,
    names_many,
    refuse_path,
    select_files,
    wanted_properties,
)


@dataclass(frozen=True, kw_only=True)
class ArtifactCopyOptions(ChosenFilesOptions):
    """The options of `artifact_copy`."""

    target_repo: str
    properties: Annotated[dict[str, Any] | None, Option(values="text", empty=False)] = None
    target_path: str | None = None
    move: bool = False

    @property
    def selects(self) -> bool:
        return self.is_many or bool(self.properties)


@dataclass(frozen=True)
class Route:
    """The target repository, and with a single item its paths.

    :param is_folder: whether the item is a folder, whose files are relocated
    :param computed: names of selected files that stay, because the server computes them
    """

    target_repo: str
    repo: str = ""
    path: str = ""
    target: str = ""
    is_folder: bool = False
    computed: Collection[str] = ()


@dataclass(frozen=True)
class Relocation:
    """A file to copy or move.

    :param file: the file at the source
    :param repo: key of the target repository
    :param target: path in the target repository
    :param occupied: current item at the target; `None` if it does not exist
    :param action: `copied`, `moved` or `unchanged`
    """

    file: RemoteFile
    repo: str
    target: str
    occupied: StoredItem | None
    action: str

    @property
    def is_needed(self) -> bool:
        return self.action != "unchanged"

    @property
    def name(self) -> str:
        return f"{self.repo}/{self.target}"

    def as_dict(self) -> dict[str, Any]:
        sha256 = self.file.stored.sha256
        return {"repo": self.repo, "path": self.target, "sha256": sha256, "action": self.action}


class ArtifactCopyOperation:
    """Copy or move files; a copy leaves out files that the target has with the same content."""

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {"copy": writes("read", "deploy"), "move": writes("read", "deploy", "delete")},
        kind="item",
        name="{repo}/{path}",
        listed="artifacts",
    )

    def __init__(self, task: Task, options: ArtifactCopyOptions) -> None:
        self._task, self._options = task, options
        if options.repo is not None:
            repository_key("repo", options.repo)
        repository_key("target_repo", options.target_repo)
        path = options.target_path or ""
        refuse_path("target_path", path)
        if has_wildcards(path):
            raise invalid(
                f"target_path: '{path}' contains wildcards, but must name a single file or folder"
            )
        require_new_path("target_path", path)
        self._paths = chosen_paths(options)
        if options.artifacts is None and not segments(options.path or ""):
            raise invalid("path is empty, which would mean the whole repository: set path")
        self._client = RepoClient(task, connections=options.parallel)
        self._filter = Filter(
            wanted_properties(options.properties), Patterns("exclude", options.exclude)
        )
        self._verb, self._doing, self._done = (
            ("move", "moving", "moved") if options.move else ("copy", "copying", "copied")
        )

    def plan(self) -> Plan:
        if not self._client.dialect.relocates_items:
            failure = f"'{self._paths[0].repo}/{self._paths[0].path}' cannot be {self._done}"
            raise repositories.lacking(self._client, failure)
        route, chosen = self._selected() if self._options.selects else self._of_item()
        if not chosen and not self._options.selects:
            return self._planned(route, self._moved_before(route))
        route = replace(route, computed=self._computed(list(chosen.values())))
        left_out(self._client, route.computed, self._done)
        chosen = {path: file for path, file in chosen.items() if file.name not in route.computed}
        existing = self._existing(route, list(chosen))
        files = []
        for target, file in chosen.items():
            occupied = existing.get(target)
            if occupied is not None and occupied.folder:
                raise conflict(
                    f"'{file.name}' cannot be {self._done} to '{route.target_repo}/{target}': the"
                    " target is a folder"
                )
            same = occupied is not None and file.stored.equals(occupied)
            action = "unchanged" if same and not self._options.move else self._done
            files.append(Relocation(file, route.target_repo, target, occupied, action))
        # files and repositories that check mode only predicts cannot be rehearsed
        known = [
            file
            for file in files
            if file.is_needed
            and listing.predicted(self._client, file.file.repo, file.file.path) is None
            and repositories.predicted(self._client, file.repo) is None
        ]
        spread(self._options.parallel, self._rehearse, known)
        return self._planned(route, files)

    def _computed(self, chosen: Sequence[RemoteFile]) -> set[str]:
        """Return the names of the files that the server computes, except those named exactly."""
        named = {(each.repo, join(each.path)) for each in self._paths if not names_many(each.path)}
        found: set[str] = set()
        for repo in dict.fromkeys(file.repo for file in chosen):
            paths = {file.path for file in chosen if file.repo == repo}
            is_index, unknown = index_test(self._client, repo), sorted(owners_of(paths) - paths)
            known = {*paths, *(items_at(self._client, repo, unknown) if unknown else ())}
            found |= {
                f"{repo}/{path}"
                for path in paths
                if (repo, path) not in named and (is_index(path) or is_checksum(path, known))
            }
        return found

    def _selected(self) -> tuple[Route, Mapping[str, RemoteFile]]:
        """Return the files that the options select, by their path in the target repository.

        Raises `invalid` if two files have the same target, or a file would be copied onto itself or
        into the selected files.
        """
        client, options, paths = self._client, self._options, self._paths
        if options.move:
            paths = [replace(path, repo=self._moved_from(path.repo)) for path in paths]
        target_repo = repositories.deployment_target(client, options.target_repo)
        folder = None if options.target_path is None else join(*segments(options.target_path))

        def is_settled(path: ChosenPath) -> bool:
            moved = path.moved(folder)
            return options.move and bool(find_files(client, target_repo, moved, Filter()))

        found: dict[str, RemoteFile] = {}
        chosen = select_files(client, paths, self._filter, options.max_items, is_settled)
        for path, file in chosen:
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
        for warning in self._filter.exclude.warnings("none of the selected files"):
            self._task.warn(warning)
        return Route(target_repo), dict(sorted(found.items()))

    def _moved_from(self, repo: str) -> str:
        """Return the real source repository: the target may be its deployment repository."""
        return repositories.deployment_target(self._client, repo, certain=True)

    def _of_item(self) -> tuple[Route, Mapping[str, RemoteFile]]:
        """Return the file that the options name, or the files of the folder, as `_selected()`."""
        options, path, into = self._options, join(self._paths[0].path), self._options.target_path
        repo = self._moved_from(self._paths[0].repo) if options.move else self._paths[0].repo
        path = listing.existing_form(self._client, repo, path)
        stored = listing.expected(self._client, repo, path)
        is_folder = stored is None or not stored.has_digest
        files = (
            find_files(self._client, repo, f"{path}/", Filter())
            if stored is None or is_folder
            else [RemoteFile(repo, path, "", stored)]
        )
        target_repo = repositories.deployment_target(self._client, options.target_repo)
        target = path if into is None else join(into)
        if into is not None and into.endswith("/") and not is_folder:
            target = join(into, path.rpartition("/")[2])
        if repo == target_repo and f"{target}/".startswith(f"{path}/"):
            raise invalid(
                f"target_path: '{repo}/{target}' is the item itself or inside it: use another path"
            )
        route = Route(target_repo, repo, path, target, is_folder)
        return route, {join(target, file.below): file for file in files}

    def _moved_before(self, route: Route) -> list[Relocation]:
        """Return the files that an earlier move has put into the target.

        Raises `not_found` without such files.
        """
        moved: list[RemoteFile] = []
        paths = [route.target] if self._options.move else []
        if paths and (self._options.target_path or "").endswith("/"):
            paths.insert(0, join(route.target, route.path.rpartition("/")[2]))
        for given in paths:
            path = listing.existing_form(self._client, route.target_repo, given)
            stored = listing.head(self._client, route.target_repo, path)
            if stored is not None and stored.has_digest:
                moved = [RemoteFile(route.target_repo, path, "", stored)]
                break
        if paths and not moved:
            moved = find_files(self._client, route.target_repo, f"{route.target}/", Filter())
        if not moved:
            repositories.require(self._client, [route.repo])
            target = f", and none at '{route.target_repo}/{route.target}'"
            raise not_found(
                f"path: found no file for '{route.path}' in '{route.repo}'"
                + (target if self._options.move else "")
            )
        return [Relocation(file, file.repo, file.path, file.stored, "unchanged") for file in moved]

    def _existing(self, route: Route, paths: Sequence[str]) -> Mapping[str, StoredItem]:
        """Return the files and folders that exist in the target repository, by path.

        :param paths: paths to check; for a folder, the target folder is listed instead
        """
        client, repo, folder = self._client, route.target_repo, route.target
        if not route.is_folder:
            return items_at(client, repo, paths)
        listed = listing.listing(client, repo, folder, deep=True, folders=True)
        if listed is not None:
            return listed
        return {file.path: file.stored for file in find_files(client, repo, f"{folder}/", Filter())}

    def _planned(self, route: Route, files: Sequence[Relocation]) -> Plan:
        before: dict[str, Any] = {}
        after: dict[str, Any] = {}
        for each in files:
            if not each.is_needed:
                continue
            if each.occupied is not None:
                before[each.name] = each.occupied.as_dict()
            after[each.name] = each.file.stored.as_dict()
            if self._options.move:
                before[each.file.name] = each.file.stored.as_dict()
        action: Action = "none" if not after else "update" if before else "create"
        result = {"artifacts": [file.as_dict() for file in files]}
        return Plan(before, after, action, result=result, data=(route, files))

    def _request(self, file: Relocation, **query: int) -> dict[str, Any]:
        """Return method, path and query of the request that relocates a file."""
        return {
            "method": "POST",
            "path": f"api/{self._verb}/{item_path(file.file.repo, file.file.path)}",
            "query": {"to": f"/{file.name}", "failFast": 1, **query},
        }

    def _rehearse(self, file: Relocation) -> None:
        """Send the request as a dry run. Raises the error that the server reports."""
        purpose = f"{self._doing} '{file.file.name}' to '{file.name}' (rehearsal)"
        self._client.transport.read(purpose, validate=refuse_reported, **self._request(file, dry=1))

    def predict(self, plan: Plan) -> None:
        for each in plan.data[1]:
            listing.predict(self._client, each.repo, each.target, each.file.stored)

    def findings_of_failure(self, values: Mapping[str, Any]) -> list[Finding]:
        rows = values.get("artifacts", ())
        return [of_row(row, self.descriptor.name_of(row)) for row in rows]

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        route: Route
        files: list[Relocation]
        route, files = plan.data
        needed = [file for file in files if file.is_needed]
        done = {file.target for file in files if not file.is_needed}
        progress = ProgressCounter(self._task.progress, f"{self._doing} files", len(needed))

        def work(file: Relocation) -> None:
            purpose = f"{self._doing} '{file.file.name}' to '{file.name}'"
            self._client.write(purpose, verify=lambda: self._is_done(file), **self._request(file))
            done.add(file.target)
            progress.add()

        try:
            spread(self._options.parallel, work, needed)
            self._finish(route, needed)
        except ToolchainError as error:
            finished = [file.as_dict() for file in files if file.target in done]
            error.result.setdefault("artifacts", finished)
            raise
        return {}

    def _is_done(self, file: Relocation) -> bool:
        """Return whether a file is at the target and, after a move, no longer at the source."""
        found = listing.head(self._client, file.repo, file.target)
        if found is None or not file.file.stored.equals(found):
            return False
        source = file.file
        return (
            not self._options.move or listing.head(self._client, source.repo, source.path) is None
        )

    def _finish(self, route: Route, needed: Sequence[Relocation]) -> None:
        """Delete the empty source folder after a move, unless the server has deleted it.

        Raises `failed` if a file is missing or differs at the target after all requests.
        """
        existing = self._existing(route, [file.target for file in needed])
        missing = [
            each.target
            for each in needed
            if each.target not in existing or not each.file.stored.equals(existing[each.target])
        ]
        if missing:
            named = shorten(", ".join(missing), 300)
            raise without_effect(
                f"{self._doing} files to '{route.target_repo}'",
                f"{len(missing)} of {len(needed)} files are missing or differ there: {named}",
            )
        client, repo, path = self._client, route.repo, route.path
        if not (self._options.move and route.is_folder) or listing.find(client, repo, path) is None:
            return
        left = listing.listing(client, repo, path, deep=True)
        if left is None or any(f"{repo}/{file}" not in route.computed for file in left):
            return  # another client has added a file meanwhile
        purpose = f"removing the emptied folder '{repo}/{path}'"
        listing.delete(client, repo, path, purpose, (200, 202, 204, 404))
