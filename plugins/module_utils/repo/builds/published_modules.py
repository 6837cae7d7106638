# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules of a build record that is published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.errors import invalid
from ...core.module.task import Task
from .published_files import (
    PublishedFile,
    PublishedFileOptions,
    UsedFileOptions,
    as_artifact,
    as_dependency,
    files_of,
)


@dataclass(frozen=True)
class PublishedModuleOptions:
    """The suboptions of `modules`."""

    id: str
    type: str | None = None
    artifacts: list[PublishedFileOptions] | None = None
    dependencies: list[UsedFileOptions] | None = None


@dataclass(frozen=True)
class BuildModule:
    """A module of the record with its files."""

    id: str
    type: str
    artifacts: Sequence[PublishedFile]
    dependencies: Sequence[PublishedFile]

    @property
    def files(self) -> list[PublishedFile]:
        return [*self.artifacts, *self.dependencies]

    def as_dict(self, known: Mapping[str, PublishedFile]) -> dict[str, Any]:
        """Return the module as recorded; `known` has the files with their digests, by place."""
        artifacts = [as_artifact(known[file.place]) for file in self.artifacts]
        dependencies = [as_dependency(known[file.place]) for file in self.dependencies]
        parts = {"artifacts": artifacts, "dependencies": dependencies}
        return {"id": self.id, "type": self.type} | {k: v for k, v in parts.items() if v}


def modules_of(given: Sequence[PublishedModuleOptions], task: Task) -> list[BuildModule]:
    """Return the modules of the options. Raises `invalid` if a module is named twice, or no module
    has files.
    """
    found: dict[str, BuildModule] = {}
    for number, module in enumerate(given):
        place = f"modules[{number}]"
        if module.id in found:
            raise invalid(f"{place}.id is '{module.id}', as that of a module before it")
        found[module.id] = BuildModule(
            module.id,
            module.type or "generic",
            files_of(f"{place}.artifacts", module.artifacts or []),
            files_of(f"{place}.dependencies", module.dependencies or []),
        )
    _require_files(list(found.values()), task)
    return list(found.values())


def _require_files(modules: Sequence[BuildModule], task: Task) -> None:
    """Raise `invalid` for a build without files, which any record would match. Warn about a single
    module without files.
    """
    empty = [number for number, module in enumerate(modules) if not module.files]
    for number in empty:
        said = f"modules[{number}] names no file, so that nothing of it can be promoted"
        if len(empty) == len(modules):
            raise invalid(f"{said}; give artifacts or dependencies")
        task.warn(said)
