# SPDX-License-Identifier: GPL-3.0-or-later
"""Store the past builds of a seed."""

from __future__ import annotations

from typing import Any

from sandbox.ci.builds import archiving, builds, parameters
from sandbox.ci.builds.variables import as_text
from sandbox.ci.jobs import jobs
from sandbox.context import Context


def put(context: Context, data: dict[str, Any]) -> None:
    """Store `repeat` past builds of a seed.

    Keys: `job, number, result, parameters, age_seconds, seconds, repeat, running, keep`. A
    build ended (or started, with `running`) `age_seconds` ago. `on_success` is not carried out.
    """
    job = jobs.get(context, data["job"])
    if job is None:
        raise ValueError(f"build of an unknown job {data['job']}")
    given = data.get("parameters") or {}
    form = {name: [as_text(value)] for name, value in given.items()}
    values = parameters.from_form(job["parameters"], form, {})
    running = bool(data.get("running"))
    length = int(float(data.get("seconds", job["build_seconds"])) * 1000)
    for _build in range(int(data.get("repeat", 1))):
        number = jobs.take_number(context, data["job"], data.get("number"))
        age = int(float(data.get("age_seconds", 0 if running else 3600)) * 1000)
        end = context.now_ms() - age + (length if running else 0)
        build = {
            "job": data["job"],
            "number": number,
            "queue_id": context.store.next_id("ci.queue"),
            "parameters": values,
            "user": data.get("user"),
            "cause": f"Started by user {data.get('user') or 'anonymous'}",
            "start_ms": end - length,
            "end_ms": end,
            "result": data.get("result", job["result"]),
            "done": not running,
            "base": "",
            "input": job["input"] if running else None,
            "notes": [],
            "keep": bool(data.get("keep")),
        }
        if not running:
            build["artifacts"] = archiving.kept(context, job, build)
        key = builds.build_key(data["job"], number)
        context.store.put(builds.BUILDS, key, build)
        if running:
            context.store.put(builds.RUNNING, key, {})
