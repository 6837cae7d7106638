# SPDX-License-Identifier: GPL-3.0-or-later
"""The module C(tracker_attachment): attachments as files in a folder [C4.3]."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ...core.concurrency import bounded
from ...core.errors import ToolchainError, invalid
from ...core.files import atomic_write, make_folders, require_replaceable
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.module.typed_options import PathText
from ...core.plan import Plan, plan
from ..client import TrackerClient
from .attachments import Attachment, AttachmentContents
from .file_names import safe_names
from .tracker_issue_info import read_issues, require_parallel

if TYPE_CHECKING:
    from ...core.http.bodies import Incoming


@dataclass(frozen=True)
class AttachmentFile:
    """An attachment, its file, and what is to be done; C(present): the file that is there."""

    attachment: Attachment
    path: str
    present: os.stat_result | None
    action: str = ""

    @property
    def number(self) -> str:
        return self.attachment.number

    @property
    def file(self) -> os.stat_result | None:
        """What is there, if it is a file with a content."""
        found = self.present
        return found if found is not None and stat.S_ISREG(found.st_mode) else None

    def as_dict(self, sizes: Mapping[str, int]) -> dict[str, Any]:
        """For the return value; C(sizes): of the files that were written, by id."""
        size = sizes.get(self.number, self.attachment.size)
        if size is None and self.action == "unchanged" and self.file is not None:
            size = self.file.st_size
        return {
            "id": self.number,
            "filename": self.attachment.filename,
            "path": self.path,
            "size": size,
            "action": self.action,
        }


@dataclass(frozen=True)
class TrackerAttachmentOptions:
    """The options of C(tracker_attachment)."""

    issue: str
    dest: PathText
    patterns: list[str] | None = None
    max_size: int | None = None
    parallel: int = 4
    state: Literal["present"] = "present"


class TrackerAttachmentOperation:
    """Downloads what is missing or differs; C(invalid) for a folder that is none."""

    descriptor: ClassVar = Descriptor("tracker", {"list": reads(), "fetch": reads()})

    def __init__(self, task: Task, options: TrackerAttachmentOptions) -> None:
        self._task, self._options = task, options
        self._issue = options.issue
        self._check_options()
        self._client = TrackerClient(task, connections=options.parallel)
        self._contents = AttachmentContents(self._client, self._issue)
        self._files: list[AttachmentFile] = []

    def _check_options(self) -> None:
        require_parallel(self._options.parallel)
        largest, dest = self._options.max_size, self._options.dest
        if largest is not None and largest < 0:
            raise invalid(f"max_size is {largest}, but must be at least 0")
        if os.path.lexists(dest) and not os.path.isdir(dest):
            raise invalid(f"dest must be a folder, but is '{dest}'")

    def plan(self) -> Plan:
        found = self._found()
        self._files = list(bounded(self._options.parallel, self._decide, found))
        coming = [entry for entry in self._files if entry.action == "downloaded"]
        current = {
            entry.path: {"size": entry.present.st_size}
            for entry in coming
            if entry.present is not None
        }
        wanted = {
            entry.path: {"size": entry.attachment.size, "id": entry.number} for entry in coming
        }
        listed = [entry.as_dict({}) for entry in self._files]
        return plan(current, wanted).with_result(attachments=listed)

    def _found(self) -> list[AttachmentFile]:
        """The attachments that the patterns name; all of them count for the names of the files."""
        (issue,) = read_issues(self._client, [self._issue], {"fields": "attachment"}, 1)
        items = issue.get("fields", {}).get("attachment")
        if items is None:
            self._task.warn(
                f"the issue '{self._issue}' has no field 'attachment': it is hidden, or attachments"
                " are switched off"
            )
        attachments = self._described(items or [])
        self._warn_of_unused_patterns([one.filename for one in attachments.values()])
        names = safe_names({number: one.filename for number, one in attachments.items()})
        entries = []
        for number, attachment in attachments.items():
            if self._is_named(attachment.filename):
                path = os.path.join(self._options.dest, names[number])
                entries.append(AttachmentFile(attachment, path, _present(path)))
        return entries

    def _warn_of_unused_patterns(self, filenames: Sequence[str]) -> None:
        patterns = self._options.patterns
        if patterns == []:
            self._task.warn("patterns is empty, so that no attachment is named; omit means all")
        for pattern in patterns or []:
            if not any(fnmatchcase(filename, pattern) for filename in filenames):
                self._task.warn(
                    f"patterns: '{pattern}' fits no attachment of the issue '{self._issue}'"
                )

    def _described(self, items: Any) -> dict[str, Attachment]:
        usable = isinstance(items, list) and all(
            isinstance(item, Mapping) and item.get("id") and item.get("content") for item in items
        )
        if not usable:
            raise ToolchainError(
                "protocol",
                f"reading the attachments of the issue '{self._issue}': they are not a list of"
                " objects with id and content",
            )
        described = [Attachment.of(item, self._client.url) for item in items]
        return {one.number: one for one in described}

    def _is_named(self, filename: str) -> bool:
        patterns = self._options.patterns
        return patterns is None or any(fnmatchcase(filename, pattern) for pattern in patterns)

    def _decide(self, entry: AttachmentFile) -> AttachmentFile:
        return replace(entry, action=self._action(entry))

    def _action(self, entry: AttachmentFile) -> str:
        """What is to be done, by size and time; the bytes are read where these cannot tell."""
        size, largest = entry.attachment.size, self._options.max_size
        if size is not None and largest is not None and size > largest:
            return "skipped"
        if size is None:
            must_read = entry.file is not None or largest is not None
            return self._compared(entry) if must_read else "downloaded"
        if entry.file is None or entry.file.st_size != size:
            return "downloaded"
        if entry.attachment.has_time(entry.file.st_mtime_ns):
            return "unchanged"
        return self._compared(entry)

    def _compared(self, entry: AttachmentFile) -> str:
        """What is to be done by the bytes themselves."""
        largest = self._options.max_size

        def compare(response: Incoming, blocks: Iterator[bytes]) -> str:
            length = response.headers.get("Content-Length", "")
            announced = int(length) if length.isdecimal() else 0
            count, same = 0, True
            with open(entry.path if entry.file else os.devnull, "rb") as file:
                for block in blocks:
                    count += len(block)
                    if largest is not None and max(count, announced) > largest:
                        return "skipped"
                    same = same and file.read(len(block)) == block
                same = same and entry.file is not None and not file.read(1)
            return "unchanged" if same else "downloaded"

        return self._contents.read(entry.attachment, compare)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        made = make_folders(self._options.dest)
        coming = [entry for entry in self._files if entry.action == "downloaded"]
        sizes: dict[str, int] = {}

        def download(entry: AttachmentFile) -> AttachmentFile:
            sizes[entry.number] = self._download(entry)
            return entry

        try:
            for number, entry in enumerate(bounded(self._options.parallel, download, coming), 1):
                self._task.progress(f"{number} of {len(coming)} attachments: {entry.path}")
        except ToolchainError as error:
            if not sizes:
                _remove(made)
            listed = [
                entry.as_dict(sizes)
                for entry in self._files
                if entry.action != "downloaded" or entry.number in sizes
            ]
            error.result = {"changed": bool(sizes), "attachments": listed}
            raise
        return {"attachments": [entry.as_dict(sizes) for entry in self._files]}

    def _download(self, entry: AttachmentFile) -> int:
        """Download one attachment; its size. The time of the file tells the next run what it is."""

        def save(response: Incoming, blocks: Iterator[bytes]) -> int:
            with atomic_write(entry.path) as file:
                for block in blocks:
                    file.write(block)
                file.flush()
                moment = entry.attachment.file_time(time.time_ns())
                os.utime(file.fileno(), ns=(moment, moment))
                return file.tell()

        return self._contents.read(entry.attachment, save)


def _present(path: str) -> os.stat_result | None:
    """What is at a path, a link not followed; C(invalid) where it cannot be replaced."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise invalid(f"{path} cannot be read: {error.strerror}") from None
    require_replaceable(path, found)
    if stat.S_ISREG(found.st_mode) and not os.access(path, os.R_OK):
        raise invalid(f"{path} cannot be read: no permission")
    return found


def _remove(folders: list[str]) -> None:
    """Take empty folders away again."""
    with suppress(OSError):
        for folder in folders:
            os.rmdir(folder)
