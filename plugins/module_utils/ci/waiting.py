# SPDX-License-Identifier: GPL-3.0-or-later
"""Following a build from the queue to its end: what is asked, how often, and what the user sees.

Server facts: a queue item names its build once it has left the queue and is gone five minutes
later, when C(queueId) of the builds still tells; an item may be unknown for a moment; a server that
restarts refuses connections or answers 503, and pipelines go on afterwards.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

from ..core.errors import ToolchainError
from ..core.transport import Transport
from ..core.wire import Answer
from .address import Job, build_path
from .builds import BUILD_FIELDS, NEWEST, is_over, number_of, truth, typed
from .client import object_of
from .console import Console

_FIRST_PAUSE = 0.5  # seconds
_GROWTH = 1.5
#: How long an item or build may be unknown to the server before it counts as gone, in seconds.
_GRACE = 15.0
_UNAVAILABLE = (502, 503, 504)
_ITEM_TREE = "id,why,stuck,cancelled,executable[number]"
_SEARCH_TREE = f"inQueue,queueItem[id,why],builds[number,queueId]{{0,{NEWEST}}}"


class TimeUp(ToolchainError):
    """The time for waiting is over, whatever the server answers."""


@dataclass
class Pace:
    """Pauses that begin short and grow to C(interval), until C(timeout) seconds have passed."""

    timeout: float
    interval: float
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _next: float = field(init=False)
    _started: float = field(init=False)

    def __post_init__(self) -> None:
        self._next = min(_FIRST_PAUSE, self.interval)
        self._started = self.now()

    def pause(self, running: str, expected: float | None = None) -> None:
        """Wait, not much beyond the end that is expected in so many seconds; C(timeout) with
        C(running), the words for what goes on, when time is up.
        """
        left = self._started + self.timeout - self.now()
        if left <= 0:
            raise TimeUp("timeout", f"{running}, and wait_timeout ({self.timeout:g} s) is over")
        soon = left if expected is None or expected <= 0 else max(expected, _FIRST_PAUSE)
        self.sleep(min(self._next, left, soon))
        self._next = min(self._next * _GROWTH, self.interval)


class Voice:
    """Lines for a waiting user: each change of state once, a running build once per interval."""

    def __init__(self, say: Callable[[str], None], pace: Pace) -> None:
        self._say, self._pace = say, pace
        self._last, self._last_time = "", float("-inf")

    def state(self, line: str) -> None:
        """Say what is new; numbers that count down do not make a line new."""
        if re.sub(r"[\d.]+", "", line) != re.sub(r"[\d.]+", "", self._last):
            self._tell(line)

    def due(self) -> bool:
        """Whether it is time for another line about a running build."""
        return self._pace.now() - self._last_time >= self._pace.interval

    def running(self, line: str) -> None:
        if line != self._last:
            self._tell(line)

    def _tell(self, line: str) -> None:
        self._last, self._last_time = line, self._pace.now()
        self._say(line)


class Watch:
    """One build that is waited for, and what is known of it so far."""

    def __init__(
        self, server: Transport, job: Job, pace: Pace, say: Callable[[str], None], keep: int
    ) -> None:
        self._server, self._job, self._pace = server, job, pace
        self._voice = Voice(say, pace)
        self._keep = keep
        self._missing_since: float | None = None
        self._what = f"waiting for a build of the job '{job.name}'"
        self._why = ""
        self._expected: float | None = None
        #: Finds the number of the build on a server that names the queue item of no build.
        self.find: Callable[[], int | None] = lambda: None
        self.item: int | None = None
        self.build: Mapping[str, Any] | None = None
        self.console: Console | None = None

    def follow_item(self, item: int) -> Mapping[str, Any]:
        """Wait for the build of a queue item, and for its end; gives the finished build."""
        self.item = item
        while True:
            self._pause()
            number = self._number_of(item)
            if number is not None:
                return self.follow_build(number)

    def follow_build(self, number: int) -> Mapping[str, Any]:
        """Wait for the end of a build; gives the finished build."""
        path = build_path(self._job, number)
        self._missing_since = None
        self.build = {**(self.build or {}), "number": number}
        self.console = Console(self._server, path, self._keep)
        while True:
            answer = self._look(f"{path}/api/json", BUILD_FIELDS)
            if answer is not None and answer.status == 404:
                self._missing(f"build #{number} is not on the server any more")
            elif answer is not None:
                self._missing_since = None
                self.build = typed({**object_of(answer), "number": number})
                if is_over(self.build):
                    self.finish()
                    return self.build
                self._tell(answer)
            self._pause()

    def finish(self) -> None:
        """Read what is left of the log of a build that has ended."""
        if self.console is not None and self.console.wanted:
            self.console.read_to_end()

    def look_back(self, build: Mapping[str, Any]) -> None:
        """Take a build that had ended before as the one that was waited for."""
        path = build_path(self._job, int(build["number"]))
        self.build, self.console = build, Console(self._server, path, self._keep)
        self.finish()

    def running(self) -> str:
        """What goes on, in words, for the messages of a task that stops waiting."""
        if self.build is not None:
            path = build_path(self._job, int(self.build["number"]))
            place = f"{self._server.connection.url}/{path}/"
            return f"{self._what}: build #{self.build['number']} goes on ({place})"
        why = f" ({self._why})" if self._why else ""
        return f"{self._what}: queue item {self.item} stays in the queue{why}"

    def _pause(self) -> None:
        self._pace.pause(self.running(), self._expected)

    def _number_of(self, item: int) -> int | None:
        """The number of an item's build once it has one; C(failed) where the item was cancelled."""
        answer = self._look(f"queue/item/{item}/api/json", _ITEM_TREE)
        if answer is None:
            return None
        if answer.status == 404:
            return self._search(item)
        self._missing_since = None
        shown = typed(object_of(answer))
        if shown.get("cancelled"):
            raise answer.error("failed", f"queue item {item} was cancelled before it was built")
        number = number_of((shown.get("executable") or {}).get("number"))
        if number is None:
            self._queued(item, shown)
        return number

    def _search(self, item: int) -> int | None:
        """Look for an unknown item in the job itself and among its builds."""
        answer = self._look(f"{self._job.path}/api/json", _SEARCH_TREE)
        if answer is None or answer.status == 404:
            return None
        shown = object_of(answer)
        number = self._built(item, shown)
        if number is not None:
            return number
        if truth(shown.get("inQueue")):
            self._missing_since = None
            self._queued(item, shown.get("queueItem") or {})
        else:
            self._missing(f"queue item {item} is gone without a build: it was probably cancelled")
        return None

    def _built(self, item: int, shown: Mapping[str, Any]) -> int | None:
        """The number of an item's build among those of a job; where they do not name their items,
        that of the build which is ours.
        """
        listed = [typed(build) for build in shown.get("builds") or [] if build]
        for build in listed:
            if build.get("queueId") == item:
                return number_of(build.get("number"))
        named = any(build.get("queueId") for build in listed)
        return None if named or not listed else self.find()

    def _missing(self, reason: str) -> None:
        now = self._pace.now()
        if self._missing_since is None:
            self._missing_since = now
        elif now - self._missing_since >= _GRACE:
            raise ToolchainError("failed", f"{self._what}: {reason}", status=404, method="GET")

    def _look(self, path: str, tree: str) -> Answer | None:
        """Read, C(None) while the server cannot be reached, as in the middle of a restart."""
        try:
            return self._server.read(self._what, path, query={"tree": tree}, expect=(200, 404))
        except ToolchainError as error:
            passing = error.kind in ("network", "timeout", "rate_limited")
            if not passing and error.status not in _UNAVAILABLE:
                raise
            self._voice.state(f"{self._job.name}: the server does not answer, still waiting")
            return None

    def _queued(self, item: int, shown: Mapping[str, Any]) -> None:
        self._why = str(shown.get("why") or "about to start")
        stuck = " (stuck)" if shown.get("stuck") else ""
        self._voice.state(f"{self._job.name}: queued as item {item}{stuck}: {self._why}")

    def _tell(self, answer: Answer) -> None:
        build = self.build or {}
        estimate = _estimate(answer, build)
        self._expected = None if estimate is None else estimate[1]
        if not self._voice.due():
            return
        line = f"{self._job.name} #{build.get('number')}: running{_progress(estimate)}"
        if self.console is not None and self.console.wanted:
            self.console.read()
            line += f": {self.console.last_words()}" if self.console.last_words() else ""
        self._voice.running(line)


def _estimate(answer: Answer, build: Mapping[str, Any]) -> tuple[int, float] | None:
    """Percent done and seconds left, by the server's estimate and clock; C(None) without one."""
    estimated, started = build.get("estimatedDuration"), build.get("timestamp")
    if not isinstance(estimated, int) or not isinstance(started, int) or estimated <= 0:
        return None
    elapsed = _server_time(answer) * 1000 - started
    return max(0, min(99, round(elapsed * 100 / estimated))), (estimated - elapsed) / 1000


def _progress(estimate: tuple[int, float] | None) -> str:
    if estimate is None:
        return ""
    percent, left = estimate
    time_left = f"about {left:.0f} s left" if left > 0 else "longer than estimated"
    return f", {percent} %, {time_left}"


def _server_time(answer: Answer) -> float:
    """Seconds since the epoch by the server's clock (ours where it does not tell)."""
    try:
        return parsedate_to_datetime(answer.headers["Date"]).timestamp()
    except (KeyError, TypeError, ValueError):
        return time.time()
