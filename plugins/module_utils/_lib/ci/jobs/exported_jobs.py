# SPDX-License-Identifier: GPL-3.0-or-later
"""Export jobs and folders as entries for `ci_job`, without encrypted secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from ...core.address import path
from ...core.errors import ToolchainError
from ...core.globs import Patterns
from ...core.json_text import as_text
from ..client import FOLDER, ServerObjects, object_of, objects, server_of
from ..export_run import ExportRun
from ..job_address import Job, job_of
from . import configuration, parts_of_others
from .kept_secrets import without_secrets

_DEEPEST = 50
#: Empty member of a job, which the server adds after a read [ci-15].
_ACTIONS = re.compile(r"\n  <actions/>\n")


@dataclass(frozen=True)
class _Item:
    """A job or folder on the server.

    :param names: name of each level, as the server stores it
    :param stem: path of the exported file without extension
    :param kind: class name
    :param generated_count: number of jobs that the server has generated in it
    """

    job: Job
    names: tuple[str, ...]
    stem: str
    kind: str
    generated_count: int


class ExportedJobs:
    """Exports the jobs that match the patterns.

    :param jobs: patterns of the jobs and folders to export; `None` means all
    :param exclude: patterns of the jobs and folders to skip
    """

    def __init__(self, run: ExportRun, jobs: Sequence[str] | None, exclude: Sequence[str]) -> None:
        self._run, self._all, self._none = run, jobs is None, jobs == []
        self._jobs, self._exclude = Patterns("jobs", jobs), Patterns("exclude", exclude)
        self._server = server_of(run.task, connections=max(10, run.parallel))
        #: Exported folders, without computed folders. `entries` fills the list.
        self.folders: list[Job] = []

    def entries(self) -> list[dict[str, Any]]:
        """Return the entries for `ci_job`, parent folders first, and fill `folders`."""
        items = [] if self._none else list(self._below((), "ci/jobs"))
        found = []
        for item, text in self._run.read_each("job", items, self._text, lambda item: item.job.name):
            found.append(self._entry(item, text))
        return found

    def warnings(self) -> Iterator[str]:
        """Yield a warning for each pattern that matches nothing."""
        for patterns in (self._jobs, self._exclude):
            yield from patterns.warnings("nothing that the account can see")

    def _text(self, item: _Item) -> str | None:
        purpose = f"exporting the job '{item.job.name}'"
        return ServerObjects(self._server).text(purpose, item.job.path)

    def _entry(self, item: _Item, text: str) -> dict[str, Any]:
        """Return the entry of a job for `ci_job`, and add its configuration as a file."""
        own = parts_of_others.exported(_ACTIONS.sub("\n", text, count=1))
        stripped, _count = without_secrets(own)
        is_folder = configuration.kind_of(stripped) == FOLDER
        if item.generated_count:
            name, reason = f"{item.job.name}/*", "created by the server itself"
            self._run.state.leave_out("job", name, f"{item.generated_count} jobs {reason}")
        if is_folder:
            self.folders.append(item.job)
        src = f"{item.stem}.xml"
        self._run.state.files[src] = stripped
        return {"job": item.job.name, "src": src, **({"folder": True} if is_folder else {})}

    def _below(self, parents: tuple[str, ...], stem: str) -> Iterator[_Item]:
        """Yield the jobs of a folder and its subfolders that the patterns select, parents first.

        :param parents: names of the folder and its parents
        :param stem: path of the folder in the export
        """
        for shown in self._listed(parents):
            names = (*parents, as_text(shown.get("name")))
            item = self._item(names, stem, shown)
            if item is None:
                reason = "ci_job does not support its name"
                self._run.state.leave_out("job", "/".join(names), reason)
                continue
            if _is_named(item, self._exclude):
                continue
            if self._all or _is_named(item, self._jobs):
                yield item
            if item.kind == FOLDER and len(names) < _DEEPEST:
                yield from self._below(names, item.stem)

    def _listed(self, parents: tuple[str, ...]) -> list[Mapping[str, Any]]:
        purpose = f"listing the jobs of {'/'.join(parents) or 'the server'}"
        folder_path = "".join(f"job/{path(name)}/" for name in parents)
        query = {"tree": "jobs[name,_class,jobs[name]]"}
        try:
            response = self._server.read(purpose, f"{folder_path}api/json", query=query)
        except ToolchainError as error:
            if not parents or error.kind not in ("permission", "not_found"):
                raise
            self._run.state.leave_out("job", f"{'/'.join(parents)}/*", error.message)
            return []
        jobs = object_of(response).get("jobs")
        if not isinstance(jobs, list):
            raise response.error("protocol", "the response has no list of jobs: check url")
        return objects(jobs)

    def _item(self, names: tuple[str, ...], stem: str, shown: Mapping[str, Any]) -> _Item | None:
        """Return a job or folder, or `None` if the option `job` of `ci_job` cannot name it."""
        kind = str(shown.get("_class", ""))
        text = "/".join(names)
        try:
            job = job_of(text, self._server.connection.url)
            same = job.path == "/".join(f"job/{path(name)}" for name in names)
        except (ToolchainError, UnicodeError):
            return None
        if not same:
            return None
        generated = 0 if kind == FOLDER else len(objects(shown.get("jobs")))
        return _Item(job, names, self._run.names.name(stem, unquote(names[-1])), kind, generated)


def _is_named(item: _Item, patterns: Patterns) -> bool:
    """Return whether a pattern matches the job or one of its parent folders."""
    depths = range(1, len(item.names) + 1)
    return patterns.fits(*("/".join(item.names[:depth]) for depth in depths))
