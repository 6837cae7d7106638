# SPDX-License-Identifier: GPL-3.0-or-later
"""Follow many builds at once, with a request per job for all its builds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ...core.concurrency import bounded
from ...core.errors import ToolchainError
from ...core.http.messages import Response
from ...core.http.transport import Transport
from ...core.polling import PollInterval
from ..client import object_of, part
from ..job_address import Job
from . import records
from .build_watcher import BuildWatcher, ProgressLines, is_passing, patience

_WHAT = "waiting for builds"
#: Number of additional builds to read, which others may have started meanwhile.
_OTHERS = 10
_ITEM_FIELDS = "id,why,stuck"


@dataclass
class WatchedBuild:
    """A watched build; `error` is the reason why it is no longer followed.

    :param first: the lowest number that its build can have, `None` if it is not known
    """

    watcher: BuildWatcher
    first: int | None
    error: ToolchainError | None = None
    told: bool = False

    @property
    def open(self) -> bool:
        return self.error is None and not self.watcher.over

    def attempt(self, verify: Callable[[], None]) -> None:
        """Poll; an error ends the waiting for this build only."""
        try:
            verify()
        except ToolchainError as error:
            self.error = error


@dataclass
class _JobBuilds:
    """The builds of a job; `newest` is the highest number seen."""

    job: Job
    builds: list[WatchedBuild] = field(default_factory=list)
    newest: int = 0

    @property
    def open(self) -> list[WatchedBuild]:
        return [build for build in self.builds if build.open]

    def tree(self) -> str:
        """Return the query for the newest builds, back to the first one of ours."""
        numbers = [build.watcher.number or build.first for build in self.open]
        lowest = min(filter(None, numbers), default=self.newest + 1)
        count = max(0, self.newest - lowest + 1) + len(self.open) + _OTHERS
        name = "builds" if count <= records.NEWEST else "allBuilds"
        return f"queueItem[{_ITEM_FIELDS}],{name}[{records.FOLLOWED_FIELDS}]{{0,{count}}}"


class ManyBuildsWatcher:
    """Follows builds of any number of jobs to their ends.

    :param parallel: maximum number of concurrent requests
    :param say: receives a line per finished build, and a line about all builds per interval
    """

    def __init__(
        self,
        server: Transport,
        builds: Sequence[WatchedBuild],
        pace: PollInterval,
        say: Callable[[str], None],
        parallel: int,
    ) -> None:
        self._server, self._pace, self._say, self._parallel = server, pace, say, parallel
        self._progress = ProgressLines(say, pace)
        self._builds = list(builds)
        groups: dict[str, _JobBuilds] = {}
        for build in builds:
            job = build.watcher.job
            groups.setdefault(job.path, _JobBuilds(job)).builds.append(build)
        self._groups = list(groups.values())

    def follow(self) -> None:
        """Wait until every build has ended or failed. Raises `PollTimeout` after the time limit."""
        while self._open:
            self._pace.pause(f"{_WHAT}: {len(self._open)} go on", self._expected())
            self._verify()
            self._report()

    @property
    def _open(self) -> list[WatchedBuild]:
        return [build for build in self._builds if build.open]

    def _verify(self) -> None:
        groups = [group for group in self._groups if group.open]
        lost = [
            build for some in bounded(self._parallel, self._read_group, groups) for build in some
        ]
        if lost:
            self._search_builds(lost)

    def _read_group(self, group: _JobBuilds) -> list[WatchedBuild]:
        """Read a job; return builds that are neither in its list nor named as waiting."""
        read = self._read(group)
        if read is None:
            return []
        response, shown = read
        listed = records.listed(shown)
        group.newest = max([group.newest, *(record["number"] for record in listed)])
        whole = [record for record in listed if "result" in record]
        numbers = {record["number"]: record for record in whole}
        items = {record.get("queueId"): record for record in whole}
        waiting = part(shown.get("queueItem"))
        lost = []
        for build in group.open:
            watcher = build.watcher
            found = (
                items.get(watcher.item) if watcher.number is None else numbers.get(watcher.number)
            )
            if found is not None:
                build.attempt(partial(watcher.take_build, found, response))
            elif watcher.number is None and records.number_of(waiting.get("id")) == watcher.item:
                watcher.take_item(waiting)
            else:
                lost.append(build)
        return lost

    def _read(self, group: _JobBuilds) -> tuple[Response, Mapping[str, Any]] | None:
        """Return the response for a job and its object; `None` while the server is unreachable."""
        try:
            response = self._server.read(
                f"{_WHAT} of the job '{group.job.name}'",
                f"{group.job.path}/api/json",
                query={"tree": group.tree()},
                expect=(200, 404),
                patience=patience(self._pace),
            )
            return response, object_of(response) if response.status == 200 else {}
        except ToolchainError as error:
            if is_passing(error):
                self._progress.state("the server does not respond, still waiting")
            else:
                for build in group.open:
                    build.error = error
            return None

    def _search_builds(self, lost: Sequence[WatchedBuild]) -> None:
        """Find builds that the job does not show, because it names only a single queue item: search
        the queue, then follow the other builds separately.
        """
        unnamed = [build for build in lost if build.watcher.number is None]
        queue = self._queue() if unnamed else {}
        single = []
        for build in lost:
            item = None if build.watcher.number else queue.get(build.watcher.item)
            if item is None:
                single.append(build)
            else:
                build.watcher.take_item(item)
        for _done in bounded(self._parallel, lambda one: one.attempt(one.watcher.step), single):
            pass

    def _queue(self) -> Mapping[int | None, Mapping[str, Any]]:
        try:
            items = records.queue(self._server, _WHAT, _ITEM_FIELDS, patience(self._pace))
        except ToolchainError:
            return {}
        return {item.get("id"): item for item in items or []}

    def _expected(self) -> float | None:
        """Return the seconds until the first expected end."""
        known = [build.watcher.expected or 0.0 for build in self._open]
        return min((seconds for seconds in known if seconds > 0), default=None)

    def _report(self) -> None:
        every = len(self._builds)
        done = sum(build.told for build in self._builds)
        for build in self._builds:
            if not build.open and not build.told:
                build.told, done = True, done + 1
                self._say(f"{_end_of(build)} ({done} of {every} done)")
        if self._open and self._progress.due():
            self._progress.running(f"{done} of {every} builds done{self._rest()}")

    def _rest(self) -> str:
        """Describe the builds that have not ended."""
        running = [build.watcher for build in self._open if build.watcher.number is not None]
        queued = [build.watcher for build in self._open if build.watcher.number is None]
        left = max((watcher.expected or 0.0 for watcher in running), default=0.0)
        line = f", {len(running)} running"
        line += f" (about {left:.0f} s left)" if left > 0 else ""
        if queued:
            why = next((watcher.why for watcher in queued if watcher.why), "")
            line += f", {len(queued)} in the queue{f' ({why})' if why else ''}"
        return line


def _end_of(build: WatchedBuild) -> str:
    watcher = build.watcher
    name = watcher.job.name if watcher.number is None else f"{watcher.job.name} #{watcher.number}"
    if build.error is not None:
        return f"{name}: {build.error.message}"
    return f"{name}: {(watcher.build or {}).get('result')}"
