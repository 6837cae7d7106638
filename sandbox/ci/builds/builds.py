# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulate the queue and the builds.

There is no background task. `advance` carries out all starts and ends of builds that are due since
its last call, in the order of their times. It is called before each request, so a request never
reads an outdated state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.responses import Response

from sandbox.ci.builds import archiving, on_success
from sandbox.ci.builds.variables import filled, variables
from sandbox.ci.jobs import jobs
from sandbox.ci.server import restart
from sandbox.context import Context

BUILDS, QUEUE, WAITING, RUNNING, ENDS = (
    "ci.build",
    "ci.queue",
    "ci.waiting",
    "ci.running",
    "ci.end",
)

Event = tuple[int, int, str, Callable[[], None]]


def advance(context: Context) -> None:
    """Carry out all starts and ends of builds that are due."""
    now = context.now_ms()
    while True:
        due = [*_finishes(context, now), *_starts(context, now)]
        if not due:
            break
        # if times are equal, ends precede starts, because a waiting build may need the executor
        happen = min(due, key=lambda event: event[:3])[3]
        with context.store.transaction():
            happen()
    # a pipeline build that waits for an input uses no executor and continues after the restart
    active = (context.store.get(BUILDS, key) or {} for key in context.store.keys(RUNNING))
    if all(build.get("input") for build in active) and restart.advance(context, now):
        with context.store.transaction():
            _renumber(context)


def _renumber(context: Context) -> None:
    """Give waiting items and running builds other queue ids, as a restart does [ci-8]."""
    store = context.store
    waiting = [store.get(QUEUE, key) for key in store.keys(WAITING)]
    for key in store.keys(QUEUE):
        store.delete(QUEUE, key)
    for key in store.keys(WAITING):
        store.delete(WAITING, key)
    for item in waiting:
        number = store.next_id("ci.queue")
        store.put(QUEUE, queue_key(number), {**(item or {}), "id": number})
        store.put(WAITING, queue_key(number), {})
    for key in store.keys(RUNNING):
        build = store.get(BUILDS, key) or {}
        store.put(BUILDS, key, {**build, "queue_id": store.next_id("ci.queue")})


def build_key(job: str, number: int) -> str:
    return f"{job}#{number:09d}"


def queue_key(item: int) -> str:
    return f"{item:012d}"


def _finishes(context: Context, now: int) -> list[Event]:
    found: list[Event] = []
    for key in context.store.keys(RUNNING):
        build = context.store.get(BUILDS, key)
        if build is not None and build["end_ms"] <= now and not build.get("input"):
            found.append((build["end_ms"], 0, key, _later(finish, context, key)))
    return found


def _starts(context: Context, now: int) -> list[Event]:
    if restart.quieting(context):
        return []
    found: list[Event] = []
    taken: set[str] = set()
    for key in context.store.keys(WAITING):
        item = context.store.get(QUEUE, key)
        job = None if item is None else jobs.get(context, item["job"])
        if item is None or job is None or item["job"] in taken:
            continue
        at = _start_time(context, item, job)
        if not job["concurrent"]:
            taken.add(item["job"])
        if at is not None and at <= now:
            found.append((at, 1, key, _later(start, context, key, at)))
    return found


def _later(function: Callable[..., None], *arguments: Any) -> Callable[[], None]:
    return lambda: function(*arguments)


def _start_time(context: Context, item: dict[str, Any], job: dict[str, Any]) -> int | None:
    """Return the time at which an item leaves the queue in epoch ms, or `None` if it is blocked."""
    if job["offline"] or (not job["concurrent"] and running(context, item["job"])):
        return None
    end = context.store.get(ENDS, item["job"])
    freed = 0 if end is None or job["concurrent"] else int(end["at"])
    return max(int(item["ready_ms"]), freed, restart.resumed_ms(context))


def running(context: Context, job: str) -> list[str]:
    """Return the keys of the running builds of a job."""
    return context.store.keys(RUNNING, f"{job}#")


def all_running(context: Context) -> list[str]:
    """Return the keys of all running builds."""
    return context.store.keys(RUNNING)


def start(context: Context, key: str, at: int) -> None:
    """Turn a queue item into a build."""
    store = context.store
    item = store.get(QUEUE, key)
    if item is None:
        raise LookupError(key)
    job = jobs.get(context, item["job"]) or {}
    number = jobs.take_number(context, item["job"])
    build = {
        "job": item["job"],
        "number": number,
        "queue_id": item["id"],
        "parameters": item["parameters"],
        "user": item["user"],
        "cause": item["cause"],
        "base": item["base"],
        "start_ms": at,
        "end_ms": at + int(job["build_seconds"] * 1000),
        "result": job["result"],
        "done": False,
        "input": job["input"],
        "notes": [],
    }
    store.put(BUILDS, build_key(item["job"], number), build)
    store.put(RUNNING, build_key(item["job"], number), {})
    store.put(QUEUE, key, {**item, "left_ms": at, "number": number})
    store.delete(WAITING, key)


def finish(context: Context, key: str) -> None:
    """Finish a build. Publish its artifacts if it was successful."""
    build = context.store.get(BUILDS, key)
    if build is None:
        raise LookupError(key)
    build["done"] = True
    if build["result"] == "SUCCESS":
        job = jobs.get(context, build["job"]) or jobs.DEFAULTS
        try:
            on_success.carry_out(context, job["on_success"], variables(build), build["start_ms"])
        except (LookupError, ValueError) as error:
            build["result"] = "FAILURE"
            build["notes"].append(f"ERROR: {error}")
    build["artifacts"] = archiving.kept(context, jobs.get(context, build["job"]), build)
    context.store.put(BUILDS, key, build)
    context.store.put(ENDS, build["job"], {"at": build["end_ms"]})
    context.store.delete(RUNNING, key)


def abort(context: Context, key: str, note: str) -> None:
    """Abort a running build now."""
    build = context.store.get(BUILDS, key)
    if build is None or build["done"]:
        return
    build.update(result="ABORTED", end_ms=context.now_ms())
    build["notes"].append(note)
    context.store.put(BUILDS, key, build)
    finish(context, key)


def note(context: Context, key: str, line: str) -> None:
    """Append a line to the log of a build."""
    build = context.store.get(BUILDS, key)
    if build is not None:
        build["notes"].append(line)
        context.store.put(BUILDS, key, build)


def numbers(context: Context, job: str) -> list[int]:
    """Return the numbers of the builds of a job, newest first."""
    keys = context.store.keys(BUILDS, f"{job}#")
    return [int(key.rpartition("#")[2]) for key in reversed(keys)]


def get(context: Context, job: str, number: int) -> dict[str, Any] | None:
    return context.store.get(BUILDS, build_key(job, number))


#: Note for the web interface, which the server writes into the log before the name of a user.
NOTE = b"\x1b[8mha:////4AAAACIxH4sIAAAAAAAA/wMAAAAAAAAAAAA=\x1b[0m"
_USER = b"Started by user "


def raw_log(lines: list[str]) -> bytes:
    """Return the log as the server stores it, with notes [ci-13]."""
    return "".join(f"{line}\n" for line in lines).encode().replace(_USER, _USER + NOTE)


def progressive_text(data: bytes, more: bool, given: str | None) -> Response:
    """Return the log from an offset in the stored log, with notes and CRLF.

    Server fact [ci-13]: `X-Text-Size` contains the next offset. An offset beyond the end counts as
    0.
    """
    start = int(given) if given and given.isdigit() and int(given) <= len(data) else 0
    headers = {"X-Text-Size": str(len(data)), **({"X-More-Data": "true"} if more else {})}
    body = data[start:].replace(b"\n", b"\r\n")
    return Response(body, 200, headers, "text/plain;charset=utf-8")


def console(context: Context, build: dict[str, Any]) -> tuple[bytes, bool]:
    """Return the current log, and whether the build will append to it.

    The lines of the log are spread evenly over the duration of the build.
    """
    job = jobs.get(context, build["job"]) or jobs.DEFAULTS
    now = context.now_ms()
    lines = [str(line) for line in job["log"]]
    shown = len(lines)
    if not build["done"] or build["result"] == "ABORTED":
        elapsed = min(now, build["end_ms"]) - build["start_ms"]
        planned = max(1, int(job["build_seconds"] * 1000))
        shown = min(shown, shown * elapsed // planned)
    names = variables(build)
    text = [build["cause"], *lines[:shown], *build["notes"]]
    unfinished = in_progress(context, build)
    if not unfinished:
        text.append(f"Finished: {build['result']}")
    return raw_log([filled(line, names) for line in text]), unfinished


def in_progress(context: Context, build: dict[str, Any]) -> bool:
    """Return whether the build is working. Server fact [ci-9]: a build may continue to work after
    its result is set.
    """
    if not build["done"]:
        return True
    job = jobs.get(context, build["job"]) or jobs.DEFAULTS
    still = int(build["end_ms"]) + int(job["post_production_seconds"] * 1000)
    return context.now_ms() < still
