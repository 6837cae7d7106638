# SPDX-License-Identifier: GPL-3.0-or-later
"""Module `tracker_export`: write versions, components and roles as a desired state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ...core.concurrency import first_alone
from ...core.errors import ToolchainError, invalid
from ...core.module import typed_options
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.module.typed_options import Positive
from ...core.operations.service_export import ExportOptions, ServiceExport, ServiceState
from ...core.progress import ProgressCounter
from ..client import TrackerClient
from ..service import SERVICE
from .project_objects import same_name
from .tracker_component import Component, ComponentEntry, ProjectComponents
from .tracker_project_info import TrackerProjectInfoOperation, TrackerProjectInfoOptions
from .tracker_project_role import ProjectRole, ProjectRoles
from .tracker_version import NO_DATE, ProjectVersions, TrackerVersionOptions, Version

_NOT_EXPORTED = (
    "Only versions, components and roles are exported, not issues, workflows and schemes.",
)
#: Error kinds for a project that the account cannot read.
_UNREADABLE = ("not_found", "permission")
#: Keys of the lists in `tracker.yml`.
_LISTS = ("versions", "components", "project_roles")


@dataclass(frozen=True)
class _ProjectParts:
    """The exported objects of a project. `roles`: an error if the account may not read them."""

    versions: list[Version]
    components: list[Component]
    roles: list[ProjectRole] | ToolchainError


@dataclass(frozen=True, kw_only=True)
class TrackerExportOptions(ExportOptions):
    """Options of `tracker_export`."""

    projects: list[str] | None = None
    parallel: Positive = 4


class TrackerExportOperation(ServiceExport):
    """Export the versions, components and roles of all projects, or of the given projects."""

    descriptor: ClassVar = Descriptor(SERVICE, {"read": reads("browse")})

    service = "tracker"

    def __init__(self, task: Task, options: TrackerExportOptions) -> None:
        super().__init__(task, options)
        if options.projects is not None and not options.projects:
            raise invalid(
                "projects is empty: list projects, or omit the option to export all projects"
            )
        self._options = options
        self._client = TrackerClient(task)

    def read(self) -> ServiceState:
        state = ServiceState(not_exported=_NOT_EXPORTED)
        keys = self._options.projects
        chosen = self._all() if keys is None else list(dict.fromkeys(keys))
        count = ProgressCounter(self._task.progress, "reading the parts of projects", len(chosen))

        def read(key: str) -> tuple[str, _ProjectParts | ToolchainError]:
            try:
                return key, self._parts(key)
            except ToolchainError as error:
                if keys is not None or error.kind not in _UNREADABLE:
                    raise
                return key, error
            finally:
                count.add()

        found_entries: dict[str, list[dict[str, Any]]] = {name: [] for name in _LISTS}
        for key, found in first_alone(self._options.parallel, read, chosen):
            if isinstance(found, ToolchainError):
                state.leave_out("project", key, found.message)
            else:
                found_entries["versions"] += _entries(key, found.versions, state)
                found_entries["components"] += _components(key, found.components, state)
                found_entries["project_roles"] += _roles(key, found.roles, state)
        state.values = dict(found_entries)
        return state

    def _parts(self, key: str) -> _ProjectParts:
        """Read a project. Only administrators of the project can read its roles."""
        versions = ProjectVersions(self._client, key).all()
        components = ProjectComponents(self._client, key).all()
        store = ProjectRoles(self._client, key)
        try:
            roles = [store.read(name, number) for name, number in store.ids().items()]
        except ToolchainError as error:
            if error.kind not in _UNREADABLE:
                raise
            return _ProjectParts(versions, components, error)
        return _ProjectParts(versions, components, roles)

    def _all(self) -> list[str]:
        shown = TrackerProjectInfoOperation(self._task, TrackerProjectInfoOptions()).all()
        keys = [project.get("key") for project in shown]
        if not keys:
            self._task.warn("the account cannot see any project, so nothing is exported")
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


def _components(
    project: str, components: list[Component], state: ServiceState
) -> list[dict[str, Any]]:
    """Return components as entries for `tracker_component`, including empty fields."""
    found = []
    for component in components:
        entry = {"project": project, **component.settable()}
        if component.archived is None:
            del entry["archived"]  # the server does not support it
        try:
            typed_options.check(ComponentEntry(**entry))
            found.append(entry)
        except ToolchainError as error:
            state.leave_out("component", f"{project}/{component.name}", error.message)
    return found


def _roles(
    project: str, roles: list[ProjectRole] | ToolchainError, state: ServiceState
) -> list[dict[str, Any]]:
    """Return roles as entries for `tracker_project_role`."""
    if isinstance(roles, ToolchainError):
        state.leave_out("roles", project, roles.message)
        return []
    return [{"project": project, "role": role.name, **role.actors()} for role in roles]


def _entry(project: str, version: Version) -> dict[str, Any]:
    """Return a version as an entry for `tracker_version`.

    It includes empty fields. A value that a user adds later is then drift.
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
    """Return the reason why `tracker_version` cannot manage a version, or None."""
    name = entry.get("name", "")
    if not name.strip() or name != name.strip():
        return "its name is empty, or begins or ends with a blank"
    if not all(isinstance(value, str) for value in entry.values()):
        return "one of its values is not a string"
    try:
        typed_options.check(TrackerVersionOptions(**entry))
    except ToolchainError as error:
        return error.message
    return None
