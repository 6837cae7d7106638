# SPDX-License-Identifier: GPL-3.0-or-later
"""Branch scans of computed folders [ci-29]."""

from __future__ import annotations

import time
from typing import Any

from starlette.responses import Response

from sandbox.ci.builds import builds
from sandbox.ci.call import Action, Call
from sandbox.ci.jobs import items, jobs
from sandbox.ci.server import access, pages
from sandbox.context import Context

_SCANS = "ci.scan"


def scan_actions() -> dict[str, Action]:
    read = access.ITEM_READ
    return {
        f"{place}/{name}": Action(handler, "GET", read, listed=False)
        for place in ("computation", "indexing")
        for name, handler in (
            ("consoleText", _console_text),
            ("logText/progressiveText", _progressive_text),
        )
    }


def start(call: Call) -> Response:
    """Handle POST {folder}/build [ci-29]. The status is 302, or 500 for a disabled folder."""
    context, job = call.site.context, call.found_job
    if jobs.is_disabled(context, job):
        return pages.oops(f"{job['full_name']} cannot be recomputed")
    begin = context.now_ms()
    running = context.store.get(_SCANS, job["full_name"])
    if running is not None:
        begin = max(begin, running["end_ms"] + 1)
    scan = {
        "user": call.login.user,
        "start_ms": begin,
        "end_ms": begin + int(float(job["scan"].get("seconds", 0.3)) * 1000),
        "done": False,
    }
    context.store.put(_SCANS, job["full_name"], scan)
    return pages.redirect(call.request.headers.get("referer") or call.absolute("."))


def advance(context: Context) -> None:
    """Add and remove the branches of the scans that have ended."""
    for name, scan in context.store.items(_SCANS):
        job = jobs.get(context, name)
        if job is None or scan["done"] or context.now_ms() < scan["end_ms"]:
            continue
        for branch in job["scan"].get("adds", []):
            key = f"{name}/{branch}"
            if jobs.get(context, key) is None:
                nested = jobs.PIPELINE if job["kind"] == jobs.MULTIBRANCH else jobs.MULTIBRANCH
                jobs.put(context, key, {"kind": nested})
        for branch in job["scan"].get("removes", []):
            items.remove(context, f"{name}/{branch}")
        context.store.put(_SCANS, name, {**scan, "done": True})


def _log(call: Call) -> tuple[bytes, bool]:
    """Return the log of the latest scan, and whether the scan is running."""
    context, job = call.site.context, call.found_job
    scan: dict[str, Any] | None = context.store.get(_SCANS, job["full_name"])
    if scan is None or context.now_ms() < scan["start_ms"]:
        return b"", False
    began = time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(scan["start_ms"] / 1000))
    lines = [f"Started by user {scan['user']}", f"[{began}] Starting branch indexing..."]
    lines += [f"Checking branch {name}" for name in job["scan"].get("adds", [])]
    if scan["done"]:
        took = (scan["end_ms"] - scan["start_ms"]) / 1000
        lines.append(f"Finished branch indexing. Indexing took {took} sec ({scan['end_ms']})")
        lines.append(f"Finished: {job['scan'].get('result', 'SUCCESS')}")
    return builds.raw_log(lines), not scan["done"]


def _console_text(call: Call) -> Response:
    return pages.text(_log(call)[0].replace(builds.NOTE, b"").decode())


def _progressive_text(call: Call) -> Response:
    data, more = _log(call)
    return builds.progressive_text(data, more, call.request.query_params.get("start"))
