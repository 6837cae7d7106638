# SPDX-License-Identifier: GPL-3.0-or-later
"""Save the artifacts and the console log of a build as files: `ci_artifact` [C8.6]."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

from ...core.concurrency import spread
from ...core.destination import safe_paths
from ...core.errors import ToolchainError, invalid
from ...core.files import require_replaceable
from ...core.http.file_download import Fetched
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.module.typed_options import Option, PathText, Positive
from ...core.paths.globs import Patterns
from ...core.plan import Plan
from ..builds import records
from ..client import object_of, server_of
from ..job_address import JobName, build_path, build_segment, job_of
from ..permissions import SEES_JOB
from .build_artifacts import FIELDS, Artifact, ArtifactSource, artifacts_of
from .console_file import FetchedFile, console_file, local_file


@dataclass(frozen=True, kw_only=True)
class CiArtifactOptions:
    """The options of `ci_artifact`."""

    job: JobName
    build: str = "lastSuccessfulBuild"
    patterns: Annotated[list[str] | None, Option(empty=False)] = None
    dest: PathText | None = None
    flat: bool = False
    console: PathText | None = None
    parallel: Positive = 4
    allow_empty: bool = False

    constraints: ClassVar[dict[str, Any]] = {
        "required_one_of": [("dest", "console")],
        "required_by": {"patterns": ("dest",)},
    }


@dataclass(frozen=True)
class FetchPlan:
    """The files that a task manages. `console` is `None` if the task does not save the log."""

    files: list[FetchedFile]
    console: FetchedFile | None

    @property
    def downloads(self) -> list[FetchedFile]:
        files = [*self.files, *([self.console] if self.console else [])]
        return [file for file in files if file.action == "downloaded"]

    def result(self, done: Mapping[str, Fetched], *, planned: bool = False) -> dict[str, Any]:
        """Return the values for the result.

        :param done: downloaded files by local path
        :param planned: whether to include files that are not downloaded yet
        """

        def is_reported(file: FetchedFile) -> bool:
            return planned or file.action == "unchanged" or file.place in done

        files = [file.as_dict(done.get(file.place)) for file in self.files if is_reported(file)]
        console = self.console if self.console and is_reported(self.console) else None
        return {
            "files": files,
            "console": console and console.as_dict(done.get(console.place)),
            "downloaded_bytes": sum(file.size for file in done.values()),
        }


class CiArtifactOperation:
    """Downloads the files that are missing or differ from the build."""

    descriptor: ClassVar = Descriptor("ci", {"read": reads(*SEES_JOB), "fetch": reads(*SEES_JOB)})

    def __init__(self, task: Task, options: CiArtifactOptions) -> None:
        self._task, self._options = task, options
        dest = options.dest
        if dest is not None and os.path.lexists(dest) and not os.path.isdir(dest):
            raise invalid(f"dest '{dest}' is not a folder: set dest to a folder")
        if (options.console or "").endswith("/"):
            raise invalid(
                f"console is '{options.console}', which is a folder: set it to the path of a file"
            )
        if options.console is not None and os.path.lexists(options.console):
            require_replaceable(options.console, os.lstat(options.console))
        self._job = job_of(options.job, task.connection.url)
        self._segment = build_segment(options.build)
        self._server = server_of(task, connections=options.parallel)
        self._patterns = Patterns("patterns", options.patterns)

    def plan(self) -> Plan:
        shown, number = self._read()
        path = build_path(self._job, number)
        purpose = f"build #{number} of the job '{self._job.name}'"
        source = ArtifactSource(self._server, path, purpose)
        targets = {} if self._options.dest is None else self._targets(shown, purpose)
        place, console = self._options.console, None
        if place is not None:
            if os.path.abspath(place) in map(os.path.abspath, targets.values()):
                raise invalid(f"console: {place} is also the file of an artifact: set another path")
            console = console_file(self._server, path, purpose, place)
        compare = partial(_compared, source)
        files = spread(self._options.parallel, compare, list(targets.items()))
        fetches = FetchPlan(files, console)
        build = records.shown(shown, self._job, self._task.connection.url)
        result = {"build": build, **fetches.result({}, planned=True)}
        before, after = self._before_and_after(fetches)
        if before == after:
            return Plan({}, {}, result=result)
        return Plan(before, after, "update" if before else "create", result=result, data=fetches)

    def _read(self) -> tuple[Mapping[str, Any], int]:
        """Return the build with its artifacts, and its number.

        Later requests use the number, because a permalink may then refer to another build.
        """
        purpose = f"reading build {self._segment} of the job '{self._job.name}'"
        fields = f"{records.BUILD_FIELDS},{FIELDS}"
        response = records.build_response(self._server, purpose, self._job, self._segment, fields)
        shown = records.typed(object_of(response))
        if records.is_running(shown):
            self._task.warn(
                f"{purpose}: the build is still running, so its files and log are incomplete"
            )
        return shown, records.number_in(response, self._segment)

    def _targets(self, shown: Mapping[str, Any], purpose: str) -> dict[Artifact, str]:
        """Return the artifacts that the patterns select, with their local paths."""
        if not isinstance(shown.get("artifacts"), list):
            raise ToolchainError(
                "rejected", f"the response does not contain the artifacts of {purpose}"
            )
        artifacts = artifacts_of(shown)
        is_any = self._options.patterns is None
        chosen = [
            artifact for artifact in artifacts if is_any or self._patterns.fits(artifact.path)
        ]
        for warning in self._patterns.warnings(f"no artifact of {purpose}"):
            self._task.warn(warning)
        if not chosen and not self._options.allow_empty:
            count = f"{len(artifacts)} others" if artifacts else "none"
            raise ToolchainError(
                "not_found",
                f"{purpose} has no matching artifact (it has {count}): change patterns, or set"
                " allow_empty: true",
            )
        paths = [artifact.path for artifact in chosen]
        found = safe_paths(self._options.dest or "", paths, flat=self._options.flat)
        return {artifact: found[artifact.path] for artifact in chosen}

    def _before_and_after(self, fetches: FetchPlan) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the files to download for the diff, by local path, before and after the task."""
        build = {"job": self._job.name, "build": self._segment}
        before = {
            file.place: {"size": file.present.size, "sha256": file.present.sha256}
            for file in fetches.downloads
            if file.present is not None
        }
        return before, {file.place: {"from": build} for file in fetches.downloads}

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        fetches: FetchPlan = plan.data
        done: dict[str, Fetched] = {}

        def save(file: FetchedFile) -> None:
            done[file.place] = file.save()
            self._task.progress(f"{len(done)} of {len(downloads)} artifacts: {file.place}")

        downloads = [file for file in fetches.files if file.action == "downloaded"]
        console = fetches.console
        try:
            spread(self._options.parallel, save, downloads)
            if console is not None and console.action == "downloaded":
                done[console.place] = console.save()
        except ToolchainError as error:
            error.result.update(fetches.result(done), changed=bool(done))
            raise
        return fetches.result(done)


def _compared(source: ArtifactSource, target: tuple[Artifact, str]) -> FetchedFile:
    artifact, place = target
    present = local_file(place)
    same = present is not None and source.is_at(artifact, place, present.sha256)
    save = partial(source.save, artifact, place)
    return FetchedFile(place, present, "unchanged" if same else "downloaded", save, artifact.path)
