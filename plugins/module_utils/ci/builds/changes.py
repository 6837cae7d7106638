# SPDX-License-Identifier: GPL-3.0-or-later
"""A build with the commits that it took in first: a part of the lookup C(trace) [C8.11]."""

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
    """A build as the CI server shows it, and its commits in the order of the server."""

    build: dict[str, Any]
    commits: list[dict[str, Any]]


def traced_build(task: Task, url: str) -> TracedBuild | None:
    """The build at an address; C(None) where it is gone.

    Raises C(invalid) for an address that is none of a build on this server.
    """
    server = server_of(task)
    found = _NUMBER.fullmatch(url.strip())
    job = job_of(found[1] if found else url, task.connection.url)
    if found is None:
        return None
    path = build_path(job, int(found[2]))
    what = f"reading the build {found[2]} of the job '{job.name}'"
    response = server.read(what, f"{path}/api/json", query={"tree": _TREE}, expect=(200, 404))
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
    """Server fact [ci-27]: one set of changes, or a list of them, by the kind of job."""
    sets = [part(shown.get("changeSet")), *objects(shown.get("changeSets"))]
    for each in (change for changes in sets for change in objects(changes.get("items"))):
        known = (each.get(name) for name in ("commitId", "revision", "id"))
        yield {
            "id": next((str(value) for value in known if value), None),
            "message": str(each.get("comment") or each.get("msg") or "").strip(),
            "author": part(each.get("author")).get("fullName"),
            "date": _moment(each.get("timestamp")) or each.get("date"),
        }


def _moment(milliseconds: object) -> str | None:
    """ISO 8601 in UTC; a set of changes writes C(-1) where it does not know the time."""
    if not isinstance(milliseconds, int) or not 0 < milliseconds < 1 << 47:
        return None
    moment = datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
