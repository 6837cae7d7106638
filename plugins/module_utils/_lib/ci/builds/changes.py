# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a build and its commits for the lookup `trace` [C8.11]."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from ...core.module.task import Task
from ..client import object_of, objects, part, server_of
from ..job_address import Job, build_path, job_of

_NUMBER = re.compile(r"(.*?)/([0-9]{1,18})/?")
_CHANGES = "items[commitId,revision,id,msg,comment,timestamp,date,author[fullName]]"
_TREE = (
    f"number,url,result,building,timestamp,duration,changeSet[{_CHANGES}],changeSets[{_CHANGES}]"
)


@dataclass(frozen=True)
class TracedBuild:
    """A build and its new commits, in the order in which the server returns them."""

    build: dict[str, Any]
    commits: list[dict[str, Any]]


def traced_build(task: Task, url: str) -> TracedBuild | None:
    """Return the build at `url`; `None` if it does not exist or `url` has no build number.

    Raises `invalid` for a URL of another server.
    """
    server = server_of(task)
    found = _NUMBER.fullmatch(url.strip())
    job = job_of(found[1] if found else url, task.connection.url)
    if found is None:
        return None
    path = build_path(job, int(found[2]))
    purpose = f"reading the build {found[2]} of the job '{job.name}'"
    response = server.read(purpose, f"{path}/api/json", query={"tree": _TREE}, expect=(200, 404))
    if response.status == 404:
        return None
    shown = object_of(response)
    return TracedBuild(_build(job, int(found[2]), shown, url), list(_commits(shown)))


def _build(job: Job, number: int, shown: Mapping[str, Any], url: str) -> dict[str, Any]:
    return {
        "job": job.name,
        "number": number,
        "url": str(shown.get("url") or url),
        "result": shown.get("result"),
        "building": shown.get("building") is True,
        "started": _moment(shown.get("timestamp")),
        "duration": shown.get("duration"),
    }


def _commits(shown: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the commits of a build. Server fact [ci-27]: depending on the kind of job, a build has
    `changeSet` (an object) or `changeSets` (a list).
    """
    sets = [part(shown.get("changeSet")), *objects(shown.get("changeSets"))]
    for record in (change for changes in sets for change in objects(changes.get("items"))):
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
