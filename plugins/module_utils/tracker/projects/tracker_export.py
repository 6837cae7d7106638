# SPDX-License-Identifier: GPL-3.0-or-later
"""Export the versions of projects as `tracker.yml` of a desired state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ...core.concurrency import first_alone
from ...core.errors import ToolchainError, invalid
from ...core.export.service_export import ExportOptions, ServiceExport, ServiceState
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.progress import ProgressCounter
from ..client import TrackerClient
from .tracker_project_info import TrackerProjectInfoOperation, TrackerProjectInfoOptions
from .tracker_version import TrackerVersionOptions
from .versions import NO_DATE, ProjectVersions, Version, same_name

_UNTOLD = (
    "Versions alone are here: issues, workflows and schemes are no part of a desired state.",
)
#: Error kinds for a single project that the account cannot read.
_REFUSED = ("not_found", "permission")


@dataclass(frozen=True, kw_only=True)
class TrackerExportOptions(ExportOptions):
    """Options of `tracker_export`."""

    projects: list[str] | None = None
    parallel: int = 4


class TrackerExportOperation(ServiceExport):
    """Export the versions of all projects, or of the given projects."""

    descriptor: ClassVar = Descriptor("tracker", {"read": reads()})

    service = "tracker"

    def __init__(self, task: Task, options: TrackerExportOptions) -> None:
        super().__init__(task, options)
        if options.projects is not None and not options.projects:
            raise invalid("projects is empty: name projects, or leave it out for all of them")
        if options.parallel < 1:
            raise invalid("parallel: at least one project at a time is needed")
        self._options = options
        self._client = TrackerClient(task)

    def read(self) -> ServiceState:
        state = ServiceState(untold=_UNTOLD)
        keys = self._options.projects
        chosen = self._all() if keys is None else list(dict.fromkeys(keys))
        count = ProgressCounter(
            self._task.progress, "reading the versions of projects", len(chosen)
        )

        def of_project(key: str) -> tuple[str, list[Version] | ToolchainError]:
            try:
                return key, ProjectVersions(self._client, key).all()
            except ToolchainError as error:
                if keys is not None or error.kind not in _REFUSED:
                    raise
                return key, error
            finally:
                count.add()

        versions: list[dict[str, Any]] = []
        for key, found in first_alone(self._options.parallel, of_project, chosen):
            if isinstance(found, ToolchainError):
                state.leave_out("project", key, found.message)
            else:
                versions += _entries(key, found, state)
        state.values = {"versions": versions}
        return state

    def _all(self) -> list[str]:
        shown = TrackerProjectInfoOperation(self._task, TrackerProjectInfoOptions()).all()
        keys = [project.get("key") for project in shown]
        if not keys:
            self._task.warn("the account sees no project: nothing is exported")
        return [key for key in keys if isinstance(key, str)]


def _entries(project: str, versions: list[Version], state: ServiceState) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for number, version in enumerate(versions):
        entry = _entry(project, version)
        twin = any(same_name(version.name, other.name) for other in versions[:number])
        wrong = "another version has this name" if twin else _wrong(entry)
        if wrong is None:
            found.append(entry)
        else:
            state.leave_out("version", f"{project}/{version.name}", wrong)
    return found


def _entry(project: str, version: Version) -> dict[str, Any]:
    """Return a version as an entry for `tracker_version`.

    Empty fields are included, so that a value that somebody adds later is drift.
    """
    released = "released" if version.released else "unreleased"
    return {
        "project": project,
        "name": version.name,
        "description": version.description,
        "start_date": version.start_date or NO_DATE,
        "release_date": version.release_date or NO_DATE,
        "state": "archived" if version.archived else released,
    }


def _wrong(entry: dict[str, Any]) -> str | None:
    """Return why `tracker_version` cannot manage this version, or `None`."""
    name = entry.get("name", "")
    if not name.strip() or name != name.strip():
        return "its name is empty, or begins or ends with a blank"
    if not all(isinstance(value, str) for value in entry.values()):
        return "it has something in place of a text"
    try:
        TrackerVersionOptions(**entry).require_sense()
    except ToolchainError as error:
        return error.message
    return None
