# SPDX-License-Identifier: GPL-3.0-or-later
"""Read jobs, builds and queue items [W2.4, W4.4]."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Literal

from ...core.errors import ToolchainError
from ...core.http.messages import Response
from ...core.http.transport import Transport
from ...core.json_text import json_objects
from ...core.module.task import Task
from ...core.progress import PollInterval
from ...core.times import iso, moment_of
from ..client import object_of, part, server_of
from ..job_address import Job, build_path, job_of, same_job
from . import parameters

Result = Literal["SUCCESS", "UNSTABLE", "FAILURE", "NOT_BUILT", "ABORTED"]
#: `tree` query for the inputs in the `actions` of a build.
INPUT_FIELDS = (
    "executions[id,displayName,settled,input[id,message,ok,submitter,parameters[name,type]]]"
)


def pending_inputs(build: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the inputs that a build waits for.

    An input has the keys `id`, `message`, `ok`, `submitter` and `parameters`, a list of objects
    with `name` and `type`.
    """
    found = []
    for action in json_objects(build.get("actions")):
        for execution in json_objects(action.get("executions")):
            asked = execution.get("input")
            if execution.get("settled") is True or not isinstance(asked, Mapping):
                continue
            fields = [
                {"name": str(entry.get("name")), "type": str(entry.get("type"))}
                for entry in json_objects(asked.get("parameters"))
            ]
            texts = {name: asked.get(name) for name in ("message", "ok", "submitter")}
            id_ = str(asked.get("id") or execution.get("id"))
            found.append({"id": id_, **texts, "parameters": fields})
    return found


def described(asked: Mapping[str, Any]) -> str:
    """Return the text for an input in messages: its message, id, submitter and parameter names."""
    details = [f"id {asked['id']}"]
    if asked["submitter"]:
        details.append(f"submitter {asked['submitter']}")
    if asked["parameters"]:
        names = ", ".join(entry["name"] for entry in asked["parameters"])
        details.append(f"parameters {names}")
    return f"the input '{asked['message']}' ({'; '.join(details)})"


#: Maximum number of builds in `builds`. Only `allBuilds` contains more.
NEWEST = 100
_ACTION_FIELDS = f"parameters[{parameters.VALUE_FIELDS}],causes[userId]"
_ACTIONS = f"actions[{_ACTION_FIELDS}]"
_STATE_FIELDS = "number,queueId,building,inProgress,result,duration,estimatedDuration,timestamp"
BUILD_FIELDS = f"{_STATE_FIELDS},{_ACTIONS}"
#: Query for a followed build, with the inputs that it waits for.
FOLLOWED_FIELDS = f"{_STATE_FIELDS},actions[{_ACTION_FIELDS},{INPUT_FIELDS}]"
#: Query for the newest builds of a job, used if the response for a single build lacks its state.
SUMMARIES = f"allBuilds[{BUILD_FIELDS}]{{0,{NEWEST}}}"
#: Query for the newest build number, to learn whether a job exists and has builds.
_NEWEST = "lastBuild[number]"
#: Maximum seconds to wait until the server lists a starting build.
STARTING_SECONDS = 2.0
#: Maximum build number: a signed 64-bit integer.
_HIGHEST = 1 << 63
_NUMBERS = ("number", "queueId", "duration", "estimatedDuration", "timestamp", "id", "inQueueSince")
_BOOLEANS = ("building", "inProgress", "cancelled", "stuck")
ITEM_FIELDS = f"id,why,stuck,cancelled,task[url],inQueueSince,{_ACTIONS}"
#: Header with the mark of a start of the server [ci-3].
_SESSION = "X-Jenkins-Session"
#: Statuses of a server without a queue, or with a queue that the account cannot see.
_NO_QUEUE = (400, 403, 404, 405, 501)
_JOB_FIELDS = (
    f"fullName,buildable,nextBuildNumber,inQueue,queueItem[{ITEM_FIELDS}],jobs[name]{{0,1}},"
    + parameters.DEFINITION_FIELDS
)


@dataclass(frozen=True)
class JobState:
    """State of a job from a single read.

    :param definitions: parameter definitions; `None` if unknown
    :param builds: builds, newest first
    :param item: the queue item that the job's response contains
    :param in_queue: whether the job may have queue items
    :param queue_known: whether the server reports `inQueue`
    :param next_number: lowest number that the next build can have; 0 if unknown
    :param session: mark of the start of the server
    :param read_at: time of the response by the server's clock, in epoch ms; 0 if unknown
    """

    definitions: tuple[parameters.ParameterDefinition, ...] | None = None
    builds: list[dict[str, Any]] = field(default_factory=list)
    item: Mapping[str, Any] | None = None
    in_queue: bool = False
    queue_known: bool = True
    next_number: int = 0
    buildable: bool = True
    session: str = ""
    read_at: float = 0

    @property
    def newest_queue_id(self) -> int:
        """Return the highest known queue id, or 0. Queue ids increase with time."""
        known = [build.get("queueId") for build in self.builds]
        known.append(None if self.item is None else self.item.get("id"))
        return max((number for number in known if isinstance(number, int)), default=0)

    @property
    def lacks_newest(self) -> bool:
        """Return whether the newest build is not listed: it is just starting, or was deleted.

        Server fact [ci-8]: for a moment, a starting build is neither in the queue nor listed.
        """
        listed = self.builds[0]["number"] if self.builds else 0
        return self.next_number > listed + 1


@dataclass(frozen=True)
class TriggeredBuild:
    """A started build, identified by its queue item or its number.

    Both are `None` if the server accepted the request but returned no queue item.

    :param item: queue id
    :param number: build number
    :param folded: whether the server merged the build into an existing item with equal parameters
    :param build: state of a build that existed before
    """

    item: int | None
    number: int | None = None
    folded: bool = False
    build: Mapping[str, Any] | None = None


def read_job(
    server: Transport, purpose: str, job: Job, lookback: int, patience: float | None = None
) -> JobState:
    """Read a job, its parameter definitions and its newest builds with a single request.

    :param lookback: number of builds to read
    :param patience: timeout in seconds, including retries
    """
    tree = "builds" if lookback <= NEWEST else "allBuilds"
    query = {"tree": f"{_JOB_FIELDS},{tree}[{BUILD_FIELDS}]{{0,{lookback}}}"}
    shown, response = job_object(server, purpose, job, query, patience)
    job_item = part(shown.get("queueItem"))
    item = typed(job_item) if number_of(job_item.get("id")) is not None else None
    known = listed(shown, tree)
    return JobState(
        parameters.definitions_of(shown),
        known[:lookback],
        item,
        item is not None or truth(shown.get("inQueue", True)),
        "inQueue" in shown,
        max([number_of(shown.get("nextBuildNumber")) or 1, *(b["number"] + 1 for b in known)]),
        shown.get("buildable") is not False,
        session_of(response),
        0 if response.date is None else response.date.timestamp() * 1000,
    )


def job_object(
    server: Transport,
    purpose: str,
    job: Job,
    query: Mapping[str, str],
    patience: float | None = None,
) -> tuple[Mapping[str, Any], Response]:
    """Return the JSON object of a job that can be built, and the response.

    Raises `not_found`, `rejected` for a folder, and `conflict` for another spelling of the name.

    :param query: query with `fullName` and `jobs`
    """
    path = f"{job.path}/api/json"
    response = server.read(purpose, path, query=query, expect=(200, 404), patience=patience)
    if response.status == 404:
        raise response.error(
            "not_found",
            "the server returned 404: the job does not exist, or the account cannot see it",
        )
    shown = object_of(response)
    job.require_spelling(shown, purpose)
    if "jobs" in shown:
        raise ToolchainError("rejected", f"{purpose}: '{job.name}' is a folder, not a job")
    return shown, response


def listed(shown: Mapping[str, Any], wanted: str = "builds") -> list[dict[str, Any]]:
    """Return the builds of a job, newest first. A server that ignores `tree` may return all."""
    found = shown.get(wanted) or shown.get("builds") or shown.get("allBuilds") or []
    known = [typed(build) for build in json_objects(found)]
    known = [build for build in known if build.get("number") is not None]
    return sorted(known, key=lambda build: int(build["number"]), reverse=True)


def whole_builds(
    server: Transport, purpose: str, job: Job, state: JobState, since: int = 0
) -> Iterator[Mapping[str, Any]]:
    """Yield the builds of a job with results and parameters, newest first.

    A server that ignores `tree` lists builds without results and parameters. Each of these builds
    is read by a request of its own, when it is yielded. If that response has no state either, the
    state is taken from `allBuilds`, as the interface description has it [W2.4].

    :param since: lowest build number to yield
    """
    builds: dict[int, dict[str, Any]] | None = None
    for index, build in enumerate(state.builds):
        if build["number"] < since:
            return
        if "result" not in build or "actions" not in build:
            path, query = f"{build_path(job, build['number'])}/api/json", {"tree": BUILD_FIELDS}
            response = server.read(purpose, path, query=query, expect=(200, 404))
            if response.status == 404:
                continue
            found = typed({**build, **object_of(response), "number": build["number"]})
            if not shows_state(found):
                if builds is None:
                    query = {"tree": SUMMARIES}
                    summaries = object_of(server.read(purpose, f"{job.path}/api/json", query=query))
                    builds = {each["number"]: each for each in listed(summaries, "allBuilds")}
                found = {**builds.get(build["number"], {}), **found}
            state.builds[index] = found
        yield state.builds[index]


def queued_items(
    server: Transport, purpose: str, job: Job, state: JobState
) -> list[Mapping[str, Any]]:
    """Return the queue items of a job from the server's queue.

    If the account cannot see the queue, return the single item that the job's response contains.
    """
    if not state.in_queue:
        return []
    items = queue(server, purpose, ITEM_FIELDS)
    if items is None:
        return [] if state.item is None else [state.item]
    return [item for item in items if same_job(part(item.get("task")).get("url"), job)]


def queue(
    server: Transport, purpose: str, fields: str, patience: float | None = None
) -> list[dict[str, Any]] | None:
    """Return all items of the server's queue; `None` if the account cannot see the queue.

    :param fields: fields of an item for the `tree` query
    :param patience: timeout in seconds, including retries
    """
    response = server.read(
        purpose,
        "queue/api/json",
        query={"tree": f"items[{fields}]"},
        expect=(200, *_NO_QUEUE),
        patience=patience,
    )
    if response.status != 200:
        return None
    items = [typed(item) for item in json_objects(object_of(response).get("items"))]
    return [item for item in items if item.get("id") is not None]


def find_build(
    server: Transport,
    purpose: str,
    job: Job,
    matches: Callable[[TriggeredBuild, Mapping[str, Any], JobState], bool],
    lookback: int,
    *,
    since: int = 0,
    patience: float | None = None,
) -> tuple[TriggeredBuild | None, bool]:
    """Search the builds of a job, oldest first, and then its queue items. Return the first that
    matches or `None`, and whether the server responded with all builds from `since` on.

    :param matches: returns whether a build or queue item is the wanted one, from its JSON and the
        state of the job
    :param lookback: number of newest builds to search
    :param since: lowest build number to search
    :param patience: timeout of the request for the job in seconds
    """
    try:
        state = read_job(server, purpose, job, lookback, patience)
        for build in reversed(list(whole_builds(server, purpose, job, state, since))):
            found = TriggeredBuild(build.get("queueId"), int(build["number"]))
            if matches(found, build, state):
                return found, True
        for item in queued_items(server, purpose, job, state):
            found = TriggeredBuild(int(item["id"]))
            if matches(found, item, state):
                return found, True
    except ToolchainError:
        return None, False
    # server fact [ci-8]: a starting build is for a moment neither in the queue nor listed
    return None, not (state.lacks_newest and 0 < since < state.next_number)


def session_of(response: Response) -> str:
    """Return the mark of the start of the server, "" without one. It changes with a restart."""
    return response.headers.get(_SESSION, "")


def users_of(shown: Mapping[str, Any]) -> set[str]:
    """Return the users who started a build or queue item."""
    return {
        str(cause["userId"]).casefold()
        for action in json_objects(shown.get("actions"))
        for cause in json_objects(action.get("causes"))
        if cause.get("userId")
    }


def number_of(value: object) -> int | None:
    """Convert a number or numeric string to an integer. Return `None` for other values."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = int(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) <= _HIGHEST else None


def truth(value: object) -> bool:
    """Convert a boolean or a string to a boolean: only true and `"true"` (any case) are true."""
    return str(value).lower() == "true"


def typed(shown: Mapping[str, Any]) -> dict[str, Any]:
    """Return a build or queue item with its numeric and boolean strings converted."""
    found = dict(shown)
    found.update({name: number_of(found[name]) for name in _NUMBERS if name in found})
    found.update({name: truth(found[name]) for name in _BOOLEANS if name in found})
    return found


def no_build(server: Transport, purpose: str, job: Job, segment: str) -> ToolchainError:
    """Return the `not_found` error after a 404. Read the job to see whether job or build is
    missing.
    """
    response = server.read(
        purpose, f"{job.path}/api/json", query={"tree": _NEWEST}, expect=(200, 404)
    )
    if response.status == 404:
        reason = f"the job '{job.name}' does not exist, or the account cannot see it"
    else:
        shown = part(object_of(response).get("lastBuild")).get("number")
        newest = "it has no builds" if shown is None else f"its newest build is {shown}"
        reason = f"the job '{job.name}' has no build {segment}; {newest}"
    return ToolchainError(
        "not_found",
        f"{purpose}: the server returned 404: {reason}",
        status=404,
        method="GET",
        url=f"{server.connection.url}/{job.path}/{segment}/",
    )


def await_newest(
    server: Transport, purpose: str, job: Job, segment: str, polling: PollInterval
) -> None:
    """Wait until the permalink `lastBuild` leads to a build that is just starting [ci-8].

    :param segment: build number or permalink; only `lastBuild` may wait
    """
    query = {"tree": f"nextBuildNumber,{_NEWEST}"}
    while segment == "lastBuild":
        response = server.read(purpose, f"{job.path}/api/json", query=query, expect=(200, 404))
        shown = object_of(response) if response.status == 200 else {}
        newest = number_of(part(shown.get("lastBuild")).get("number")) or 0
        if (number_of(shown.get("nextBuildNumber")) or 0) <= newest + 1 or not polling.left:
            return
        polling.pause(purpose)


def build_response(
    server: Transport, purpose: str, job: Job, segment: str, fields: str
) -> Response:
    """Return the response for a build. Raises `not_found` if the job or the build is missing.

    :param segment: build number or permalink, such as `lastBuild`
    """
    path = f"{job.path}/{segment}/api/json"
    response = server.read(purpose, path, query={"tree": fields}, expect=(200, 404))
    if response.status == 404:
        raise no_build(server, purpose, job, segment)
    return response


def number_in(response: Response, segment: str) -> int:
    """Return the number of the build in a response. Raises `protocol` without a number."""
    number = number_of(object_of(response).get("number", segment))
    if number is None:
        raise response.error("protocol", "the server does not report the number of the build")
    return number


def read_build(
    server: Transport, purpose: str, job: Job, segment: str
) -> tuple[dict[str, Any], Response]:
    """Return a build with its pending inputs, and the response of :func:`build_response`."""
    response = build_response(server, purpose, job, segment, FOLLOWED_FIELDS)
    found, number = object_of(response), number_in(response, segment)
    if not shows_state(found):
        listed = server.read(purpose, f"{job.path}/api/json", query={"tree": SUMMARIES})
        found = {**summary(listed, number), **found}
    return {**typed(found), "number": number}, response


def shows_state(build: Mapping[str, Any]) -> bool:
    """Return whether the response for a build contains its state, running or ended."""
    return "building" in build or "result" in build


def summary(response: Response, number: int) -> dict[str, Any]:
    """Return the build with `number` from a response to the query `SUMMARIES` [W2.4].

    Raises `protocol` if the response does not contain the state of the build.
    """
    for build in listed(object_of(response), "allBuilds"):
        if build["number"] == number and shows_state(build):
            return build
    raise response.error(
        "protocol",
        f"cannot follow build #{number}: the server reports neither its result nor whether it is"
        " running",
    )


def is_over(build: Mapping[str, Any]) -> bool:
    """Return whether a build has ended with a result.

    Server fact [ci-9]: after `building` turns false, the result is set but the build still works
    until `inProgress` turns false. Older servers have no `inProgress`.
    """
    return not _is_working(build) and build.get("result") is not None


def is_running(build: Mapping[str, Any]) -> bool:
    return _is_working(build) or ("result" in build and build["result"] is None)


def is_idle(build: Mapping[str, Any]) -> bool:
    """Return whether a build has stopped working, even if it has no result yet."""
    return "building" in build and not _is_working(build)


def _is_working(build: Mapping[str, Any]) -> bool:
    return bool(build.get("building")) or bool(build.get("inProgress"))


def shown(build: Mapping[str, Any], job: Job, base_url: str) -> dict[str, Any]:
    """Return the module's return value `build`: duration in seconds, timestamp in ISO 8601 UTC."""
    number, duration = build.get("number"), build.get("duration")
    over = build.get("result") is not None
    return {
        "number": number,
        "url": None if number is None else f"{base_url}/{build_path(job, int(number))}/",
        "result": build.get("result"),
        "duration": duration / 1000 if over and isinstance(duration, (int, float)) else None,
        "timestamp": iso(moment_of(build.get("timestamp"))),
        "parameters": parameters.displayed(build),
        "queue_id": build.get("queueId"),
    }


_BUILD_URL = re.compile(r"(.*?)/([0-9]{1,18})/?")
_CHANGES = "items[commitId,revision,id,msg,comment,timestamp,date,author[fullName]]"
_TRACED_FIELDS = (
    f"number,url,result,building,timestamp,duration,changeSet[{_CHANGES}],changeSets[{_CHANGES}]"
)


@dataclass(frozen=True)
class TracedBuild:
    """A build and its new commits, in the order in which the server returns them."""

    build: dict[str, Any]
    commits: list[dict[str, Any]]


def traced_build(task: Task, url: str) -> TracedBuild | None:
    """Return the build at `url`; `None` if it does not exist or `url` has no build number.

    The lookup `trace` reads the commits of a release with it [C8.11]. Raises `invalid` for a URL of
    another server.
    """
    server = server_of(task)
    found = _BUILD_URL.fullmatch(url.strip())
    job = job_of(found[1] if found else url, task.connection.url)
    if found is None:
        return None
    path = build_path(job, int(found[2]))
    purpose = f"reading the build {found[2]} of the job '{job.name}'"
    response = server.read(
        purpose, f"{path}/api/json", query={"tree": _TRACED_FIELDS}, expect=(200, 404)
    )
    if response.status == 404:
        return None
    shown = object_of(response)
    build = {
        "job": job.name,
        "number": int(found[2]),
        "url": str(shown.get("url") or url),
        "result": shown.get("result"),
        "building": shown.get("building") is True,
        "started": _moment(shown.get("timestamp")),
        "duration": shown.get("duration"),
    }
    return TracedBuild(build, list(_commits(shown)))


def _commits(shown: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the commits of a build. Server fact [ci-27]: depending on the kind of job, a build has
    `changeSet` (an object) or `changeSets` (a list).
    """
    sets = [part(shown.get("changeSet")), *json_objects(shown.get("changeSets"))]
    for record in (change for changes in sets for change in json_objects(changes.get("items"))):
        known = (record.get(name) for name in ("commitId", "revision", "id"))
        yield {
            "id": next((str(value) for value in known if value), None),
            "message": str(record.get("comment") or record.get("msg") or "").strip(),
            "author": part(record.get("author")).get("fullName"),
            "date": _moment(record.get("timestamp")) or record.get("date"),
        }


def _moment(milliseconds: object) -> str | None:
    """Return epoch milliseconds as ISO 8601 in UTC; `None` for `-1`, which means unknown."""
    if not isinstance(milliseconds, int) or not 0 < milliseconds < 1 << 47:
        return None
    moment = datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
