# SPDX-License-Identifier: GPL-3.0-or-later
"""C(ci_job_build): one build of a job, started once and followed to its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..core.errors import ToolchainError, invalid, shorten
from ..core.plan import Plan, unchanged
from ..core.secret import Secret, mask, secrets_of_url
from ..core.task import Task
from . import builds, parameters
from .address import job_of
from .client import hide_secrets, server_of
from .trigger import Trigger, Triggered
from .waiting import Pace, Watch

_LOWEST = {"wait_timeout": 0, "lookback": 1, "console_lines": 0, "delay": 0}


class JobBuild:
    """The operation of the module; C(pace) makes the pauses between polls for a timeout."""

    def __init__(self, task: Task, pace: Callable[[float, float], Pace] = Pace) -> None:
        self._task, self._params = task, task.params
        self._check_numbers()
        for text in secrets_of_url(str(task.params["job"])):
            task.hide(text)
        hide_secrets(task, task.params["parameters"] or {})
        self._job = job_of(task.params["job"], task.connection.url)
        self._what = f"building the job '{self._job.name}'"
        self._server = server_of(task)
        self._pace = pace
        self._state: builds.State | None = None
        self._wanted = parameters.Wanted()

    def plan(self) -> Plan:
        if_needed = self._params["trigger"] == "unless_successful"
        lookback = self._params["lookback"] if if_needed else 1
        what = f"reading the job '{self._job.name}'"
        self._state = builds.read_job(self._server, what, self._job, lookback)
        self._wanted = parameters.wanted(
            self._params["parameters"] or {},
            self._state.definitions,
            self._params["list_style"],
            self._job.name,
        )
        for secret in filter(None, self._wanted.secrets):
            self._task.hide(secret)
        if self._state.definitions is not None and self._wanted.repeated:
            self._task.warn(
                f"{self._what}: a parameter of the type of {', '.join(self._wanted.repeated)} takes"
                " one value on most servers, which refuse a repeated one: set list_style to comma"
            )
        if if_needed:
            known = self._successful(self._state) or self._joined(self._state)
            if known is not None:
                return unchanged(known)
        if not self._state.buildable:
            raise ToolchainError("conflict", f"{self._what}: the job is disabled on the server")
        build = {"job": self._job.name, "parameters": self._wanted.shown}
        plan = Plan({}, {"build": build}, "run")
        item = builds.not_begun(None, self._wanted.shown)
        return plan.returning(build=item, queue_id=None, console=[], joined=False)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        if self._state is None:
            raise AssertionError("apply follows plan")
        user = self._task.connection.username
        trigger = Trigger(self._server, self._job, self._state, self._wanted, user)
        wait = bool(self._params["wait"])
        triggered = trigger.send(self._params["delay"], self._paced, wait=wait)
        if triggered.item is None and triggered.number is None:
            self._task.warn(f"{self._what}: the server did not name the queue item of the build")
        return self._followed(triggered, changed=True, joined=triggered.folded, find=trigger.number)

    def _check_numbers(self) -> None:
        for name, lowest in _LOWEST.items():
            value = self._params[name]
            if value is not None and value < lowest:
                raise invalid(f"{name} is {value}: give {lowest} or more")
        if self._params["poll_interval"] <= 0:
            raise invalid("poll_interval is the time between two polls: give more than 0 seconds")
        if not self._params["accept"]:
            raise invalid("accept is empty, so that no build could succeed: name a result")

    def _paced(self, timeout: float) -> Pace:
        return self._pace(timeout, float(self._params["poll_interval"]))

    def _successful(self, state: builds.State) -> dict[str, Any] | None:
        """The return values for the newest accepted build with the wanted parameters."""
        if self._wanted.incomparable:
            names = ", ".join(self._wanted.incomparable)
            self._task.warn(
                f"{self._what}: the server does not show the values of {names}, so that builds"
                " are compared without them"
            )
        for build in self._builds(state):
            accepted = build.get("result") in self._params["accept"]
            if accepted and builds.is_over(build) and parameters.equal(self._wanted, build):
                watch = self._watch()
                watch.look_back(build)
                return self._values(watch, joined=False)
        return None

    def _joined(self, state: builds.State) -> dict[str, Any] | None:
        """The return values for a running or queued build with the wanted parameters."""
        for build in self._builds(state):
            if builds.is_running(build) and parameters.equal(self._wanted, build):
                running = Triggered(build.get("queueId"), int(build["number"]))
                return self._followed(running, changed=False, joined=True, build=build)
        for item in builds.queued_items(self._server, self._what, self._job, state):
            if parameters.equal(self._wanted, item):
                return self._followed(Triggered(int(item["id"])), changed=False, joined=True)
        return None

    def _builds(self, state: builds.State) -> Iterator[Mapping[str, Any]]:
        return builds.whole_builds(self._server, self._what, self._job, state)

    def _watch(self) -> Watch:
        hidden = [Secret(text) for text in self._wanted.secrets]
        pace = self._paced(float(self._params["wait_timeout"]))
        keep = int(self._params["console_lines"])

        def say(line: str) -> None:
            self._task.progress(mask(line, hidden))

        return Watch(self._server, self._job, pace, say, keep)

    def _followed(
        self,
        triggered: Triggered,
        *,
        changed: bool,
        joined: bool,
        build: Mapping[str, Any] | None = None,
        find: Callable[[], int | None] = lambda: None,
    ) -> dict[str, Any]:
        """Wait, if asked to, and judge the result; every failure tells what is known."""
        watch = self._watch()
        watch.item, watch.build, watch.find = triggered.item, build, find
        try:
            if self._params["wait"]:
                self._wait(watch, triggered)
                self._judge(watch)
        except ToolchainError as error:
            error.result = {"changed": changed, **self._values(watch, joined), **error.result}
            raise
        if triggered.number is not None and watch.build is None:
            watch.build = {"number": triggered.number, "queueId": triggered.item}
        return self._values(watch, joined)

    def _wait(self, watch: Watch, triggered: Triggered) -> None:
        try:
            if triggered.number is not None:
                watch.follow_build(triggered.number)
            elif triggered.item is not None:
                watch.follow_item(triggered.item)
        except KeyboardInterrupt:
            raise ToolchainError("failed", f"interrupted; {watch.running()}") from None

    def _judge(self, watch: Watch) -> None:
        build, accept = watch.build or {}, self._params["accept"]
        if build.get("result") in accept:
            return
        shown = builds.shown(build, self._job, self._task.connection.url)
        said = "" if watch.console is None else watch.console.last_words()
        raise ToolchainError(
            "failed",
            f"{self._what}: build #{shown['number']} ended with {shown['result']}, accepted is"
            f" {' or '.join(accept)} ({shown['url']}){': ' if said else ''}{shorten(said)}",
            url=shown["url"],
            detail=said or None,
        )

    def _values(self, watch: Watch, joined: bool) -> dict[str, Any]:
        console = watch.console
        if console is not None and console.trouble is not None:
            self._task.warn(f"{self._what}: the console log is missing: {console.trouble.message}")
        if watch.build is None:
            build = builds.not_begun(watch.item, self._wanted.shown)
        else:
            build = builds.shown(watch.build, self._job, self._task.connection.url)
            if "actions" not in watch.build:
                build["parameters"] = dict(self._wanted.shown)
        item = build["queue_id"] if watch.item is None else watch.item
        return {
            "build": {**build, "queue_id": item},
            "queue_id": item,
            "console": [] if console is None else console.lines(),
            "joined": joined,
        }
