# SPDX-License-Identifier: GPL-3.0-or-later
"""Module `tracker_export`: write versions, components and roles as a desired state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeAlias

from ...core.concurrency import first_alone
from ...core.errors import ToolchainError, invalid
from ...core.module import typed_options
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.module.typed_options import Option, Positive
from ...core.operations.service_export import ExportOptions, ServiceExport, ServiceState
from ...core.progress import ProgressCounter
from ..service import SERVICE
from .project_objects import ProjectObject, same_name
from .tracker_component import ComponentEntry, ComponentKind
from .tracker_project_info import TrackerProjectInfoOperation, TrackerProjectInfoOptions
from .tracker_project_role import ProjectRole, ProjectRoleKind
from .tracker_version import DATES, NO_DATE, VersionEntry, VersionKind

_NOT_EXPORTED = (
    "Only versions, components and roles are exported, not issues, workflows and schemes.",
)
#: Error kinds for a project that the account cannot read.
_UNREADABLE = ("not_found", "permission")
#: Keys of the lists in `tracker.yml`.
_LISTS = ("versions", "components", "project_roles")
#: Versions, components and roles of a project. An error if the account may not read the roles.
_Parts: TypeAlias = tuple[
    list[ProjectObject], list[ProjectObject], list[ProjectRole] | ToolchainError
]


@dataclass(frozen=True, kw_only=True)
class TrackerExportOptions(ExportOptions):
    """Options of `tracker_export`."""

    projects: Annotated[list[str] | None, Option(segment=True)] = None
    parallel: Positive = 4


class TrackerExportOperation(ServiceExport):
    """Export the versions, components and roles of all projects, or of the given projects."""

    descriptor: ClassVar = Descriptor(SERVICE, {"read": reads("browse")})

    service = "tracker"
    choosing = ("projects",)

    def __init__(self, task: Task, options: TrackerExportOptions) -> None:
        super().__init__(task, options)
        if options.projects is not None and not options.projects:
            raise invalid(
                "projects is empty: list projects, or omit the option to export all projects"
            )
        self._options = options

    def read(self) -> ServiceState:
        state = ServiceState(not_exported=_NOT_EXPORTED)
        keys = self._options.projects
        chosen = self._all() if keys is None else list(dict.fromkeys(keys))
        count = ProgressCounter(self._task.progress, "reading the parts of projects", len(chosen))
        versions, components = VersionKind(self._task), ComponentKind(self._task)

        def read(key: str) -> tuple[str, _Parts | ToolchainError]:
            try:
                found = versions.read_project(key).objects, components.read_project(key).objects
                return key, (*found, self._roles(key))
            except ToolchainError as error:
                if keys is not None or error.kind not in _UNREADABLE:
                    raise
                return key, error
            finally:
                count.add()

        entries: dict[str, list[dict[str, Any]]] = {name: [] for name in _LISTS}
        for key, found in first_alone(self._options.parallel, read, chosen):
            if isinstance(found, ToolchainError):
                state.leave_out("project", key, found.message, unread=True)
                continue
            entries["versions"] += _versions(key, found[0], state)
            entries["components"] += _components(key, found[1], state)
            if isinstance(found[2], ToolchainError):
                state.leave_out("roles", key, found[2].message, unread=True)
            else:
                entries["project_roles"] += [
                    {"project": key, "role": role.name, **role.actors} for role in found[2]
                ]
        state.values = dict(entries)
        return state

    def _roles(self, key: str) -> list[ProjectRole] | ToolchainError:
        """Return the roles of a project, or the error: only its administrators can read them."""
        kind = ProjectRoleKind(self._task)
        try:
            ids = kind.read_project(key)
            return [kind.read(key, name, number) for name, number in ids.items()]
        except ToolchainError as error:
            if error.kind not in _UNREADABLE:
                raise
            return error

    def _all(self) -> list[str]:
        shown = TrackerProjectInfoOperation(self._task, TrackerProjectInfoOptions()).all()
        keys = [project.get("key") for project in shown]
        if not keys:
            self._task.warn("the account cannot see any project, so nothing is exported")
        return [key for key in keys if isinstance(key, str)]


def _versions(
    project: str, versions: list[ProjectObject], state: ServiceState
) -> list[dict[str, Any]]:
    """Return versions as entries for `tracker_version`.

    They include empty fields, so that a value that a user adds later is drift. A version that the
    module cannot manage is left out.
    """
    found: list[dict[str, Any]] = []
    for number, version in enumerate(versions):
        values = version.values
        released = "released" if values["released"] else "unreleased"
        entry = {
            "project": project,
            "name": version.name,
            "description": values["description"],
            **{name: values[name] or NO_DATE for name in DATES},
            "state": "archived" if values["archived"] else released,
        }
        wrong = ""
        if any(same_name(version.name, other.name) for other in versions[:number]):
            wrong = "another version has this name"
        elif not version.name.strip() or version.name != version.name.strip():
            wrong = "its name is empty, or begins or ends with a blank"
        elif not all(isinstance(value, str) for value in entry.values()):
            wrong = "one of its values is not a string"
        else:
            try:
                typed_options.check(VersionEntry(**entry))
                found.append(entry)
            except ToolchainError as error:
                wrong = error.message
        if wrong:
            state.leave_out("version", f"{project}/{version.name}", wrong)
    return found


def _components(
    project: str, components: list[ProjectObject], state: ServiceState
) -> list[dict[str, Any]]:
    """Return components as entries for `tracker_component`, including empty fields."""
    found = []
    for component in components:
        entry = {"project": project, **component.values}
        if not isinstance(component.record.get("archived"), bool):
            del entry["archived"]  # the server does not support it
        try:
            typed_options.check(ComponentEntry(**entry))
            found.append(entry)
        except ToolchainError as error:
            state.leave_out("component", f"{project}/{component.name}", error.message)
    return found
