# SPDX-License-Identifier: GPL-3.0-or-later
"""Set or remove properties of selected files [C2.2]."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...core.concurrency import spread
from ...core.errors import ToolchainError
from ...core.module.task import Task
from ...core.plan import Plan
from ...core.progress import ProgressCounter
from .. import properties
from ..client import RepoClient
from ..items import listing
from ..repositories import refuse_properties
from .chosen_files import ChosenPath, FileSelection
from .remote_files import RemoteFile, find_files


@dataclass(frozen=True)
class WantedProperties:
    """The properties to set, or to remove if `absent` is true.

    :param values: properties to set
    :param names: names of the properties
    """

    values: properties.Properties
    names: list[str]
    absent: bool

    @property
    def is_empty(self) -> bool:
        return not (self.names if self.absent else self.values)

    def are_done(self, has: Mapping[str, list[str]]) -> bool:
        if self.absent:
            return not any(name in has for name in self.names)
        return properties.are_set(has, self.values) is True

    def after(self, has: Mapping[str, list[str]]) -> dict[str, list[str]]:
        if self.absent:
            return {name: values for name, values in has.items() if name not in self.names}
        return {**has, **self.values}

    def write(self, client: RepoClient, repo: str, path: str, *, recursive: bool) -> None:
        if self.absent:
            properties.remove(client, repo, path, self.names, recursive=recursive)
        else:
            properties.write(client, repo, path, self.values, recursive=recursive)


@dataclass(frozen=True)
class MarkedFile:
    """A selected file with its properties.

    :param before: current properties; `None` if the server does not return them
    :param after: properties after the task
    :param is_done: whether the file needs no change
    """

    file: RemoteFile
    before: dict[str, list[str]] | None
    after: dict[str, list[str]]
    is_done: bool

    def shown(self, action: str) -> dict[str, Any]:
        """Return the entry of the file in the return value `artifacts`."""
        place = {"repo": self.file.repo, "path": self.file.path}
        return {**place, "before": self.before, "after": self.after, "action": action}


class MarkedFiles:
    """Change the properties of the selected files if they differ."""

    def __init__(
        self, task: Task, client: RepoClient, selection: FileSelection, wanted: WantedProperties
    ) -> None:
        self._task, self._client = task, client
        self._selection, self._wanted = selection, wanted

    def plan(self) -> Plan:
        if not self._client.dialect.full_properties:
            refuse_properties(self._client)
        found = {file.name: file for _path, file in self._selection.files(self._is_settled)}
        for warning in self._selection.wanted.exclude.warnings("none of the selected files"):
            self._task.warn(warning)
        files = [self._marked(file, has) for file, has in self._read(sorted(found.items()))]
        result = {"artifacts": [file.shown(_action(file)) for file in files]}
        differing = _differing(files)
        if not differing:
            return Plan({}, {}, result=result)
        before = {marked.file.name: marked.before for marked in differing}
        after = {marked.file.name: marked.after for marked in differing}
        return Plan(before, after, "update", result=result, data=files)

    def _is_settled(self, path: ChosenPath) -> bool:
        """Return whether an earlier run of the task has already changed the files of a path.

        The change may have removed the properties by which the task selects the files.
        """
        wanted = self._selection.wanted
        if not wanted.properties:
            return False
        every = replace(wanted, properties={})
        files = {file.name: file for file in find_files(self._client, path.repo, path.path, every)}
        found = self._read(sorted(files.items()))
        return any(has is not None and self._wanted.are_done(has) for _file, has in found)

    def _read(
        self, files: list[tuple[str, RemoteFile]]
    ) -> Iterator[tuple[RemoteFile, dict[str, list[str]] | None]]:
        """Yield files with their properties; `None` if the server does not return properties.

        Each repository is queried once. Files that the query does not find are read individually.
        """
        client, chosen = self._client, [file for _name, file in files]
        known = {
            f"{repo}/{path}": has
            for repo in sorted({file.repo for file in chosen})
            for path, has in properties.read_at(
                client, repo, [file.path for file in chosen if file.repo == repo]
            ).items()
        }
        others = [file for file in chosen if file.name not in known]
        read = spread(client.connections, self._properties, others)
        single = {file.name: has for file, has in zip(others, read, strict=True)}
        for file in chosen:
            yield file, known[file.name] if file.name in known else single[file.name]

    def _properties(self, file: RemoteFile) -> dict[str, list[str]] | None:
        client, repo, path = self._client, file.repo, file.path
        is_predicted = listing.predicted(client, repo, path) is not None
        if is_predicted and listing.head(client, repo, path) is None:
            return client.predictions.get("properties", repo, path) or {}
        return properties.read(client, repo, path)

    def _marked(self, file: RemoteFile, has: dict[str, list[str]] | None) -> MarkedFile:
        done = self._wanted.is_empty or (has is not None and self._wanted.are_done(has))
        return MarkedFile(file, has, self._wanted.after(has or {}), done)

    def predict(self, plan: Plan) -> None:
        for marked in _differing(plan.data):
            properties.predict(self._client, marked.file.repo, marked.file.path, marked.after)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        differing = _differing(plan.data)
        done: set[str] = set()
        count = ProgressCounter(self._task.progress, "changing properties", len(differing))

        def work(marked: MarkedFile) -> None:
            self._wanted.write(self._client, marked.file.repo, marked.file.path, recursive=False)
            done.add(marked.file.name)
            count.add()

        try:
            spread(self._client.connections, work, differing)
        except ToolchainError as error:
            reached = [marked for marked in plan.data if marked.is_done or marked.file.name in done]
            rows = [marked.shown(_action(marked)) for marked in reached]
            error.result.setdefault("artifacts", rows)
            raise
        return {}


def _differing(files: list[MarkedFile]) -> list[MarkedFile]:
    return [marked for marked in files if not marked.is_done]


def _action(marked: MarkedFile) -> str:
    return "unchanged" if marked.is_done else "updated"
