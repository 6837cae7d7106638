# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading a job with its builds and its queue (written interface, 2.4 and 4.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from ..core.errors import ToolchainError
from ..core.transport import Transport
from . import parameters
from .address import Job, build_path, same_job
from .client import object_of

#: The server lists this many newest builds as C(builds); more only as C(allBuilds).
NEWEST = 100
_ACTIONS = "actions[parameters[name,value],causes[userId]]"
BUILD_FIELDS = (
    "number,queueId,building,inProgress,result,duration,estimatedDuration,timestamp," + _ACTIONS
)
_ITEM_FIELDS = f"id,why,task[url],{_ACTIONS}"
_JOB_FIELDS = (
    f"buildable,nextBuildNumber,inQueue,queueItem[{_ITEM_FIELDS}],jobs[name]{{0,1}},"
    + parameters.DEFINITION_FIELDS
)


@dataclass(frozen=True)
class State:
    """A job as one read shows it: C(builds) newest first, C(item) the queue item that it names."""

    definitions: tuple[parameters.Definition, ...] | None
    builds: Sequence[Mapping[str, Any]]
    item: Mapping[str, Any] | None
    in_queue: bool
    next_number: int | None
    buildable: bool

    @property
    def newest_queue_id(self) -> int:
        """The highest queue id that is known; later items have higher ones."""
        known = [build.get("queueId") for build in self.builds]
        known.append(None if self.item is None else self.item.get("id"))
        return max((number for number in known if isinstance(number, int)), default=0)


def read_job(server: Transport, what: str, job: Job, lookback: int) -> State:
    """Read a job, its definition of parameters and its newest builds in one request.

    Raises C(not_found), and C(rejected) for a folder, which cannot be built.
    """
    tree = f"{_JOB_FIELDS},{'builds' if lookback <= NEWEST else 'allBuilds'}"
    query = {"tree": f"{tree}[{BUILD_FIELDS}]{{0,{lookback}}}"}
    answer = server.read(what, f"{job.path}/api/json", query=query, expect=(200, 404))
    if answer.status == 404:
        raise answer.error(
            "not_found",
            "the server answered 404: there is no such job, or the account may not see it",
        )
    shown = object_of(answer)
    if "jobs" in shown:
        raise ToolchainError("rejected", f"{what}: '{job.name}' is a folder, not a job")
    number, item = shown.get("nextBuildNumber"), shown.get("queueItem")
    listed: Sequence[Mapping[str, Any]] = shown.get("builds") or shown.get("allBuilds") or []
    return State(
        parameters.definitions_of(shown),
        [build for build in listed if isinstance(build.get("number"), int)],
        item,
        bool(shown.get("inQueue")) or item is not None,
        number if isinstance(number, int) else None,
        shown.get("buildable") is not False,
    )


def queued_items(server: Transport, what: str, job: Job, state: State) -> list[Mapping[str, Any]]:
    """The items of a job in the queue. A job names one; the others are in the server's queue, if it
    shows that.
    """
    if not state.in_queue:
        return []
    query = {"tree": f"items[{_ITEM_FIELDS}]"}
    answer = server.read(what, "queue/api/json", query=query, expect=(200, 403, 404))
    if answer.status != 200:
        return [] if state.item is None else [state.item]
    items = object_of(answer).get("items") or []
    return [item for item in items if same_job((item.get("task") or {}).get("url"), job)]


def is_over(build: Mapping[str, Any]) -> bool:
    """Server fact: between C(building) and C(inProgress) the result is set, but the build is still
    at work; older servers do not have C(inProgress).
    """
    at_work = bool(build.get("building")) or bool(build.get("inProgress"))
    return not at_work and build.get("result") is not None


def shown(build: Mapping[str, Any], job: Job, base_url: str) -> dict[str, Any]:
    """The C(build) return value: duration in seconds, timestamp in ISO-8601 UTC."""
    number, duration = build.get("number"), build.get("duration")
    over = build.get("result") is not None
    return {
        "number": number,
        "url": None if number is None else f"{base_url}/{build_path(job, int(number))}/",
        "result": build.get("result"),
        "duration": duration / 1000 if over and isinstance(duration, (int, float)) else None,
        "timestamp": _iso(build.get("timestamp")),
        "parameters": parameters.displayed(build),
        "queue_id": build.get("queueId"),
    }


def not_begun(item: int | None, values: Mapping[str, str]) -> dict[str, Any]:
    """The C(build) return value of a build that has no number yet."""
    return {
        "number": None,
        "url": None,
        "result": None,
        "duration": None,
        "timestamp": None,
        "parameters": dict(values),
        "queue_id": item,
    }


def _iso(milliseconds: object) -> str | None:
    if not isinstance(milliseconds, (int, float)):
        return None
    at = datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
