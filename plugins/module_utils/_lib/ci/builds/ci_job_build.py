# SPDX-License-Identifier: GPL-3.0-or-later
"""Start builds, unless they exist already, and wait for their results: `ci_job_build` [C3.1]."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, ClassVar, Literal, TypeVar

from ...core.concurrency import bounded, first_alone
from ...core.errors import Kind, ToolchainError, invalid, shorten
from ...core.http.messages import Response
from ...core.http.transport import Transport
from ...core.module import typed_options
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import NotNegative, Positive, Seconds
from ...core.operations.objects import failure_of
from ...core.plan import Plan
from ...core.progress import PollInterval, PollTimeout
from ..client import BUILD, SEES_JOB, server_of
from ..job_address import JobName, build_path, build_segment, job_of
from ..service import SERVICE
from ..waiting import PollingFactory, Timeout, WaitOptions, interruptible
from . import followed_build, parameters, queue_item, records
from .followed_build import BuildWatcher, FollowedBuild, OnInput
from .parameters import Files, ListStyle, Parameters, WantedParameters
from .queue_item import QueueItem
from .records import JobState, Result, TriggeredBuild
from .trigger import BuildClaims, Trigger

Item = TypeVar("Item")
Done = TypeVar("Done")

TriggerRule = Literal["always", "unless_successful"]
#: `started`: start a build. `finished`: wait for a build that an earlier task started.
State = Literal["started", "finished"]

#: Maximum seconds to wait for the end of a build after a stop request.
_STOP_SECONDS = 10.0
#: Maximum seconds for the stop request after Ctrl-C.
_INTERRUPT_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True)
class BuildOptions(WaitOptions):
    """Options for a build. `job` is only missing if the option `builds` lists the jobs."""

    job: JobName | None = None
    queue_id: Positive | None = None
    build: str | None = None
    state: State = "started"
    parameters: Parameters | None = None
    files: Files | None = None
    list_style: ListStyle = "repeat"
    trigger: TriggerRule = "always"
    lookback: Positive = 50
    wait_timeout: Timeout = 3600
    stop_on_timeout: bool = False
    on_input: OnInput = "fail"
    poll_interval: Seconds = 5
    accept: list[Result] = field(default_factory=lambda: ["SUCCESS"])
    console_lines: NotNegative = 20
    delay: NotNegative | None = None

    option_rules: ClassVar[tuple[Rule, ...]] = (
        Rule("queue_id", "build", requires="state=finished"),
        Rule("queue_id", forbids="build"),
        Rule("state=finished", forbids=("parameters", "files", "delay", "trigger", "wait=false")),
    )

    def check(self) -> None:
        super().check()
        if not self.accept:
            raise invalid("accept is empty: list at least one result")


@dataclass(frozen=True, kw_only=True)
class BuildEntry:
    """Entry of the option `builds`. The options of the task are the defaults."""

    job: JobName
    queue_id: Positive | None = None
    build: str | None = None
    state: State | None = None
    parameters: Parameters | None = None
    files: Files | None = None
    list_style: ListStyle | None = None
    trigger: TriggerRule | None = None
    accept: list[Result] | None = None
    delay: NotNegative | None = None

    def merged_with(self, options: BuildOptions) -> BuildOptions:
        """Return the options of the task, overridden by the values of this entry.

        Raises `invalid` for contradictory options.
        """
        values = {option.name: getattr(self, option.name) for option in fields(self)}
        overrides = {name: value for name, value in values.items() if value is not None}
        if self.state == "finished" != options.state:
            # the task's trigger and delay apply only to builds that the task starts
            overrides = {"trigger": "always", "delay": None, **overrides}
        merged = replace(options, **{"parameters": None, "files": None, **overrides})
        typed_options.check(merged)
        return merged


@dataclass(frozen=True, kw_only=True)
class CiJobBuildOptions(BuildOptions):
    """The options of `ci_job_build`."""

    builds: list[BuildEntry] | None = None
    parallel: Positive = 4

    constraints: ClassVar[dict[str, Any]] = {
        "required_one_of": [("job", "builds")],
        "mutually_exclusive": [
            *((name, "builds") for name in ("job", "queue_id", "build", "parameters", "files")),
        ],
    }


class BuildRequest:
    """A build of a job that a task requests, and after `resolve` what the reads have found.

    :param make_polling: creates a `PollInterval` from a timeout and a maximum pause in seconds
    :ivar wanted: its parameters, as the job defines them, and its files
    :ivar state: state of the job before the start
    :ivar found: existing build that satisfies the request: finished, running or queued
    :ivar response: response that contains `found`, if an earlier task started that build
    :ivar error: error for which no build can be started or followed
    """

    def __init__(
        self, task: Task, server: Transport, options: BuildOptions, make_polling: PollingFactory
    ) -> None:
        self.task, self.server, self.options = task, server, options
        self.make_polling = make_polling
        self.job = job_of(options.job, task.connection.url)
        self._files = parameters.file_parts(options.files or {}, "files")
        self._is_awaited = options.state == "finished"
        self._build = None if options.build is None else build_segment(options.build)
        self.purpose = f"building the job '{self.job.name}'"
        named = options.queue_id is not None or options.build is not None
        if self._is_awaited and not named and task.predictions.get("build", self.job.name) is None:
            raise invalid("state is finished, which requires queue_id or build")
        self.wanted, self.state = WantedParameters(), JobState()
        self.found: TriggeredBuild | None = None
        self.response: Response | None = None
        self.error: ToolchainError | None = None

    @property
    def source(self) -> Hashable:
        """Return a key that is equal for requests that a single read of their job resolves."""
        return self if self._is_awaited else self.job.path

    @property
    def outstanding(self) -> bool:
        """Return whether a build must be started."""
        return not self._is_awaited and self.found is None and self.error is None

    @property
    def key(self) -> Hashable:
        """Return a key that is equal for requests of the same build with `unless_successful`.

        It has job, parameters and files. A parameter whose value the server does not return is
        compared by its value in the request.
        """
        if not self.outstanding or self.options.trigger == "always":
            return self
        wanted = self.wanted
        values = {name: parameters.comparable(value) for name, value in wanted.expected.items()}
        hidden = tuple(pair for pair in wanted.form if pair[0] not in wanted.expected)
        files = tuple((file.name, file.src) for file in wanted.files)
        return self.job.path, tuple(sorted(values.items())), hidden, files

    @staticmethod
    def resolve(requests: Sequence[BuildRequest]) -> None:
        """Read the state on the server for requests with the same `source`.

        An error is stored in the requests.
        """

        def lookback(request: BuildRequest) -> int:
            return 1 if request.options.trigger == "always" else request.options.lookback

        first = max(requests, key=lookback)
        try:
            if first._is_awaited:
                first._find()
                return
            state = first._read(lookback(first))
            polling = first.make_polling(records.STARTING_SECONDS, first.options.poll_interval)
            compares = any(request.options.trigger == "unless_successful" for request in requests)
            while compares and state.lacks_newest and polling.left:
                polling.pause(first.purpose)
                state = first._read(lookback(first))
        except ToolchainError as error:
            for request in requests:
                request.error = error
            return
        for request in requests:
            request.state = state
            try:
                request._compare()
            except ToolchainError as error:
                request.error = error

    def _read(self, lookback: int) -> JobState:
        """Read the current state of the job and its newest builds."""
        purpose = f"reading the job '{self.job.name}'"
        try:
            return records.read_job(self.server, purpose, self.job, lookback)
        except ToolchainError as error:
            predicted = self.task.predictions.get("job", self.job.name)
            if error.kind != "not_found" or predicted is None or "jobs" in predicted:
                raise
            # check mode: an earlier task would create the job, so its parameters are unknown
            return JobState(buildable=bool(predicted["buildable"]))

    def _find(self) -> None:
        """Find the build that an earlier task started.

        Raises `failed` for a cancelled queue item.
        """
        purpose = f"waiting for a build of the job '{self.job.name}'"
        item, segment = self.options.queue_id, self._build
        if item is not None:
            polling = self.make_polling(queue_item.ITEM_SECONDS, self.options.poll_interval)
            number = QueueItem(self.server, self.job, item, purpose).build_number(polling)
            if number is None:
                self.found = TriggeredBuild(item)
                return
            segment = str(number)
        if segment is None:  # check mode: an earlier task would start the build
            return
        polling = self.make_polling(records.STARTING_SECONDS, self.options.poll_interval)
        records.await_newest(self.server, purpose, self.job, segment, polling)
        build, self.response = records.read_build(self.server, purpose, self.job, segment)
        self.found = TriggeredBuild(item, build["number"], build=build)

    def _compare(self) -> None:
        """Search the existing builds, and warn about parameters that cannot be compared or sent.

        Raises `rejected` for invalid parameters, and `conflict` for a disabled job.
        """
        given, style = self.options.parameters or {}, self.options.list_style
        definitions = self.state.definitions
        wanted = parameters.wanted(given, definitions, style, self.job.name, self._files)
        for secret in filter(None, wanted.secrets):
            self.task.hide(secret)
        if self.options.trigger == "unless_successful":
            unknown = list(wanted.incomparable)
            for build, shown in self._existing():
                if parameters.equal(wanted, shown):
                    self.found = build
                    unknown += parameters.hidden(wanted, shown)
                    break
            if unknown:
                self.task.warn(
                    f"{self.purpose}: builds are compared without {', '.join(unknown)}, because the"
                    " server does not return the values"
                )
        if definitions is not None and wanted.repeated:
            self.task.warn(
                f"{self.purpose}: most servers accept only one value for a parameter of the type of"
                f" {', '.join(wanted.repeated)}, and reject a list: set list_style to comma"
            )
        self.wanted = wanted
        if self.found is None and not self.state.buildable:
            message = f"{self.purpose}: the job is disabled on the server"
            raise ToolchainError("conflict", message)

    def _existing(self) -> Iterator[tuple[TriggeredBuild, Mapping[str, Any]]]:
        """Yield the builds of the job: accepted, running, and then queued builds."""

        def is_accepted(build: Mapping[str, Any]) -> bool:
            return build.get("result") in self.options.accept and records.is_over(build)

        place = self.server, self.purpose, self.job, self.state
        for is_wanted in (is_accepted, records.is_running):
            for build in filter(is_wanted, records.whole_builds(*place)):
                yield TriggeredBuild(build.get("queueId"), build["number"], build=build), build
        for item in records.queued_items(*place):
            yield TriggeredBuild(int(item["id"])), item


class RequestedBuild(FollowedBuild):
    """A requested build: started if necessary, followed to its end, and validated."""

    def __init__(self, request: BuildRequest) -> None:
        options, found = request.options, request.found
        super().__init__(
            request.server,
            request.job,
            request.make_polling(0, 1),
            keep=options.console_lines,
            on_input=options.on_input,
            found=found,
            first=request.state.next_number,
            session=request.state.session,
        )
        self.request = request
        self._task, self._options = request.task, options
        self._trigger: Trigger | None = None
        self._find_started: Callable[[], TriggeredBuild] | None = None
        self.started = False
        if found is not None and found.build is not None and request.response is not None:
            self.attempt(partial(self.take_build, found.build, request.response))
        #: Whether the build is one that existed before.
        self.joined = found is not None and not self.over
        self.error = self.error or request.error
        # the result has the item of a build that cannot be followed, too
        self.item = self.item or options.queue_id

    @property
    def is_known(self) -> bool:
        """Return whether the build has a queue item or a number, or an earlier task started it."""
        awaited = self._options.state == "finished"
        return awaited or self.item is not None or self.number is not None

    def ask(self, claims: BuildClaims) -> None:
        """Send the trigger. Call `settle` after the triggers of all builds of the task."""
        options, request = self._options, self.request
        user = self._task.connection.username
        self._trigger = Trigger(
            self._server, self.job, request.state, request.wanted, user=user, claims=claims
        )
        limit = options.wait_timeout if options.wait else None
        started = self._trigger.send(options.delay, self._short_polling, wait=limit)
        if isinstance(started, TriggeredBuild):
            self._take_started(started)
        else:
            self._find_started = started

    def settle(self) -> None:
        """Search for the started build if the response did not contain its queue item."""
        if self._find_started is not None:
            self._take_started(self._find_started())

    def find(self) -> tuple[TriggeredBuild | None, bool]:
        return super().find() if self._trigger is None else self._trigger.find()

    def validate(self) -> None:
        """Raise `failed` if the result of the build is not in `accept`."""
        build, accept = self.build or {}, self._options.accept
        if build.get("result") in accept:
            return
        reason = "" if self.console is None else self.console.reason()
        raise ToolchainError(
            "failed",
            f"{self.request.purpose}: build #{build.get('number')} ended with"
            f" {build.get('result') or 'no result'} instead of {' or '.join(accept)}"
            f" ({self.url}){': ' if reason else ''}{shorten(reason)}",
            url=self.url,
            detail=reason or None,
        )

    def abandon(self, *, at_once: bool) -> str:
        """Stop waiting for the build, and return its state for a message. With `stop_on_timeout`
        the build is stopped if this task started it.

        :param at_once: whether to return without waiting for the end of the stopped build
        """
        purpose = self.request.purpose
        if self.request.outstanding and self._trigger is None:
            return f"{purpose}: the build was not started"
        if not self._options.stop_on_timeout or not self.started or self.joined:
            return self.running()
        try:
            return f"{purpose}: {self._stopped(at_once)} ({self.url})"
        except ToolchainError as error:
            return f"{self.running()}, and it could not be stopped: {error.message}"

    def run_out_of_time(self) -> None:
        """Store the error after `wait_timeout`. Its kind is `waiting` if the build waits for an
        input, otherwise `timeout`.
        """
        limit = f"wait_timeout ({self._options.wait_timeout:g} s)"
        message = f"{self.abandon(at_once=False)}; {limit} expired"
        kind: Kind = "timeout" if self.input is None else "waiting"
        self.error = PollTimeout(kind, message)

    def values(self) -> dict[str, Any]:
        """Return the return values `build`, `queue_id`, `console` and `joined`."""
        console, wanted = self.console, dict(self.request.wanted.shown)
        if console is not None and console.error is not None:
            self._task.warn(
                f"{self.request.purpose}: the console log is missing: {console.error.message}"
            )
        build = records.shown(self.build or {}, self.job, self._task.connection.url)
        if "actions" not in (self.build or {}):
            build["parameters"] = wanted
        item = build["queue_id"] if self.item is None else self.item
        return {
            "build": {**build, "queue_id": item, "input": self.input},
            "queue_id": item,
            "console": [] if console is None else console.lines(),
            "joined": self.joined,
        }

    def _take_started(self, triggered: TriggeredBuild) -> None:
        if triggered.item is None and triggered.number is None:
            self._task.warn(f"{self.request.purpose}: the response does not contain the queue item")
        self.started, self.joined = True, triggered.folded
        self.take(triggered)

    def _short_polling(self, timeout: float) -> PollInterval:
        return self.request.make_polling(timeout, self._options.poll_interval)

    def _stopped(self, at_once: bool) -> str:
        """Stop the build or cancel its queue item. Return the outcome for a message."""
        patience = _INTERRUPT_SECONDS if at_once else None
        purpose = f"stopping a build of the job '{self.job.name}'"
        if self.number is None and self.item is not None:
            if queue_item.cancel(self._server, purpose, self.item, patience=patience):
                return f"queue item {self.item} was cancelled"
            self.step()
        number = self.number
        if number is None:
            raise ToolchainError("failed", f"{purpose}: the build has no number yet")
        try:
            path = build_path(self.job, number)
            queue_item.send(self._server, purpose, path, "stop", patience=patience)
        except ToolchainError as error:
            if not error.outcome_unknown:
                raise
        if at_once:
            return f"build #{number} was asked to stop"
        try:
            polling = self._short_polling(_STOP_SECONDS)
            followed_build.follow(self._server, self, polling, lambda line: None)
        except PollTimeout:
            return f"build #{number} was asked to stop, but is still running"
        return f"build #{number} was stopped"


class CiJobBuildOperation:
    """Runs a single build, or the builds of the option `builds` concurrently.

    A failed build does not stop others.

    :param make_polling: creates a `PollInterval` from a timeout and a maximum pause in seconds
    """

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {
            **dict.fromkeys(
                ("start", "parameters", "many"), writes(*SEES_JOB, unforeseen=(BUILD,))
            ),
            **dict.fromkeys(("queue item", "follow", "result", "log", "join"), reads(*SEES_JOB)),
        },
        kind="job",
        name="{job}",
    )

    def __init__(
        self, task: Task, options: CiJobBuildOptions, make_polling: PollingFactory = PollInterval
    ) -> None:
        self._task, self._options, self._make_polling = task, options, make_polling
        self._server, self._listed = server_of(task), options.builds is not None
        self._requests = [self._request(options)] if options.builds is None else []
        defaults = replace(options, builds=None)
        for index, entry in enumerate(options.builds or ()):
            try:
                self._requests.append(self._request(entry.merged_with(defaults)))
            except ToolchainError as error:
                error.message = f"builds[{index}]: {error.message}"
                raise

    def _request(self, options: BuildOptions) -> BuildRequest:
        return BuildRequest(self._task, self._server, options, self._make_polling)

    def lock_names(self) -> list[str]:
        """Return the names of the jobs for the locks of the run."""
        return [request.job.name for request in self._requests]

    def plan(self) -> Plan:
        builds = self._read()
        to_start = [build for build in dict.fromkeys(builds) if build.request.outstanding]
        self._validate([build for build in builds if build.over])
        failure = self._failure(builds, changed=bool(to_start))
        if failure is not None and not self._listed:
            raise failure
        wanted = [
            {"job": build.job.name, "parameters": build.request.wanted.shown} for build in to_start
        ]
        plan = Plan({}, {}, waits=any(build.open and build.joined for build in builds))
        if wanted:
            after = {"builds": wanted} if self._listed else {"build": wanted[0]}
            plan = Plan({}, after, "run")
        return replace(plan, result=self._result(builds), failure=failure, data=builds)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        """Start the builds and wait for all. Raises a single error if any build failed."""
        builds: Sequence[RequestedBuild] = plan.data
        polling = self._make_polling(self._options.wait_timeout, self._options.poll_interval)
        with interruptible() as say:
            try:
                self._start([b for b in dict.fromkeys(builds) if b.request.outstanding])
                self._task.unlock()
                if self._options.wait:
                    self._follow([build for build in dict.fromkeys(builds) if build.open], polling)
            except KeyboardInterrupt:

                def leave(build: RequestedBuild) -> None:
                    if build.over:
                        build.attempt(build.validate)
                        return
                    message = f"interrupted; {build.abandon(at_once=True)}"
                    build.error = ToolchainError("failed", message)
                    say(message)

                self._each(leave, [build for build in dict.fromkeys(builds) if build.error is None])
        failure = self._failure(builds, changed=any(build.started for build in builds))
        if failure is not None:
            raise failure
        return self._result(builds)

    def predict(self, plan: Plan) -> None:
        """Record the builds that would be started, for later tasks in check mode that wait for
        them.
        """
        for build in plan.after.get("builds", [plan.after.get("build")]):
            self._task.predictions.add("build", build["job"])

    def _read(self) -> list[RequestedBuild]:
        """Read every job once, and return a build per request.

        With `unless_successful`, requests of the same build share a build.
        """
        sources: dict[Hashable, list[BuildRequest]] = {}
        for request in self._requests:
            sources.setdefault(request.source, []).append(request)
        self._each(BuildRequest.resolve, list(sources.values()))
        known: dict[Hashable, RequestedBuild] = {}
        for request in self._requests:
            if request.key not in known:
                known[request.key] = RequestedBuild(request)
        return [known[request.key] for request in self._requests]

    def _each(self, work: Callable[[Item], Done], items: Sequence[Item]) -> list[Done]:
        """Call `work` for all items at once. A single call runs in this thread, so that Ctrl-C ends
        it.
        """
        return list(
            map(work, items) if len(items) == 1 else bounded(self._options.parallel, work, items)
        )

    def _start(self, builds: Sequence[RequestedBuild]) -> None:
        claims = BuildClaims((build.job, build.request.wanted) for build in builds)

        def ask(build: RequestedBuild) -> None:
            build.attempt(lambda: build.ask(claims))

        # The first request runs alone: it creates the session and the CSRF crumb for the others.
        for _done in first_alone(self._options.parallel, ask, builds):
            pass
        asked = [build for build in builds if build.error is None]
        self._each(lambda build: build.attempt(build.settle), asked)

    def _follow(self, builds: Sequence[RequestedBuild], polling: PollInterval) -> None:
        watcher = BuildWatcher(
            self._server,
            builds,
            polling,
            self._task.progress,
            each_state=not self._listed,
            parallel=self._options.parallel,
        )
        try:
            watcher.follow()
        except PollTimeout:
            late = [build for build in builds if build.open]
            self._each(RequestedBuild.run_out_of_time, late)
        self._validate([build for build in builds if build.over])

    def _validate(self, ended: Sequence[RequestedBuild]) -> None:
        """Evaluate finished builds. Read their logs first, because error messages quote them."""
        self._each(RequestedBuild.finish, ended)
        for build in ended:
            if build.error is None:
                build.attempt(build.validate)

    def _failure(self, builds: Sequence[RequestedBuild], *, changed: bool) -> ToolchainError | None:
        """Return a single error for all failed builds, or `None`."""
        errors = [build.error for build in builds if build.error is not None]
        if not errors:
            return None
        result = {**self._result(builds), "changed": changed}
        if not self._listed:
            if builds[0].is_known:
                errors[0].result = {**result, **errors[0].result}
            return errors[0]
        return failure_of(builds, "builds", result)

    def _result(self, builds: Sequence[RequestedBuild]) -> dict[str, Any]:
        """Return the values for the result: those of the only build, or of all `builds`."""
        if not self._listed:
            return builds[0].values()
        rows = []
        for number, (request, build) in enumerate(zip(self._requests, builds, strict=True)):
            failure = {} if build.error is None else self._task.failure(build.error)
            row = {"job": request.job.name, **build.values(), "ok": build.error is None}
            row |= {name: failure.get(name) for name in ("msg", "error")}
            row["joined"] = row["joined"] or build in builds[:number]
            rows.append(row)
        return {"builds": rows}
