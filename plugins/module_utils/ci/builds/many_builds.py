# SPDX-License-Identifier: GPL-3.0-or-later
"""Run several builds in a single task: the option `builds` of `ci_job_build`."""

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
from . import parameters, records
from .build_request import BuildOptions, BuildRequest, Result, State, TriggerRule
from .build_watcher import BuildWatcher
from .parameters import Files, ListStyle, Parameters
from .trigger import BuildClaims


@dataclass(frozen=True, kw_only=True)
class BuildEntry:
    """Entry of the option `builds`. The options of the task are the defaults."""

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

    def merged_with(self, options: BuildOptions) -> BuildOptions:
        """Return the options of the task, overridden by the values of this entry."""
        values = {option.name: getattr(self, option.name) for option in fields(self)}
        overrides = {name: value for name, value in values.items() if value is not None}
        if self.state == "finished" != options.state:
            # the task's trigger and delay apply only to builds that the task starts
            overrides = {"trigger": "always", "delay": None, **overrides}
        return replace(options, **{"parameters": None, "files": None, **overrides})


class _ListedBuild:
    """An entry with its build request and its error."""

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
        """Run a step and store its error, which ends this entry only."""
        try:
            step()
        except ToolchainError as error:
            self.error = error

    def key(self) -> tuple[Any, ...]:
        """Return job, parameters and files, to find entries that request the same build.

        A parameter whose value the server does not return is compared by its value in the request.
        """
        wanted = self.request.wanted
        values = {name: parameters.comparable(value) for name, value in wanted.expected.items()}
        hidden = [pair for pair in wanted.form if pair[0] not in wanted.expected]
        files = tuple((file.name, file.src) for file in wanted.files)
        return self.request.job.path, tuple(sorted(values.items())), tuple(hidden), files


class ManyBuilds:
    """Starts several builds concurrently and waits for all. A failed build does not stop others.

    :param parallel: maximum number of concurrent requests
    :param make_polling: creates a `PollInterval` from a timeout and a maximum pause in seconds
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
        for index, entry in enumerate(builds):
            try:
                merged = entry.merged_with(options)
                request = BuildRequest(task, self._server, merged, make_polling, claims)
            except ToolchainError as error:
                error.message = f"builds[{index}]: {error.message}"
                raise
            self._entries.append(_ListedBuild(request))

    def plan(self) -> Plan:
        self._compare()
        to_start = [entry for entry in self._entries if entry.outstanding]
        joined = any(entry.joined for entry in self._entries)
        wanted = [
            {"job": entry.request.job.name, "parameters": entry.request.wanted.shown}
            for entry in to_start
        ]
        self._validate([entry for entry in self._entries if entry.request.finished is not None])
        plan = Plan({}, {"builds": wanted}, "run") if to_start else Plan({}, {}, waits=joined)
        result = self._result()
        return replace(plan, result=result, failure=self._failure(result, changed=bool(to_start)))

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        """Start the builds and wait for all. Raises a single error if any build failed."""
        wait = self._options.wait
        polling = self._make_polling(self._options.wait_timeout, self._options.poll_interval)
        with interruptible() as say:
            try:
                self._start([entry for entry in self._entries if entry.outstanding], wait)
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
        for _done in bounded(
            self._parallel, lambda entry: entry.attempt(entry.request.find), awaited
        ):
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
        """Read the job of these entries, with the largest number of builds that an entry needs."""
        request = max((entry.request for entry in entries), key=lambda request: request.lookback)
        try:
            return request.read()
        except ToolchainError as error:
            return error

    def _find_duplicates(self) -> None:
        """With `unless_successful`, link entries that request the same build to the first entry."""
        first: dict[tuple[Any, ...], _ListedBuild] = {}
        for entry in self._entries:
            if entry.outstanding and entry.request.if_needed:
                earlier = first.setdefault(entry.key(), entry)
                entry.same_as = None if earlier is entry else earlier

    def _start(self, to_start: Sequence[_ListedBuild], wait: bool) -> None:
        def ask(entry: _ListedBuild) -> None:
            entry.attempt(lambda: entry.request.ask(wait=wait))

        for entry in to_start:
            entry.request.announce()
        # The first request runs alone: it creates the session and the CSRF crumb for the others.
        for _done in first_alone(self._parallel, ask, to_start):
            pass
        asked = [entry for entry in to_start if entry.error is None]
        for _done in bounded(
            self._parallel, lambda entry: entry.attempt(entry.request.settle), asked
        ):
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
        """Evaluate finished builds. Read their logs first, because error messages quote them."""
        for _done in bounded(self._parallel, lambda entry: entry.request.followed.finish(), ended):
            pass
        for entry in ended:
            if entry.error is None:
                entry.attempt(entry.request.validate)

    def _interrupted(self, say: Callable[[str], None]) -> None:
        """After Ctrl-C, abandon all builds that have not ended, and report their states."""
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
        """Return a single error for all failed builds, or `None`."""
        errors = [entry.error for entry in self._entries if entry.error is not None]
        if not errors:
            return None
        kinds: set[Kind] = {error.kind for error in errors}
        messages = "; ".join(dict.fromkeys(error.message for error in errors))
        words = (
            f"{len(errors)} of {len(self._entries)} builds were unsuccessful: {shorten(messages)}"
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
