# SPDX-License-Identifier: GPL-3.0-or-later
"""`ci_artifact`: save the artifacts of a build, and its whole console log, as files [C8.6]."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

from ...core.concurrency import spread
from ...core.destination import places
from ...core.errors import ToolchainError, invalid
from ...core.files import require_replaceable
from ...core.http.file_download import Fetched
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.module.typed_options import Option, PathText
from ...core.paths.globs import Patterns
from ...core.plan import Plan
from ..builds import records
from ..client import object_of, server_of
from ..job_address import JobName, build_path, build_segment, job_of
from ..permissions import SEES_JOB
from ..waiting import require_at_least
from .build_artifacts import FIELDS, Artifact, ArtifactSource, artifacts_of
from .console_file import ConsoleFile, PresentFile, local_file


@dataclass(frozen=True, kw_only=True)
class CiArtifactOptions:
    """The options of `ci_artifact`."""

    job: JobName
    build: str = "lastSuccessfulBuild"
    patterns: Annotated[list[str] | None, Option(empty=False)] = None
    dest: PathText | None = None
    flat: bool = False
    console: PathText | None = None
    parallel: int = 4
    allow_empty: bool = False

    constraints: ClassVar[dict[str, Any]] = {
        "required_one_of": [("dest", "console")],
        "required_by": {"patterns": ("dest",)},
    }


@dataclass(frozen=True)
class FetchedFile:
    """An artifact with its local path, the present file, and the planned action."""

    source: ArtifactSource
    artifact: Artifact
    place: str
    present: PresentFile | None
    action: str

    def as_dict(self, fetched: Fetched | None = None) -> dict[str, Any]:
        known = fetched or (self.present if self.action == "unchanged" else None)
        return {
            "path": self.artifact.path,
            "dest": self.place,
            "size": None if known is None else known.size,
            "sha256": None if known is None else known.sha256,
            "action": self.action,
        }


class CiArtifactOperation:
    """Fetch the files that are missing or differ from the build."""

    descriptor: ClassVar = Descriptor("ci", {"read": reads(*SEES_JOB), "fetch": reads(*SEES_JOB)})

    def __init__(self, task: Task, options: CiArtifactOptions) -> None:
        self._task, self._options = task, options
        require_at_least("parallel", options.parallel, 1)
        dest = options.dest
        if dest is not None and os.path.lexists(dest) and not os.path.isdir(dest):
            raise invalid(f"dest must be a folder, but is '{dest}'")
        if (options.console or "").endswith("/"):
            raise invalid(
                f"console is '{options.console}', which names a folder: name a file in it"
            )
        if options.console is not None and os.path.lexists(options.console):
            require_replaceable(options.console, os.lstat(options.console))
        self._job = job_of(options.job, task.connection.url)
        self._segment = build_segment(options.build)
        self._server = server_of(task, connections=options.parallel)
        self._patterns = Patterns("patterns", options.patterns)
        self._files: list[FetchedFile] = []
        self._console: ConsoleFile | None = None
        self._console_action = "unchanged"

    def plan(self) -> Plan:
        shown, number = self._read()
        path = build_path(self._job, number)
        what = f"build #{number} of the job '{self._job.name}'"
        source = ArtifactSource(self._server, path, what)
        targets = {} if self._options.dest is None else self._targets(shown, what)
        if self._options.console is not None:
            self._plan_console(self._options.console, path, what, targets)
        decided = partial(_decided, source)
        files = list(targets.items())
        self._files = spread(self._options.parallel, decided, files)
        build = records.shown(shown, self._job, self._task.connection.url)
        result = {"build": build, **self._result({}, planned=True)}
        before, after = self._sides()
        if before == after:
            return Plan({}, {}, result=result)
        return Plan(before, after, "update" if before else "create", result=result)

    def _read(self) -> tuple[Mapping[str, Any], int]:
        """Return the build with its artifacts, and its number: a permalink may point to another
        build later.
        """
        what = f"reading build {self._segment} of the job '{self._job.name}'"
        response = self._server.read(
            what,
            f"{self._job.path}/{self._segment}/api/json",
            query={"tree": f"{records.BUILD_FIELDS},{FIELDS}"},
            expect=(200, 404),
        )
        if response.status == 404:
            raise records.no_build(self._server, what, self._job, self._segment)
        shown = records.typed(object_of(response))
        number = records.number_of(shown.get("number", self._segment))
        if number is None:
            raise response.error("protocol", "the server does not report the number of the build")
        if records.is_running(shown):
            self._task.warn(f"{what}: it is still running, so that files and log are incomplete")
        return shown, number

    def _targets(self, shown: Mapping[str, Any], what: str) -> dict[Artifact, str]:
        """Return the chosen artifacts with their local paths."""
        if not isinstance(shown.get("artifacts"), list):
            raise ToolchainError("rejected", f"the server does not show the artifacts of {what}")
        artifacts = artifacts_of(shown)
        is_any = self._options.patterns is None
        chosen = [one for one in artifacts if is_any or self._patterns.fits(one.path)]
        for warning in self._patterns.warnings(f"no artifact of {what}"):
            self._task.warn(warning)
        if not chosen and not self._options.allow_empty:
            has = f"it has {len(artifacts)} others" if artifacts else "it has none"
            raise ToolchainError(
                "not_found", f"{what} has no artifact that is meant: {has}; allow_empty allows that"
            )
        paths = [artifact.path for artifact in chosen]
        found = places(self._options.dest or "", paths, flat=self._options.flat)
        return {artifact: found[artifact.path] for artifact in chosen}

    def _plan_console(
        self, place: str, path: str, what: str, targets: Mapping[Artifact, str]
    ) -> None:
        if os.path.abspath(place) in map(os.path.abspath, targets.values()):
            raise invalid(f"console and an artifact would be the same file {place}")
        self._console = ConsoleFile(self._server, path, what, place)
        if self._console.differs():
            self._console_action = "downloaded"

    def _sides(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the fetched files by path, before and after the task."""
        coming = [(each.place, each.present) for each in self._files if each.action != "unchanged"]
        if self._console is not None and self._console_action != "unchanged":
            coming.append((self._console.place, self._console.present))
        build = {"job": self._job.name, "build": self._segment}
        before = {
            place: {"size": file.size, "sha256": file.sha256}
            for place, file in coming
            if file is not None
        }
        return before, {place: {"from": build} for place, _file in coming}

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        done: dict[str, Fetched] = {}

        def save(file: FetchedFile) -> None:
            done[file.place] = file.source.save(file.artifact, file.place)
            self._task.progress(f"{len(done)} of {len(coming)} artifacts: {file.place}")

        coming = [each for each in self._files if each.action == "downloaded"]
        try:
            spread(self._options.parallel, save, coming)
            if self._console is not None and self._console_action == "downloaded":
                done[self._console.place] = self._console.save()
        except ToolchainError as error:
            error.result.update(self._result(done), changed=bool(done))
            raise
        return self._result(done)

    def _result(self, done: Mapping[str, Fetched], *, planned: bool = False) -> dict[str, Any]:
        files = [
            each.as_dict(done.get(each.place))
            for each in self._files
            if planned or each.action == "unchanged" or each.place in done
        ]
        console = self._console
        fetched = None if console is None else done.get(console.place)
        action = self._console_action
        is_reported = console is not None and (
            planned or action == "unchanged" or fetched is not None
        )
        return {
            "files": files,
            "console": console.as_dict(action, fetched) if console and is_reported else None,
            "downloaded_bytes": sum(each.size for each in done.values()),
        }


def _decided(source: ArtifactSource, target: tuple[Artifact, str]) -> FetchedFile:
    artifact, place = target
    present = local_file(place)
    same = present is not None and source.is_at(artifact, place, present.sha256)
    return FetchedFile(source, artifact, place, present, "unchanged" if same else "downloaded")
