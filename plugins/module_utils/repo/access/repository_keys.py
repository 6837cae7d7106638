# SPDX-License-Identifier: GPL-3.0-or-later
"""The keys of all repositories, read once for a task that refers to them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from ...core.errors import ToolchainError
from ...core.module.task import Task
from ..client import RepoClient
from ..repositories import kind_of, listed

#: Kinds of repositories that a special target stands for.
_CLASSES = {
    "ANY": ("LOCAL", "FEDERATED", "REMOTE"),
    "ANY LOCAL": ("LOCAL", "FEDERATED"),
    "ANY REMOTE": ("REMOTE",),
}


class RepositoryKeys:
    """The repositories of a server, read when they are needed."""

    def __init__(self, task: Task) -> None:
        self._client, self._predictions = RepoClient(task), task.predictions

    @cached_property
    def _kinds(self) -> dict[str, str]:
        _response, rows = listed(self._client)
        return {str(row.get("key")): kind_of(row) for row in rows}

    def is_in(self, key: str, special: str) -> bool:
        """Return whether a special target such as `ANY LOCAL` includes the repository."""
        return self._kinds.get(key) in _CLASSES.get(special, ())

    def require(self, option: str, keys: Sequence[str]) -> None:
        """Raise `not_found` for keys that neither the server has nor an earlier task of this run
        would create.
        """
        unknown = [key for key in keys if not self._predictions.get("repository", key.lower())]
        unknown = [key for key in unknown if key not in self._kinds] if unknown else []
        if unknown:
            names = "', '".join(unknown)
            raise ToolchainError("not_found", f"{option}: there is no repository '{names}'")
