# SPDX-License-Identifier: GPL-3.0-or-later
"""Delete builds of a job, selected by number, count or age: `ci_build_delete` [C3.9, ci-30]."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

from ...core.errors import ToolchainError, invalid
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.task import Task
from ...core.module.typed_options import NotNegative, Option
from ...core.plan import Plan, unchanged
from ...core.progress import PollInterval, PollTimeout
from ...core.verification import without_effect
from .. import client
from ..client import SEES_JOB, object_of, part, require_confirmation, server_of
from ..job_address import JobName, build_path, job_of
from ..service import SERVICE
from ..waiting import PollingFactory
from . import followed_build, queue_item, records
from .followed_build import FollowedBuild
from .records import Result

_FIELDS = "number,building,inProgress,result,keepLog,timestamp"
_TREE = f"fullName,allBuilds[{_FIELDS}],lastSuccessfulBuild[number],jobs[name]{{0,1}}"
_DURATION = re.compile(r"([0-9]{1,9})([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
#: Maximum seconds to wait for the end of a build after a stop request.
_STOP_SECONDS = 60.0
_MAX_NAMED = 10


@dataclass(frozen=True, kw_only=True)
class CiBuildDeleteOptions:
    """The options of `ci_build_delete`."""

    job: JobName
    builds: Annotated[list[int] | None, Option(least=1)] = None
    keep_last: NotNegative | None = None
    older_than: str | None = None
    results: Annotated[list[Result] | None, Option(empty=False)] = None
    max_deletions: NotNegative = 100
    force: bool = False

    constraints: ClassVar[dict[str, Any]] = {
        "required_one_of": [("builds", "keep_last", "older_than")],
        "mutually_exclusive": [("builds", "keep_last", "older_than")],
    }


def seconds_of(age: str) -> int:
    """Convert a duration such as `30d` to seconds. Raises `invalid` for other values."""
    found = _DURATION.fullmatch(age.strip())
    if found is None or int(found[1]) == 0:
        raise invalid(
            f"older_than is '{age}': set it to a positive number with s, m, h, d or w, such as 30d"
        )
    return int(found[1]) * _SECONDS[found[2]]


class CiBuildDeleteOperation:
    """Selects builds from the list of all builds, and deletes them one after the other."""

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {
            "list": reads(*SEES_JOB),
            "delete": writes(*SEES_JOB, unforeseen=(client.DELETE_RUN,)),
            "release": writes(*SEES_JOB, unforeseen=(client.UPDATE_RUN, client.DELETE_RUN)),
            "stop": writes(*SEES_JOB, unforeseen=(client.CANCEL, client.DELETE_RUN)),
        },
        kind="job",
        name="{job}",
    )

    def __init__(
        self, task: Task, options: CiBuildDeleteOptions, make_polling: PollingFactory = PollInterval
    ) -> None:
        self._task, self._options, self._make_polling = task, options, make_polling
        self._oldest = None if options.older_than is None else seconds_of(options.older_than)
        self._job = job_of(options.job, task.connection.url)
        self._purpose = f"deleting builds of the job '{self._job.name}'"
        self._server = server_of(task)

    def plan(self) -> Plan:
        known, successful, now = self._read()
        rows = []
        for build in self._selected(known, now):
            kept = _protection(build, successful) and not self._options.force
            action = "kept" if kept else "deleted"
            rows.append(
                {"number": build["number"], "result": build.get("result"), "action": action}
            )
        deleted = [row["number"] for row in rows if row["action"] == "deleted"]
        if len(deleted) > self._options.max_deletions:
            named = _named([f"#{number}" for number in deleted])
            raise invalid(
                f"{self._purpose}: {len(deleted)} builds ({named}) would be deleted, but"
                f" max_deletions is {self._options.max_deletions}: increase it, or select fewer"
                " builds"
            )
        builds = {build["number"]: build for build in known}
        protected = [
            f"#{row['number']} ({_protection(builds[row['number']], successful)})"
            for row in rows
            if row["action"] == "kept"
        ]
        if protected:
            self._task.warn(
                f"{self._purpose}: not deleted, because force is false: {_named(protected)}"
            )
        if not deleted:
            return unchanged({"builds": rows})
        after = [build["number"] for build in known if build["number"] not in deleted]
        before = {"builds": [build["number"] for build in known]}
        return Plan(before, {"builds": after}, "delete", result={"builds": rows}, data=builds)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        builds: Mapping[int, Mapping[str, Any]] = plan.data
        rows = [dict(row) for row in plan.result["builds"]]
        for index, row in enumerate(rows):
            if row["action"] != "deleted":
                continue
            row["action"] = "kept"
            try:
                self._delete(builds[row["number"]], row)
            except ToolchainError as error:
                done = rows[: index + (row["action"] != "kept")]
                error.result = {**error.result, "changed": _is_changed(done), "builds": done}
                raise
        self._verify(rows, builds)
        return {"builds": rows}

    def _read(self) -> tuple[list[dict[str, Any]], int | None, float]:
        """Read the builds of the job.

        Returns the builds, newest first; the number of the last successful build; and the epoch
        seconds of the server's clock.
        """
        query = {"tree": _TREE}
        shown, response = records.job_object(self._server, self._purpose, self._job, query)
        if not isinstance(shown.get("allBuilds"), list) or "lastSuccessfulBuild" not in shown:
            raise response.error("protocol", "the response does not contain all builds of the job")
        last = records.number_of(part(shown["lastSuccessfulBuild"]).get("number"))
        now = time.time() if response.date is None else response.date.timestamp()
        return records.listed(shown, "allBuilds"), last, now

    def _selected(self, known: list[dict[str, Any]], now: float) -> list[dict[str, Any]]:
        """Return the builds that the options select, newest first."""
        options, found = self._options, known
        if options.builds is not None:
            found = [build for build in known if build["number"] in options.builds]
        if options.keep_last is not None:
            found = known[options.keep_last :]
        if self._oldest is not None:
            limit = (now - self._oldest) * 1000
            found = [build for build in known if (build.get("timestamp") or limit) < limit]
        if options.results is not None:
            found = [build for build in found if build.get("result") in options.results]
        return found

    def _delete(self, build: Mapping[str, Any], row: dict[str, Any]) -> None:
        """Stop the build if it is running, release it if it is kept, and delete it.

        After each step, the action is stored in `row`.
        """
        number = int(build["number"])
        path = build_path(self._job, number)
        if self._options.force and not records.is_over(build):
            polling = self._make_polling(_STOP_SECONDS, 2.0)
            found = records.TriggeredBuild(None, number)
            followed = FollowedBuild(self._server, self._job, polling, found=found)

            def ends() -> bool:
                followed_build.follow(self._server, followed, polling, self._task.progress)
                return True

            queue_item.send(self._server, self._purpose, path, "stop", verify=ends)
            row["action"] = "stopped"
            try:
                ends()
            except PollTimeout:
                raise ToolchainError(
                    "timeout",
                    f"{self._purpose}: build #{number} is still running {_STOP_SECONDS:g} s after"
                    " the stop request: stop it with ci_build_stop and escalate: true",
                    url=followed.url,
                ) from None
        if self._options.force and build.get("keepLog") is True:
            self._write(
                f"{path}/toggleLogKeep",
                lambda: (self._shown(path) or {}).get("keepLog") is not True,
            )
            row["action"] = "released"
        self._write(f"{path}/doDelete", lambda: self._shown(path) is None)
        row["action"] = "deleted"

    def _write(self, path: str, verify: Any) -> None:
        self._server.write(
            self._purpose,
            "POST",
            path,
            form={},
            expect=(*client.REDIRECTED, 404),
            validate=partial(require_confirmation, self._server),
            verify=verify,
        )

    def _shown(self, path: str) -> Mapping[str, Any] | None:
        query = {"tree": "number,keepLog"}
        response = self._server.read(
            self._purpose, f"{path}/api/json", query=query, expect=(200, 404)
        )
        return None if response.status == 404 else object_of(response)

    def _verify(self, rows: list[dict[str, Any]], builds: Mapping[int, Mapping[str, Any]]) -> None:
        """Raise `failed` for builds that still exist."""
        remaining = {build["number"]: build for build in self._read()[0]}
        left = [row for row in rows if row["action"] == "deleted" and row["number"] in remaining]
        for row in left:
            build = builds[row["number"]]  # the action before the failed deletion
            stopped = self._options.force and not records.is_over(build)
            released = self._options.force and build.get("keepLog") is True
            row["action"] = "released" if released else "stopped" if stopped else "kept"
        if left:
            numbers = [row["number"] for row in left]
            running = [f"#{n}" for n in numbers if not records.is_over(remaining[n])]
            reason = f", because running builds stay: {_named(running)}" if running else ""
            message = f"did not delete {_named([f'#{n}' for n in numbers])}{reason}"
            raise without_effect(self._purpose, message, changed=_is_changed(rows), builds=rows)


def _is_changed(rows: list[dict[str, Any]]) -> bool:
    return any(row["action"] != "kept" for row in rows)


def _protection(build: Mapping[str, Any], successful: int | None) -> str:
    """Return why a build is only deleted with `force`, or ""."""
    if not records.is_over(build):
        return "running"
    if build.get("keepLog") is not False:
        return "kept"
    return "last successful" if build["number"] == successful else ""


def _named(names: list[str]) -> str:
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(names[:_MAX_NAMED]) + more
