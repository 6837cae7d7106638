# SPDX-License-Identifier: GPL-3.0-or-later
"""One build that a task wants: whether it is there already, its start, its end, its values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...core.errors import ToolchainError, invalid, printable, shorten
from ...core.http.transport import Transport
from ...core.module.task import Task
from ...core.polling import Pace, TimeUp
from .. import stopping
from ..job_address import build_path, job_of
from . import parameters, records
from .build_watcher import Watch
from .trigger import Claims, Trigger, Triggered

#: Makes the pauses between looks, given the longest time and the longest pause, in seconds.
Paces = Callable[[float, float], Pace]

_LOWEST = {"wait_timeout": 0, "lookback": 1, "console_lines": 0, "delay": 0}
#: How long a build may take to end once it was told to, in seconds; most seconds for telling it
#: after Ctrl-C.
_STOPPING = 10.0
_LAST_MOMENT = 5.0


def check_numbers(params: Mapping[str, Any]) -> None:
    """Raise C(invalid) for options that make no sense."""
    for name, lowest in _LOWEST.items():
        value = params[name]
        if value is not None and value < lowest:
            raise invalid(f"{name} is {value}: give {lowest} or more")
    if params["poll_interval"] <= 0:
        raise invalid("poll_interval is the time between two polls: give more than 0 seconds")
    if not params["accept"]:
        raise invalid("accept is empty, so that no build could succeed: name a result")


class Order:
    """A build of one job with certain parameters.

    :param params: the options of the module C(ci_job_build)
    :param paces: makes the pauses; tests replace it
    :param claims: which builds are those of other orders of the task
    """

    def __init__(
        self,
        task: Task,
        server: Transport,
        params: Mapping[str, Any],
        paces: Paces = Pace,
        claims: Claims | None = None,
    ) -> None:
        check_numbers(params)
        self._task, self._server, self._params, self._paces = task, server, params, paces
        self._claims = Claims() if claims is None else claims
        self._search: Callable[[], Triggered] | None = None
        self.job = job_of(params["job"], task.connection.url)
        self.what = f"building the job '{self.job.name}'"
        self.wanted = parameters.Wanted()
        self.state: records.State | None = None
        #: A build that is good enough, and one that runs or waits and will do.
        self.finished: Mapping[str, Any] | None = None
        self.running: Triggered | None = None
        self.asked = self.started = self.joined = False
        self.watch = self._watch(paces(0, 1), lambda line: None)

    @property
    def if_needed(self) -> bool:
        return bool(self._params["trigger"] == "unless_successful")

    @property
    def lookback(self) -> int:
        """How many builds of the job are to be read."""
        return int(self._params["lookback"]) if self.if_needed else 1

    @property
    def outstanding(self) -> bool:
        """Whether a build is to be started."""
        return self.finished is None and self.running is None

    @property
    def first_number(self) -> int:
        """The lowest number that the build can have."""
        if self.state is None:
            return 1
        known = None if self.running is None else self.running.number
        return self.state.next_number if known is None else known

    def read(self) -> records.State:
        """The job as it is now."""
        what = f"reading the job '{self.job.name}'"
        return records.read_job(self._server, what, self.job, self.lookback)

    def compare(self, state: records.State) -> None:
        """Find out whether a build is to be started; raises what speaks against it."""
        self.state = state
        self.wanted = parameters.wanted(
            self._params["parameters"] or {},
            state.definitions,
            self._params["list_style"],
            self.job.name,
        )
        for secret in filter(None, self.wanted.secrets):
            self._task.hide(secret)
        self._warn(state)
        if self.if_needed:
            self.finished = self._successful(state)
            if self.finished is None:
                self.running = self._twin(state)
        if self.outstanding and not state.buildable:
            raise ToolchainError("conflict", f"{self.what}: the job is disabled on the server")
        self.joined = self.running is not None
        self._take_known()

    def be_watched(self, pace: Pace, say: Callable[[str], None]) -> None:
        """Begin to wait; each line about it is given to C(say)."""
        self.watch = self._watch(pace, lambda line: say(printable(line)))
        self._take_known()

    def begin(self, *, wait: bool) -> None:
        """Start the build, once."""
        self.announce()
        self.ask(wait=wait)
        self.settle()

    def announce(self) -> None:
        """To be called for all builds of a task before the first of them is started."""
        self._claims.announce(self.job, self.wanted)

    def ask(self, *, wait: bool) -> None:
        """Send what starts the build; :meth:`settle` follows, once all triggers of the task are
        answered.
        """
        if self.state is None:
            raise AssertionError("a build is started after its job was read")
        self.asked = True
        user = self._task.connection.username
        trigger = Trigger(
            self._server, self.job, self.state, self.wanted, user=user, claims=self._claims
        )
        self.watch.find = trigger.number
        limit = float(self._params["wait_timeout"]) if wait else None
        answered = trigger.send(self._params["delay"], self._short_pace, wait=limit)
        if isinstance(answered, Triggered):
            self._take_started(answered)
        else:
            self._search = answered

    def settle(self) -> None:
        """Look for the build where the answer did not name it."""
        if self._search is not None:
            self._take_started(self._search())

    def judge(self) -> None:
        """Raise C(failed) for a build that ended with a result that is not accepted."""
        build, accept = self.watch.build or {}, self._params["accept"]
        if build.get("result") in accept:
            return
        console = self.watch.console
        said = "" if console is None else console.last_words()
        raise ToolchainError(
            "failed",
            f"{self.what}: build #{build.get('number')} ended with"
            f" {build.get('result') or 'no result'}, accepted is {' or '.join(accept)}"
            f" ({self.watch.url}){': ' if said else ''}{shorten(said)}",
            url=self.watch.url,
            detail=said or None,
        )

    def left_alone(self, *, at_once: bool) -> str:
        """What becomes of the build that nobody waits for any more, in words.

        With C(stop_on_timeout) it is stopped where this task has started it: one that was there
        already belongs to others.

        :param at_once: do not wait for its end
        """
        if self.outstanding and not self.asked:
            return f"{self.what}: it was not started"
        if not self._params["stop_on_timeout"] or not self.started or self.joined:
            return self.watch.running()
        try:
            return f"{self.what}: {self._stopped(at_once)} ({self.watch.url})"
        except ToolchainError as error:
            return f"{self.watch.running()}, and it could not be stopped: {error.message}"

    def out_of_time(self) -> str:
        """The words for a build that has not ended within C(wait_timeout)."""
        limit = f"wait_timeout ({self._params['wait_timeout']:g} s)"
        return f"{self.left_alone(at_once=False)}, and {limit} is over"

    def values(self) -> dict[str, Any]:
        """The return values C(build), C(queue_id), C(console) and C(joined)."""
        watch, console = self.watch, self.watch.console
        if console is not None and console.trouble is not None:
            self._task.warn(f"{self.what}: the console log is missing: {console.trouble.message}")
        if watch.build is None:
            build = records.not_begun(watch.item, self.wanted.shown)
        else:
            build = records.shown(watch.build, self.job, self._task.connection.url)
            if "actions" not in watch.build:
                build["parameters"] = dict(self.wanted.shown)
        item = build["queue_id"] if watch.item is None else watch.item
        return {
            "build": {**build, "queue_id": item},
            "queue_id": item,
            "console": [] if console is None else console.lines(),
            "joined": self.joined,
        }

    def _watch(self, pace: Pace, say: Callable[[str], None]) -> Watch:
        return Watch(self._server, self.job, pace, say, int(self._params["console_lines"]))

    def _take_known(self) -> None:
        if self.running is not None:
            self._take(self.running)
        else:
            self.watch.build = self.finished

    def _take(self, triggered: Triggered) -> None:
        self.watch.item = triggered.item
        if triggered.number is not None:
            number = {"number": triggered.number, "queueId": triggered.item}
            self.watch.build = triggered.build or number

    def _take_started(self, triggered: Triggered) -> None:
        if triggered.item is None and triggered.number is None:
            self._task.warn(f"{self.what}: the server did not name the queue item of the build")
        self.started, self.joined = True, triggered.folded
        self._take(triggered)

    def _short_pace(self, timeout: float) -> Pace:
        return self._paces(timeout, float(self._params["poll_interval"]))

    def _warn(self, state: records.State) -> None:
        if state.definitions is not None and self.wanted.repeated:
            self._task.warn(
                f"{self.what}: a parameter of the type of {', '.join(self.wanted.repeated)} takes"
                " one value on most servers, which refuse a repeated one: set list_style to comma"
            )
        if self.if_needed and self.wanted.incomparable:
            names = ", ".join(self.wanted.incomparable)
            self._task.warn(
                f"{self.what}: the server does not show the values of {names}, so that builds"
                " are compared without them"
            )

    def _successful(self, state: records.State) -> Mapping[str, Any] | None:
        """The newest accepted build with the wanted parameters."""
        for build in self._builds(state):
            accepted = build.get("result") in self._params["accept"]
            if accepted and records.is_over(build) and parameters.equal(self.wanted, build):
                return build
        return None

    def _twin(self, state: records.State) -> Triggered | None:
        """A running or queued build with the wanted parameters."""
        for build in self._builds(state):
            if records.is_running(build) and parameters.equal(self.wanted, build):
                return Triggered(build.get("queueId"), int(build["number"]), build=build)
        for item in records.queued_items(self._server, self.what, self.job, state):
            if parameters.equal(self.wanted, item):
                return Triggered(int(item["id"]))
        return None

    def _builds(self, state: records.State) -> Iterator[Mapping[str, Any]]:
        return records.whole_builds(self._server, self.what, self.job, state)

    def _stopped(self, at_once: bool) -> str:
        """Stop the build, or take it out of the queue; how that went."""
        watch, patience = self.watch, _LAST_MOMENT if at_once else None
        what = f"stopping a build of the job '{self.job.name}'"
        if watch.number is None and watch.item is not None:
            if stopping.cancel(self._server, what, watch.item, patience):
                return f"queue item {watch.item} was cancelled"
            watch.step()
        if watch.number is None:
            raise ToolchainError("failed", f"{what}: it has no number yet")
        try:
            path = build_path(self.job, watch.number)
            stopping.send(self._server, what, path, "stop", patience=patience)
        except ToolchainError as error:
            if not error.unanswered:
                raise
        if at_once:
            return f"build #{watch.number} was told to stop"
        return self._ended(watch)

    def _ended(self, watch: Watch) -> str:
        pace = self._short_pace(_STOPPING)
        try:
            while not watch.over:
                pace.pause(self.what)
                watch.step()
        except TimeUp:
            return f"build #{watch.number} was told to stop, but goes on"
        return f"build #{watch.number} was stopped"
