# SPDX-License-Identifier: GPL-3.0-or-later
"""Export the server's configuration as `analysis.yml` of a desired state: `analysis_export`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...core.errors import invalid, not_found, shorten
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.operations.service_export import ExportOptions, ServiceExport, ServiceState
from ..client import AnalysisClient
from ..service import SERVICE
from .object_kinds import KINDS, PROJECTS, ROLE_ASSIGNMENTS, ROLES, USERS, Catalogue, ObjectKind

#: Fields that servers never return.
_SECRETS = "users: password"


@dataclass(frozen=True)
class ExportedConfiguration:
    """Configuration of a server.

    :param lists: option name to entries, without built-in objects
    :param omitted: names of fields that are not exported
    :param doubts: option name to the reasons for which its list may be incomplete
    """

    lists: dict[str, list[dict[str, Any]]]
    omitted: list[str]
    doubts: dict[str, list[str]]


def read(
    task: Task, client: AnalysisClient, projects: Sequence[str] | None, parallel: int
) -> Mapping[str, Any]:
    """Return the return values `config` and `omitted`, and warn about incomplete lists."""
    found = read_lists(client, projects, parallel)
    for option, doubts in found.doubts.items():
        for doubt in doubts:
            task.warn(f"exporting {option}: {doubt}")
    return {"config": found.lists, "omitted": found.omitted}


def read_lists(
    client: AnalysisClient, projects: Sequence[str] | None, parallel: int
) -> ExportedConfiguration:
    """Return the configuration of the server.

    :param projects: names of the projects to read; `None` means all
    :param parallel: maximum number of concurrent requests
    """
    catalogue = Catalogue(client, parallel=parallel)
    chosen = _selected(catalogue, projects)
    places: dict[str, list[tuple[ObjectKind, str | None]]] = {
        kind.option: [(kind, each) for each in (chosen if kind.in_project else [None])]
        for kind in KINDS
    }
    catalogue.load([place for each in places.values() for place in each])
    config: dict[str, list[dict[str, Any]]] = {}
    doubts: dict[str, list[str]] = {}
    for option, found in places.items():
        config[option] = [entry for place in found for entry in catalogue.entries(*place)]
        reported = dict.fromkeys(catalogue.listed(*place).doubt for place in found)
        if any(reported):
            doubts[option] = [doubt for doubt in reported if doubt is not None]
    if projects is not None:
        config[PROJECTS.option] = [{"name": name} for name in chosen]
        config[ROLE_ASSIGNMENTS.option] = [
            entry
            for entry in config[ROLE_ASSIGNMENTS.option]
            if entry.get("project") in (None, *chosen)
        ]
    # Those that a role lacks are false: `analysis_config` compares only listed permissions, so it
    # would not detect one that is granted later.
    roles = config[ROLES.option]
    names = dict.fromkeys(name for role in roles for name in role.get("permissions", ()))
    for role in roles:
        if "permissions" in role:
            role["permissions"] = {**dict.fromkeys(names, False), **role["permissions"]}
    omitted = [_SECRETS] if config[USERS.option] else []
    return ExportedConfiguration(config, omitted, doubts)


def _selected(catalogue: Catalogue, projects: Sequence[str] | None) -> list[str]:
    existing = list(catalogue.projects())
    if projects is None:
        return existing
    missing = [name for name in projects if name not in existing]
    if missing:
        message = f"exporting: these projects do not exist: {', '.join(missing)}"
        raise not_found(shorten(message))
    return list(dict.fromkeys(projects))


_PARALLEL = 4
_NOT_EXPORTED = "Builds and issues are not part of a desired state."
_NO_PASSWORDS = "The server does not return passwords of users."


@dataclass(frozen=True, kw_only=True)
class AnalysisExportOptions(ExportOptions):
    """The options of `analysis_export`."""

    project: list[str] | None = None


class AnalysisExportOperation(ServiceExport):
    """Exports all projects of the server, or some of them.

    A list that may be incomplete is not exported. Otherwise `purge` would delete the objects that
    it lacks, and a group without members in the list would lose its members.
    """

    descriptor: ClassVar = Descriptor(SERVICE, {"read": reads()})

    service = "analysis"
    choosing = ("project",)

    def __init__(self, task: Task, options: AnalysisExportOptions) -> None:
        super().__init__(task, options)
        if options.project is not None and not options.project:
            raise invalid(
                "project is empty: list projects, or omit the option to export all projects"
            )
        self._projects = options.project
        self._client = AnalysisClient(task, connections=_PARALLEL)

    def read(self) -> ServiceState:
        self._task.progress("reading the configuration of the code analysis server")
        found = read_lists(self._client, self._projects, _PARALLEL)
        of_users = (_NO_PASSWORDS,) if found.lists[USERS.option] else ()
        state = ServiceState(not_exported=(*of_users, _NOT_EXPORTED))
        for kind, doubts in found.doubts.items():
            state.leave_out("list", kind, "; ".join(doubts), unread=True)
        state.values = {
            kind: entries
            for kind, entries in found.lists.items()
            if entries and kind not in found.doubts
        }
        return state
