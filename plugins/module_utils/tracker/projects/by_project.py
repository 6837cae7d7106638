# SPDX-License-Identifier: GPL-3.0-or-later
"""Read each project of a task once, for all entries that belong to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from ...core.concurrency import first_alone
from ...core.errors import ToolchainError

Found = TypeVar("Found")

_PARALLEL = 4


class ByProject(Generic[Found]):
    """Values that were read per project.

    If a read fails, only the entries of that project fail.

    :param read: reads the value of a project by its key
    """

    def __init__(self, read: Callable[[str], Found]) -> None:
        self._read = read
        self._found: dict[str, Found | ToolchainError] = {}

    def load(self, projects: Iterable[str]) -> None:

        def read(key: str) -> tuple[str, Found | ToolchainError]:
            try:
                return key, self._read(key)
            except ToolchainError as error:
                return key, error

        self._found = dict(first_alone(_PARALLEL, read, list(dict.fromkeys(projects))))

    def of(self, project: str) -> Found:
        """Return the value of a project, or raise the error of its read."""
        found = self._found[project]
        if isinstance(found, ToolchainError):
            raise found
        return found
