# SPDX-License-Identifier: GPL-3.0-or-later
"""`ci_export`: save jobs and plugins of the server as `ci.yml` of a desired state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import unquote

from ...core.address import path
from ...core.concurrency import bounded
from ...core.errors import ToolchainError, invalid
from ...core.export.file_names import FileNames
from ...core.export.service_export import ExportOptions, ServiceExport, ServiceState
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.paths.globs import Patterns
from ...core.progress import ProgressCounter
from ..client import object_of, objects, server_of
from ..job_address import Job, job_of
from ..jobs import configuration
from ..jobs.job_store import JobStore
from ..jobs.kept_secrets import without_secrets
from ..plugins import plugin_list
from ..plugins.baseline import least_version
from ..plugins.plugin_list import Plugin
from ..xml_reader import UnreadableXml

_FOLDER = "com.cloudbees.hudson.plugins.folder.Folder"
_UNTOLD = (
    "Scripts are not kept by the server: write those that have to run into scripts.",
    "Secrets stay on the server: '(kept by the server)' stands in place of each in the jobs.",
    "Credentials, nodes, views and the configuration of the server are not exported.",
)
_DEEPEST = 50


@dataclass(frozen=True, kw_only=True)
class CiExportOptions(ExportOptions):
    """The options of `ci_export`."""

    jobs: list[str] | None = None
    exclude: list[str] = field(default_factory=list)
    plugins: bool = True
    parallel: int = 4


@dataclass(frozen=True)
class _Item:
    """A job or folder. `stem`: its file, without the ending; `made_below`: number of jobs that the
    server creates in it.
    """

    job: Job
    names: tuple[str, ...]
    stem: str
    kind: str
    made_below: int


class CiExportOperation(ServiceExport):
    """Write the jobs that match the patterns, and the plugins."""

    descriptor: ClassVar = Descriptor("ci", {"read": reads()})

    service = "ci"

    def __init__(self, task: Task, options: CiExportOptions) -> None:
        super().__init__(task, options)
        if options.parallel < 1:
            raise invalid("parallel: at least one job at a time is needed")
        self._options = options
        self._server = server_of(task, connections=max(10, options.parallel))
        self._names = FileNames()
        self._jobs = Patterns("jobs", options.jobs)
        self._exclude = Patterns("exclude", options.exclude)

    def read(self) -> ServiceState:
        state = ServiceState(untold=_UNTOLD)
        if self._options.plugins:
            self._read_plugins(state)
        if self._options.jobs != []:
            self._read_jobs(state)
        for patterns in (self._jobs, self._exclude):
            for warning in patterns.warnings("nothing that the account sees"):
                self._task.warn(warning)
        return state

    def _read_plugins(self, state: ServiceState) -> None:
        wanted: list[dict[str, Any]] = []
        for plugin in plugin_list.read(self._server):
            if plugin.deleted is True:
                state.leave_out("plugin", plugin.short_name, "the next start removes it")
            elif plugin.works:
                wanted.append(_working(plugin, state))
            elif plugin.enabled is False:
                wanted.append({"name": plugin.short_name, "state": "disabled"})
            else:
                state.leave_out("plugin", plugin.short_name, "it is not loaded")
        state.values["plugins"] = wanted

    # -- jobs ----------------------------------------------------------------------------------

    def _read_jobs(self, state: ServiceState) -> None:
        items = list(self._below((), "ci/jobs", state))
        count = ProgressCounter(
            self._task.progress, "reading the configurations of jobs", len(items)
        )

        def read(item: _Item) -> str | ToolchainError:
            try:
                return self._configuration(item)
            finally:
                count.add()

        entries = []
        found = bounded(self._options.parallel, read, items)
        for item, text in zip(items, found, strict=True):
            entry = self._entry(item, text, state)
            entries += [entry] if entry else []
        state.values["jobs"] = entries

    def _configuration(self, item: _Item) -> str | ToolchainError:
        """Return the configuration, or the error if only this job cannot be exported."""
        store = JobStore(self._server, item.job, f"exporting the job '{item.job.name}'")
        try:
            text = store.configuration()
        except ToolchainError as error:
            if error.kind not in ("permission", "protocol"):
                raise
            return error
        return ToolchainError("not_found", "it is gone, or not visible") if text is None else text

    def _entry(
        self, item: _Item, text: str | ToolchainError, state: ServiceState
    ) -> dict[str, Any] | None:
        """Return the entry of a job for `ci_job`; its configuration is a separate file."""
        try:
            if isinstance(text, ToolchainError):
                raise text
            kept, _count = without_secrets(text)
            is_folder = configuration.kind_of(kept) == _FOLDER
            kept.encode("utf-8")
        except (ToolchainError, UnreadableXml, UnicodeEncodeError) as error:
            said = error.message if isinstance(error, ToolchainError) else str(error)
            state.leave_out("job", item.job.name, said)
            return None
        if item.made_below:
            name, reason = f"{item.job.name}/*", "made by the server itself"
            state.leave_out("job", name, f"{item.made_below} jobs {reason}")
        src = f"{item.stem}.xml"
        state.files[src] = kept
        return {"job": item.job.name, "src": src, **({"folder": True} if is_folder else {})}

    def _below(self, above: tuple[str, ...], stem: str, state: ServiceState) -> Iterator[_Item]:
        """Yield the jobs of a folder recursively, parents first, without the jobs that are left
        out.
        """
        for shown in self._listed(above, state):
            names = (*above, str(shown.get("name")))
            item = self._item(names, stem, shown)
            if item is None:
                state.leave_out("job", "/".join(names), "its name cannot be given to ci_job")
                continue
            if _is_named(item, self._exclude):
                continue
            if self._options.jobs is None or _is_named(item, self._jobs):
                yield item
            if item.kind == _FOLDER and len(names) < _DEEPEST:
                yield from self._below(names, item.stem, state)

    def _listed(self, above: tuple[str, ...], state: ServiceState) -> list[Mapping[str, Any]]:
        what = f"listing the jobs of {'/'.join(above) or 'the server'}"
        place = "".join(f"job/{path(name)}/" for name in above)
        query = {"tree": "jobs[name,_class,jobs[name]]"}
        try:
            response = self._server.read(what, f"{place}api/json", query=query)
        except ToolchainError as error:
            if not above or error.kind not in ("permission", "not_found"):
                raise
            state.leave_out("job", f"{'/'.join(above)}/*", error.message)
            return []
        jobs = object_of(response).get("jobs")
        if not isinstance(jobs, list):
            raise response.error("protocol", "there is no list of jobs in the answer: check url")
        return objects(jobs)

    def _item(self, names: tuple[str, ...], stem: str, shown: Mapping[str, Any]) -> _Item | None:
        """Return a job or folder; `None` if the option `job` of `ci_job` cannot name it."""
        kind = str(shown.get("_class", ""))
        text = "/".join(names)
        try:
            job = job_of(text, self._server.connection.url)
            same = job.path == "/".join(f"job/{path(name)}" for name in names)
        except (ToolchainError, UnicodeError):
            return None
        if not same:
            return None
        made = 0 if kind == _FOLDER else len(objects(shown.get("jobs")))
        return _Item(job, names, self._names.name(stem, unquote(names[-1])), kind, made)


def _is_named(item: _Item, patterns: Patterns) -> bool:
    """Return whether a pattern matches the job, or a folder above it."""
    depths = range(1, len(item.names) + 1)
    return patterns.fits(*("/".join(item.names[:depth]) for depth in depths))


def _working(plugin: Plugin, state: ServiceState) -> dict[str, Any]:
    """Return the entry of an active plugin, with its version as the minimum if it can
    be compared.
    """
    try:
        least = least_version(plugin.version, "version")
    except ToolchainError as error:
        state.leave_out("version", plugin.short_name, error.message)
        least = None
    return {"name": plugin.short_name, **({"version": least} if least else {})}
