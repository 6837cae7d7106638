# SPDX-License-Identifier: GPL-3.0-or-later
"""Stop a running build and wait for its end, or cancel a queue item: `ci_build_stop` [C3.2]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ...core.errors import ToolchainError
from ...core.module.descriptor import Descriptor, writes
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import Positive, Seconds
from ...core.plan import Plan, unchanged
from ...core.progress import PollInterval, PollTimeout
from ..client import CANCEL, SEES_JOB, server_of
from ..job_address import Job, JobName, build_segment, job_of
from ..service import SERVICE
from ..waiting import PollingFactory, Timeout, WaitOptions
from . import build_watcher, queue_item, records
from .followed_build import FollowedBuild
from .queue_item import ItemCancellation

#: Maximum seconds to wait for the end of the build if the response to the stop request was lost.
_VERIFY_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True)
class CiBuildStopOptions(WaitOptions):
    """The options of `ci_build_stop`."""

    job: JobName
    build: str | None = None
    queue_id: Positive | None = None
    method: Literal["stop", "term", "kill"] = "stop"
    escalate: bool = False
    grace: Timeout = 30
    wait_timeout: Timeout = 300
    poll_interval: Seconds = 2

    constraints: ClassVar[dict[str, Any]] = {
        "required_one_of": [("build", "queue_id")],
        "mutually_exclusive": [("build", "queue_id")],
    }
    option_rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "escalate",
            forbids="wait=false",
            because="the next method follows only if the build does not stop",
        ),
    )


class CiBuildStopOperation:
    """Stops the build or cancels the queue item of the options.

    :param make_polling: creates a `PollInterval` from a timeout and a maximum pause in seconds
    """

    descriptor: ClassVar = Descriptor(
        SERVICE,
        dict.fromkeys(
            ("stop", "term and kill", "cancel in the queue"),
            writes(*SEES_JOB, unforeseen=(CANCEL,)),
        ),
        kind="build",
        name="{job}/{build}",
    )

    def __init__(
        self, task: Task, options: CiBuildStopOptions, make_polling: PollingFactory = PollInterval
    ) -> None:
        job = job_of(options.job, task.connection.url)
        self._stopped: _RunningBuild | ItemCancellation
        if options.queue_id is None:
            self._stopped = _RunningBuild(task, options, job, make_polling)
        else:
            self._stopped = ItemCancellation(server_of(task), job, options.queue_id)

    def plan(self) -> Plan:
        return self._stopped.plan()

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        return self._stopped.apply(plan)


class _RunningBuild:
    """Stops a build and waits for its end."""

    def __init__(
        self, task: Task, options: CiBuildStopOptions, job: Job, make_polling: PollingFactory
    ) -> None:
        self._task, self._options, self._make_polling = task, options, make_polling
        self._job = job
        self._segment = build_segment(options.build or "")
        self._purpose = f"stopping build {self._segment} of the job '{self._job.name}'"
        self._server = server_of(task)

    def plan(self) -> Plan:
        shown, response = records.read_build(self._server, self._purpose, self._job, self._segment)
        polling = self._make_polling(self._options.wait_timeout, self._options.poll_interval)
        build = FollowedBuild(self._server, self._job, polling)
        build.take_build(shown, response)
        if build.over or records.is_idle(shown):
            return unchanged(self._values(build))
        state = {"job": self._job.name, "build": shown["number"]}
        before, after = {**state, "running": True}, {**state, "running": False}
        return Plan(before, after, "run", result=self._values(build), data=build)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        build: FollowedBuild = plan.data
        started = self._make_polling(self._options.wait_timeout, 1)
        *_first, last = methods = self._methods()
        any_supported = False
        for method in methods:
            supported = self._send(build, method)
            any_supported = any_supported or supported
            if method == last and not any_supported:
                raise self._unsupported(build, method)
            if not self._options.wait:
                build.step()
                return self._values(build)
            if method == last or supported:
                left = started.left if method == last else min(self._options.grace, started.left)
                if self._ends_within(build, left):
                    return self._values(build)
                if started.left <= 0:
                    break
        raise self._still_running(build)

    def _methods(self) -> tuple[str, ...]:
        first = queue_item.METHODS.index(self._options.method)
        return queue_item.METHODS[first : None if self._options.escalate else first + 1]

    def _send(self, build: FollowedBuild, method: str) -> bool:
        """Send a stop request; return false if the server does not support the method."""
        return queue_item.send(
            self._server,
            f"{self._purpose} by {method}",
            f"{self._job.path}/{build.number}",
            method,
            verify=lambda: self._ends_within(build, _VERIFY_SECONDS),
        )

    def _ends_within(self, build: FollowedBuild, seconds: float) -> bool:
        polling = self._make_polling(seconds, self._options.poll_interval)
        try:
            build_watcher.follow(self._server, build, polling, self._task.progress)
        except PollTimeout:
            return False
        return True

    def _still_running(self, build: FollowedBuild) -> ToolchainError:
        hint = "" if self._options.escalate else "; set escalate: true to try term and kill"
        return ToolchainError(
            "timeout",
            f"{self._purpose}: the build is still running after wait_timeout"
            f" ({self._options.wait_timeout:g} s): {build.url}{hint}",
            url=build.url,
            result={"changed": True, **self._values(build)},
        )

    def _unsupported(self, build: FollowedBuild, method: str) -> ToolchainError:
        """Return the error for an unsupported method. Server fact [ci-10]: only pipeline builds
        support `term` and `kill`.
        """
        return ToolchainError(
            "rejected",
            f"{self._purpose}: the server does not support {method} for this build. The build is"
            " not a pipeline build, or it no longer exists",
            status=404,
            method="POST",
            url=build.url,
            result={"changed": False, **self._values(build)},
        )

    def _values(self, build: FollowedBuild) -> dict[str, Any]:
        return {"build": records.shown(build.build or {}, self._job, self._task.connection.url)}
