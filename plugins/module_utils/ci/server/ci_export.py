# SPDX-License-Identifier: GPL-3.0-or-later
"""Export the state of the server as `ci.yml` of a desired state: `ci_export` [C9]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from ...core.errors import ToolchainError
from ...core.export.service_export import ExportOptions, ServiceExport, ServiceState
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.module.typed_options import Positive
from ..casc.exported_configuration import exported_configuration
from ..client import server_of
from ..credentials.exported_credentials import exported_credentials
from ..export_run import ExportRun
from ..jobs.exported_jobs import ExportedJobs
from ..nodes.exported_nodes import exported_nodes
from ..plugins import plugin_list
from ..plugins.baseline import least_version
from ..plugins.plugin_list import Plugin
from ..views.exported_views import exported_views

_NOT_EXPORTED = (
    "The server does not store scripts: add the scripts that should run to 'scripts'.",
    "Secrets that the server encrypts stay there; the jobs have '(kept by the server)' instead.",
    "Credentials of users and of multibranch projects are not exported.",
    "The view of all jobs, which every server and folder has, is not exported.",
)
#: Exporters by the name of their list in `ci.yml`, which is also the name of their option. An
#: exporter returns the entries, or `None` if they cannot be read.
_EXPORTERS: Mapping[str, Callable[[ExportRun], list[dict[str, Any]] | None]] = {
    "configuration": exported_configuration,
    "credentials": exported_credentials,
    "nodes": exported_nodes,
    "views": exported_views,
}


@dataclass(frozen=True, kw_only=True)
class CiExportOptions(ExportOptions):
    """The options of `ci_export`. `None` exports a kind if the account may read it."""

    jobs: list[str] | None = None
    exclude: list[str] = field(default_factory=list)
    plugins: bool = True
    configuration: bool | None = None
    credentials: bool | None = None
    nodes: bool | None = None
    views: bool | None = None
    parallel: Positive = 4


class CiExportOperation(ServiceExport):
    """Exports the jobs that match the patterns, and the other selected kinds of objects."""

    descriptor: ClassVar = Descriptor("ci", {"read": reads()})

    service = "ci"

    def __init__(self, task: Task, options: CiExportOptions) -> None:
        super().__init__(task, options)
        self._options = options
        self._chosen = {name: getattr(options, name) for name in _EXPORTERS}

    def read(self) -> ServiceState:
        state = ServiceState(untold=_NOT_EXPORTED)
        if self._options.plugins:
            state.values["plugins"] = self._plugins(state)
        run = ExportRun(self._task, state, self._options.parallel)
        exported = ExportedJobs(run, self._options.jobs, self._options.exclude)
        jobs = exported.entries()
        for warning in exported.warnings():
            self._task.warn(warning)
        if self._options.jobs != []:
            state.values["jobs"] = jobs
        for name, kind in _EXPORTERS.items():
            chosen = self._chosen[name]
            kind_run = replace(run, folders=exported.folders, requested=chosen is True)
            entries = None if chosen is False else kind(kind_run)
            if entries is not None:
                state.values[name] = entries
        run.require_complete()
        return state

    def _plugins(self, state: ServiceState) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = []
        for plugin in plugin_list.read(server_of(self._task)):
            if plugin.deleted is True:
                state.leave_out(
                    "plugin", plugin.short_name, "it will be removed when the server restarts"
                )
            elif plugin.works:
                entries.append(_working(plugin, state))
            elif plugin.enabled is False:
                entries.append({"name": plugin.short_name, "state": "disabled"})
            else:
                state.leave_out("plugin", plugin.short_name, "it is not loaded")
        return entries


def _working(plugin: Plugin, state: ServiceState) -> dict[str, Any]:
    """Return the entry of an active plugin. Its version is the minimum version, unless it cannot be
    compared.
    """
    try:
        least = least_version(plugin.version, "version")
    except ToolchainError as error:
        state.leave_out("version", plugin.short_name, error.message)
        least = None
    return {"name": plugin.short_name, **({"version": least} if least else {})}
