# SPDX-License-Identifier: GPL-3.0-or-later
"""Deploy files individually, or in an archive that the server expands [C2.1]."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.concurrency import spread
from ...core.errors import ToolchainError, invalid, shorten
from ...core.module.task import Task
from ...core.plan import Action, Plan
from .. import properties
from ..client import RepoClient, item_path, join
from ..progress import TransferProgress
from ..properties import Properties
from . import listing
from .archives import entries_of
from .file_states import FileState, read_moved, read_states, with_known_content
from .replaced_files import promoted_builds
from .sources import FileSource, LocalFile, WantedFile, read_all
from .uploads import Uploader

#: Action and number of sent bytes, by path.
Done = dict[str, tuple[str, int]]


@dataclass(frozen=True, slots=True)
class FileAction:
    """Planned action for a file.

    :param found: the file, and the current item at its path
    :param action: `uploaded`, `exploded`, `properties` or `unchanged`
    :param repo: key of the repository that stores the file
    """

    found: FileState
    action: str
    repo: str

    @property
    def wanted(self) -> WantedFile:
        return self.found.wanted

    @property
    def name(self) -> str:
        return f"{self.repo}/{self.wanted.path}"

    @property
    def replaces(self) -> bool:
        """Return whether an item with other content is known to exist at the path."""
        stored = self.found.stored
        return stored is not None and stored.holds(self.wanted.digests) is False


class FileDeployment:
    """Deploy the files whose content or properties differ.

    :param checksum_deploy: whether to send only a checksum for content that the server has; `None`
        means only if that is faster
    :param moved_to: repositories to which a promotion may have moved the files
    """

    def __init__(
        self,
        task: Task,
        repo: str,
        sources: Sequence[FileSource],
        *,
        parallel: int,
        checksum_deploy: bool | None = None,
        overwrite: bool = True,
        moved_to: Sequence[str] = (),
    ) -> None:
        self._task, self._repo, self._sources = task, repo, sources
        self._moved_to, self._overwrite = moved_to, overwrite
        self._client = RepoClient(task, connections=parallel)
        self._checksum_deploy = checksum_deploy
        if checksum_deploy:
            self._by_checksum()

    def _by_checksum(self) -> bool | None:
        """Return `checksum_deploy`, or `False` if the dialect does not support it.

        Raises `invalid` if the option is true but not supported.
        """
        if self._client.dialect.checksum_headers:
            return self._checksum_deploy
        if self._checksum_deploy:
            raise invalid(
                "checksum_deploy: a server of the generic dialect may store an empty file: omit the"
                " option, or check the option dialect"
            )
        return False

    def _wanted_files(self) -> list[WantedFile]:
        sources, self._sources = self._sources, ()  # free the memory of the sources
        return read_all(sources, self._client.connections)

    def plan(self) -> Plan:
        repo, found = read_states(self._client, self._repo, self._wanted_files())
        if not self._overwrite:
            found = with_known_content(self._client, repo, found)
        moved = read_moved(self._client, repo, self._moved_to, found)
        actions = self._decide(
            [
                FileAction(state, _action_for(state), state_repo)
                for state, state_repo in (
                    moved.get(state.wanted.path, (state, repo)) for state in found
                )
            ],
            repo,
        )
        if not self._overwrite:
            _require_free_paths(actions)
        artifacts = [self._artifact(file, file.action) for file in actions]
        result = {"artifacts": artifacts, "uploaded_bytes": self._bytes_to_send(actions)}
        differing = [file for file in actions if file.action != "unchanged"]
        if not differing:
            return Plan({}, {}, result=result)
        before = {file.name: _before(file) for file in differing if file.found.stored is not None}
        after = {file.name: _after(file) for file in differing}
        action: Action = "update" if before else "create"
        self._warn_of_promoted(repo, differing)
        return Plan(before, after, action, result=result, data=(repo, actions))

    def _warn_of_promoted(self, repo: str, files: Sequence[FileAction]) -> None:
        """Warn of files of promoted builds whose content the deployment replaces."""
        paths = {file.wanted.path for file in files if file.repo == repo and file.replaces}
        found = promoted_builds(self._client, repo, paths)
        if found:
            named = ", ".join(
                f"'{repo}/{path}' (build {', '.join(builds)})" for path, builds in found.items()
            )
            self._task.warn(
                f"this deployment replaces files of promoted builds: {shorten(named, 400)}. The new"
                " content is not in their build records"
            )

    def predict(self, plan: Plan) -> None:
        _repo, actions = plan.data
        for file in actions:
            digests = file.wanted.digests
            item = listing.StoredItem(digests.size, digests.sha256, digests.sha1)
            listing.predict(self._client, file.repo, file.wanted.path, item)
            if file.wanted.properties:
                properties.predict(
                    self._client, file.repo, file.wanted.path, file.wanted.properties
                )

    def _decide(self, actions: list[FileAction], repo: str) -> list[FileAction]:
        return actions

    def _bytes_to_send(self, actions: list[FileAction]) -> int:
        return sum(file.wanted.digests.size for file in actions if file.action == "uploaded")

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        done: Done = {}
        repo, actions = plan.data
        progress = TransferProgress(self._task, "deploying", "sent", len(actions))
        uploader = Uploader(self._client, repo, self._by_checksum())

        def work(file: FileAction) -> None:
            self._carry_out(uploader, file, done)
            progress.show(lambda: [size for _action, size in list(done.values())])

        try:
            sent = self._send_together(uploader, actions, done)
            spread(self._client.connections, work, actions)
        except ToolchainError as error:
            error.result.setdefault("artifacts", self._artifacts(actions, done))
            raise
        return {
            "artifacts": self._artifacts(actions, done),
            "uploaded_bytes": sent + sum(size for _action, size in done.values()),
        }

    def _send_together(self, uploader: Uploader, actions: list[FileAction], done: Done) -> int:
        """Send all files in a single request if possible; return the number of sent bytes."""
        return 0

    def _carry_out(self, uploader: Uploader, file: FileAction, done: Done) -> None:
        """Deploy a file, set its properties, and add its action to `done`.

        The content counts as deployed even if the server rejects the properties.
        """
        path, wanted = file.wanted.path, file.wanted.properties
        if file.action == "uploaded":
            done[path] = uploader.deploy(file.wanted, file.found.stored)
        action, _size = done.get(path, (file.action, 0))
        if action != "unchanged" and wanted:
            try:
                properties.write(self._client, file.repo, path, wanted)
            except ToolchainError as error:
                if path in done:
                    error.with_hint(f"the content of '{file.name}' is deployed")
                raise
        done.setdefault(path, (action, 0))

    def _artifacts(self, actions: list[FileAction], done: Done) -> list[dict[str, Any]]:
        return [
            self._artifact(file, done[file.wanted.path][0])
            for file in actions
            if file.wanted.path in done
        ]

    def _artifact(self, file: FileAction, action: str) -> dict[str, Any]:
        digests = file.wanted.digests
        return {
            "repo": file.repo,
            "path": file.wanted.path,
            "size": digests.size,
            "sha256": digests.sha256,
            "action": action,
            "url": self._client.transport.url(item_path(file.repo, file.wanted.path)),
        }


class ArchiveDeployment(FileDeployment):
    """Deploy the files of an archive: send the whole archive if any file differs."""

    def __init__(
        self,
        task: Task,
        repo: str,
        archive: str,
        folder: str,
        wanted: Properties,
        *,
        parallel: int,
        overwrite: bool = True,
        moved_to: Sequence[str] = (),
    ) -> None:
        if not os.path.isfile(archive):
            raise invalid(f"src: '{archive}' is not a file, but explode requires an archive")
        super().__init__(task, repo, (), parallel=parallel, overwrite=overwrite, moved_to=moved_to)
        self._archive, self._folder, self._properties = LocalFile(archive), folder, wanted

    def _wanted_files(self) -> list[WantedFile]:
        return [
            WantedFile(join(self._folder, name), self._archive, digests, self._properties)
            for name, digests in entries_of(self._archive.path).items()
        ]

    def _decide(self, actions: list[FileAction], repo: str) -> list[FileAction]:
        if not any(file.action == "uploaded" for file in actions):
            return actions
        return [FileAction(file.found, "exploded", repo) for file in actions]

    def _bytes_to_send(self, actions: list[FileAction]) -> int:
        return os.path.getsize(self._archive.path) if _is_exploded(actions) else 0

    def _send_together(self, uploader: Uploader, actions: list[FileAction], done: Done) -> int:
        if not _is_exploded(actions):
            return 0
        files = [file.wanted for file in actions]
        sent = uploader.explode(self._archive, self._folder, files)
        done.update({file.path: ("exploded", 0) for file in files})
        return sent


def _is_exploded(actions: list[FileAction]) -> bool:
    return any(file.action == "exploded" for file in actions)


def _require_free_paths(actions: list[FileAction]) -> None:
    """Raise `conflict` if a file would overwrite an item with different content."""
    taken = [
        file.name
        for file in actions
        if file.found.stored is not None and not file.found.has_content
    ]
    if taken:
        raise ToolchainError(
            "conflict",
            f"{len(taken)} of {len(actions)} paths have different content, but overwrite is false:"
            f" {shorten(', '.join(taken), 400)}. Deploy to other paths, or set overwrite: true",
        )


def _action_for(found: FileState) -> str:
    if not found.has_content:
        return "uploaded"
    return "unchanged" if found.has_properties else "properties"


def _before(file: FileAction) -> dict[str, Any]:
    stored = file.found.stored
    shown = {} if stored is None else stored.as_dict()
    if file.found.properties is not None:
        names = file.wanted.properties
        shown["properties"] = {
            name: sorted(values) for name, values in file.found.properties.items() if name in names
        }
    return shown


def _after(file: FileAction) -> dict[str, Any]:
    wanted = file.wanted
    shown: dict[str, Any] = {"size": wanted.digests.size, "sha256": wanted.digests.sha256}
    if wanted.properties:
        shown["properties"] = {name: sorted(values) for name, values in wanted.properties.items()}
    return shown
