# SPDX-License-Identifier: GPL-3.0-or-later
"""Copy and move items within a server, file by file [C8.2, repo-28].

The requests never name a folder, because the server would put it into an existing target folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from ...core.concurrency import spread
from ...core.errors import ToolchainError, invalid, shorten
from ...core.module.descriptor import Descriptor, writes
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.paths.globs import Patterns, has_wildcards
from ...core.plan import Action, Plan
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
from ..items.listing import StoredItem
from ..progress import TransferProgress
from .chosen_files import Choice, ChosenArtifactOptions, FileSelection, chosen_paths, items_at
from .remote_files import Filter, find_files, refuse_path, wanted_properties


@dataclass(frozen=True)
class ArtifactCopyOptions:
    """The options of `artifact_copy`."""

    constraints: ClassVar[dict[str, Any]] = {
        "mutually_exclusive": [["path", "artifacts"]],
        "required_one_of": [["path", "artifacts"]],
        "required_by": {"path": ("repo",)},
    }

    target_repo: str
    repo: str | None = None
    path: str | None = None
    artifacts: Annotated[list[ChosenArtifactOptions] | None, Option(empty=False)] = None
    properties: Annotated[dict[str, Any] | None, Option(values="text")] = None
    exclude: list[str] | None = None
    target_path: str | None = None
    move: bool = False
    max_items: int = 1000
    parallel: int = 4

    @property
    def selects(self) -> bool:
        """Return whether the options select files instead of a single item."""
        many = self.artifacts is not None or has_wildcards(self.path or "")
        return many or bool(self.properties) or bool(self.exclude)


@dataclass(frozen=True)
class Relocation:
    """A file to copy or move.

    :param repo: key of the source repository
    :param source: path in the source repository
    :param target: path in the target repository
    :param stored: current item at the source
    :param occupied: current item at the target; `None` if it does not exist
    :param action: `copied`, `moved` or `unchanged`
    """

    repo: str
    source: str
    target: str
    stored: StoredItem
    occupied: StoredItem | None
    action: str

    @property
    def is_needed(self) -> bool:
        return self.action != "unchanged"


class ArtifactCopyOperation:
    """Copy or move files; a copy leaves out files that the target has with the same content."""

    descriptor: ClassVar = Descriptor(
        "repo",
        {"copy": writes("read", "deploy"), "move": writes("read", "deploy", "delete")},
        kind="item",
        name="{repo}/{path}",
        listed="artifacts",
    )

    def __init__(self, task: Task, options: ArtifactCopyOptions) -> None:
        self._task, self._options = task, options
        _require_sense(options)
        paths = chosen_paths(options.repo, options.path, options.artifacts)
        self._repo, self._path = options.repo or "", join(*segments(options.path or ""))
        if options.artifacts is None and self._path == "":
            raise invalid("path is empty, which would mean the whole repository: set path")
        self._target_repo = options.target_repo
        self._target = self._target_path()
        self._client = RepoClient(task, connections=options.parallel)
        wanted = Filter(wanted_properties(options.properties), Patterns("exclude", options.exclude))
        self._filter, self._paths = wanted, paths
        self._verb = "move" if options.move else "copy"
        self._is_folder = False

    def _target_path(self) -> str:
        path = self._options.target_path
        return self._path if path is None else join(*segments(path))

    def plan(self) -> Plan:
        if not self._client.dialect.relocates_items:
            failure = f"'{self._paths[0].repo}/{self._paths[0].path}' cannot be {self._done}"
            raise repositories.lacking(self._client, failure)
        if self._options.selects:
            return self._rehearsed(self._selected())
        if self._options.move:
            # compare real repositories: the target may be the deployment repository of the source
            self._repo = repositories.deployment_target(self._client, self._repo, certain=True)
        files = self._sources()
        self._target_repo = repositories.deployment_target(self._client, self._target_repo)
        self._refuse_overlap()
        if not files:
            return self._without_source()
        existing = self._targets([self._target])
        return self._rehearsed(
            [
                self._relocation(
                    self._repo, join(self._path, below), join(self._target, below), stored, existing
                )
                for below, stored in sorted(files.items())
            ]
        )

    def _rehearsed(self, relocations: list[Relocation]) -> Plan:
        """Let the server rehearse the relocations, and return the plan."""
        needed = [relocation for relocation in relocations if relocation.is_needed]
        # files and repositories that check mode only predicts cannot be rehearsed
        known = [
            relocation
            for relocation in needed
            if listing.predicted(self._client, relocation.repo, relocation.source) is None
            and repositories.predicted(self._client, self._target_repo) is None
        ]
        spread(self._options.parallel, self._rehearse, known)
        return self._planned(relocations, needed)

    def _selected(self) -> list[Relocation]:
        """Return the relocations of the files that the options select."""
        client, options = self._client, self._options
        if options.move:
            self._paths = [
                replace(path, repo=repositories.deployment_target(client, path.repo, certain=True))
                for path in self._paths
            ]
        self._target_repo = repositories.deployment_target(client, self._target_repo)
        selection = FileSelection(client, self._paths, self._filter, options.max_items)
        folder = None if options.target_path is None else self._target
        chosen = Choice(client, selection).files(self._target_repo, folder, move=options.move)
        for warning in self._filter.exclude.warnings("none of the selected files"):
            self._task.warn(warning)
        existing = items_at(client, self._target_repo, [choice.target for choice in chosen])
        return [
            self._relocation(
                choice.file.repo, choice.file.path, choice.target, choice.file.stored, existing
            )
            for choice in chosen
        ]

    @property
    def _done(self) -> str:
        return "moved" if self._options.move else "copied"

    def _sources(self) -> dict[str, StoredItem]:
        """Return the files to relocate, by path below the item; a file itself has the path ""."""
        stored = listing.expected(self._client, self._repo, self._path)
        if stored is not None and (stored.sha256 or stored.sha1):
            return {"": stored}
        self._is_folder = True
        return self._files_below(self._repo, self._path)

    def _files_below(self, repo: str, folder: str) -> dict[str, StoredItem]:
        path = f"{folder}/" if folder else "/"
        return {file.below: file.stored for file in find_files(self._client, repo, path, Filter())}

    def _refuse_overlap(self) -> None:
        """Raise `invalid` if the target is the item itself or inside it."""
        path = self._options.target_path or ""
        if not self._is_folder and path.endswith("/"):
            self._target = join(path, self._path.rpartition("/")[2])
        if self._repo != self._target_repo:
            return
        if self._target == self._path or f"{self._target}/".startswith(f"{self._path}/"):
            raise invalid(
                f"target_path: '{self._repo}/{self._target}' is the item itself or inside it: use"
                " another path"
            )

    def _without_source(self) -> Plan:
        """Return an unchanged plan if the source was moved before, else raise `not_found`."""
        if self._options.move:
            moved = self._moved_files()
            if moved:
                artifacts = [
                    self._artifact(path, item, "unchanged") for path, item in moved.items()
                ]
                return Plan({}, {}, result={"artifacts": artifacts})
        repositories.require(self._client, [self._repo])
        raise ToolchainError(
            "not_found",
            f"path: found no file for '{self._path}' in '{self._repo}'"
            + (f", and none at '{self._target_repo}/{self._target}'" if self._options.move else ""),
        )

    def _moved_files(self) -> dict[str, StoredItem]:
        """Return the files that an earlier move has put into the target, by path."""
        paths = [self._target]
        if (self._options.target_path or "").endswith("/"):
            paths.insert(0, join(self._target, self._path.rpartition("/")[2]))
        for path in paths:
            stored = listing.head(self._client, self._target_repo, path)
            if stored is not None and (stored.sha256 or stored.sha1):
                return {path: stored}
        below = self._files_below(self._target_repo, self._target)
        return {join(self._target, name): item for name, item in sorted(below.items())}

    def _targets(self, chosen: list[str]) -> Mapping[str, StoredItem]:
        """Return the files and folders that exist in the target repository, by path.

        :param chosen: paths to check; for a whole folder, the target folder is listed instead
        """
        if self._options.selects or not self._is_folder:
            return items_at(self._client, self._target_repo, chosen)
        listed = listing.listing(
            self._client, self._target_repo, self._target, deep=True, folders=True
        )
        if listed is not None:
            return listed
        below = self._files_below(self._target_repo, self._target)
        return {join(self._target, name): item for name, item in below.items()}

    def _relocation(
        self,
        repo: str,
        source: str,
        target: str,
        stored: StoredItem,
        existing: Mapping[str, StoredItem],
    ) -> Relocation:
        occupied = existing.get(target)
        if occupied is not None and occupied.folder:
            raise ToolchainError(
                "conflict",
                f"'{repo}/{source}' cannot be {self._done} to '{self._target_repo}/{target}':"
                " the target is a folder",
            )
        same = occupied is not None and stored.equals(occupied)
        action = "unchanged" if same and not self._options.move else self._done
        return Relocation(repo, source, target, stored, occupied, action)

    def _artifact(self, path: str, stored: StoredItem, action: str) -> dict[str, Any]:
        return {
            "repo": self._target_repo,
            "path": path,
            "sha256": stored.sha256,
            "action": action,
        }

    def _planned(self, relocations: list[Relocation], needed: list[Relocation]) -> Plan:
        result = {"artifacts": self._artifacts(relocations)}
        if not needed:
            return Plan({}, {}, result=result)
        before: dict[str, Any] = {}
        after: dict[str, Any] = {}
        for relocation in needed:
            target = f"{self._target_repo}/{relocation.target}"
            if relocation.occupied is not None:
                before[target] = relocation.occupied.as_dict()
            after[target] = relocation.stored.as_dict()
            if self._options.move:
                before[f"{relocation.repo}/{relocation.source}"] = relocation.stored.as_dict()
        action: Action = "update" if before else "create"
        return Plan(before, after, action, result=result, data=relocations)

    def _artifacts(self, relocations: Iterable[Relocation]) -> list[dict[str, Any]]:
        return [
            self._artifact(relocation.target, relocation.stored, relocation.action)
            for relocation in relocations
        ]

    def _request(self, file: Relocation, **query: int) -> dict[str, Any]:
        """Return method, path and query of the request that relocates a file."""
        return {
            "method": "POST",
            "path": f"api/{self._verb}/{item_path(file.repo, file.source)}",
            "query": {"to": f"/{self._target_repo}/{file.target}", "failFast": 1, **query},
        }

    def _purpose(self, file: Relocation) -> str:
        verb = "moving" if self._options.move else "copying"
        return f"{verb} '{file.repo}/{file.source}' to '{self._target_repo}/{file.target}'"

    def _rehearse(self, file: Relocation) -> None:
        """Send the request as a dry run. Raises the error that the server reports."""
        purpose = f"{self._purpose(file)} (rehearsal)"
        self._client.transport.read(purpose, validate=refuse_reported, **self._request(file, dry=1))

    def predict(self, plan: Plan) -> None:
        for relocation in plan.data:
            listing.predict(self._client, self._target_repo, relocation.target, relocation.stored)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        needed = [relocation for relocation in plan.data if relocation.is_needed]
        done = {relocation.target for relocation in plan.data if not relocation.is_needed}
        progress = TransferProgress(self._task, self._verb, self._done, len(needed))

        def work(file: Relocation) -> None:
            self._client.write(
                self._purpose(file), verify=lambda: self._is_done(file), **self._request(file)
            )
            done.add(file.target)
            progress.show(lambda: [file.stored.size or 0 for file in needed if file.target in done])

        try:
            spread(self._options.parallel, work, needed)
            self._require_done(needed)
            if self._options.move and self._is_folder:
                self._remove_emptied()
        except ToolchainError as error:
            finished = [relocation for relocation in plan.data if relocation.target in done]
            error.result.setdefault("artifacts", self._artifacts(finished))
            raise
        return {}

    def _is_done(self, file: Relocation) -> bool | None:
        """Return whether a file is at the target and, after a move, no longer at the source."""
        found = listing.head(self._client, self._target_repo, file.target)
        if found is None or not file.stored.equals(found):
            return False
        if not self._options.move:
            return True
        return listing.head(self._client, file.repo, file.source) is None

    def _require_done(self, needed: list[Relocation]) -> None:
        """Raise `failed` if a file is missing or differs at the target after all requests."""
        existing = self._targets([file.target for file in needed])
        missing = [
            file.target
            for file in needed
            if file.target not in existing or not file.stored.equals(existing[file.target])
        ]
        if missing:
            named = shorten(", ".join(missing), 300)
            raise ToolchainError(
                "failed",
                f"the server reported success, but {len(missing)} of {len(needed)} files are"
                f" missing or differ in '{self._target_repo}': {named}",
            )

    def _remove_emptied(self) -> None:
        """Delete the empty source folder after a move, unless the server has deleted it."""
        if listing.find(self._client, self._repo, self._path) is None:
            return
        if listing.listing(self._client, self._repo, self._path, deep=True) != {}:
            return  # another client has added a file meanwhile
        self._client.write(
            f"removing the emptied folder '{self._repo}/{self._path}'",
            "DELETE",
            item_path(self._repo, self._path),
            expect=(200, 202, 204, 404),
            verify=lambda: listing.is_gone(self._client, self._repo, self._path),
            repeatable=True,
        )


def _require_sense(options: ArtifactCopyOptions) -> None:
    """Raise `invalid` for malformed keys and paths, and for numbers out of range."""
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
    for name in ("parallel", "max_items"):
        if getattr(options, name) < 1:
            raise invalid(f"{name} must be at least 1, not {getattr(options, name)}")
