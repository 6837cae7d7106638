# SPDX-License-Identifier: GPL-3.0-or-later
"""Module `tracker_project_info`: read a project or all projects [W4.2, C4.4]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from ...core.address import path
from ...core.http.messages import Response, unexpected_body
from ...core.json_text import as_text
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.plan import Plan, ReadOnly, unchanged
from ..client import TrackerClient, describe
from ..pagination import read_all

Project = dict[str, Any]

_LIST = "rest/api/2/project"
#: Server fact [tracker-8]: in the cloud this paginated search replaces the list.
_SUCCESSOR = "rest/api/2/project/search"
_PAGE_SIZE = 50
_READING = "reading the projects"


@dataclass(frozen=True)
class TrackerProjectInfoOptions:
    """The options of `tracker_project_info`."""

    key: Annotated[str | None, Option(secret=False)] = None


class TrackerProjectInfoOperation(ReadOnly):
    """Read projects. Returns the server's JSON objects unchanged."""

    descriptor: ClassVar = Descriptor("tracker", {"read": reads()})

    def __init__(self, task: Task, options: TrackerProjectInfoOptions) -> None:
        self._client, self._key = TrackerClient(task), options.key

    def plan(self) -> Plan:
        key = self._key
        return unchanged({"projects": self.all() if key is None else [self._project(key)]})

    def all(self) -> list[Project]:
        """Return all projects that the account can see.

        This takes a single request if the server supports the list.
        """
        response = self._client.read(_READING, _LIST, expect=(200, 410))
        return _listed(response, response.json()) if response.status == 200 else self._by_page()

    def _by_page(self) -> list[Project]:
        def ask(start: int, size: int) -> Mapping[str, Any]:
            query = {"startAt": start, "maxResults": size}
            response = self._client.read(_READING, _SUCCESSOR, query=query)
            page = response.json()
            values = page.get("values") if isinstance(page, Mapping) else None
            listed = _listed(response, values)
            return {**page, "issues": listed}

        return read_all(ask, _PAGE_SIZE, _READING)

    def _project(self, key: str) -> Project:
        """Return the project with a key or id. Raises `not_found` if it is not visible.

        The written interface has no route for a single project, so the list is searched after a
        404.
        """
        purpose = f"reading the project '{key}'"
        response = self._client.read(purpose, f"{_LIST}/{path(key)}", expect=(200, 404))
        if response.status == 200:
            project = response.json()
            if not isinstance(project, dict) or "key" not in project:
                raise unexpected_body(response, "a project")
            return project
        for project in self.all():
            if key in (project.get("key"), as_text(project.get("id"))):
                return project
        error_message = describe(response)
        message = (
            f"missing, or not visible to this account; the server returned 404: {error_message}"
        )
        raise response.error("not_found", message, error_message)


def _listed(response: Response, projects: Any) -> list[Project]:
    if not isinstance(projects, list) or not all(isinstance(project, dict) for project in projects):
        raise unexpected_body(response, "a list of projects")
    return projects
