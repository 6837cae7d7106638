# SPDX-License-Identifier: GPL-3.0-or-later
"""Check references to repositories by key."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from ...core.errors import ToolchainError
from ...core.json_text import as_text
from ...core.module.task import Task
from ..client import RepoClient
from ..repositories import kind_of, listed

#: Types of the repositories that each special target includes.
_CLASSES = {
    "ANY": ("LOCAL", "FEDERATED", "REMOTE"),
    "ANY LOCAL": ("LOCAL", "FEDERATED"),
    "ANY REMOTE": ("REMOTE",),
}


class RepositoryKeys:
    """The repositories of a server, read on first use."""

    def __init__(self, task: Task) -> None:
        self._client, self._predictions = RepoClient(task), task.predictions

    @cached_property
    def _kinds(self) -> dict[str, str]:
        _response, rows = listed(self._client)
        return {as_text(row.get("key")): kind_of(row) for row in rows}

    def is_in(self, key: str, special: str) -> bool:
        """Return whether a special target such as `ANY LOCAL` includes a repository."""
        return self._kinds.get(key) in _CLASSES.get(special, ())

    def require(self, option: str, keys: Sequence[str]) -> None:
        """Raise `not_found` if a repository does not exist, and no earlier task would create it.

        :param option: name of the option for the message
        """
        unknown = [key for key in keys if not self._predictions.get("repository", key.lower())]
        unknown = [key for key in unknown if key not in self._kinds] if unknown else []
        if unknown:
            names = "', '".join(unknown)
            raise ToolchainError("not_found", f"{option}: there is no repository '{names}'")
