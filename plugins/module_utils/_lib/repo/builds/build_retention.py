# SPDX-License-Identifier: GPL-3.0-or-later
"""Discard old builds by count and age [C2.7]."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, ClassVar

from ...core import address
from ...core.concurrency import bounded
from ...core.errors import ToolchainError, invalid, not_found, shorten
from ...core.finding import Finding
from ...core.module.descriptor import Descriptor, writes
from ...core.module.sealing import PlannedChange
from ...core.module.task import Task
from ...core.module.typed_options import Positive, Segment
from ...core.plan import Action, Change, Plan
from ...core.times import age_of, moment_of
from ...core.verification import without_effect
from ..client import RepoClient
from ..service import SERVICE
from . import records
from .build_info import BuildList, BuildRun, read_list, require_builds
from .records import BuildKey, promotions

#: Seconds between the checks whether the builds are gone: a server may delete them asynchronously.
_CHECK_INTERVALS = (0.5, 1.0, 2.0, 4.0)
_PARALLEL = 4
_KEEP = "buildNumbersNotToBeDiscarded"


@dataclass(frozen=True)
class BuildRetentionOptions:
    """The options of `build_retention`."""

    constraints: ClassVar[dict[str, Any]] = {
        "required_one_of": [("count", "max_age", "minimum_build_date")],
        "mutually_exclusive": [("max_age", "minimum_build_date")],
    }

    build_name: Segment
    count: Positive | None = None
    max_age: str | None = None
    minimum_build_date: str | None = None
    keep: list[str] | None = None
    project: str | None = None
    delete_artifacts: bool = False
    wait: bool = True
    missing_ok: bool = False


@dataclass(frozen=True)
class _Retention:
    """Data of a plan.

    :param present: all builds of the name
    :param leaving: the builds to discard
    :param body: request body
    """

    present: Sequence[BuildRun]
    leaving: Sequence[BuildRun]
    body: Mapping[str, Any]


class BuildRetentionOperation:
    """Discard old builds of a name.

    Server fact [repo-13]: the server discards builds beyond the newest `count` and builds older
    than the date, except promoted builds and those in the list of builds to keep. It returns 204
    even if it could not delete them.
    """

    descriptor: ClassVar = Descriptor(SERVICE, {"discard": writes("read", unforeseen=("delete",))})

    def __init__(self, task: Task, options: BuildRetentionOptions) -> None:
        self._options, self._warn = options, task.warn
        self._name, self._count = options.build_name, options.count
        self._keep = set(options.keep or ())
        self._age = None if options.max_age is None else age_of("max_age", options.max_age)
        self._date = _date(options.minimum_build_date)
        self._client = RepoClient(task, connections=_PARALLEL)

    def plan(self) -> Plan:
        listed = self._read()
        if not listed.runs:
            require_builds(self._name, self._options.project, self._options.missing_ok)
            self._warn(f"there are no builds of '{self._name}'")
        undated = list(dict.fromkeys(run.number for run in listed.runs if run.moment is None))
        if undated:  # their age is unknown
            self._keep.update(undated)
            self._warn(
                f"the builds {shorten(', '.join(undated), 400)} of '{self._name}' have no start"
                " time that can be read, so they are kept and do not count"
            )
        cut = self._oldest(listed.now)
        dated = [run for run in listed.runs if run.moment is not None]
        expired = [  # the builds beyond `count` or older than the limit
            run
            for position, run in enumerate(dated)
            if run.number not in self._keep
            and (
                (self._count is not None and position >= self._count)
                or (cut is not None and run.moment is not None and run.moment < cut)
            )
        ]
        numbers = list(dict.fromkeys(run.number for run in expired))

        def is_promoted(number: str) -> bool:
            try:
                key = BuildKey(self._name, number, self._options.project)
                record = records.read_record(self._client, key)
            except ToolchainError as error:
                if error.kind != "not_found":
                    raise
                return False  # deleted meanwhile, or not visible
            return bool(promotions(record))  # only those that the record lists

        responses = bounded(_PARALLEL, is_promoted, numbers)
        promoted = [number for number, response in zip(numbers, responses, strict=True) if response]
        leaving = [run for run in expired if run.number not in promoted]
        missing = sorted(self._keep.difference(listed.numbers)) if leaving else []
        if missing:  # the number may be a typo, and the intended build would be discarded
            raise not_found(
                f"keep: '{self._name}' has no build {', '.join(f'#{number}' for number in missing)}"
                f", so nothing was discarded. Its newest builds are"
                f" {', '.join(listed.numbers[:5])}"
            )
        # a limit that is left out of the body does not apply [W2.1]
        body: dict[str, Any] = {"deleteBuildArtifacts": self._options.delete_artifacts}
        if self._count is not None:
            body["count"] = self._count
        if cut is not None:
            body["minimumBuildDate"] = int(cut.timestamp() * 1000)
        body[_KEEP] = sorted(self._keep)
        plan = self._full_plan(_Retention(listed.runs, leaving, body), promoted)
        # the server may count undated builds, so the request names all builds to keep
        return self.leave_out(plan, ()) if undated else plan

    def _full_plan(self, data: _Retention, promoted: Sequence[str]) -> Plan:
        """Return the plan that discards `data.leaving`.

        :param promoted: numbers of expired builds that the server keeps because they are promoted
        """
        before = _numbers(data.present)
        kept = _numbers(run for run in data.present if run not in data.leaving)
        result = {
            "discarded": _numbers(data.leaving),
            "kept": kept,
            "promoted": promoted,
            "verified": self._options.wait or not data.leaving,
        }
        action: Action = "delete" if data.leaving else "none"
        changes = (Change("builds", before, kept),) if data.leaving else ()
        return Plan({"builds": before}, {"builds": kept}, action, changes, result, data=data)

    def parts(self, plan: Plan) -> list[PlannedChange]:
        """Return a change for each discarded build, for a sealed plan."""
        artifacts = {"delete_artifacts": self._options.delete_artifacts}
        return [
            PlannedChange(
                self._build(run.number), None, {"started": run.started, **artifacts}, None
            )
            for run in plan.data.leaving
        ]

    def findings(self, plan: Plan, values: Mapping[str, Any]) -> list[Finding]:
        """Return a finding for each build."""
        why = "too old or too many"
        gone = [Finding(self._build(n), "build", "delete", text=why) for n in values["discarded"]]
        return [*gone, *(Finding(self._build(number), "build") for number in values["kept"])]

    def _build(self, number: str) -> str:
        """Return the name of a build in reports and sealed plans."""
        project = f"{self._options.project}:" if self._options.project else ""
        return f"{project}{self._name}/{number}"

    def leave_out(self, plan: Plan, places: Collection[int]) -> Plan:
        """Return the plan without the builds at these positions in `parts()`.

        The request lists all other builds as builds to keep: the server applies the rules again,
        so a build that is published meanwhile could push an additional build out of `count`.
        """
        data: _Retention = plan.data
        kept = {data.leaving[place].number for place in places}
        leaving = [run for run in data.leaving if run.number not in kept]
        keep = {*data.body[_KEEP], *_numbers(data.present)}.difference(_numbers(leaving))
        body = {**data.body, _KEEP: sorted(keep)}
        return self._full_plan(_Retention(data.present, leaving, body), plan.result["promoted"])

    def _read(self) -> BuildList:
        return read_list(self._client, self._name, self._options.project, missing=True)

    def _oldest(self, now: datetime | None) -> datetime | None:
        """Return the time before which builds expire; `None` without `max_age` and
        `minimum_build_date`.
        """
        if self._age is None:
            return self._date
        if now is None:
            self._warn(
                "the server does not report its time, so max_age is based on the local clock"
            )
        return (now or datetime.now(timezone.utc)) - self._age

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        data: _Retention = plan.data

        def has_begun() -> bool:
            """Return whether any of the builds is gone; then the server continues by itself."""
            present = self._read().runs
            return any(run not in present for run in data.leaving)

        try:
            self._client.write(
                f"discarding builds of '{self._name}'",
                "POST",
                f"api/build/retention/{address.path(self._name)}",
                query={"async": not self._options.wait, "project": self._options.project},
                json=data.body,
                verify=has_begun,
            )
        except ToolchainError as error:
            # server fact [repo-13]: a synchronous request fails only after the server has tried to
            # delete every build
            if error.kind == "rejected" or error.outcome_unknown:
                with suppress(ToolchainError):  # report the first error, not that of the list
                    error.result.update(_outcome(data, self._read().runs))
            raise
        if not self._options.wait:
            return {}
        present: Sequence[BuildRun] = ()
        for seconds in (*_CHECK_INTERVALS, None):
            present = self._read().runs
            if seconds is None or not any(run in present for run in data.leaving):
                break
            time.sleep(seconds)
        left = _numbers(run for run in data.leaving if run in present)
        result = _outcome(data, present)
        if not left:
            return result
        message = f"the builds {', '.join(left)} of '{self._name}' still exist"
        if not result["changed"] and self._client.dialect.record_shows_promotions:
            raise without_effect(
                f"discarding builds of '{self._name}'",
                f"{message}. The login may lack the permission to delete builds",
                **result,
            )
        self._warn(
            f"{message}: the server keeps builds that were promoted or that the login cannot delete"
        )
        return result


def _outcome(data: _Retention, present: Sequence[BuildRun]) -> dict[str, Any]:
    gone = [run for run in data.present if run not in present]
    return {
        "changed": bool(gone),
        "discarded": _numbers(gone),
        "kept": _numbers(present),
        "verified": True,
    }


def _numbers(runs: Iterable[BuildRun]) -> list[str]:
    return [run.number for run in runs]


def _date(text: str | None) -> datetime | None:
    """Parse `minimum_build_date`: ISO 8601 (UTC if it has no zone) or epoch milliseconds."""
    if text is None:
        return None
    moment = moment_of(text) or moment_of(f"{text}T00:00:00")
    if moment is None:
        raise invalid(
            f"minimum_build_date: '{text}' is neither a date such as 2026-01-31 or"
            " 2026-01-31T12:00:00Z, nor a number of milliseconds"
        )
    return moment.astimezone(timezone.utc)
