# SPDX-License-Identifier: GPL-3.0-or-later
"""Deploying files, folders, texts and archives, and deleting items [C2.1]."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...core.concurrency import spread
from ...core.errors import ToolchainError, invalid
from ...core.module.task import Task
from ...core.plan import Operation, Plan
from .. import properties
from ..client import RepoClient, join, repository_key, segments
from . import sources
from .archives import entries_of
from .existing import FileState, read_states
from .removal import RemoveItem
from .sources import FileSource, LocalFile, WantedFile
from .uploads import Uploader

_SECONDS_BETWEEN_LINES = 2.0


def operation(task: Task) -> Operation:
    """The operation that the options of C(artifact_deploy) ask for. Raises C(invalid)."""
    repository_key("repo", task.params["repo"])
    segments(task.params["path"])
    if task.params["parallel"] < 1:
        raise invalid("parallel: at least one transfer at a time is needed")
    if task.params["state"] == "absent":
        return RemoveItem(task)
    if task.params["force"]:
        raise invalid("force allows to delete a whole repository: it goes with state=absent")
    if task.params["explode"] and task.params["checksum_deploy"]:
        raise invalid("checksum_deploy contradicts explode: an archive is always sent whole")
    return DeployArchive(task) if task.params["explode"] else DeployFiles(task)


@dataclass(frozen=True)
class FileAction:
    """What is to be done about one file."""

    found: FileState
    action: str

    @property
    def wanted(self) -> WantedFile:
        return self.found.wanted


class DeployFiles:
    """Files that shall be in a repository, each with its content and its properties."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._client = RepoClient(task, connections=task.params["parallel"])
        self._by_checksum = _by_checksum(self._client, task.params["checksum_deploy"])
        self._sources = self._find_sources()
        self._repo: str = task.params["repo"]
        self._steps: list[FileAction] = []

    def _find_sources(self) -> list[FileSource]:
        return sources.sources_of(self._task.params)

    def _read_sources(self) -> list[WantedFile]:
        return sources.read_all(self._sources, self._client.connections)

    def plan(self) -> Plan:
        wanted = self._read_sources()
        self._repo, found = read_states(self._client, self._repo, wanted)
        self._steps = self._decide([FileAction(one, _action(one)) for one in found])
        artifacts = [self._artifact(step, step.action) for step in self._steps]
        result = {"artifacts": artifacts, "uploaded_bytes": self._bytes_to_send()}
        differing = [step for step in self._steps if step.action != "unchanged"]
        if not differing:
            return Plan({}, {}, result=result)
        before = {
            self._name(step): _before(step) for step in differing if step.found.stored is not None
        }
        after = {self._name(step): _after(step) for step in differing}
        return Plan(before, after, "update" if before else "create", result=result)

    def _decide(self, steps: list[FileAction]) -> list[FileAction]:
        return steps

    def _bytes_to_send(self) -> int:
        return sum(step.wanted.digests.size for step in self._steps if step.action == "uploaded")

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        done: dict[str, tuple[str, int]] = {}
        progress = _Progress(self._task, len(self._steps))
        uploader = Uploader(self._client, self._repo, self._by_checksum)

        def work(step: FileAction) -> None:
            done[step.wanted.path] = self._carry_out(uploader, step)
            progress.show(done)

        try:
            sent = self._send_together(uploader)
            # beside several connections one worker more: it prepares while the others wait
            connections = self._client.connections
            spread(connections + (connections > 1), work, self._steps)
        except ToolchainError as error:
            error.result.setdefault("artifacts", self._artifacts(done))
            raise
        return {
            "artifacts": self._artifacts(done),
            "uploaded_bytes": sent + sum(size for _action, size in done.values()),
        }

    def _send_together(self, uploader: Uploader) -> int:
        """Write what is written in one request for all files; the bytes that were sent."""
        return 0

    def _carry_out(self, uploader: Uploader, step: FileAction) -> tuple[str, int]:
        """What was done about one file, and the bytes that were sent for it."""
        action, size = step.action, 0
        if action == "uploaded":
            action, size = uploader.deploy(step.wanted, step.found.stored)
        if action != "unchanged" and step.wanted.properties:
            properties.write(self._client, self._repo, step.wanted.path, step.wanted.properties)
        return action, size

    def _artifacts(self, done: Mapping[str, tuple[str, int]]) -> list[dict[str, Any]]:
        return [
            self._artifact(step, done[step.wanted.path][0])
            for step in self._steps
            if step.wanted.path in done
        ]

    def _artifact(self, step: FileAction, action: str) -> dict[str, Any]:
        digests = step.wanted.digests
        return {
            "repo": self._repo,
            "path": step.wanted.path,
            "size": digests.size,
            "sha256": digests.sha256,
            "action": action,
        }

    def _name(self, step: FileAction) -> str:
        return f"{self._repo}/{step.wanted.path}"


class DeployArchive(DeployFiles):
    """An archive whose entries shall be below a path: it is sent whole where one of them
    differs.
    """

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._folder = join(task.params["path"])
        self._archive = LocalFile(task.params["src"])

    def _find_sources(self) -> list[FileSource]:
        src = self._task.params["src"]
        if src is None:
            raise invalid("explode needs src, the archive to expand")
        if not os.path.isfile(src):
            raise invalid(f"src: '{src}' is not a file, and explode needs one archive")
        return []

    def _read_sources(self) -> list[WantedFile]:
        wanted = properties.properties_of(self._task.params["properties"])
        return [
            WantedFile(join(self._folder, name), self._archive, digests, wanted)
            for name, digests in entries_of(self._archive.path).items()
        ]

    def _decide(self, steps: list[FileAction]) -> list[FileAction]:
        if not any(step.action == "uploaded" for step in steps):
            return steps
        return [FileAction(step.found, "exploded") for step in steps]

    @property
    def _is_sent(self) -> bool:
        return any(step.action == "exploded" for step in self._steps)

    def _bytes_to_send(self) -> int:
        return os.path.getsize(self._archive.path) if self._is_sent else 0

    def _send_together(self, uploader: Uploader) -> int:
        if not self._is_sent:
            return 0
        return uploader.explode(self._archive, self._folder, [step.wanted for step in self._steps])


def _by_checksum(client: RepoClient, option: bool | None) -> bool | None:
    if client.dialect.checksum_headers:
        return option
    if option is True:
        raise invalid(
            "checksum_deploy: a server of this dialect may ignore it and store an empty file"
        )
    return False


def _action(found: FileState) -> str:
    if not found.has_content:
        return "uploaded"
    return "unchanged" if found.has_properties else "properties"


def _before(step: FileAction) -> dict[str, Any]:
    stored = step.found.stored
    shown = {} if stored is None else stored.as_dict()
    if step.found.properties is not None:
        names = step.wanted.properties
        shown["properties"] = {
            name: sorted(values) for name, values in step.found.properties.items() if name in names
        }
    return shown


def _after(step: FileAction) -> dict[str, Any]:
    wanted = step.wanted
    shown: dict[str, Any] = {"size": wanted.digests.size, "sha256": wanted.digests.sha256}
    if wanted.properties:
        shown["properties"] = {name: sorted(values) for name, values in wanted.properties.items()}
    return shown


class _Progress:
    """A line every few seconds: files done and bytes sent."""

    def __init__(self, task: Task, total: int) -> None:
        self._task, self._total = task, total
        self._next = time.monotonic() + _SECONDS_BETWEEN_LINES

    def show(self, done: Mapping[str, tuple[str, int]]) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _SECONDS_BETWEEN_LINES
            finished = [size for _action, size in list(done.values())]
            share = 100 * len(finished) // max(1, self._total)
            self._task.progress(
                f"deploying: {len(finished)} of {self._total} files ({share} %), "
                f"{sum(finished) / 1e6:.1f} MB sent"
            )
