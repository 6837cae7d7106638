# SPDX-License-Identifier: GPL-3.0-or-later
"""Stop a running build and wait for its end, or cancel a queue item: `ci_build_stop` [C3.2]."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ...core.errors import ToolchainError
from ...core.http.transport import Transport
from ...core.json_text import as_text
from ...core.module.descriptor import Descriptor, writes
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import Positive, Seconds
from ...core.plan import Plan, unchanged
from ...core.progress import PollInterval, PollTimeout
from ..client import CANCEL, SEES_JOB, object_of, server_of
from ..job_address import Job, JobName, build_segment, job_of
from ..service import SERVICE
from ..waiting import PollingFactory, Timeout, WaitOptions
from . import followed_build, queue_item, records
from .followed_build import FollowedBuild
from .queue_item import METHODS, ItemState, QueueItem, cancel

#: Maximum seconds to wait for the end of the build if the response to the stop request was lost.
_VERIFY_SECONDS = 5.0
#: Builds that are certainly no pipeline builds.
_PLAIN_BUILDS = re.compile(r"hudson\.(model\.FreeStyleBuild|matrix\.Matrix|maven\.Maven)")
#: Status of a cancellation that coincides with the start of the build.
_RACE = 500


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
        self._stopped: _RunningBuild | _QueuedBuild
        if options.queue_id is None:
            self._stopped = _RunningBuild(task, options, job, make_polling)
        else:

            def polling() -> PollInterval:
                return make_polling(queue_item.ITEM_SECONDS, options.poll_interval)

            self._stopped = _QueuedBuild(server_of(task), job, options.queue_id, polling)

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
        place = self._server, self._purpose, self._job, self._segment
        starting = self._make_polling(records.STARTING_SECONDS, self._options.poll_interval)
        records.await_newest(*place, starting)
        shown, response = records.read_build(*place)
        polling = self._make_polling(self._options.wait_timeout, self._options.poll_interval)
        build = FollowedBuild(self._server, self._job, polling)
        build.take_build(shown, response)
        if build.over or records.is_idle(shown):
            return unchanged(self._values(build))
        if self._options.method != "stop" and _PLAIN_BUILDS.match(as_text(shown.get("_class"))):
            raise self._unsupported(build, self._options.method)
        state = {"job": self._job.name, "build": shown["number"]}
        before, after = {**state, "running": True}, {**state, "running": False}
        return Plan(before, after, "run", result=self._values(build), data=build)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        """Stop the build. With `escalate`, use the next method if the build does not end."""
        build: FollowedBuild = plan.data
        options = self._options
        started = self._make_polling(options.wait_timeout, 1)
        first = METHODS.index(options.method)
        *_first, last = methods = METHODS[first : None if options.escalate else first + 1]
        any_supported = False
        for method in methods:
            supported = queue_item.send(
                self._server,
                f"{self._purpose} by {method}",
                f"{self._job.path}/{build.number}",
                method,
                verify=lambda: self._ends_within(build, _VERIFY_SECONDS),
            )
            any_supported = any_supported or supported
            if method == last and not any_supported:
                raise self._unsupported(build, method, status=404)
            if not options.wait:
                build.step()
                return self._values(build)
            if method == last or supported:
                left = started.left if method == last else min(options.grace, started.left)
                if self._ends_within(build, left):
                    return self._values(build)
                if started.left <= 0:
                    break
        hint = "" if options.escalate else "; set escalate: true to try term and kill"
        raise ToolchainError(
            "timeout",
            f"{self._purpose}: the build is still running after wait_timeout"
            f" ({options.wait_timeout:g} s): {build.url}{hint}",
            url=build.url,
            result={"changed": True, **self._values(build)},
        )

    def _unsupported(
        self, build: FollowedBuild, method: str, *, status: int | None = None
    ) -> ToolchainError:
        """Return the error for a method that the server does not have for the build.

        Server fact [ci-10]: only pipeline builds support `term` and `kill`.
        """
        return ToolchainError(
            "rejected",
            f"{self._purpose}: the server does not support {method} for this build. The build is"
            " not a pipeline build, or it no longer exists",
            status=status,
            method="POST",
            url=build.url,
            result={"changed": False, **self._values(build)},
        )

    def _ends_within(self, build: FollowedBuild, seconds: float) -> bool:
        polling = self._make_polling(seconds, self._options.poll_interval)
        try:
            followed_build.follow(self._server, build, polling, self._task.progress)
        except PollTimeout:
            return False
        return True

    def _values(self, build: FollowedBuild) -> dict[str, Any]:
        return {"build": records.shown(build.build or {}, self._job, self._task.connection.url)}


class _QueuedBuild:
    """Cancels a waiting queue item.

    :param polling: starts to wait for an item that the server shows late [ci-8]
    """

    def __init__(
        self, server: Transport, job: Job, number: int, polling: Callable[[], PollInterval]
    ) -> None:
        self._server, self._job, self._polling = server, job, polling
        purpose = f"cancelling queue item {number} of the job '{job.name}'"
        self._item = QueueItem(server, job, number, purpose)

    def plan(self) -> Plan:
        """Plan the cancellation, or no change if the item has left the queue.

        Raises `not_found` for an unknown item.
        """
        item = self._item.known(self._polling())
        values = {"build": self._build_values(item)}
        if not item.waits:
            return unchanged(values)
        state = {"job": self._job.name, "queue_id": self._item.number}
        before, after = {**state, "waiting": True}, {**state, "waiting": False}
        return Plan(before, after, "run", result=values)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        """Cancel the item. If it has already started, change nothing and return its build."""
        purpose = self._item.purpose
        try:
            cancel(self._server, purpose, self._item.number, verify=self._is_gone)
        except ToolchainError as error:
            if error.status != _RACE or not self._is_gone():
                raise
        item, polling = self._item.read(), self._polling()
        while item.waits and polling.left:  # its build may be just starting
            polling.pause(purpose)
            item = self._item.read()
        if item.waits:
            raise ToolchainError(
                "permission",
                f"{purpose}: the item is still in the queue. Check that the account may cancel it",
                result={"changed": False, "build": None},
            )
        return {"changed": item.number is None, "build": self._build_values(item)}

    def _is_gone(self) -> bool:
        return not self._item.read().waits

    def _build_values(self, item: ItemState) -> dict[str, Any] | None:
        if item.number is None:
            return None
        path = f"{self._job.path}/{item.number}/api/json"
        query = {"tree": records.BUILD_FIELDS}
        response = self._server.read(self._item.purpose, path, query=query, expect=(200, 404))
        build = {"number": item.number, "queueId": self._item.number}
        if response.status == 200:
            build |= records.typed(object_of(response))
        return records.shown(build, self._job, self._server.connection.url)
