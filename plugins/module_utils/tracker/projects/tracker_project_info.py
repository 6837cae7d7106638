# SPDX-License-Identifier: GPL-3.0-or-later
"""Projects [W4.2, C4.4]: the module C(tracker_project_info)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.address import path
from ...core.errors import ToolchainError
from ...core.http.messages import Answer, unreadable
from ...core.module.task import Task
from ...core.plan import Reading
from ..client import Tracker, describe
from ..pagination import OffsetWalk, Range

Project = dict[str, Any]

_LIST = "rest/api/2/project"
#: Server fact [tracker-8]: what takes the place of the list in the cloud, page by page.
_SUCCESSOR = "rest/api/2/project/search"
_PAGE_SIZE = 50
_READING = "reading the projects"


def operation(task: Task) -> Reading:
    """The operation of the module: C(projects), as the server gives them."""
    tracker, key = Tracker(task), task.params["key"]

    def read() -> Mapping[str, Any]:
        return {"projects": all_projects(tracker) if key is None else [project_of(tracker, key)]}

    return Reading(read)


def all_projects(tracker: Tracker) -> list[Project]:
    """All projects that the account sees, in one answer where the server has not given that up."""
    answer = tracker.read(_READING, _LIST, expect=(200, 410))
    return _listed(answer, answer.json()) if answer.status == 200 else _by_page(tracker)


def _by_page(tracker: Tracker) -> list[Project]:
    def ask(start: int, size: int) -> Mapping[str, Any]:
        query = {"startAt": start, "maxResults": size}
        answer = tracker.read(_READING, _SUCCESSOR, query=query)
        page = answer.json()
        values = page.get("values") if isinstance(page, Mapping) else None
        listed = _listed(answer, values)
        return {**page, "issues": listed}

    found = OffsetWalk(ask, Range(0, None, _PAGE_SIZE), 1, _READING).read()
    if not found.complete:
        raise ToolchainError("protocol", f"{_READING}: {'; '.join(found.warnings)}")
    return found.issues


def _listed(answer: Answer, projects: Any) -> list[Project]:
    if not isinstance(projects, list) or not all(isinstance(one, dict) for one in projects):
        raise unreadable(answer, "a list of projects")
    return projects


def project_of(tracker: Tracker, key: str) -> Project:
    """One project by key or id, with all that the server tells of it; C(not_found).

    The written interface has the list alone: a server that does not know the project by its own
    address is asked for that.
    """
    what = f"reading the project '{key}'"
    answer = tracker.read(what, f"{_LIST}/{path(key)}", expect=(200, 404))
    if answer.status == 200:
        project = answer.json()
        if not isinstance(project, dict) or "key" not in project:
            raise unreadable(answer, "a project")
        return project
    for project in all_projects(tracker):
        if key in (project.get("key"), str(project.get("id"))):
            return project
    said = describe(answer)
    message = f"missing, or not visible to this account; the server answered 404: {said}"
    raise answer.error("not_found", message, said)
