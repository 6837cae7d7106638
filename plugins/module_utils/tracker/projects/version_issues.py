# SPDX-License-Identifier: GPL-3.0-or-later
"""Move the unresolved issues of a released version to another version."""

from __future__ import annotations

from ...core.address import path
from ...core.errors import ToolchainError
from ...core.module.task import Task
from ..client import TrackerClient
from ..search.jql_search import JqlSearchOperation, JqlSearchOptions
from .versions import Version


class VersionIssues:
    """Find the issues of a version, and move them individually.

    All servers support this, but not all can move all issues of a version at once [tracker-16].
    """

    def __init__(self, task: Task, client: TrackerClient) -> None:
        self._task, self._client = task, client

    def of(self, version: Version, most: int | None = None) -> list[str]:
        """Return the keys of the visible unresolved issues, at most `most`; None means all.

        Raises `protocol` if all issues are wanted and the search is incomplete.
        """
        jql = f"fixVersion = {version.id} AND resolution is EMPTY"
        options = JqlSearchOptions(jql, fields=["key"], max_results=most)
        found = JqlSearchOperation(self._task, options).search()
        if most is None and not found.complete:
            raise ToolchainError("protocol", f"the search '{jql}' did not return every match")
        return [str(issue["key"]) for issue in found.issues]

    def move(self, key: str, version: Version, target: Version) -> None:
        """Replace a version of an issue by another. The issue keeps its further versions."""
        verbs = [{"remove": {"id": version.id}}, {"add": {"id": target.id}}]
        route = f"rest/api/2/issue/{path(key)}"

        def done() -> bool:
            response = self._client.read(
                f"reading the issue '{key}'", route, query={"fields": "fixVersions"}
            )
            fields = response.json()["fields"]
            ids = {str(fix_version["id"]) for fix_version in fields["fixVersions"]}
            return target.id in ids and version.id not in ids

        self._client.write(
            f"moving the issue '{key}' from the version '{version.name}' to '{target.name}'",
            "PUT",
            route,
            json={"update": {"fixVersions": verbs}},
            verify=done,
            repeatable=True,
        )
