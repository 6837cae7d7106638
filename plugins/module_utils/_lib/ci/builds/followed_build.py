# SPDX-License-Identifier: GPL-3.0-or-later
"""Follow builds from the queue item to the result: a single build by its URL, many builds with a
request per job.

Server facts [ci-8, ci-9]: a queue item contains the number of its build once the build has
started. The server forgets the item five minutes later; after that, only `queueId` of the build
refers to the item. A new item may be unknown for a moment. During a restart the server refuses
connections or returns 503; pipeline builds continue after the restart.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from ...core.concurrency import bounded
from ...core.errors import ToolchainError
from ...core.http.messages import Response
from ...core.http.transport import Transport
from ...core.json_text import json_objects
from ...core.progress import PollInterval
from ..client import object_of, part
from ..job_address import Job, build_path, same_job
from ..waiting import Outage, patience
from . import records
from .build_log import BuildLog
from .parameters import values_of
from .records import ITEM_FIELDS, NEWEST, TriggeredBuild, described, number_of, truth, typed

#: What to do if the build waits for an input: fail, or continue to wait.
OnInput = Literal["fail", "wait"]

#: Seconds of 404 responses after which an item or build counts as deleted.
_GRACE = 15.0
#: Seconds to wait for the result of a build that has stopped running.
_RESULT_GRACE = 3.0
_SEARCH_TREE = f"inQueue,queueItem[id,why],builds[number,queueId]{{0,{NEWEST}}}"
_PURPOSE = "waiting for builds"
#: Number of additional builds to request per job, because other users may start builds too.
_EXTRA_BUILDS = 10


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
        return self._stayed_idle or (self.build is not None and records.is_over(self.build))

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

    def attempt(self, step: Callable[[], object]) -> None:
        """Run a step and store its error, which ends the work on this build only."""
        try:
            step()
        except ToolchainError as error:
            self.error = error

    def step(self) -> None:
        """Poll once: the queue item, or the build if it has a number."""
        if self.number is None and self.item is not None:
            self._read_item(self.item)
        number = self.number
        if number is None:
            return
        response = self._poll(f"{build_path(self.job, number)}/api/json", records.FOLLOWED_FIELDS)
        if response is not None and response.status == 404:
            self._missing(f"build #{number} is no longer on the server")
        elif response is not None:
            shown = {**object_of(response), "number": number}
            if not records.shows_state(shown):
                listed = self._poll(f"{self.job.path}/api/json", records.SUMMARIES)
                if listed is None:
                    return
                shown = {**records.summary(listed, number), **shown}
            self.take_build(shown, response)
            if not self.over and self._progress.due():
                self._report()

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
        if not records.is_idle(self.build):
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = now
        idle_since = now if self._idle_since is None else self._idle_since
        self._stayed_idle = now - idle_since >= _RESULT_GRACE
        self._estimate = None if self.over else _estimate(response, self.build)
        self.input = None if self.over else next(iter(records.pending_inputs(shown)), None)
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
            response = self._poll(
                f"queue/item/{item}/api/json", f"{ITEM_FIELDS},executable[number]"
            )
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
        session = records.session_of(response)
        if not self._session or not session:
            self._session = self._session or session
            # without the mark, an outage is the only sign
            self.is_lost = not session and self._outage.seen and response.status == 404
        else:
            self.is_lost = session != self._session
        return self.is_lost

    def _search(self, item: int) -> None:
        """Search the job and its builds for an item that the server no longer knows."""
        response = self._poll(f"{self.job.path}/api/json", _SEARCH_TREE)
        if response is None or response.status == 404:
            return
        if self.loses_item(response):
            self._find_again(item)
            return
        shown = object_of(response)
        listed = [typed(build) for build in json_objects(shown.get("builds"))]
        ours = next((build for build in listed if build.get("queueId") == item), {})
        number = number_of(ours.get("number"))
        if listed and not any(build.get("queueId") for build in listed):
            # the server does not show from which items its builds came
            found = self.find()[0]
            number = None if found is None else found.number
        if number is not None:
            self._set_number(number)
        elif truth(shown.get("inQueue")):
            self.take_item(part(shown.get("queueItem")))
        else:
            self._missing(
                f"queue item {item} disappeared without starting a build: it was probably cancelled"
            )

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

        This finds a build whose queue item was read before, by its parameters, cause and time.
        """
        queued = self._queued
        if "actions" not in queued:
            return None, True
        since = queued.get("inQueueSince")

        def is_same(found: TriggeredBuild, shown: Mapping[str, Any], _job: object) -> bool:
            begun = shown.get("inQueueSince" if found.number is None else "timestamp")
            later = since is None or begun is None or begun >= since
            same = values_of(shown) == values_of(queued)
            return later and same and records.users_of(shown) == records.users_of(queued)

        seconds = patience(self._polling)
        place = self._server, self._purpose, self.job
        return records.find_build(*place, is_same, NEWEST, since=self.first, patience=seconds)

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
        wait, query = patience(self._polling), {"tree": tree}
        try:
            response = self._server.read(
                self._purpose, path, query=query, expect=(200, 404), patience=wait
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
        """Write the progress line about the running build, with the last line of its log."""
        line = f"{self.job.name} #{self.number}: running"
        if self._estimate is not None:
            percent, left = self._estimate
            time_left = f"about {left:.0f} s left" if left > 0 else "longer than estimated"
            line += f", {percent} %, {time_left}"
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
    now = time.time() if response.date is None else response.date.timestamp()
    elapsed = now * 1000 - started
    return max(0, min(99, round(elapsed * 100 / estimated))), (estimated - elapsed) / 1000


@dataclass
class _JobBuilds:
    """The followed builds of a job. `newest` is the highest build number seen so far."""

    job: Job
    builds: list[FollowedBuild] = field(default_factory=list)
    newest: int = 0

    @property
    def open(self) -> list[FollowedBuild]:
        return [build for build in self.builds if build.open]


def follow(
    server: Transport, build: FollowedBuild, polling: PollInterval, say: Callable[[str], None]
) -> None:
    """Poll a single build until it ends, and report each change of its state to `say`.

    Raises the error of the build, or `PollTimeout` after the time limit.
    """
    BuildWatcher(server, [build], polling, say, each_state=True).follow()
    if build.error is not None:
        raise build.error


class BuildWatcher:
    """Polls builds of several jobs until they end.

    :param say: receives a line per finished build, and a summary per polling interval
    :param each_state: poll builds separately, and report every change of their states
    :param parallel: maximum number of concurrent requests
    """

    def __init__(
        self,
        server: Transport,
        builds: Sequence[FollowedBuild],
        polling: PollInterval,
        say: Callable[[str], None],
        *,
        each_state: bool = False,
        parallel: int = 1,
    ) -> None:
        self._server, self._polling, self._say, self._parallel = server, polling, say, parallel
        self._progress, self._outage = ProgressLines(say, polling), Outage(server, polling.now)
        self._builds, self._each_state = list(builds), each_state
        self._ended: list[FollowedBuild] = []
        groups: dict[str, _JobBuilds] = {}
        for build in builds:
            build.report_to(polling, say if each_state else lambda line: None)
            groups.setdefault(build.job.path, _JobBuilds(build.job)).builds.append(build)
        self._groups = list(groups.values())

    @property
    def _open(self) -> list[FollowedBuild]:
        return [build for build in self._builds if build.open]

    def follow(self) -> None:
        """Wait until every build has ended or failed. Raises `PollTimeout` after the time limit."""
        at_once = self._each_state and all(build.number is not None for build in self._builds)
        while self._open:
            if not at_once:
                running = f"{_PURPOSE}: {len(self._open)} are running"
                if self._each_state:
                    running = "; ".join(build.running() for build in self._open)
                estimates = [build.expected or 0.0 for build in self._open]
                expected = min((seconds for seconds in estimates if seconds > 0), default=None)
                self._polling.pause(running, expected)
            at_once = False
            if self._each_state:
                for build in self._open:
                    build.attempt(build.step)
            else:
                self._poll_jobs()
                self._report()

    def _poll_jobs(self) -> None:
        """Update the builds with a request per job.

        The response for a job shows only one of its queue items. Search the server's queue for the
        others, and poll the remaining builds separately.
        """
        groups = [group for group in self._groups if group.open]
        read = bounded(self._parallel, self._read_job, groups)
        lost = [build for builds in read for build in builds]
        items: dict[int | None, Mapping[str, Any]] = {}
        if any(build.number is None and not build.is_lost for build in lost):
            with suppress(ToolchainError):
                wait = patience(self._polling)
                queue = records.queue(self._server, _PURPOSE, ITEM_FIELDS, wait)
                items = {item.get("id"): item for item in queue or ()}
        single = []
        for build in lost:
            waiting = build.number is None and not build.is_lost
            item = items.get(build.item) if waiting else None
            if item is None:
                single.append(build)
            else:
                build.take_item(item)
        for _done in bounded(self._parallel, lambda build: build.attempt(build.step), single):
            pass

    def _read_job(self, group: _JobBuilds) -> list[FollowedBuild]:
        """Update the builds of a job. Return builds that its response does not contain.

        An error that waiting cannot solve is stored in the builds.
        """
        numbers = [build.number or build.first for build in group.open]
        lowest = min(filter(None, numbers), default=group.newest + 1)
        count = max(0, group.newest - lowest + 1) + len(group.open) + _EXTRA_BUILDS
        name = "builds" if count <= NEWEST else "allBuilds"
        listed = f"{name}[{records.FOLLOWED_FIELDS}]{{0,{count}}}"
        try:
            response = self._server.read(
                f"{_PURPOSE} of the job '{group.job.name}'",
                f"{group.job.path}/api/json",
                query={"tree": f"queueItem[{ITEM_FIELDS}],{listed}"},
                expect=(200, 404),
                patience=patience(self._polling),
            )
            self._outage.is_over()
            shown = object_of(response) if response.status == 200 else {}
        except ToolchainError as error:
            if self._outage.passes(error):
                self._progress.state("the server does not respond; still waiting")
                return []
            for build in group.open:
                build.error = error
            return []
        builds = records.listed(shown)
        group.newest = max([group.newest, *(record["number"] for record in builds)])
        complete = [record for record in builds if "result" in record]
        by_number = {record["number"]: record for record in complete}
        by_item = {record.get("queueId"): record for record in complete}
        waiting = part(shown.get("queueItem"))
        lost = []
        for build in group.open:
            if build.number is None and build.loses_item(response):
                lost.append(build)
                continue
            found = by_item.get(build.item) if build.number is None else by_number.get(build.number)
            if found is not None:
                build.attempt(partial(build.take_build, found, response))
            elif build.number is None and number_of(waiting.get("id")) == build.item:
                build.take_item(waiting)
            else:
                lost.append(build)
        return lost

    def _report(self) -> None:
        """Write a line for each build that has ended, and when due one about the others."""
        every = len(self._builds)
        for build in self._builds:
            if not build.open and build not in self._ended:
                self._ended.append(build)
                end = (
                    (build.build or {}).get("result")
                    if build.error is None
                    else build.error.message
                )
                self._say(f"{build.name}: {end} ({len(self._ended)} of {every} done)")
        if not self._open or not self._progress.due():
            return
        running = [build for build in self._open if build.number is not None]
        queued = [build for build in self._open if build.number is None]
        left = max((build.expected or 0.0 for build in running), default=0.0)
        line = f"{len(self._ended)} of {every} builds done, {len(running)} running"
        line += f" (about {left:.0f} s left)" if left > 0 else ""
        if queued:
            why = next((build.why for build in queued if build.why), "")
            line += f", {len(queued)} in the queue{f' ({why})' if why else ''}"
        self._progress.running(line)
