# SPDX-License-Identifier: GPL-3.0-or-later
"""Start builds, unless they exist already, and wait for their results: `ci_job_build` [C3.1]."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from ...core.concurrency import bounded, first_alone
from ...core.errors import ToolchainError
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.task import Task
from ...core.module.typed_options import Positive
from ...core.operations.objects import failure_of
from ...core.plan import Plan
from ...core.progress import PollInterval, PollTimeout
from ..client import BUILD, SEES_JOB, server_of
from ..service import SERVICE
from ..waiting import PollingFactory, interruptible
from .build_request import BuildEntry, BuildOptions, BuildRequest
from .build_watcher import BuildWatcher
from .requested_build import RequestedBuild
from .trigger import BuildClaims

Item = TypeVar("Item")
Done = TypeVar("Done")


@dataclass(frozen=True, kw_only=True)
class CiJobBuildOptions(BuildOptions):
    """The options of `ci_job_build`."""

    builds: list[BuildEntry] | None = None
    parallel: Positive = 4

    constraints: ClassVar[dict[str, Any]] = {
        "required_one_of": [("job", "builds")],
        "mutually_exclusive": [
            *((name, "builds") for name in ("job", "queue_id", "build", "parameters", "files")),
        ],
    }


class CiJobBuildOperation:
    """Runs a single build, or the builds of the option `builds` concurrently.

    A failed build does not stop others.

    :param make_polling: creates a `PollInterval` from a timeout and a maximum pause in seconds
    """

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {
            **dict.fromkeys(
                ("start", "parameters", "many"), writes(*SEES_JOB, unforeseen=(BUILD,))
            ),
            **dict.fromkeys(("queue item", "follow", "result", "log", "join"), reads(*SEES_JOB)),
        },
        kind="job",
        name="{job}",
    )

    def __init__(
        self, task: Task, options: CiJobBuildOptions, make_polling: PollingFactory = PollInterval
    ) -> None:
        self._task, self._options, self._make_polling = task, options, make_polling
        self._server, self._listed = server_of(task), options.builds is not None
        self._requests = [self._request(options)] if options.builds is None else []
        defaults = replace(options, builds=None)
        for index, entry in enumerate(options.builds or ()):
            try:
                self._requests.append(self._request(entry.merged_with(defaults)))
            except ToolchainError as error:
                error.message = f"builds[{index}]: {error.message}"
                raise

    def _request(self, options: BuildOptions) -> BuildRequest:
        return BuildRequest(self._task, self._server, options, self._make_polling)

    def lock_names(self) -> list[str]:
        """Return the names of the jobs for the locks of the run."""
        return [request.job.name for request in self._requests]

    def plan(self) -> Plan:
        builds = self._read()
        to_start = [build for build in dict.fromkeys(builds) if build.resolved.outstanding]
        self._validate([build for build in builds if build.over])
        failure = self._failure(builds, changed=bool(to_start))
        if failure is not None and not self._listed:
            raise failure
        wanted = [
            {"job": build.job.name, "parameters": build.resolved.wanted.shown} for build in to_start
        ]
        plan = Plan({}, {}, waits=any(build.open and build.joined for build in builds))
        if wanted:
            after = {"builds": wanted} if self._listed else {"build": wanted[0]}
            plan = Plan({}, after, "run")
        return replace(plan, result=self._result(builds), failure=failure, data=builds)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        """Start the builds and wait for all. Raises a single error if any build failed."""
        builds: Sequence[RequestedBuild] = plan.data
        polling = self._make_polling(self._options.wait_timeout, self._options.poll_interval)
        with interruptible() as say:
            try:
                self._start([b for b in dict.fromkeys(builds) if b.resolved.outstanding])
                self._task.unlock()
                if self._options.wait:
                    self._follow([build for build in dict.fromkeys(builds) if build.open], polling)
            except KeyboardInterrupt:
                self._interrupted(builds, say)
        failure = self._failure(builds, changed=any(build.started for build in builds))
        if failure is not None:
            raise failure
        return self._result(builds)

    def predict(self, plan: Plan) -> None:
        """Record the builds that would be started, for later tasks in check mode that wait for
        them.
        """
        for build in plan.after.get("builds", [plan.after.get("build")]):
            self._task.predictions.add("build", build["job"])

    def _read(self) -> list[RequestedBuild]:
        """Read every job once, and return a build per request.

        With `unless_successful`, requests of the same build share a build.
        """
        sources: dict[Hashable, list[BuildRequest]] = {}
        for request in self._requests:
            sources.setdefault(request.source, []).append(request)
        resolved = map(iter, self._each(BuildRequest.resolve, list(sources.values())))
        following = dict(zip(sources, resolved, strict=True))
        found = [next(following[request.source]) for request in self._requests]
        known: dict[Hashable, RequestedBuild] = {}
        for each in found:
            if each.key not in known:
                known[each.key] = RequestedBuild(self._task, self._server, each, self._make_polling)
        return [known[each.key] for each in found]

    def _each(self, work: Callable[[Item], Done], items: Sequence[Item]) -> list[Done]:
        """Call `work` for all items at once. A single call runs in this thread, so that Ctrl-C ends
        it.
        """
        return list(
            map(work, items) if len(items) == 1 else bounded(self._options.parallel, work, items)
        )

    def _start(self, builds: Sequence[RequestedBuild]) -> None:
        claims = BuildClaims(build.resolved for build in builds)

        def ask(build: RequestedBuild) -> None:
            build.attempt(lambda: build.ask(claims))

        # The first request runs alone: it creates the session and the CSRF crumb for the others.
        for _done in first_alone(self._options.parallel, ask, builds):
            pass
        asked = [build for build in builds if build.error is None]
        self._each(lambda build: build.attempt(build.settle), asked)

    def _follow(self, builds: Sequence[RequestedBuild], polling: PollInterval) -> None:
        watcher = BuildWatcher(
            self._server,
            builds,
            polling,
            self._task.progress,
            each_state=not self._listed,
            parallel=self._options.parallel,
        )
        try:
            watcher.follow()
        except PollTimeout:
            late = [build for build in builds if build.open]
            self._each(lambda build: build.fail(build.out_of_time()), late)
        self._validate([build for build in builds if build.over])

    def _validate(self, ended: Sequence[RequestedBuild]) -> None:
        """Evaluate finished builds. Read their logs first, because error messages quote them."""
        self._each(RequestedBuild.finish, ended)
        for build in ended:
            if build.error is None:
                build.attempt(build.validate)

    def _interrupted(self, builds: Sequence[RequestedBuild], say: Callable[[str], None]) -> None:
        """After Ctrl-C, abandon all builds that have not ended, and report their states."""

        def leave(build: RequestedBuild) -> None:
            if build.over:
                build.attempt(build.validate)
                return
            message = f"interrupted; {build.abandon(at_once=True)}"
            build.fail(ToolchainError("failed", message))
            say(message)

        self._each(leave, [build for build in dict.fromkeys(builds) if build.error is None])

    def _failure(self, builds: Sequence[RequestedBuild], *, changed: bool) -> ToolchainError | None:
        """Return a single error for all failed builds, or `None`."""
        errors = [build.error for build in builds if build.error is not None]
        if not errors:
            return None
        result = {**self._result(builds), "changed": changed}
        if not self._listed:
            if builds[0].is_known:
                errors[0].result = {**result, **errors[0].result}
            return errors[0]
        return failure_of(builds, "builds", result)

    def _result(self, builds: Sequence[RequestedBuild]) -> dict[str, Any]:
        """Return the values for the result: those of the only build, or of all `builds`."""
        if not self._listed:
            return builds[0].values()
        rows = []
        for number, (request, build) in enumerate(zip(self._requests, builds, strict=True)):
            failure = {} if build.error is None else self._task.failure(build.error)
            row = {"job": request.job.name, **build.values(), "ok": build.error is None}
            row |= {name: failure.get(name) for name in ("msg", "error")}
            row["joined"] = row["joined"] or build in builds[:number]
            rows.append(row)
        return {"builds": rows}
