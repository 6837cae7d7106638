# SPDX-License-Identifier: GPL-3.0-or-later
"""Add builds to the queue and remove them [ci-6, ci-25, ci-8]."""

from __future__ import annotations

from typing import Any

from sandbox.ci.builds import builds
from sandbox.ci.jobs import jobs
from sandbox.ci.server import restart
from sandbox.context import Context

WAITING, BLOCKED, BUILDABLE, LEFT = (
    "hudson.model.Queue$WaitingItem",
    "hudson.model.Queue$BlockedItem",
    "hudson.model.Queue$BuildableItem",
    "hudson.model.Queue$LeftItem",
)


def put(
    context: Context,
    job: dict[str, Any],
    parameters: list[dict[str, Any]],
    user: str | None,
    *,
    quiet_ms: int,
    base: str,
) -> tuple[dict[str, Any], bool]:
    """Queue a build. Return its item, and whether the build was merged into a waiting item.

    :param quiet_ms: quiet period in milliseconds
    :param base: URL of the server as the client knows it
    """
    name = job["full_name"]
    for key in context.store.keys(builds.WAITING):
        item = context.store.get(builds.QUEUE, key)
        same = item is not None and item["job"] == name and item["parameters"] == parameters
        # server fact [ci-26]: values of file parameters are never equal
        if item is not None and same and all(value["type"] != "file" for value in parameters):
            return item, True
    now = context.now_ms()
    number = context.store.next_id("ci.queue")
    item = {
        "id": number,
        "job": name,
        "parameters": parameters,
        "user": user,
        "base": base,
        "cause": f"Started by user {user or 'anonymous'}",
        "since_ms": now,
        "ready_ms": now + quiet_ms,
        "left_ms": None,
        "cancelled": False,
        "number": None,
    }
    key = builds.queue_key(number)
    context.store.put(builds.QUEUE, key, item)
    context.store.put(builds.WAITING, key, {})
    return item, False


def get(context: Context, number: int) -> dict[str, Any] | None:
    """Return a queue item, or None if it is unknown or expired (setting `queue_item_seconds`)."""
    item = context.store.get(builds.QUEUE, builds.queue_key(number))
    if item is None or item["left_ms"] is None:
        return item
    kept_ms = int(float(context.settings("ci")["queue_item_seconds"]) * 1000)
    return item if context.now_ms() < item["left_ms"] + kept_ms else None


def waiting(context: Context) -> list[dict[str, Any]]:
    """Return the items in the queue, newest first, as the server lists them."""
    found = [
        context.store.get(builds.QUEUE, key) for key in reversed(context.store.keys(builds.WAITING))
    ]
    return [item for item in found if item is not None]


def waiting_for(context: Context, job: str) -> dict[str, Any] | None:
    """Return the oldest item of the job, or `None`."""
    items = [item for item in waiting(context) if item["job"] == job]
    return items[-1] if items else None


def cancel(context: Context, item: dict[str, Any]) -> bool:
    """Cancel an item. Return false if it has already left the queue."""
    if item["left_ms"] is not None:
        return False
    key = builds.queue_key(item["id"])
    changes = {"left_ms": context.now_ms(), "cancelled": True}
    context.store.put(builds.QUEUE, key, {**item, **changes})
    context.store.delete(builds.WAITING, key)
    return True


def forget(context: Context, job: str) -> None:
    """Cancel all waiting items of a job."""
    for item in waiting(context):
        if item["job"] == job:
            cancel(context, item)


def kind(context: Context, item: dict[str, Any]) -> str:
    """Return the class name of an item, for example `WAITING`, which depends on its state."""
    if item["left_ms"] is not None:
        return LEFT
    if item["ready_ms"] > context.now_ms():
        return WAITING
    job = jobs.get(context, item["job"]) or jobs.DEFAULTS
    return BUILDABLE if job["offline"] or not blocked(context, item, job) else BLOCKED


def blocked(context: Context, item: dict[str, Any], job: dict[str, Any]) -> bool:
    """Return whether another build of the job blocks the item."""
    return not job["concurrent"] and bool(builds.running(context, item["job"]))


def why(context: Context, item: dict[str, Any], cls: str) -> str | None:
    """Return the text with which the server explains why an item waits."""
    if cls == LEFT:
        return None
    if restart.quieting(context):
        return "Jenkins is about to shut down"
    if cls == WAITING:
        left = (item["ready_ms"] - context.now_ms()) / 1000
        return f"In the quiet period. Expires in {left:.1f} sec"
    if cls == BLOCKED:
        running = builds.running(context, item["job"])[0]
        return f"Build #{int(running.rpartition('#')[2])} is already in progress"
    return "All nodes of label builder are offline"
