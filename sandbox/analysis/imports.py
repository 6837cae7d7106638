# SPDX-License-Identifier: GPL-3.0-or-later
"""Imports from other servers [W4.5, analysis-5].

Both actions respond with an empty body and continue in the background. The members of
`import_status` records are not documented, so the members here are an assumption.
"""

from __future__ import annotations

from typing import Any

from sandbox.analysis import projects
from sandbox.analysis.responses import Call, Record, Refused
from sandbox.context import Context

IMPORTS, SOURCES = "analysis.import", "analysis.source"
# Name of an import of settings in `import_status`. No project can have this name.
SERVER = "(server configuration)"


def seed_source(context: Context, data: dict[str, Any]) -> None:
    """Store a source server of the seed, with the keys `url, username, password, projects`.

    Its projects have the same format as the projects of the seed.
    """
    context.store.put(SOURCES, data["url"].rstrip("/"), data)


def import_project(call: Call) -> None:
    name = call.required("project")
    if call.context.store.get(projects.PROJECTS, name) is not None:
        raise Refused(400, f"Project {name} already exists")
    _start(call, name)


def import_server_configuration(call: Call) -> None:
    _start(call, SERVER)


def _start(call: Call, project: str) -> None:
    """Start an import. Errors of the source server appear later, in `import_status`."""
    url, user = call.required("sourceURL").rstrip("/"), call.required("sourceAdmin")
    number = call.context.store.next_id(IMPORTS)
    begun = {
        "project": project,
        "started": call.context.now_ms(),
        "failure": _failure(call, url, user, project),
        "source": url,
        "over": False,
    }
    call.context.store.put(IMPORTS, f"{number:06d}", begun)


def _failure(call: Call, url: str, user: str, project: str) -> str | None:
    source = call.context.store.get(SOURCES, url)
    if source is None:
        return f"Cannot connect to {url}"
    if (user, call.text("sourcePassword")) != (source["username"], source["password"]):
        return f"Login to {url} failed"
    existing = [project["name"] for project in source.get("projects") or []]
    return None if project in (SERVER, *existing) else f"Project {project} does not exist on {url}"


def finish_due(context: Context) -> None:
    """Finish the imports whose duration has passed. A successful import creates the project."""
    for key, begun in context.store.items(IMPORTS):
        if begun["over"] or _percent(context, begun) < 100:
            continue
        if begun["failure"] is None and begun["project"] != SERVER:
            source = context.store.get(SOURCES, begun["source"]) or {}
            (found,) = (
                project for project in source["projects"] if project["name"] == begun["project"]
            )
            projects.seed(context, found)
        context.store.put(IMPORTS, key, {**begun, "over": True})


def _percent(context: Context, begun: dict[str, Any]) -> int:
    length = max(1, int(context.settings("analysis")["import_ms"]))
    passed = context.now_ms() - int(begun["started"]) + 1
    return min(100, 100 * passed // length)


def import_status(call: Call) -> list[Record]:
    return [_record(call.context, begun) for begun in call.context.store.values(IMPORTS)]


def _record(context: Context, begun: dict[str, Any]) -> Record:
    if not begun["over"]:
        percent = _percent(context, begun)
        return {"project": begun["project"], "status": "Running", "progress": percent}
    if begun["failure"] is not None:
        return {"project": begun["project"], "status": "Failed", "message": begun["failure"]}
    return {"project": begun["project"], "status": "Completed", "progress": 100}
