# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a build from its queue item to its result, updated by polls.

Server facts [ci-8, ci-9]: a queue item contains the number of its build once the build has
started. The server forgets the item five minutes later; after that, only `queueId` of the build
refers to the item. A new item may be unknown for a moment. During a restart the server refuses
connections or returns 503; pipeline builds continue after the restart.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Literal

from ...core.errors import ToolchainError
from ...core.http.messages import Response
from ...core.http.transport import Transport
from ...core.progress import PollInterval
from ...core.secret import hidden
from ..client import object_of, objects, part
from ..job_address import Job, build_path, same_job
from ..waiting import Outage, patience
from .parameters import values_of
from .records import (
    FOLLOWED_FIELDS,
    ITEM_FIELDS,
    NEWEST,
    SUMMARIES,
    TriggeredBuild,
    described,
    is_idle,
    is_over,
    number_of,
    pending_inputs,
    queued_items,
    read_job,
    session_of,
    shows_state,
    summary,
    truth,
    typed,
    users_of,
    whole_builds,
)

#: Maximum length of a stored line in bytes. It limits the memory for a log without line breaks.
_LONGEST_LINE = 1 << 16
#: A note of the server, and the beginning of a note at the end of a chunk [ci-13].
_NOTE = re.compile(rb"\x1b\[8mha:[A-Za-z0-9+/=]*\x1b\[0m")
_OPEN_NOTE = re.compile(rb"\x1b(?:\[8mha:[A-Za-z0-9+/=]*(?:\x1b(?:\[0?)?)?|\[?8?m?h?a?)\Z")
#: Lines that report an error of the server, a build tool or a program.
_ERROR_LINE = re.compile(
    rb"(?:^|[\s\[])(?:ERROR|FATAL)[\]:]|^[\W\dTZ]*(?:ERROR|FATAL)\b|\bBUILD FAIL(?:URE|ED)\b"
    rb"|^(?:[^\s:]*\bException|\w*Error):\s|(?:^|\s)(?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error)\b"
)


def without_notes(text: bytes) -> bytes:
    """Return a part of a log without the notes of the server."""
    return _OPEN_NOTE.sub(b"", _NOTE.sub(b"", text))


class BuildLog:
    """The last lines of a build's console log, and the first line that reports an error.

    Server facts [ci-13]: `progressiveText` returns the next offset in `X-Text-Size`. Offsets count
    bytes of the raw log, and an offset beyond the end restarts at 0. The text contains notes.

    :param path: path of the build below the URL of the server
    :param keep: maximum number of lines to store
    """

    def __init__(self, server: Transport, path: str, keep: int) -> None:
        self._server, self._path = server, path
        self._lines: deque[bytes] = deque(maxlen=keep)
        self._keep, self._partial, self._offset = keep, b"", 0
        self._error_line = b""
        self.error: ToolchainError | None = None

    def read(self, patience: float | None = None) -> None:
        """Read the lines that the build has added. An error is stored in `error`, not raised.

        :param patience: maximum seconds to wait for the server
        """
        self._read("logText/progressiveText", {"start": self._offset}, patience)

    def read_to_end(self) -> None:
        """Read the remaining lines of a finished build.

        If the server rejects `progressiveText`, read the whole log from `consoleText`.
        """
        self.read()
        if self.error is not None and self.error.status is not None:
            self._start_again()
            self._read("consoleText", {})

    def lines(self) -> list[str]:
        partial = without_notes(self._partial)
        found = [*self._lines, partial] if partial else list(self._lines)
        return [_text(line) for line in found[-self._keep :]]

    def reason(self) -> str:
        """Return the first line that reports an error, or the last line; "" without lines."""
        return _text(self._error_line).strip() or self.last_words()

    def last_words(self) -> str:
        """Return the last line that is neither empty nor `Finished: <result>`, or ""."""
        lines = (line.strip() for line in reversed(self.lines()))
        return next((line for line in lines if line and not line.startswith("Finished: ")), "")

    def _read(self, name: str, query: dict[str, int], patience: float | None = None) -> None:
        before, self.error = (self._lines.copy(), self._partial, self._error_line), None
        try:
            self._stream(f"{self._path}/{name}", query, patience)
        except ToolchainError as error:
            self.error = error  # the offset is unchanged
            self._lines, self._partial, self._error_line = before

    def _stream(self, path: str, query: dict[str, int], patience: float | None) -> None:
        purpose = "reading the console log"
        with self._server.stream(purpose, path, query=query, patience=patience) as response:
            size = response.headers.get("X-Text-Size", "")
            following = max(0, number_of(size) or 0)
            if 0 < following == self._offset:
                return  # the log has not grown
            if self._offset == 0 or following < self._offset:
                self._start_again()
            for block in response.iter_content():
                self._append(block)
            self._offset = following

    def _start_again(self) -> None:
        self._lines.clear()
        self._partial, self._error_line, self._offset = b"", b"", 0

    def _append(self, block: bytes) -> None:
        *lines, rest = _NOTE.sub(b"", self._partial + block).split(b"\n")
        self._lines.extend(lines)
        if not self._error_line:
            self._error_line = next(filter(_ERROR_LINE.search, lines), b"")
        if len(rest) > _LONGEST_LINE:  # mask before cutting: half a secret would not be found
            text = hidden.mask(rest.decode("utf-8", "surrogateescape"))
            rest = text.encode("utf-8", "surrogateescape")[-_LONGEST_LINE:]
        self._partial = rest


def _text(line: bytes) -> str:
    return line.decode("utf-8", errors="replace").rstrip("\r")


#: What to do if the build waits for an input: fail, or continue to wait.
OnInput = Literal["fail", "wait"]

#: Seconds of 404 responses after which an item or build counts as deleted.
_GRACE = 15.0
#: Seconds to wait for the result of a build that has stopped running.
_RESULT_GRACE = 3.0
_ITEM_TREE = f"{ITEM_FIELDS},executable[number]"
_SEARCH_TREE = f"inQueue,queueItem[id,why],builds[number,queueId]{{0,{NEWEST}}}"


class ProgressLines:
    """Writes a progress line per change of state, and one per interval for a running build."""

    def __init__(self, say: Callable[[str], None], polling: PollInterval) -> None:
        self.say, self._polling = say, polling
        self._last, self._last_time = "", float("-inf")

    def state(self, line: str) -> None:
        """Report a state. Skip it if only numbers differ from the last line, as in a countdown."""
        if re.sub(r"[\d.]+", "", line) != re.sub(r"[\d.]+", "", self._last):
            self._report(line)

    def due(self) -> bool:
        """Return whether the next line about a running build is due."""
        return self._polling.now() - self._last_time >= self._polling.interval

    def running(self, line: str) -> None:
        if line != self._last:
            self._report(line)

    def _report(self, line: str) -> None:
        self._last, self._last_time = line, self._polling.now()
        self.say(line)


class FollowedBuild:
    """A build that is followed from its queue item to its end. `BuildWatcher` polls it.

    :param polling: clock and time limit of the polls
    :param keep: number of log lines to return; 0 reads no log
    :param found: the build, unless `take` follows
    :param first: lowest number that the build can have; 0 if unknown
    :param session: mark of the start of the server that the queue item belongs to
    """

    def __init__(
        self,
        server: Transport,
        job: Job,
        polling: PollInterval,
        *,
        keep: int = 0,
        on_input: OnInput = "wait",
        found: TriggeredBuild | None = None,
        first: int = 0,
        session: str = "",
    ) -> None:
        self._server, self.job, self._polling = server, job, polling
        self._progress = ProgressLines(lambda line: None, polling)
        self._keep, self._on_input, self.first = keep, on_input, first
        self._session, self._outage = session, Outage(server, polling.now)
        #: Whether the server was restarted while the build was in the queue.
        self.is_lost = False
        self._queued: Mapping[str, Any] = {}
        self._missing_since: float | None = None
        self._idle_since: float | None = None
        #: Whether the build has stopped running and still has no result after the grace period.
        self._stayed_idle = False
        self._purpose = f"waiting for a build of the job '{job.name}'"
        self._job_url = f"{server.connection.url}/{job.path}/"
        self._estimate: tuple[int, float] | None = None
        #: Reason for which the item waits in the queue, as the server words it.
        self.why = ""
        self.item: int | None = None
        self.build: Mapping[str, Any] | None = None
        #: The input that the build waits for.
        self.input: dict[str, Any] | None = None
        self.console: BuildLog | None = None
        #: Error that ended the task's work on this build.
        self.error: ToolchainError | None = None
        if found is not None:
            self.take(found)

    def take(self, found: TriggeredBuild) -> None:
        """Follow this build."""
        self.item = found.item
        if found.number is not None:
            self.build = found.build or {"number": found.number, "queueId": found.item}

    def report_to(self, polling: PollInterval, say: Callable[[str], None]) -> None:
        """Set the polling interval, and the function that receives progress lines."""
        self._polling, self._progress = polling, ProgressLines(say, polling)
        self._outage = Outage(self._server, polling.now)

    @property
    def name(self) -> str:
        """Return the name of the job, with the number of the build if it is known."""
        return self.job.name if self.number is None else f"{self.job.name} #{self.number}"

    @property
    def number(self) -> int | None:
        return None if self.build is None else int(self.build["number"])

    @property
    def over(self) -> bool:
        """Return whether the build has ended, usually with a result."""
        return self._stayed_idle or (self.build is not None and is_over(self.build))

    @property
    def expected(self) -> float | None:
        """Return the estimated seconds until the build ends; `None` without an estimate."""
        return None if self._estimate is None else self._estimate[1]

    @property
    def url(self) -> str:
        """Return the address of the build, or of its job until the build has a number."""
        return self._job_url if self.number is None else f"{self._job_url}{self.number}/"

    @property
    def open(self) -> bool:
        """Return whether the build must be polled again."""
        return self.error is None and not self.over

    def fail(self, error: ToolchainError) -> None:
        """End the work on this build with an error."""
        self.error = error

    def attempt(self, step: Callable[[], object]) -> None:
        """Run a step and store its error, which ends the work on this build only."""
        try:
            step()
        except ToolchainError as error:
            self.fail(error)

    def step(self) -> None:
        """Poll once: the queue item, or the build if it has a number."""
        if self.number is None and self.item is not None:
            self._read_item(self.item)
        if self.number is not None:
            self._read_build(self.number)

    def take_item(self, shown: Mapping[str, Any]) -> None:
        """Store the state of the queue item."""
        self._missing_since = None
        self._queued = shown if "actions" in shown else self._queued
        stuck = " (stuck)" if truth(shown.get("stuck")) else ""
        self.why = str(shown.get("why") or "about to start")
        self._progress.state(f"{self.job.name}: queued as item {self.item}{stuck}: {self.why}")

    def take_build(self, shown: Mapping[str, Any], response: Response) -> None:
        """Store the state of the build from `response`.

        Raises `waiting` if the build waits for an input and `on_input` is `fail`.
        """
        self._missing_since = None
        self.build, now = typed(shown), self._polling.now()
        if not is_idle(self.build):
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = now
        idle_since = now if self._idle_since is None else self._idle_since
        self._stayed_idle = now - idle_since >= _RESULT_GRACE
        self._estimate = None if self.over else _estimate(response, self.build)
        self.input = None if self.over else next(iter(pending_inputs(shown)), None)
        if self.input is not None and self._on_input == "fail":
            error = response.error(
                "waiting", f"build #{self.number} waits for {described(self.input)}"
            )
            raise error.with_hint("respond with ci_build_input, or set on_input to wait")

    def finish(self) -> None:
        """Read the remaining log lines of the finished build."""
        console = self._log()
        if console is not None:
            console.read_to_end()

    def running(self) -> str:
        """Return the current state for a timeout message."""
        if self.number is not None:
            state = "is running" if self.input is None else f"waits for {described(self.input)}"
            return f"{self._purpose}: build #{self.number} {state} ({self.url})"
        if self.item is None:
            return f"{self._purpose}: it is unknown whether a build was started ({self.url})"
        why = f" ({self.why})" if self.why else ""
        return f"{self._purpose}: queue item {self.item} is still in the queue{why}"

    def _read_item(self, item: int) -> None:
        """Read the queue item, and the build number once it has one.

        Raises `failed` if the item was cancelled.
        """
        response = None
        if not self.is_lost:
            response = self._poll(f"queue/item/{item}/api/json", _ITEM_TREE)
        if self.is_lost or (response is not None and self.loses_item(response)):
            self._find_again(item)
        elif response is not None and response.status == 404:
            self._search(item)
        elif response is not None:
            shown = typed(object_of(response))
            if not same_job(part(shown.get("task")).get("url", self._job_url), self.job):
                self._search(item)
            elif shown.get("cancelled"):
                raise response.error(
                    "failed", f"queue item {item} was cancelled before it was built"
                )
            elif (number := number_of(part(shown.get("executable")).get("number"))) is not None:
                self._set_number(number)
            else:
                self.take_item(shown)

    def loses_item(self, response: Response) -> bool:
        """Return whether the server was restarted, after which the queue item has another id.

        Server fact [ci-8]: the old id is unknown, or belongs to another item.
        """
        session = session_of(response)
        if not self._session or not session:
            self._session = self._session or session
            # without the mark, an outage is the only sign
            self.is_lost = not session and self._outage.seen and response.status == 404
        else:
            self.is_lost = session != self._session
        return self.is_lost

    def _read_build(self, number: int) -> None:
        response = self._poll(f"{build_path(self.job, number)}/api/json", FOLLOWED_FIELDS)
        if response is not None and response.status == 404:
            self._missing(f"build #{number} is no longer on the server")
        elif response is not None:
            shown = {**object_of(response), "number": number}
            if not shows_state(shown):
                listed = self._poll(f"{self.job.path}/api/json", SUMMARIES)
                if listed is None:
                    return
                shown = {**summary(listed, number), **shown}
            self.take_build(shown, response)
            if not self.over and self._progress.due():
                self._report()

    def _search(self, item: int) -> None:
        """Search the job and its builds for an item that the server no longer knows."""
        response = self._poll(f"{self.job.path}/api/json", _SEARCH_TREE)
        if response is None or response.status == 404:
            return
        if self.loses_item(response):
            self._find_again(item)
            return
        shown = object_of(response)
        number = self._build_number_of(item, shown)
        if number is not None:
            self._set_number(number)
        elif truth(shown.get("inQueue")):
            self.take_item(part(shown.get("queueItem")))
        else:
            self._missing(
                f"queue item {item} disappeared without starting a build: it was probably cancelled"
            )

    def _build_number_of(self, item: int, shown: Mapping[str, Any]) -> int | None:
        """Return the number of the build that came from a queue item.

        If no build of the job has a `queueId`, return the number of the build that `find` returns.
        """
        listed = [typed(build) for build in objects(shown.get("builds"))]
        for build in listed:
            if build.get("queueId") == item:
                return number_of(build.get("number"))
        if not listed or any(build.get("queueId") for build in listed):
            return None
        found = self.find()[0]
        return None if found is None else found.number

    def _find_again(self, item: int) -> None:
        """Find the build after a restart by its parameters, cause and time.

        Raises `failed` after a grace period without such a build.
        """
        found, responded = self.find()
        if found is not None:
            self._missing_since, self.is_lost, self._session = None, False, ""
            self.item = found.item
            if found.number is not None:
                self._set_number(found.number)
        elif responded:
            self._missing(
                "the CI server was restarted, which gives waiting builds other ids, and no build"
                f" has the parameters and the cause of queue item {item}. Look at {self._job_url}"
                " before you start a build again"
            )

    def find(self) -> tuple[TriggeredBuild | None, bool]:
        """Return the build, found without its queue id, and whether the server responded.

        This finds a build whose queue item was read before.
        """
        if "actions" not in self._queued:
            return None, True
        try:
            state = read_job(self._server, self._purpose, self.job, NEWEST, patience(self._polling))
            place = self._server, self._purpose, self.job, state
            for build in reversed(list(whole_builds(*place, self.first))):
                if self._is_same(build, build.get("timestamp")):
                    return TriggeredBuild(build.get("queueId"), int(build["number"])), True
            for item in queued_items(*place):
                if self._is_same(item, item.get("inQueueSince")):
                    return TriggeredBuild(int(item["id"])), True
        except ToolchainError:
            return None, False
        return None, True

    def _is_same(self, shown: Mapping[str, Any], begun: int | None) -> bool:
        """Return whether a build or queue item comes from the queue item that was read before."""
        since = self._queued.get("inQueueSince")
        later = since is None or begun is None or begun >= since
        same = values_of(shown) == values_of(self._queued)
        return later and same and users_of(shown) == users_of(self._queued)

    def _set_number(self, number: int) -> None:
        """Store the build number, and report the URL at once so that Ctrl-C cannot suppress it."""
        self._missing_since = None
        self.build = {"number": number}
        self._progress.say(f"{self.job.name} #{number}: started ({self.url})")

    def _missing(self, reason: str) -> None:
        now = self._polling.now()
        if self._missing_since is None:
            self._missing_since = now
        elif now - self._missing_since >= _GRACE:
            raise ToolchainError("failed", f"{self._purpose}: {reason}", status=404, method="GET")

    def _poll(self, path: str, tree: str) -> Response | None:
        """Send a read. Return `None` if the server is temporarily unreachable."""
        try:
            response = self._server.read(
                self._purpose,
                path,
                query={"tree": tree},
                expect=(200, 404),
                patience=patience(self._polling),
            )
            self._outage.is_over()
            return response
        except ToolchainError as error:
            if not self._outage.passes(error):
                raise
            self._progress.state(f"{self.job.name}: the server does not respond; still waiting")
            return None

    def _log(self) -> BuildLog | None:
        """Return the log of the build; `None` if no log lines are requested."""
        if self.console is None and self.number is not None and self._keep > 0:
            path = build_path(self.job, self.number)
            self.console = BuildLog(self._server, path, self._keep)
        return self.console

    def _report(self) -> None:
        line = f"{self.job.name} #{self.number}: running{_progress(self._estimate)}"
        if self.input is not None:
            line = f"{self.job.name} #{self.number}: waits for {described(self.input)}"
        console = self._log()
        if console is not None:
            console.read(patience(self._polling))
            words = console.last_words()
            line += f": {words}" if words else ""
        self._progress.running(line)


def _estimate(response: Response, build: Mapping[str, Any]) -> tuple[int, float] | None:
    """Return the percentage done and the seconds left, by the server's clock.

    Returns `None` if the server has no estimate.
    """
    estimated, started = build.get("estimatedDuration"), build.get("timestamp")
    if not isinstance(estimated, int) or not isinstance(started, int) or estimated <= 0:
        return None
    elapsed = _server_time(response) * 1000 - started
    return max(0, min(99, round(elapsed * 100 / estimated))), (estimated - elapsed) / 1000


def _progress(estimate: tuple[int, float] | None) -> str:
    if estimate is None:
        return ""
    percent, left = estimate
    time_left = f"about {left:.0f} s left" if left > 0 else "longer than estimated"
    return f", {percent} %, {time_left}"


def _server_time(response: Response) -> float:
    """Return the epoch seconds of the `Date` header, or of the local clock without the header."""
    return time.time() if response.date is None else response.date.timestamp()
