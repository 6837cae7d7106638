# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that an issue gets as attachments [tracker-27]."""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.errors import ToolchainError, invalid
from ...core.http.messages import json_or_none
from ...core.http.multipart import FilePart, MultipartForm
from ...core.plan import Change
from .edits import Edit
from .site import Site, TrackerIssue

#: What servers may replace in names.
_REPLACED = re.compile(r'[<>:"/\\|?*\x00-\x1f]')


@dataclass(frozen=True)
class UploadFile:
    """A file on the host of the task."""

    src: str
    size: int

    @property
    def name(self) -> str:
        return unicodedata.normalize("NFC", os.path.basename(self.src))

    def is_among(self, attachments: Any) -> bool:
        """Whether an issue has an attachment of this name and size: there is no digest."""
        stored = re.compile("".join(map(_pattern, self.name)), re.DOTALL)
        return any(
            str(one.get("size")) == str(self.size)
            and stored.fullmatch(unicodedata.normalize("NFC", str(one.get("filename"))))
            for one in attachments or []
            if isinstance(one, Mapping)
        )


def _pattern(character: str) -> str:
    return "." if _REPLACED.match(character) else re.escape(character)


def files_of(paths: Sequence[str]) -> list[UploadFile]:
    """The files that a user named; C(invalid) for what is none, and for two of one name."""
    found: dict[str, UploadFile] = {}
    for number, path in enumerate(paths):
        place = f"attachments[{number}]"
        try:
            status = os.stat(path)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise invalid(f"{place} is '{path}', in {os.getcwd()}: {reason}") from None
        if not stat.S_ISREG(status.st_mode) or not os.access(path, os.R_OK):
            raise invalid(f"{place} is '{path}', which is no file that can be read")
        file = UploadFile(path, status.st_size)
        if '"' in file.name or "\n" in file.name or "\\" in file.name:
            raise invalid(f"{place} is '{path}': servers do not take such a name")
        other = found.setdefault(file.name, file)
        if other.src != path:
            raise invalid(f"{place} is '{path}', which has the name of '{other.src}'")
    return list(found.values())


class AttachmentsPart:
    """Uploads what is missing; the same name twice would be two attachments."""

    names = ("attachment",)
    needs = ("CREATE_ATTACHMENTS",)

    def __init__(self, site: Site, files: Sequence[UploadFile]) -> None:
        self._site, self._files = site, files
        self._checked = False

    def _missing(self, issue: TrackerIssue) -> list[UploadFile]:
        there = issue.fields.get("attachment")
        return [file for file in self._files if not file.is_among(there)]

    def differs(self, issue: TrackerIssue) -> bool:
        return bool(self._missing(issue))

    def edits(self, issue: TrackerIssue) -> list[Edit]:
        missing = self._missing(issue)
        if missing:
            self._require_room()
        return [Edit((_change(file),), self._writer(issue, file), self.needs) for file in missing]

    def expected(self) -> tuple[Change, ...]:
        self._require_room()
        return tuple(map(_change, self._files))

    def _require_room(self) -> None:
        """C(rejected) for a file that is larger than the server takes."""
        if self._checked:
            return
        what = "asking how large attachments may be"
        response = self._site.client.read(
            what, "rest/api/2/attachment/meta", expect=(200, 403, 404)
        )
        told = json_or_none(response.body)
        limit = told.get("uploadLimit") if isinstance(told, Mapping) else None
        for file in self._files:
            if isinstance(limit, int) and file.size > limit:
                raise ToolchainError(
                    "rejected",
                    f"attachments: {file.src} has {file.size} bytes, and the server takes {limit}",
                )
        self._checked = True

    def _writer(self, issue: TrackerIssue, file: UploadFile) -> Any:
        return lambda: self._upload(issue, file)

    def _upload(self, issue: TrackerIssue, file: UploadFile) -> None:
        form = MultipartForm((), [FilePart("file", file.name, file.src, file.size)])
        try:
            self._site.client.write(
                f"uploading '{file.name}' to the issue '{issue.key}'",
                "POST",
                self._site.place(issue.key, "attachments"),
                headers={"Content-Type": form.content_type},
                open_body=form.open,
                size=form.size,
                verify=lambda: file.is_among(self._site.field(issue.key, "attachment")),
            )
        except ToolchainError as error:
            raise self._site.judged(error, *self.needs, issueKey=issue.key) from None


def _change(file: UploadFile) -> Change:
    return Change("attachments", None, file.name)
