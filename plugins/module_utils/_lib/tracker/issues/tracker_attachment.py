# SPDX-License-Identifier: GPL-3.0-or-later
"""Module `tracker_attachment`: download the attachments of an issue into a folder [C4.3]."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ...core.concurrency import bounded, spread
from ...core.errors import ToolchainError, conflict, invalid, protocol
from ...core.files import atomic_write, make_folders, require_replaceable
from ...core.globs import Patterns
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.module.transfer_progress import TransferProgress
from ...core.module.typed_options import NotNegative, PathText, Positive, Segment
from ...core.plan import Plan, plan
from ..client import TrackerClient
from ..service import SERVICE
from .attachments import Attachment, AttachmentContents
from .tracker_issue_info import read_issues

if TYPE_CHECKING:
    from ...core.http.bodies import Incoming
import re
import unicodedata
from collections import Counter

# Path separators, control characters, characters that change the writing direction, and surrogates.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f/\\\\\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
# Windows rejects these device names, and the folder may be on a Windows share.
_DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
#: Maximum length of a name in common file systems, in bytes.
_LONGEST = 255


@dataclass(frozen=True)
class AttachmentFile:
    """An attachment, the path of its file, and the planned action.

    `present`: `lstat` of the path before the task. `uncompared`: whether the file counts as
    unchanged because of its name and size, although its content was not compared.
    """

    attachment: Attachment
    path: str
    present: os.stat_result | None
    action: str = ""
    uncompared: bool = False

    @property
    def number(self) -> str:
        return self.attachment.number

    @property
    def file(self) -> os.stat_result | None:
        """Return `present` if the path is a regular file, else None."""
        found = self.present
        return found if found is not None and stat.S_ISREG(found.st_mode) else None

    def as_dict(self, sizes: Mapping[str, int]) -> dict[str, Any]:
        """Return the entry in the return value `attachments`.

        :param sizes: sizes of the written files in bytes, by id of the attachment
        """
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
    """Options of `tracker_attachment`."""

    issue: Segment
    dest: PathText
    patterns: list[str] | None = None
    max_size: NotNegative | None = None
    compare_max: NotNegative = 64 * 1024 * 1024
    replace: bool = True
    parallel: Positive = 4
    state: Literal["present"] = "present"


class TrackerAttachmentOperation:
    """Download attachments that are missing or differ.

    Raises `invalid` if `dest` is not a folder or a number is too small.
    """

    descriptor: ClassVar = Descriptor(SERVICE, dict.fromkeys(("list", "fetch"), reads("browse")))

    def __init__(self, task: Task, options: TrackerAttachmentOptions) -> None:
        self._task, self._options = task, options
        self._issue, dest = options.issue, options.dest
        if os.path.lexists(dest) and not os.path.isdir(dest):
            raise invalid(f"dest must be a folder, but is '{dest}'")
        self._client = TrackerClient(task, connections=options.parallel)
        self._contents = AttachmentContents(self._client, self._issue)

    def plan(self) -> Plan:
        found = self._found()
        files = list(bounded(self._options.parallel, self._decide, found))
        for entry in files:
            if entry.uncompared and entry.file is not None:
                self._task.warn(
                    f"{entry.path} is assumed to be unchanged because its name and size match; its"
                    f" content was not compared: it has {entry.file.st_size} bytes, but"
                    f" compare_max is {self._options.compare_max}"
                )
            if entry.action == "conflict":
                self._task.warn(
                    f"{entry.path} was kept, although the attachment '{entry.attachment.filename}'"
                    f" of the issue '{self._issue}' differs; replace: true overwrites it"
                )
        coming = [entry for entry in files if entry.action == "downloaded"]
        current = {
            entry.path: {"size": entry.present.st_size}
            for entry in coming
            if entry.present is not None
        }
        desired = {
            entry.path: {"size": entry.attachment.size, "id": entry.number} for entry in coming
        }
        listed = [entry.as_dict({}) for entry in files]
        uncompared = [
            f"{self._issue}: {entry.attachment.filename}" for entry in files if entry.uncompared
        ]
        planned = plan(current, desired).with_data(files)
        return planned.with_result(attachments=listed).with_unknown(*uncompared)

    def _found(self) -> list[AttachmentFile]:
        """Return the attachments that match the patterns, with the paths of their files.

        File names are chosen for all attachments, so they do not depend on the patterns.
        """
        (issue,) = read_issues(self._client, [self._issue], {"fields": "attachment"}, 1)
        items = issue.get("fields", {}).get("attachment")
        if items is None:
            self._task.warn(
                f"the issue '{self._issue}' has no field 'attachment': it is hidden, or attachments"
                " are disabled"
            )
        attachments = self._described(items or [])
        filenames = {number: attachment.filename for number, attachment in attachments.items()}
        names = safe_names(filenames)
        options, entries = self._options, []
        patterns = Patterns("patterns", options.patterns)
        for number, attachment in attachments.items():
            if options.patterns is None or patterns.fits(attachment.filename):
                path = os.path.join(options.dest, names[number])
                entries.append(AttachmentFile(attachment, path, _present(path)))
        if options.patterns == []:
            self._task.warn(
                "patterns is empty, so no attachment matches; omit the option to download all"
            )
        for warning in patterns.warnings(f"no attachment of the issue '{self._issue}'"):
            self._task.warn(warning)
        return entries

    def _described(self, items: Any) -> dict[str, Attachment]:
        usable = isinstance(items, list) and all(
            isinstance(item, Mapping) and item.get("id") and item.get("content") for item in items
        )
        if not usable:
            raise protocol(
                f"reading the attachments of the issue '{self._issue}': the server did not send a"
                " list of objects with id and content"
            )
        described = [Attachment.of(item, self._client.url) for item in items]
        return {attachment.number: attachment for attachment in described}

    def _decide(self, entry: AttachmentFile) -> AttachmentFile:
        action = self._action(entry)
        if action == "uncompared":
            return replace(entry, action="unchanged", uncompared=True)
        if action == "downloaded" and entry.present is not None and not self._options.replace:
            action = "conflict"
        return replace(entry, action=action)

    def _action(self, entry: AttachmentFile) -> str:
        """Return the action for an attachment: `skipped`, `downloaded`, `unchanged`, `uncompared`.

        Size and time are compared first, then the content. A file larger than `compare_max` is
        `uncompared`.
        """
        file, size, largest = entry.file, entry.attachment.size, self._options.max_size
        if size is not None:
            if largest is not None and size > largest:
                return "skipped"
            if file is None or file.st_size != size:
                return "downloaded"
            if entry.attachment.has_time(file.st_mtime_ns):
                return "unchanged"
        elif file is None and largest is None:
            return "downloaded"
        if file is not None and file.st_size > self._options.compare_max:
            return "uncompared"
        return self._compared(entry)

    def _compared(self, entry: AttachmentFile) -> str:
        """Download the attachment, compare it with the file, and return the action."""
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
        files: list[AttachmentFile] = plan.data
        made = make_folders(self._options.dest)
        coming = [entry for entry in files if entry.action == "downloaded"]
        sizes: dict[str, int] = {}
        size = sum(entry.attachment.size or 0 for entry in coming)

        def download(entry: AttachmentFile) -> None:
            def save(_response: Incoming, blocks: Iterator[bytes]) -> int:
                with atomic_write(entry.path) as file:
                    for block in blocks:
                        file.write(block)
                    file.flush()
                    # the next run recognises the attachment by this time
                    moment = entry.attachment.file_time(time.time_ns())
                    os.utime(file.fileno(), ns=(moment, moment))
                    if not self._options.replace and os.path.lexists(entry.path):
                        raise conflict(
                            f"writing {entry.path}: a file was created there during the download,"
                            " and replace is false; run the task again"
                        )
                    return file.tell()

            sizes[entry.number] = self._contents.read(entry.attachment, save)

        try:
            with TransferProgress(
                self._task, "downloading", "received", done=sizes, files=len(coming), size=size
            ):
                spread(self._options.parallel, download, coming)
        except ToolchainError as error:
            if not sizes:
                with suppress(OSError):
                    for folder in made:
                        os.rmdir(folder)
            listed = [
                entry.as_dict(sizes)
                for entry in files
                if entry.action != "downloaded" or entry.number in sizes
            ]
            error.result = {"changed": bool(sizes), "attachments": listed}
            raise
        return {"attachments": [entry.as_dict(sizes) for entry in files]}


def _present(path: str) -> os.stat_result | None:
    """Return `lstat` of a path, or None if it does not exist.

    Raises `invalid` if the path cannot be read or replaced.
    """
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise invalid(f"cannot read {path}: {error.strerror}") from None
    require_replaceable(path, found)
    if stat.S_ISREG(found.st_mode) and not os.access(path, os.R_OK):
        raise invalid(f"cannot read {path}: permission denied")
    return found


def safe_names(filenames: Mapping[str, str]) -> dict[str, str]:
    """Return the file names of attachments by id.

    All equal names get `-<id>` before the extension, so no file name depends on the order of the
    attachments. Names that only differ in case are equal.

    :param filenames: names of the attachments by id
    """
    names = {number: _fitting(_safe(name), "") for number, name in filenames.items()}
    renamed: set[str] = set()
    while True:
        counted = Counter(map(_normalized, names.values()))
        equal = {number for number, name in names.items() if counted[_normalized(name)] > 1}
        equal -= renamed
        if not equal:
            return names
        renamed |= equal
        for number in equal:
            names[number] = _fitting(_safe(filenames[number]), f"-{_safe(number)}")


def _safe(name: str) -> str:
    """Return a file name that is neither empty nor hidden, and stays inside its folder."""
    clean = _UNSAFE.sub("_", name).strip()
    if clean.startswith("."):
        clean = f"_{clean[1:]}"
    if _DEVICE.fullmatch(clean):
        clean = f"_{clean}"
    return clean or "attachment"


def _fitting(name: str, addition: str) -> str:
    """Insert `addition` before the extension of a name, and truncate it to the maximum length."""
    stem, extension = os.path.splitext(name)
    available = _LONGEST - len(f"{addition}{extension}".encode())
    if available < 1:  # too long for an extension
        stem, extension, available = name, "", _LONGEST - len(addition.encode())
    return stem.encode()[:available].decode(errors="ignore") + addition + extension


def _normalized(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
