# SPDX-License-Identifier: GPL-3.0-or-later
"""Module `tracker_project_info`: read a project or all projects [W4.2, C4.4]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from ...core.address import path
from ...core.http.messages import expected, unexpected_body
from ...core.json_text import as_text
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.plan import Plan, ReadOnly, unchanged
from ..client import TrackerClient, not_visible
from ..pagination import read_all
from ..service import SERVICE

Project = dict[str, Any]

_LIST = "rest/api/2/project"
_SUCCESSOR = "rest/api/2/project/search"
_PAGE_SIZE = 50
_READING = "reading the projects"


@dataclass(frozen=True)
class TrackerProjectInfoOptions:
    """The options of `tracker_project_info`."""

    project: Annotated[str | None, Option(aliases=("key",), secret=False, segment=True)] = None


class TrackerProjectInfoOperation(ReadOnly):
    """Read projects. Returns the server's JSON objects unchanged."""

    descriptor: ClassVar = Descriptor(SERVICE, {"read": reads("browse")})

    def __init__(self, task: Task, options: TrackerProjectInfoOptions) -> None:
        self._client, self._key = TrackerClient(task), options.project

    def plan(self) -> Plan:
        key = self._key
        return unchanged({"projects": self.all() if key is None else [self._project(key)]})

    def all(self) -> list[Project]:
        """Return all projects that the account can see.

        Server fact [tracker-8]: the cloud has them in pages, and will remove the list.
        """
        if self._client.cloud:
            return read_all(self._client.read, _READING, _SUCCESSOR, "values", _PAGE_SIZE)
        response = self._client.read(_READING, _LIST)
        projects = expected(response, list, "a list of projects")
        if not all(isinstance(project, dict) for project in projects):
            raise unexpected_body(response, "a list of projects")
        return projects

    def _project(self, key: str) -> Project:
        """Return the project with a key or id. Raises `not_found` if it is not visible.

        The written interface has no route for a single project, so the list is searched after a
        404.
        """
        purpose = f"reading the project '{key}'"
        response = self._client.read(purpose, f"{_LIST}/{path(key)}", expect=(200, 404))
        if response.status == 200:
            project = expected(response, dict, "a project")
            if "key" not in project:
                raise unexpected_body(response, "a project")
            return project
        for project in self.all():
            if key in (project.get("key"), as_text(project.get("id"))):
                return project
        raise not_visible(response)
