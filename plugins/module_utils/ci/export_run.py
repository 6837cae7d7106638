# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kinds of objects share in an export of the CI server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from ..core.concurrency import bounded
from ..core.errors import ToolchainError
from ..core.export.file_names import FileNames
from ..core.export.service_export import ServiceState
from ..core.module.task import Task
from ..core.progress import ProgressCounter
from .job_address import Job

Item = TypeVar("Item")
Found = TypeVar("Found")

#: Errors that concern one object only.
_OF_ONE = ("permission", "protocol", "not_found")


@dataclass(frozen=True)
class ExportRun:
    """An export that is running.

    :param state: the state so far; kinds add files and what is left out
    :param folders: the exported folders, whose credentials and views are exported
    :param requested: whether the task requests this kind, so that a missing permission or plugin
        is an error
    """

    task: Task
    state: ServiceState
    parallel: int
    folders: Sequence[Job] = ()
    requested: bool = False
    names: FileNames = field(default_factory=FileNames)

    def read_each(
        self,
        kind: str,
        items: Sequence[Item],
        read: Callable[[Item], Found | None],
        name: Callable[[Item], str],
    ) -> Iterator[tuple[Item, Found]]:
        """Read objects in parallel; leave out those that cannot be read.

        :param kind: the kind in `left_out`, as "job"
        :param read: returns an object, `None` if it does not exist any more
        """
        count = ProgressCounter(self.task.progress, f"reading the {kind}s", len(items))

        def result(item: Item) -> Found | ToolchainError:
            try:
                found = read(item)
            except ToolchainError as error:
                if error.kind not in _OF_ONE:
                    raise
                return error
            finally:
                count.add()
            gone = ToolchainError("not_found", "it no longer exists, or is not visible")
            return gone if found is None else found

        for item, found in zip(items, bounded(self.parallel, result, items), strict=True):
            if isinstance(found, ToolchainError):
                self.leave_out(kind, name(item), found)
            else:
                yield item, found

    def leave_out(self, kind: str, name: str, error: ToolchainError) -> None:
        """Add an object to `left_out`. Raises the error if the task requests this kind, and the
        account lacks a permission.
        """
        if self.requested and error.kind == "permission":
            raise error
        self.state.leave_out(kind, name, error.message)

    def file(self, folder: str, name: str, text: str) -> str:
        """Add a file with a configuration; return its path, relative to `ci.yml`."""
        src = f"{self.names.name(folder, name)}.xml"
        self.state.files[src] = text
        return src
