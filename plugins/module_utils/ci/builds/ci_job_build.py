# SPDX-License-Identifier: GPL-3.0-or-later
"""Start builds, unless they exist already, and wait for their results: `ci_job_build` [C3.1]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...core.errors import ToolchainError
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.task import Task
from ...core.plan import Operation, Plan, unchanged
from ...core.polling import PollInterval, PollTimeout
from ..client import server_of
from ..interrupts import interruptible
from ..permissions import BUILD, SEES_JOB
from ..waiting import PollingFactory
from . import build_watcher, records
from .build_request import BuildOptions, BuildRequest
from .many_builds import BuildEntry, ManyBuilds


@dataclass(frozen=True, kw_only=True)
class CiJobBuildOptions(BuildOptions):
    """The options of `ci_job_build`."""

    builds: list[BuildEntry] | None = None
    parallel: int = 4

    constraints: ClassVar[dict[str, Any]] = {
        "required_one_of": [("job", "builds")],
        "mutually_exclusive": [
            *((name, "builds") for name in ("job", "queue_id", "build", "parameters", "files")),
        ],
    }


class CiJobBuildOperation:
    """Runs a single build, or all builds of the option `builds`.

    :param make_polling: creates a `PollInterval` from a timeout and a maximum pause in seconds
    """

    descriptor: ClassVar = Descriptor(
        "ci",
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
        self._task = task
        self._builds: Operation = (
            OneBuild(task, options, make_polling)
            if options.builds is None
            else ManyBuilds(task, options, options.builds, options.parallel, make_polling)
        )

    def plan(self) -> Plan:
        return self._builds.plan()

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        return self._builds.apply(plan)

    def predict(self, plan: Plan) -> None:
        """Record the builds that would be started, for later tasks in check mode that wait for
        them.
        """
        for build in plan.after.get("builds", [plan.after.get("build")]):
            self._task.predictions.add("build", build["job"])


class OneBuild:
    """Starts a build of a job, or joins an existing build, and waits for its end."""

    def __init__(self, task: Task, options: BuildOptions, make_polling: PollingFactory) -> None:
        self._task, self._options, self._make_polling = task, options, make_polling
        self._server = server_of(task)
        self._request = BuildRequest(task, self._server, options, make_polling)

    def plan(self) -> Plan:
        request = self._request
        if request.is_awaited:
            return self._awaited()
        request.compare(request.read())
        if request.outstanding:
            build = {"job": request.job.name, "parameters": request.wanted.shown}
            item = records.not_begun(None, request.wanted.shown)
            plan = Plan({}, {"build": build}, "run")
            return plan.with_result(build=item, queue_id=None, console=[], joined=False)
        return self._without_start()

    def _awaited(self) -> Plan:
        """Plan to wait for a build that an earlier task started."""
        try:
            self._request.find()
            return self._without_start()
        except ToolchainError as error:
            raise self._with_state(error) from None

    def _without_start(self) -> Plan:
        request = self._request
        if request.running is not None:
            return Plan({}, {}, result=request.values(), waits=True)
        request.followed.finish()
        if request.finished is not None:
            request.validate()
        return unchanged(request.values())

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        """Start the build if necessary, and wait for its end if `wait` is set."""
        request, wait = self._request, self._options.wait
        polling = self._make_polling(self._options.wait_timeout, self._options.poll_interval)
        with interruptible() as say:
            try:
                if request.outstanding:
                    request.begin(wait=wait)
                if wait:
                    self._follow(polling)
            except KeyboardInterrupt:
                error = ToolchainError("failed", f"interrupted; {request.abandon(at_once=True)}")
                say(error.message)
                raise self._with_state(error) from None
        return request.values()

    def _follow(self, polling: PollInterval) -> None:
        """Wait until the build ends. Every error contains the state of the build."""
        request = self._request
        try:
            build_watcher.follow(self._server, request.followed, polling, self._task.progress)
            request.followed.finish()
            request.validate()
        except PollTimeout:
            raise self._with_state(request.out_of_time()) from None
        except ToolchainError as error:
            raise self._with_state(error) from None

    def _with_state(self, error: ToolchainError) -> ToolchainError:
        known = {"changed": self._request.started, **self._request.values()}
        error.result = {**known, **error.result}
        return error
