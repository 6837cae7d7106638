# SPDX-License-Identifier: GPL-3.0-or-later
"""Run many builds in a task: `ci_job_build` with `builds`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

from ...core.concurrency import bounded, first_alone
from ...core.errors import Kind, ToolchainError, shorten
from ...core.module.task import Task
from ...core.plan import Plan
from ...core.polling import PollInterval, PollTimeout
from ..client import server_of
from ..interrupts import interruptible
from ..job_address import JobName
from ..waiting import PollingFactory, require_at_least
from . import records
from .build_request import BuildOptions, BuildRequest, Result, State, TriggerRule
from .build_watcher import BuildWatcher
from .parameters import Files, ListStyle, Parameters
from .trigger import BuildClaims


@dataclass(frozen=True, kw_only=True)
class BuildEntry:
    """Entry of the option `builds`. Missing values are taken from the task."""

    job: JobName
    queue_id: int | None = None
    build: str | None = None
    state: State | None = None
    parameters: Parameters | None = None
    files: Files | None = None
    list_style: ListStyle | None = None
    trigger: TriggerRule | None = None
    accept: list[Result] | None = None
    delay: int | None = None

    def over(self, options: BuildOptions) -> BuildOptions:
        """Return the options of its build: its own values, otherwise those of the task."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        overrides = {name: value for name, value in values.items() if value is not None}
        if self.state == "finished" != options.state:
            # those of the task are for the builds that it starts
            overrides = {"trigger": "always", "delay": None, **overrides}
        return replace(options, **{"parameters": None, "files": None, **overrides})


class _ListedBuild:
    """The build of an entry; `error` is its failure."""

    def __init__(self, request: BuildRequest) -> None:
        self.request = request
        self.error: ToolchainError | None = None
        #: An earlier entry that requests the same build.
        self.same_as: _ListedBuild | None = None

    @property
    def outstanding(self) -> bool:
        return self.error is None and self.same_as is None and self.request.outstanding

    @property
    def joined(self) -> bool:
        """Return whether a running or queued build is followed."""
        return self.error is None and self.request.running is not None

    def attempt(self, step: Callable[[], Any]) -> None:
        """Run a step; an error ends this entry only."""
        try:
            step()
        except ToolchainError as error:
            self.error = error

    def key(self) -> tuple[Any, ...]:
        """Return job and parameters; parameters that cannot be compared are taken as sent."""
        wanted = self.request.wanted
        hidden = [pair for pair in wanted.form if pair[0] not in wanted.expected]
        files = tuple((file.name, file.src) for file in wanted.files)
        return self.request.job.path, tuple(sorted(wanted.expected.items())), tuple(hidden), files


class ManyBuilds:
    """Starts the builds of a list concurrently, follows them together, and evaluates them
    separately. A failed build does not stop the others.
    """

    def __init__(
        self,
        task: Task,
        options: BuildOptions,
        builds: Sequence[BuildEntry],
        parallel: int,
        make_polling: PollingFactory = PollInterval,
    ) -> None:
        require_at_least("parallel", parallel, 1)
        self._task, self._options, self._make_polling = task, options, make_polling
        self._parallel = parallel
        self._server = server_of(task)
        claims = BuildClaims()
        self._entries = []
        for place, entry in enumerate(builds):
            try:
                merged = entry.over(options)
                request = BuildRequest(task, self._server, merged, make_polling, claims)
            except ToolchainError as error:
                error.message = f"builds[{place}]: {error.message}"
                raise
            self._entries.append(_ListedBuild(request))

    def plan(self) -> Plan:
        self._compare()
        begun = [entry for entry in self._entries if entry.outstanding]
        joined = any(entry.joined for entry in self._entries)
        wanted = [
            {"job": entry.request.job.name, "parameters": entry.request.wanted.shown}
            for entry in begun
        ]
        self._validate([entry for entry in self._entries if entry.request.finished is not None])
        plan = Plan({}, {"builds": wanted}, "run") if begun else Plan({}, {}, waits=joined)
        result = self._result()
        return replace(plan, result=result, failure=self._failure(result, changed=bool(begun)))

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        """Start builds, wait for all, and evaluate them. Raises if a build failed."""
        wait = self._options.wait
        polling = self._make_polling(self._options.wait_timeout, self._options.poll_interval)
        with interruptible() as say:
            try:
                self._begin([entry for entry in self._entries if entry.outstanding], wait)
                if wait:
                    self._follow(polling)
            except KeyboardInterrupt:
                self._interrupted(say)
        result = self._result()
        started = any(entry.request.started for entry in self._entries)
        failure = self._failure(result, changed=started)
        if failure is not None:
            raise failure
        return result

    def _compare(self) -> None:
        """Read every job once, and decide which builds must be started."""
        awaited = [entry for entry in self._entries if entry.request.is_awaited]
        for _done in bounded(self._parallel, lambda one: one.attempt(one.request.find), awaited):
            pass
        by_job: dict[str, list[_ListedBuild]] = {}
        for entry in (entry for entry in self._entries if not entry.request.is_awaited):
            by_job.setdefault(entry.request.job.path, []).append(entry)
        states = bounded(self._parallel, self._read, list(by_job.values()))
        for entries, state in zip(by_job.values(), states, strict=True):
            for entry in entries:
                if isinstance(state, ToolchainError):
                    entry.error = state
                else:
                    entry.attempt(partial(entry.request.compare, state))
        self._find_duplicates()

    def _read(self, entries: Sequence[_ListedBuild]) -> records.JobState | ToolchainError:
        """Read the job of these entries, with enough builds for the entry that needs the most."""
        request = max((entry.request for entry in entries), key=lambda request: request.lookback)
        try:
            return request.read()
        except ToolchainError as error:
            return error

    def _find_duplicates(self) -> None:
        """Start a build that two entries request only once, with `unless_successful`."""
        first: dict[tuple[Any, ...], _ListedBuild] = {}
        for entry in self._entries:
            if entry.outstanding and entry.request.if_needed:
                earlier = first.setdefault(entry.key(), entry)
                entry.same_as = None if earlier is entry else earlier

    def _begin(self, begun: Sequence[_ListedBuild], wait: bool) -> None:
        def ask(entry: _ListedBuild) -> None:
            entry.attempt(lambda: entry.request.ask(wait=wait))

        for entry in begun:
            entry.request.announce()
        # alone, so that the others find its session and its CSRF crumb
        for _done in first_alone(self._parallel, ask, begun):
            pass
        asked = [entry for entry in begun if entry.error is None]
        for _done in bounded(self._parallel, lambda one: one.attempt(one.request.settle), asked):
            pass

    def _follow(self, polling: PollInterval) -> None:
        watched = {
            entry: entry.request.followed
            for entry in self._entries
            if entry.error is None and entry.same_as is None and entry.request.unfinished
        }
        for entry, build in watched.items():
            build.first = entry.request.first_number
        watcher = BuildWatcher(
            self._server,
            list(watched.values()),
            polling,
            self._task.progress,
            parallel=self._parallel,
        )
        try:
            watcher.follow()
        except PollTimeout:
            late = [entry for entry, build in watched.items() if build.open]
            errors = bounded(self._parallel, lambda entry: entry.request.out_of_time(), late)
            for entry, error in zip(late, errors, strict=True):
                entry.error = error
        for entry, build in watched.items():
            entry.error = entry.error or build.error
        self._validate([entry for entry, build in watched.items() if build.over])

    def _validate(self, ended: Sequence[_ListedBuild]) -> None:
        """Read the logs of builds first: the error message has their last lines."""
        for _done in bounded(self._parallel, lambda entry: entry.request.followed.finish(), ended):
            pass
        for entry in ended:
            if entry.error is None:
                entry.attempt(entry.request.validate)

    def _interrupted(self, say: Callable[[str], None]) -> None:
        """Report the fate of all builds that continue."""
        left = [
            entry
            for entry in self._entries
            if entry.error is None and entry.same_as is None and not entry.request.followed.over
        ]

        def leave(entry: _ListedBuild) -> None:
            words = entry.request.abandon(at_once=True)
            entry.error = ToolchainError("failed", f"interrupted; {words}")
            say(entry.error.message)

        for _done in bounded(self._parallel, leave, left):
            pass

    def _failure(self, result: Mapping[str, Any], *, changed: bool) -> ToolchainError | None:
        """Return a single error for all failures; `None` without failures."""
        wrong = [entry.error for entry in self._entries if entry.error is not None]
        if not wrong:
            return None
        kinds: set[Kind] = {error.kind for error in wrong}
        messages = "; ".join(dict.fromkeys(error.message for error in wrong))
        words = (
            f"{len(wrong)} of {len(self._entries)} builds were unsuccessful: {shorten(messages)}"
        )
        kind = kinds.pop() if len(kinds) == 1 else "failed"
        return ToolchainError(kind, words, result={**result, "changed": changed})

    def _result(self) -> dict[str, Any]:
        return {"builds": [self._row(entry) for entry in self._entries]}

    def _row(self, entry: _ListedBuild) -> dict[str, Any]:
        source = entry.same_as or entry
        error = source.error
        failure = None if error is None else self._task.failure(error)
        values = source.request.values()
        if entry.same_as is not None:
            values["joined"] = True
        return {
            "job": entry.request.job.name,
            **values,
            "ok": error is None,
            "msg": None if failure is None else failure["msg"],
            "error": None if failure is None else failure["error"],
        }
