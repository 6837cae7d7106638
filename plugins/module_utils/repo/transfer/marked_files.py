# SPDX-License-Identifier: GPL-3.0-or-later
"""Set or remove properties of files that patterns, lists or conditions choose [C2.2]."""

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
    """The properties to set, or with `absent` the names to remove."""

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
    """A file with its current properties; `None` if the server does not show them."""

    file: RemoteFile
    before: dict[str, list[str]] | None
    after: dict[str, list[str]]
    is_done: bool

    def shown(self, action: str) -> dict[str, Any]:
        """Return the entry for the result."""
        place = {"repo": self.file.repo, "path": self.file.path}
        return {**place, "before": self.before, "after": self.after, "action": action}


class MarkedFiles:
    """Change the properties of the chosen files that differ."""

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
        files = [self._marked(*each) for each in self._read(sorted(found.items()))]
        result = {"artifacts": [one.shown(_action(one)) for one in files]}
        differing = _differing(files)
        if not differing:
            return Plan({}, {}, result=result)
        before = {one.file.name: one.before for one in differing}
        after = {one.file.name: one.after for one in differing}
        return Plan(before, after, "update", result=result, data=files)

    def _is_settled(self, path: ChosenPath) -> bool:
        """Return whether an earlier run changed the files of a path, so they no longer have the
        properties that the task searches for.
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
        """Yield files with their properties. A query per repository reads them; files that it does
        not return are read one by one.
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
        for one in _differing(plan.data):
            properties.predict(self._client, one.file.repo, one.file.path, one.after)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        differing = _differing(plan.data)
        done: set[str] = set()
        count = ProgressCounter(self._task.progress, "changing properties", len(differing))

        def work(one: MarkedFile) -> None:
            self._wanted.write(self._client, one.file.repo, one.file.path, recursive=False)
            done.add(one.file.name)
            count.add()

        try:
            spread(self._client.connections, work, differing)
        except ToolchainError as error:
            reached = [file for file in plan.data if file.is_done or file.file.name in done]
            error.result.setdefault("artifacts", [one.shown(_action(one)) for one in reached])
            raise
        return {}


def _differing(files: list[MarkedFile]) -> list[MarkedFile]:
    return [file for file in files if not file.is_done]


def _action(one: MarkedFile) -> str:
    return "unchanged" if one.is_done else "updated"
