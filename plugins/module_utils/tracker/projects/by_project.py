# SPDX-License-Identifier: GPL-3.0-or-later
"""Group the entries of a task by project, and read every project once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from ...core.concurrency import first_alone
from ...core.errors import ToolchainError

Found = TypeVar("Found")

_PARALLEL = 4


class ByProject(Generic[Found]):
    """Values of projects, or the errors of reading them: only the entries of such a project fail.

    :param read: returns the value of the project with a key
    """

    def __init__(self, read: Callable[[str], Found]) -> None:
        self._read = read
        self._found: dict[str, Found | ToolchainError] = {}

    def load(self, projects: Iterable[str]) -> None:

        def of_project(key: str) -> tuple[str, Found | ToolchainError]:
            try:
                return key, self._read(key)
            except ToolchainError as error:
                return key, error

        self._found = dict(first_alone(_PARALLEL, of_project, list(dict.fromkeys(projects))))

    def of(self, project: str) -> Found:
        """Return the value of a project; raise the error of reading it."""
        found = self._found[project]
        if isinstance(found, ToolchainError):
            raise found
        return found
