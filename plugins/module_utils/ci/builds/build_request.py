# SPDX-License-Identifier: GPL-3.0-or-later
"""Start or find the build that a task requests, check its result, and return its values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ...core.errors import Kind, ToolchainError, invalid, shorten
from ...core.http.transport import Transport
from ...core.module.task import Task
from ...core.polling import PollInterval, PollTimeout
from .. import stopping
from ..job_address import JobName, build_path, build_segment, job_of
from ..waiting import PollingFactory, WaitOptions, require_at_least
from . import build_watcher, parameters, records
from .followed_build import FollowedBuild, OnInput
from .parameters import Files, ListStyle, Parameters
from .queue_item import QueueItem
from .trigger import BuildClaims, Trigger, TriggeredBuild

TriggerRule = Literal["always", "unless_successful"]
#: `started`: start a build. `finished`: wait for a build that an earlier task started.
State = Literal["started", "finished"]
Result = Literal["SUCCESS", "UNSTABLE", "FAILURE", "NOT_BUILT", "ABORTED"]

#: Maximum seconds to wait for the end of a build after a stop request.
_STOP_SECONDS = 10.0
#: Maximum seconds for the stop request after Ctrl-C.
_INTERRUPT_SECONDS = 5.0
#: Maximum seconds to wait until the server knows a queue item.
_ITEM_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class BuildOptions(WaitOptions):
    """Options for a build. `job` is only missing if the option `builds` lists the jobs."""

    job: JobName | None = None
    queue_id: int | None = None
    build: str | None = None
    state: State = "started"
    parameters: Parameters | None = None
    files: Files | None = None
    list_style: ListStyle = "repeat"
    trigger: TriggerRule = "always"
    lookback: int = 50
    wait_timeout: float = 3600
    stop_on_timeout: bool = False
    on_input: OnInput = "fail"
    poll_interval: float = 5
    accept: list[Result] = field(default_factory=lambda: ["SUCCESS"])
    console_lines: int = 20
    delay: int | None = None

    def check(self) -> None:
        """Raise `invalid` for contradictory options."""
        super().check()
        require_at_least("lookback", self.lookback, 1)
        require_at_least("console_lines", self.console_lines, 0)
        require_at_least("delay", self.delay, 0)
        if not self.accept:
            raise invalid("accept is empty: list at least one result")
        self._check_state()

    def _check_state(self) -> None:
        """Raise `invalid` for options that do not match `state`."""
        wanted = {"queue_id": self.queue_id, "build": self.build}
        started: dict[str, Any] = {
            "parameters": self.parameters,
            "files": self.files,
            "delay": self.delay,
            "trigger": None if self.trigger == "always" else self.trigger,
        }
        if self.state == "started":
            for name in (name for name, value in wanted.items() if value is not None):
                raise invalid(f"{name} refers to an existing build: set state: finished")
            return
        for name in (name for name, value in started.items() if value is not None):
            raise invalid(f"{name} cannot be combined with state: finished: omit it")
        if None not in wanted.values():
            raise invalid("queue_id and build are mutually exclusive: set only one of them")
        require_at_least("queue_id", self.queue_id, 1)
        if self.build is not None:
            build_segment(self.build)
        if not self.wait:
            raise invalid("wait: false cannot be combined with state: finished: omit one of them")


class BuildRequest:
    """A build of a job that a task requests.

    :param make_polling: creates a `PollInterval` from a timeout and a maximum pause in seconds
    :param claims: assignment of builds to the requests of the task
    """

    def __init__(
        self,
        task: Task,
        server: Transport,
        options: BuildOptions,
        make_polling: PollingFactory = PollInterval,
        claims: BuildClaims | None = None,
    ) -> None:
        options.check()
        self._task, self._server, self._options = task, server, options
        self._make_polling = make_polling
        self._claims = BuildClaims() if claims is None else claims
        self._search: Callable[[], TriggeredBuild] | None = None
        self.job = job_of(options.job, task.connection.url)
        self.purpose = f"building the job '{self.job.name}'"
        self._files = parameters.file_parts(options.files or {}, "files")
        self.wanted = parameters.WantedParameters()
        self.state: records.JobState | None = None
        #: Finished build that satisfies the request.
        self.finished: Mapping[str, Any] | None = None
        #: Running or queued build to wait for.
        self.running: TriggeredBuild | None = None
        self.asked = self.started = self.joined = False
        self.followed = FollowedBuild(server, self.job, make_polling(0, 1), options.console_lines)
        self.followed.on_input = options.on_input
        named = options.queue_id is not None or options.build is not None
        if self.is_awaited and not named and task.predictions.get("build", self.job.name) is None:
            raise invalid("state is finished, which requires queue_id or build")

    @property
    def if_needed(self) -> bool:
        return self._options.trigger == "unless_successful"

    @property
    def is_awaited(self) -> bool:
        """Return whether an earlier task must have started the build."""
        return self._options.state == "finished"

    @property
    def lookback(self) -> int:
        """Return the number of builds of the job to read."""
        return self._options.lookback if self.if_needed else 1

    @property
    def outstanding(self) -> bool:
        """Return whether a build must be started."""
        return not (self.is_awaited or self.finished or self.running)

    @property
    def unfinished(self) -> bool:
        """Return whether there is a build to follow."""
        return self.running is not None or self.asked

    @property
    def first_number(self) -> int | None:
        """Return the lowest number that the build can have, or `None` if it is unknown."""
        known = None if self.running is None else self.running.number
        return self.state.next_number if known is None and self.state is not None else known

    def read(self) -> records.JobState:
        """Read the current state of the job."""
        purpose = f"reading the job '{self.job.name}'"
        try:
            return records.read_job(self._server, purpose, self.job, self.lookback)
        except ToolchainError as error:
            predicted = self._task.predictions.get("job", self.job.name)
            if error.kind != "not_found" or predicted is None or "jobs" in predicted:
                raise
            # check mode: an earlier task would create the job, so its parameters are unknown
            return records.JobState(None, [], None, False, True, 1, bool(predicted["buildable"]))

    def find(self) -> None:
        """Find the build that an earlier task started. Raises `failed` for a cancelled queue item,
        and `waiting` for a build that waits for an input.
        """
        purpose = f"waiting for a build of the job '{self.job.name}'"
        if self._options.queue_id is not None:
            item = QueueItem(self._server, self.job, self._options.queue_id, purpose)
            self.followed.item = item.number
            number = item.build_number(self._short_polling(_ITEM_SECONDS))
            if number is None:
                self.running, self.joined = TriggeredBuild(item.number), True
            else:
                self._find_build(purpose, str(number))
        elif self._options.build is not None:
            self._find_build(purpose, build_segment(self._options.build))

    def _find_build(self, purpose: str, segment: str) -> None:
        build, response = records.read_build(self._server, purpose, self.job, segment)
        if records.is_over(build):
            self.finished = build
        else:
            self.joined = True
            self.running = TriggeredBuild(self.followed.item, build["number"], build=build)
        self.followed.take_build(build, response)

    def compare(self, state: records.JobState) -> None:
        """Decide whether a build must be started. Raises `rejected` for invalid parameters, and
        `conflict` for a disabled job.
        """
        self.state = state
        self.wanted = parameters.wanted(
            self._options.parameters or {},
            state.definitions,
            self._options.list_style,
            self.job.name,
            self._files,
        )
        for secret in filter(None, self.wanted.secrets):
            self._task.hide(secret)
        if self.if_needed:
            self.finished = self._successful(state)
            if self.finished is None:
                self.running = self._active_build(state)
        self._warn(state)
        if self.outstanding and not state.buildable:
            raise ToolchainError("conflict", f"{self.purpose}: the job is disabled on the server")
        self.joined = self.running is not None
        self._take_known()

    def begin(self, *, wait: bool) -> None:
        """Start the build once."""
        self.announce()
        self.ask(wait=wait)
        self.settle()

    def announce(self) -> None:
        """Register the build. Call this for all builds of a task before starting any of them."""
        self._claims.announce(self.job, self.wanted)

    def ask(self, *, wait: bool) -> None:
        """Send the trigger. Call `settle` after the triggers of all builds of the task."""
        if self.state is None:
            raise AssertionError("the job must be read before its build is started")
        self.asked = True
        user = self._task.connection.username
        trigger = Trigger(
            self._server, self.job, self.state, self.wanted, user=user, claims=self._claims
        )
        self.followed.find = trigger.number
        limit = self._options.wait_timeout if wait else None
        started = trigger.send(self._options.delay, self._short_polling, wait=limit)
        if isinstance(started, TriggeredBuild):
            self._take_started(started)
        else:
            self._search = started

    def settle(self) -> None:
        """Search for the started build if the response did not contain its queue item."""
        if self._search is not None:
            self._take_started(self._search())

    def validate(self) -> None:
        """Raise `failed` if the result of the build is not in `accept`."""
        build, accept = self.followed.build or {}, self._options.accept
        if build.get("result") in accept:
            return
        console = self.followed.console
        last_lines = "" if console is None else console.last_words()
        raise ToolchainError(
            "failed",
            f"{self.purpose}: build #{build.get('number')} ended with"
            f" {build.get('result') or 'no result'} instead of {' or '.join(accept)}"
            f" ({self.followed.url}){': ' if last_lines else ''}{shorten(last_lines)}",
            url=self.followed.url,
            detail=last_lines or None,
        )

    def abandon(self, *, at_once: bool) -> str:
        """Stop waiting for the build, and return its state for a message. With `stop_on_timeout`
        the build is stopped if this task started it.

        :param at_once: whether to return without waiting for the end of the stopped build
        """
        if self.outstanding and not self.asked:
            return f"{self.purpose}: the build was not started"
        if not self._options.stop_on_timeout or not self.started or self.joined:
            return self.followed.running()
        try:
            return f"{self.purpose}: {self._stopped(at_once)} ({self.followed.url})"
        except ToolchainError as error:
            return f"{self.followed.running()}, and it could not be stopped: {error.message}"

    def out_of_time(self) -> PollTimeout:
        """Return the error after `wait_timeout`. Its kind is `waiting` if the build waits for an
        input, otherwise `timeout`.
        """
        limit = f"wait_timeout ({self._options.wait_timeout:g} s)"
        message = f"{self.abandon(at_once=False)}; {limit} expired"
        kind: Kind = "timeout" if self.followed.input is None else "waiting"
        return PollTimeout(kind, message)

    def values(self) -> dict[str, Any]:
        """Return the return values `build`, `queue_id`, `console` and `joined`."""
        followed, console = self.followed, self.followed.console
        if console is not None and console.error is not None:
            self._task.warn(f"{self.purpose}: the console log is missing: {console.error.message}")
        if followed.build is None:
            build = records.not_begun(followed.item, self.wanted.shown)
        else:
            build = records.shown(followed.build, self.job, self._task.connection.url)
            if "actions" not in followed.build:
                build["parameters"] = dict(self.wanted.shown)
        item = build["queue_id"] if followed.item is None else followed.item
        return {
            "build": {**build, "queue_id": item, "input": followed.input},
            "queue_id": item,
            "console": [] if console is None else console.lines(),
            "joined": self.joined,
        }

    def _take_known(self) -> None:
        if self.running is not None:
            self._take(self.running)
        else:
            self.followed.build = self.finished

    def _take(self, triggered: TriggeredBuild) -> None:
        self.followed.item = triggered.item
        if triggered.number is not None:
            number = {"number": triggered.number, "queueId": triggered.item}
            self.followed.build = triggered.build or number

    def _take_started(self, triggered: TriggeredBuild) -> None:
        if triggered.item is None and triggered.number is None:
            self._task.warn(f"{self.purpose}: the response does not contain the queue item")
        self.started, self.joined = True, triggered.folded
        self._take(triggered)

    def _short_polling(self, timeout: float) -> PollInterval:
        return self._make_polling(timeout, self._options.poll_interval)

    def _warn(self, state: records.JobState) -> None:
        if state.definitions is not None and self.wanted.repeated:
            self._task.warn(
                f"{self.purpose}: most servers accept only one value for a parameter of the type of"
                f" {', '.join(self.wanted.repeated)}, and reject a list: set list_style to comma"
            )
        if self.if_needed and self.wanted.incomparable:
            names = ", ".join(self.wanted.incomparable)
            self._task.warn(
                f"{self.purpose}: builds are compared without {names}, because the server does not"
                " return the values"
            )

    def _successful(self, state: records.JobState) -> Mapping[str, Any] | None:
        """Return the newest build with the requested parameters and an accepted result."""
        for build in self._builds(state):
            accepted = build.get("result") in self._options.accept
            if accepted and records.is_over(build) and self._matches(build):
                return build
        return None

    def _active_build(self, state: records.JobState) -> TriggeredBuild | None:
        """Return a running or queued build with the requested parameters."""
        for build in self._builds(state):
            if records.is_running(build) and self._matches(build):
                return TriggeredBuild(build.get("queueId"), int(build["number"]), build=build)
        for item in records.queued_items(self._server, self.purpose, self.job, state):
            if self._matches(item):
                return TriggeredBuild(int(item["id"]))
        return None

    def _matches(self, shown: Mapping[str, Any]) -> bool:
        """Return whether a build or queue item has the requested parameters. Parameters without
        visible values are ignored.
        """
        if not parameters.equal(self.wanted, shown):
            return False
        self.wanted.incomparable += parameters.hidden(self.wanted, shown)
        return True

    def _builds(self, state: records.JobState) -> Iterator[Mapping[str, Any]]:
        return records.whole_builds(self._server, self.purpose, self.job, state)

    def _stopped(self, at_once: bool) -> str:
        """Stop the build or cancel its queue item. Return the outcome for a message."""
        followed, patience = self.followed, _INTERRUPT_SECONDS if at_once else None
        purpose = f"stopping a build of the job '{self.job.name}'"
        if followed.number is None and followed.item is not None:
            if stopping.cancel(self._server, purpose, followed.item, patience=patience):
                return f"queue item {followed.item} was cancelled"
            followed.step()
        if followed.number is None:
            raise ToolchainError("failed", f"{purpose}: the build has no number yet")
        try:
            path = build_path(self.job, followed.number)
            stopping.send(self._server, purpose, path, "stop", patience=patience)
        except ToolchainError as error:
            if not error.outcome_unknown:
                raise
        if at_once:
            return f"build #{followed.number} was asked to stop"
        return self._ended()

    def _ended(self) -> str:
        number = self.followed.number
        try:
            polling = self._short_polling(_STOP_SECONDS)
            build_watcher.follow(self._server, self.followed, polling, lambda line: None)
        except PollTimeout:
            return f"build #{number} was asked to stop, but is still running"
        return f"build #{number} was stopped"
