# SPDX-License-Identifier: GPL-3.0-or-later
"""Export the server's configuration as `analysis.yml` of a desired state: `analysis_export`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...core.errors import invalid
from ...core.export.service_export import ExportOptions, ServiceExport, ServiceState
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ..client import AnalysisClient
from .export import read_lists
from .object_kinds import USERS

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

    descriptor: ClassVar = Descriptor("analysis", {"read": reads()})

    service = "analysis"

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
        state = ServiceState(untold=(*of_users, _NOT_EXPORTED))
        for kind, doubts in found.doubts.items():
            state.leave_out("list", kind, "; ".join(doubts))
        state.values = {
            kind: entries
            for kind, entries in found.lists.items()
            if entries and kind not in found.doubts
        }
        return state
