# SPDX-License-Identifier: GPL-3.0-or-later
"""State and helpers that the exports of jobs, nodes, views and credentials share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from ..core.concurrency import bounded
from ..core.errors import ToolchainError, shorten
from ..core.module.task import Task
from ..core.operations.export_folder import FileNames
from ..core.operations.service_export import ServiceState
from ..core.progress import ProgressCounter
from .job_address import Job

Item = TypeVar("Item")
Found = TypeVar("Found")

#: Kinds of errors that affect a single object. The export continues after them.
_SINGLE_OBJECT_KINDS = ("permission", "protocol", "not_found")


@dataclass(frozen=True)
class ExportRun:
    """A running export.

    :param state: exported state, to which each kind of objects adds files and skipped objects
    :param parallel: maximum number of concurrent requests
    :param folders: exported folders, whose credentials and views are exported too
    :param requested: whether the task explicitly requests the current kind of objects; a missing
        permission or plugin is then an error
    :param names: generator of unique file names
    :param unread: messages about objects whose response is not that of the server
    """

    task: Task
    state: ServiceState
    parallel: int
    folders: Sequence[Job] = ()
    requested: bool = False
    names: FileNames = field(default_factory=FileNames)
    unread: list[str] = field(default_factory=list)

    def read_each(
        self,
        kind: str,
        items: Sequence[Item],
        read: Callable[[Item], Found | None],
        name: Callable[[Item], str],
    ) -> Iterator[tuple[Item, Found]]:
        """Read objects concurrently, and yield each item with its object.

        An object that the account may not read is added to `left_out`, an object with a damaged
        response to `unread`.

        :param kind: kind of the objects for messages, for example "job"
        :param read: returns the object of an item, or `None` if it no longer exists
        :param name: returns the name of an item for messages
        """
        count = ProgressCounter(self.task.progress, f"reading the {kind}s", len(items))

        def result(item: Item) -> Found | ToolchainError:
            try:
                found = read(item)
            except ToolchainError as error:
                if error.kind not in _SINGLE_OBJECT_KINDS:
                    raise
                return error
            finally:
                count.add()
            gone = ToolchainError("not_found", "it no longer exists, or the account cannot see it")
            return gone if found is None else found

        for item, found in zip(items, bounded(self.parallel, result, items), strict=True):
            if isinstance(found, ToolchainError):
                self.leave_out(kind, name(item), found)
            else:
                yield item, found

    def listed(
        self, kind: str, name: str, read: Callable[[], Found], *, required: bool = False
    ) -> Found | None:
        """Return a list of objects, or `None` after adding it to `left_out`, because the account
        may not read it or the server has none.

        :param name: the list for messages
        :param required: raise the error instead
        """
        try:
            return read()
        except ToolchainError as error:
            if required or error.kind not in ("permission", "not_found"):
                raise
            self.leave_out(kind, name, error)
            return None

    def is_valid(self, kind: str, name: str, check: Callable[[], object]) -> bool:
        """Return whether `check` raises no error. Otherwise the object is added to `left_out`."""
        try:
            check()
        except ToolchainError as error:
            self.leave_out(kind, name, error)
            return False
        return True

    def leave_out(self, kind: str, name: str, error: ToolchainError) -> None:
        """Add an object to `left_out`, or to `unread` if its response cannot be parsed or is that
        of a proxy.

        Raises `error` for a missing permission if the task explicitly requests this kind.
        """
        if self.requested and error.kind == "permission":
            raise error
        if error.kind == "protocol" or error.other_server is not None:
            self.unread.append(f"{kind} '{name}': {error.message}")
        else:
            self.state.leave_out(kind, name, error.message)

    def require_complete(self) -> None:
        """Raise `protocol` if the response for an object cannot be parsed.

        An export without the object would delete the file of an earlier export.
        """
        if self.unread:
            raise ToolchainError(
                "protocol",
                f"{len(self.unread)} objects cannot be read, so no file was changed:"
                f" {shorten('; '.join(self.unread))}",
            )

    def file(self, folder: str, name: str, text: str) -> str:
        """Add an XML file with a configuration. Return its path relative to `ci.yml`."""
        src = f"{self.names.name(folder, name)}.xml"
        self.state.files[src] = text
        return src
