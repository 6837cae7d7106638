# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the builds that a task requests with the builds of their jobs."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal

from ...core.errors import ToolchainError, invalid
from ...core.http.messages import Response
from ...core.http.transport import Transport
from ...core.module import typed_options
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import NotNegative, Positive, Seconds
from ..job_address import Job, JobName, build_segment, job_of
from ..waiting import PollingFactory, Timeout, WaitOptions
from . import parameters, records
from .followed_build import OnInput
from .parameters import Files, ListStyle, Parameters, WantedParameters
from .queue_item import QueueItem
from .records import JobState, TriggeredBuild

TriggerRule = Literal["always", "unless_successful"]
#: `started`: start a build. `finished`: wait for a build that an earlier task started.
State = Literal["started", "finished"]
Result = Literal["SUCCESS", "UNSTABLE", "FAILURE", "NOT_BUILT", "ABORTED"]

#: Maximum seconds to wait until the server knows a queue item.
_ITEM_SECONDS = 2.0


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


@dataclass(frozen=True, eq=False)
class ResolvedBuild:
    """A requested build after the reads.

    :param wanted: its parameters, as the job defines them, and its files
    :param state: state of the job before the start
    :param found: existing build that satisfies the request: finished, running or queued
    :param response: response that contains `found`, if an earlier task started that build
    :param error: error for which no build can be started or followed
    """

    job: Job
    options: BuildOptions
    wanted: WantedParameters = field(default_factory=WantedParameters)
    state: JobState = field(default_factory=JobState)
    found: TriggeredBuild | None = None
    response: Response | None = None
    error: ToolchainError | None = None

    @property
    def purpose(self) -> str:
        return f"building the job '{self.job.name}'"

    @property
    def outstanding(self) -> bool:
        """Return whether a build must be started."""
        return self.options.state == "started" and self.found is None and self.error is None

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


class BuildRequest:
    """A build of a job that a task requests.

    :param make_polling: creates a `PollInterval` from a timeout and a maximum pause in seconds
    """

    def __init__(
        self, task: Task, server: Transport, options: BuildOptions, make_polling: PollingFactory
    ) -> None:
        self._task, self._server, self._options = task, server, options
        self._make_polling = make_polling
        self.job = job_of(options.job, task.connection.url)
        self._files = parameters.file_parts(options.files or {}, "files")
        self._is_awaited = options.state == "finished"
        self._build = None if options.build is None else build_segment(options.build)
        named = options.queue_id is not None or options.build is not None
        if self._is_awaited and not named and task.predictions.get("build", self.job.name) is None:
            raise invalid("state is finished, which requires queue_id or build")

    @property
    def source(self) -> Hashable:
        """Return a key that is equal for requests that a single read of their job resolves."""
        return self if self._is_awaited else self.job.path

    @property
    def _lookback(self) -> int:
        """Return the number of builds of the job to read."""
        return 1 if self._options.trigger == "always" else self._options.lookback

    @staticmethod
    def resolve(requests: Sequence[BuildRequest]) -> list[ResolvedBuild]:
        """Read the state on the server for requests with the same `source`."""
        first = max(requests, key=lambda request: request._lookback)
        try:
            if first._is_awaited:
                return [first._find()]
            state = first._read()
        except ToolchainError as error:
            return [ResolvedBuild(each.job, each._options, error=error) for each in requests]
        return [request._resolve(state) for request in requests]

    def _read(self) -> JobState:
        """Read the current state of the job."""
        purpose = f"reading the job '{self.job.name}'"
        try:
            return records.read_job(self._server, purpose, self.job, self._lookback)
        except ToolchainError as error:
            predicted = self._task.predictions.get("job", self.job.name)
            if error.kind != "not_found" or predicted is None or "jobs" in predicted:
                raise
            # check mode: an earlier task would create the job, so its parameters are unknown
            return JobState(buildable=bool(predicted["buildable"]))

    def _find(self) -> ResolvedBuild:
        """Find the build that an earlier task started.

        Raises `failed` for a cancelled queue item.
        """
        purpose = f"waiting for a build of the job '{self.job.name}'"
        resolved, item = ResolvedBuild(self.job, self._options), self._options.queue_id
        if item is not None:
            polling = self._make_polling(_ITEM_SECONDS, self._options.poll_interval)
            number = QueueItem(self._server, self.job, item, purpose).build_number(polling)
            if number is None:
                return replace(resolved, found=TriggeredBuild(item))
            segment = str(number)
        elif self._build is not None:
            segment = self._build
        else:  # check mode: an earlier task would start the build
            return resolved
        build, response = records.read_build(self._server, purpose, self.job, segment)
        found = TriggeredBuild(item, build["number"], build=build)
        return replace(resolved, found=found, response=response)

    def _resolve(self, state: JobState) -> ResolvedBuild:
        """Decide whether a build must be started. The result has the error `rejected` for invalid
        parameters, and `conflict` for a disabled job.
        """
        resolved = ResolvedBuild(self.job, self._options, state=state)
        try:
            wanted = parameters.wanted(
                self._options.parameters or {},
                state.definitions,
                self._options.list_style,
                self.job.name,
                self._files,
            )
            resolved = self._with_existing(replace(resolved, wanted=wanted))
        except ToolchainError as error:
            return replace(resolved, error=error)
        if resolved.outstanding and not state.buildable:
            message = f"{resolved.purpose}: the job is disabled on the server"
            return replace(resolved, error=ToolchainError("conflict", message))
        return resolved

    def _with_existing(self, resolved: ResolvedBuild) -> ResolvedBuild:
        """Add the existing build that satisfies the request, and warn about the parameters."""
        wanted, purpose = resolved.wanted, resolved.purpose
        for secret in filter(None, wanted.secrets):
            self._task.hide(secret)
        found, unknown = None, list(wanted.incomparable)
        if self._options.trigger == "unless_successful":
            for build, shown in self._existing(resolved):
                if parameters.equal(wanted, shown):
                    found = build
                    unknown += parameters.hidden(wanted, shown)
                    break
            if unknown:
                self._task.warn(
                    f"{purpose}: builds are compared without {', '.join(unknown)}, because the"
                    " server does not return the values"
                )
        if resolved.state.definitions is not None and wanted.repeated:
            self._task.warn(
                f"{purpose}: most servers accept only one value for a parameter of the type of"
                f" {', '.join(wanted.repeated)}, and reject a list: set list_style to comma"
            )
        return replace(resolved, found=found)

    def _existing(
        self, resolved: ResolvedBuild
    ) -> Iterator[tuple[TriggeredBuild, Mapping[str, Any]]]:
        """Yield the builds of the job: accepted, running, and then queued builds."""
        place = self._server, resolved.purpose, self.job, resolved.state
        for is_wanted in (self._is_accepted, records.is_running):
            for build in filter(is_wanted, records.whole_builds(*place)):
                yield TriggeredBuild(build.get("queueId"), build["number"], build=build), build
        for item in records.queued_items(*place):
            yield TriggeredBuild(int(item["id"])), item

    def _is_accepted(self, build: Mapping[str, Any]) -> bool:
        return build.get("result") in self._options.accept and records.is_over(build)
