# SPDX-License-Identifier: GPL-3.0-or-later
"""Poll builds until they end: a single build by its URL, many builds with a request per job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ...core.concurrency import bounded
from ...core.errors import ToolchainError
from ...core.http.messages import Response
from ...core.http.transport import Transport
from ...core.progress import PollInterval
from ..client import object_of, part
from ..job_address import Job
from ..waiting import Outage, patience
from . import records
from .followed_build import FollowedBuild, ProgressLines

_PURPOSE = "waiting for builds"
#: Number of additional builds to request per job, because other users may start builds too.
_EXTRA_BUILDS = 10


@dataclass
class _JobBuilds:
    """The followed builds of a job. `newest` is the highest build number seen so far."""

    job: Job
    builds: list[FollowedBuild] = field(default_factory=list)
    newest: int = 0

    @property
    def open(self) -> list[FollowedBuild]:
        return [build for build in self.builds if build.open]

    def tree(self) -> str:
        """Return the `tree` query for the newest builds, down to the oldest followed build."""
        numbers = [build.number or build.first for build in self.open]
        lowest = min(filter(None, numbers), default=self.newest + 1)
        count = max(0, self.newest - lowest + 1) + len(self.open) + _EXTRA_BUILDS
        name = "builds" if count <= records.NEWEST else "allBuilds"
        return f"queueItem[{records.ITEM_FIELDS}],{name}[{records.FOLLOWED_FIELDS}]{{0,{count}}}"


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

    def follow(self) -> None:
        """Wait until every build has ended or failed. Raises `PollTimeout` after the time limit."""
        at_once = self._each_state and all(build.number is not None for build in self._builds)
        while self._open:
            if not at_once:
                self._polling.pause(self._running(), self._expected())
            at_once = False
            if self._each_state:
                for build in self._open:
                    build.attempt(build.step)
            else:
                self._verify()
                self._report()

    def _running(self) -> str:
        if self._each_state:
            return "; ".join(build.running() for build in self._open)
        return f"{_PURPOSE}: {len(self._open)} are running"

    @property
    def _open(self) -> list[FollowedBuild]:
        return [build for build in self._builds if build.open]

    def _verify(self) -> None:
        groups = [group for group in self._groups if group.open]
        lost = [
            build for some in bounded(self._parallel, self._read_group, groups) for build in some
        ]
        if lost:
            self._search_builds(lost)

    def _read_group(self, group: _JobBuilds) -> list[FollowedBuild]:
        """Update the builds of a job. Return builds that its response does not contain."""
        read = self._read(group)
        if read is None:
            return []
        response, shown = read
        listed = records.listed(shown)
        group.newest = max([group.newest, *(record["number"] for record in listed)])
        complete = [record for record in listed if "result" in record]
        numbers = {record["number"]: record for record in complete}
        items = {record.get("queueId"): record for record in complete}
        waiting = part(shown.get("queueItem"))
        lost = []
        for build in group.open:
            if build.number is None and build.loses_item(response):
                lost.append(build)
                continue
            found = items.get(build.item) if build.number is None else numbers.get(build.number)
            if found is not None:
                build.attempt(partial(build.take_build, found, response))
            elif build.number is None and records.number_of(waiting.get("id")) == build.item:
                build.take_item(waiting)
            else:
                lost.append(build)
        return lost

    def _read(self, group: _JobBuilds) -> tuple[Response, Mapping[str, Any]] | None:
        """Return the response for a job and its JSON object.

        Returns `None` after an error. An error that waiting cannot solve is stored in the builds.
        """
        try:
            response = self._server.read(
                f"{_PURPOSE} of the job '{group.job.name}'",
                f"{group.job.path}/api/json",
                query={"tree": group.tree()},
                expect=(200, 404),
                patience=patience(self._polling),
            )
            self._outage.is_over()
            return response, object_of(response) if response.status == 200 else {}
        except ToolchainError as error:
            if self._outage.passes(error):
                self._progress.state("the server does not respond; still waiting")
            else:
                for build in group.open:
                    build.fail(error)
            return None

    def _search_builds(self, lost: Sequence[FollowedBuild]) -> None:
        """Update builds that the response for their job does not contain.

        A job shows only one of its queue items. Search the server's queue for the others, and poll
        the remaining builds separately.
        """
        unnamed = [build for build in lost if build.number is None and not build.is_lost]
        queue = self._queue() if unnamed else {}
        single = []
        for build in lost:
            item = queue.get(build.item) if build in unnamed else None
            if item is None:
                single.append(build)
            else:
                build.take_item(item)
        for _done in bounded(self._parallel, lambda build: build.attempt(build.step), single):
            pass

    def _queue(self) -> Mapping[int | None, Mapping[str, Any]]:
        try:
            items = records.queue(
                self._server, _PURPOSE, records.ITEM_FIELDS, patience(self._polling)
            )
        except ToolchainError:
            return {}
        return {item.get("id"): item for item in items or []}

    def _expected(self) -> float | None:
        """Return the estimated seconds until the next build ends; `None` without an estimate."""
        known = [build.expected or 0.0 for build in self._open]
        return min((seconds for seconds in known if seconds > 0), default=None)

    def _report(self) -> None:
        every = len(self._builds)
        for build in self._builds:
            if not build.open and build not in self._ended:
                self._ended.append(build)
                self._say(f"{_end_of(build)} ({len(self._ended)} of {every} done)")
        if self._open and self._progress.due():
            self._progress.running(f"{len(self._ended)} of {every} builds done{self._unfinished()}")

    def _unfinished(self) -> str:
        """Return the numbers of running and queued builds for the progress line."""
        running = [build for build in self._open if build.number is not None]
        queued = [build for build in self._open if build.number is None]
        left = max((build.expected or 0.0 for build in running), default=0.0)
        line = f", {len(running)} running"
        line += f" (about {left:.0f} s left)" if left > 0 else ""
        if queued:
            why = next((build.why for build in queued if build.why), "")
            line += f", {len(queued)} in the queue{f' ({why})' if why else ''}"
        return line


def _end_of(build: FollowedBuild) -> str:
    if build.error is not None:
        return f"{build.name}: {build.error.message}"
    return f"{build.name}: {(build.build or {}).get('result')}"
