# SPDX-License-Identifier: GPL-3.0-or-later
"""Delete an item from a repository [C2.1]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.errors import ToolchainError
from ...core.module.task import Task
from ...core.plan import Plan, plan
from ..client import RepoClient, item_path
from ..repositories import deployment_target
from . import listing
from .listing import StoredItem


class ItemRemoval:
    """Delete a file or folder. An empty path means the whole content of the repository."""

    def __init__(self, task: Task, repo: str, path: str) -> None:
        self._repo, self._path = repo, path
        self._warn, self._client = task.warn, RepoClient(task)

    def plan(self) -> Plan:
        stored = self._find_in_target(self._find(self._repo))
        name = f"{self._repo}/{self._path}"
        current = None if stored is None else {name: stored.as_dict()}
        return plan(current, None).with_result(artifacts=[self._artifact(stored)], uploaded_bytes=0)

    def _artifact(self, stored: StoredItem | None) -> dict[str, Any]:
        return {
            "repo": self._repo,
            "path": self._path,
            "size": None if stored is None else stored.size,
            "sha256": None if stored is None else stored.sha256,
            "action": "absent" if stored is None else "deleted",
            "url": self._client.transport.url(item_path(self._repo, self._path)),
        }

    def _find(self, repo: str) -> StoredItem | None:
        return listing.find(self._client, repo, self._path)

    def _find_in_target(self, visible: StoredItem | None) -> StoredItem | None:
        """Return the item in the deployment repository of a virtual repository.

        Items can only be deleted there. For other repositories, return the item unchanged.

        :param visible: the item as found in the repository of the task
        """
        key = self._repo
        try:
            self._repo = deployment_target(self._client, key, certain=visible is None)
        except ToolchainError as error:
            if visible is None and error.kind == "rejected":
                return None
            raise
        if key == self._repo:
            return visible
        found = self._find(self._repo)
        if found is None and visible is not None:
            self._warn(
                f"'{self._path}' is not in '{self._repo}', to which '{key}' deploys, so it is not"
                f" deleted: '{key}' contains it from another repository"
            )
        return found

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        purpose = f"deleting '{self._repo}/{self._path}'"
        try:
            self._client.write(
                purpose,
                "DELETE",
                item_path(self._repo, self._path, slash=self._path == ""),
                verify=self._is_gone,
                repeatable=True,
            )
        except ToolchainError as error:
            if error.status == 404 and self._is_gone() is not False:
                return {"changed": False, "artifacts": [self._artifact(None)]}
            raise
        return {}

    def _is_gone(self) -> bool | None:
        return listing.is_gone(self._client, self._repo, self._path)
