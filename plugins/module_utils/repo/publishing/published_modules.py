# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the modules of a build record from the options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.errors import invalid
from ...core.module.task import Task
from .public_values import PublicValues
from .published_files import (
    PublishedFile,
    PublishedFileOptions,
    UsedFileOptions,
    as_artifact,
    as_dependency,
    given,
    known_keys,
    recorded_files,
)


@dataclass(frozen=True)
class PublishedModuleOptions:
    """The known keys of an entry of `modules`; other keys are copied to the record unchanged."""

    id: str
    type: str | None = None
    artifacts: list[dict[str, Any]] | None = None
    dependencies: list[dict[str, Any]] | None = None


@dataclass(frozen=True)
class BuildModule:
    """A module of a build record with its files.

    :param further: other keys, which are copied to the record unchanged
    """

    id: str
    type: str
    artifacts: Sequence[PublishedFile]
    dependencies: Sequence[PublishedFile]
    further: Mapping[str, Any] = field(default_factory=dict)

    @property
    def files(self) -> list[PublishedFile]:
        return [*self.artifacts, *self.dependencies]

    def as_dict(self, known: Mapping[str, PublishedFile]) -> dict[str, Any]:
        """Return the module in the format of a build record.

        :param known: files with their digests, by their location in the options
        """
        artifacts = [as_artifact(known[file.place]) for file in self.artifacts]
        dependencies = [as_dependency(known[file.place]) for file in self.dependencies]
        parts = {"artifacts": artifacts, "dependencies": dependencies}
        named = {**self.further, "id": self.id, "type": self.type}
        return named | {k: v for k, v in parts.items() if v}


def modules_of(
    entries: Sequence[Mapping[str, Any]], values: PublicValues, task: Task
) -> list[BuildModule]:
    """Return the modules of the option `modules`, without secrets in their properties.

    Raises `invalid` if two modules have the same id, or if no module has files.
    """
    found: dict[str, BuildModule] = {}
    for number, entry in enumerate(entries):
        place = f"modules[{number}]"
        module, further = known_keys(place, PublishedModuleOptions, given(entry))
        if "properties" in further:
            public = values.properties(f"{place}.properties", further["properties"])
            further["properties"] = public
        if module.id in found:
            raise invalid(f"{place}.id: another module already has the id '{module.id}'")
        found[module.id] = BuildModule(
            module.id,
            module.type or "generic",
            recorded_files(f"{place}.artifacts", PublishedFileOptions, module.artifacts or ()),
            recorded_files(f"{place}.dependencies", UsedFileOptions, module.dependencies or ()),
            further,
        )
    _require_files(list(found.values()), task)
    return list(found.values())


def _require_files(modules: Sequence[BuildModule], task: Task) -> None:
    """Raise `invalid` if no module has files; warn about each module without files.

    Any existing record would match a build without files. A module that refers to another build has
    none [repo-35].
    """
    empty = [
        number
        for number, module in enumerate(modules)
        if not module.files and module.type != "build"
    ]
    for number in empty:
        message = f"modules[{number}] lists no files, so it cannot be promoted"
        if len(empty) == len(modules):
            raise invalid(f"{message}; set artifacts or dependencies")
        task.warn(message)
