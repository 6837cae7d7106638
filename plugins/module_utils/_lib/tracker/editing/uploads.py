# SPDX-License-Identifier: GPL-3.0-or-later
"""Attach files to an issue [tracker-27]."""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from ...core.address import path
from ...core.errors import ToolchainError, conflict, invalid, rejected
from ...core.http.messages import json_or_none
from ...core.http.multipart import FilePart, MultipartForm
from ...core.json_text import json_objects, member
from ...core.plan import Change
from ..issues.attachments import Attachment, AttachmentContents
from .site import Edit, Part, Site, TrackerIssue

if TYPE_CHECKING:
    from ...core.http.bodies import Incoming

#: Error kinds that only prevent a download. Server fact [tracker-7]: some servers do not accept a
#: login for attachments that they accept for issues.
_NO_DOWNLOAD = frozenset({"auth", "permission", "not_found", "protocol"})
#: Characters that servers may replace in file names.
_REPLACED = re.compile(r'[<>:"/\\|?*\x00-\x1f]')


@dataclass(frozen=True)
class UploadFile:
    """A file on the host where the task runs. `size` is in bytes."""

    src: str
    size: int

    @property
    def name(self) -> str:
        return unicodedata.normalize("NFC", os.path.basename(self.src))

    @cached_property
    def _stored(self) -> re.Pattern[str]:
        return re.compile("".join(map(_pattern, self.name)))

    def named(self, attachments: Sequence[Attachment]) -> list[Attachment]:
        return [attachment for attachment in attachments if self.may_be(attachment.filename)]

    def may_be(self, filename: str) -> bool:
        """Return whether a server may store the file with this name."""
        return self._stored.fullmatch(unicodedata.normalize("NFC", filename)) is not None

    def is_stored(self, attachments: Sequence[Attachment], known: Collection[str]) -> bool:
        """Return whether the file has been uploaded as a new attachment.

        :param known: ids of the attachments before the upload
        """
        return any(
            attachment.number not in known and attachment.size in (None, self.size)
            for attachment in self.named(attachments)
        )


def _pattern(character: str) -> str:
    # Letters and digits must be equal: an older attachment with a matching name gets deleted.
    return r"[\W_]" if _REPLACED.match(character) else re.escape(character)


def files_of(paths: Sequence[str]) -> list[UploadFile]:
    """Return the files of the option `attachments`.

    Raises `invalid` if a path is not a readable file, or two files have the same name.
    """
    found: dict[str, UploadFile] = {}
    for number, src in enumerate(paths):
        place = f"attachments[{number}]"
        try:
            status = os.stat(src)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise invalid(f"{place} is '{src}' (from the folder {os.getcwd()}): {reason}") from None
        if not stat.S_ISREG(status.st_mode) or not os.access(src, os.R_OK):
            raise invalid(f"{place} is '{src}', which is not a readable file")
        file = UploadFile(src, status.st_size)
        if '"' in file.name or "\n" in file.name or "\\" in file.name:
            raise invalid(
                f"{place} is '{src}', but file names must not contain quotation marks, backslashes"
                " and line breaks"
            )
        for other in found.values():
            if other.src != src and (other.may_be(file.name) or file.may_be(other.name)):
                raise invalid(
                    f"{place} is '{src}', which has the same file name as '{other.src}', or may get"
                    " it on the server: rename a file"
                )
        found[file.name] = file
    return list(found.values())


class ComparedFiles:
    """Compare files with attachments by content, because servers report no digest.

    :param limit: maximum size in bytes of a file whose attachment is downloaded
    """

    def __init__(self, site: Site, limit: int) -> None:
        self._site, self._limit = site, limit
        self._same: dict[tuple[str, str], bool] = {}
        #: Files that were only compared by name and size, as `KEY: name`.
        self.uncompared: list[str] = []

    def is_same(self, key: str, file: UploadFile, attachment: Attachment) -> bool:
        """Return whether an attachment has the content of a file. The result is cached.

        If the content cannot be compared, warn and return whether the sizes are equal.

        :param key: key of the issue
        """
        pair = (file.src, attachment.number)
        if pair not in self._same:
            self._same[pair] = self._is_same(key, file, attachment)
        return self._same[pair]

    def _is_same(self, key: str, file: UploadFile, attachment: Attachment) -> bool:
        if attachment.size not in (None, file.size):
            return False
        if attachment.size == 0:
            return True
        if file.size > self._limit:
            return self._unknown(
                key, file, f"it has {file.size} bytes, but compare_max is {self._limit}"
            )

        def compare(_response: Incoming, blocks: Iterator[bytes]) -> bool:
            try:
                with open(file.src, "rb") as stream:
                    same = all(stream.read(len(block)) == block for block in blocks)
                    return same and not stream.read(1)
            except OSError as error:
                reason = f"cannot read {file.src}: {error.strerror}"
                raise invalid(f"attachments: {reason}") from None

        try:
            return AttachmentContents(self._site.client, key).read(attachment, compare)
        except ToolchainError as error:
            if error.kind not in _NO_DOWNLOAD:
                raise
            return self._unknown(key, file, error.message)

    def _unknown(self, key: str, file: UploadFile, reason: str) -> bool:
        self.uncompared.append(f"{key}: {file.name}")
        self._site.task.warn(
            f"attachments: '{file.name}' of the issue '{key}' is assumed to be unchanged because"
            f" its name and size match; its content was not compared: {reason}"
        )
        return True


class AttachmentsPart(Part):
    """Upload files that are missing or differ, then delete the older attachments."""

    names = ("attachment",)
    needs = ("CREATE_ATTACHMENTS",)

    def __init__(
        self, site: Site, files: Sequence[UploadFile], compared: ComparedFiles, *, replace: bool
    ) -> None:
        super().__init__(site)
        self._files = files
        self._compared, self._replace = compared, replace

    def _todo(self, issue: TrackerIssue) -> Iterator[tuple[UploadFile, bool, list[Attachment]]]:
        """Yield each file, whether to upload it, and the older attachments to delete."""
        there = self._attachments(issue.fields.get("attachment"))
        for file in self._files:
            named = file.named(there)
            same = [
                attachment
                for attachment in named
                if self._compared.is_same(issue.key, file, attachment)
            ]
            older = [
                attachment
                for attachment in named
                if attachment not in same
                and (not same or any(_age(attachment) < _age(other) for other in same))
            ]
            yield file, not same, older if self._replace else []

    def _attachments(self, items: Any) -> list[Attachment]:
        return [
            Attachment.of(item, self._site.client.url)
            for item in json_objects(items)
            if item.get("id") and item.get("content")
        ]

    def differs(self, issue: TrackerIssue) -> bool:
        return any(missing or older for _file, missing, older in self._todo(issue))

    def edits(self, issue: TrackerIssue) -> list[Edit]:
        found: list[Edit] = []
        known = {
            attachment.number for attachment in self._attachments(issue.fields.get("attachment"))
        }
        for file, missing, older in self._todo(issue):
            if missing:
                self._check_limit()
                upload = partial(self._upload, issue, file, known)
                found.append(Edit((_change(file),), upload, self.needs))
            replaced = {attachment.number for attachment in older}
            for attachment in older:
                delete = partial(self._delete, issue, file, attachment, replaced)
                found.append(Edit((_deletion(attachment),), delete, ()))
        return found

    def expected(self) -> tuple[Change, ...]:
        self._check_limit()
        return tuple(map(_change, self._files))

    def unsaved(self, before: TrackerIssue, now: TrackerIssue) -> list[Change]:
        known = {one.number for one in self._attachments(before.fields.get("attachment"))}
        there = self._attachments(now.fields.get("attachment"))
        left = {one.number for one in there}
        lost = []
        for file, missing, older in self._todo(before):
            if missing and not file.is_stored(there, known):
                lost.append(_change(file))
            lost += [_deletion(one) for one in older if one.number in left]
        return lost

    def _check_limit(self) -> None:
        """Raise `rejected` if a file is larger than the upload limit of the server."""
        for file in self._files:
            if isinstance(self._limit, int) and file.size > self._limit:
                raise rejected(
                    f"attachments: {file.src} has {file.size} bytes, but the server accepts at"
                    f" most {self._limit}"
                )

    @cached_property
    def _limit(self) -> Any:
        purpose, route = "reading the size limit of attachments", "rest/api/2/attachment/meta"
        response = self._site.client.read(purpose, route, expect=(200, 403, 404))
        return member(json_or_none(response.body), "uploadLimit")

    def _now(self, issue: TrackerIssue) -> list[Attachment]:
        return self._attachments(self._site.field(issue.key, "attachment"))

    def _upload(self, issue: TrackerIssue, file: UploadFile, known: Collection[str]) -> None:
        form = MultipartForm((), [FilePart("file", file.name, file.src, file.size)])
        self._site.write(
            f"uploading '{file.name}' to the issue '{issue.key}'",
            "POST",
            self._site.issue_route(issue.key, "attachments"),
            needs=self.needs,
            issue=issue.key,
            headers={"Content-Type": form.content_type},
            open_body=form.open,
            size=form.size,
            verify=lambda: file.is_stored(self._now(issue), known),
        )

    def _delete(
        self, issue: TrackerIssue, file: UploadFile, one: Attachment, replaced: Collection[str]
    ) -> None:
        """Delete an older attachment [tracker-27].

        Raises `conflict` if the issue has no newer attachment of the file.
        """
        purpose = f"deleting the older attachment '{one.filename}' ({one.number}) of '{issue.key}'"
        now = self._now(issue)
        if not file.is_stored(now, replaced):
            raise conflict(
                f"{purpose}: the issue has no newer attachment with this name, so it was kept"
            )
        if one.number not in {attachment.number for attachment in now}:
            return
        try:
            self._site.client.write(
                purpose,
                "DELETE",
                f"{self._site.api}/attachment/{path(one.number)}",
                verify=lambda: (
                    one.number not in {attachment.number for attachment in self._now(issue)}
                ),
                repeatable=True,
            )
        except ToolchainError as error:
            if error.status != 404:
                raise error.with_hint(
                    "the new file is attached: set replace to false to keep older files"
                ) from None


def _age(attachment: Attachment) -> tuple[float, int]:
    number = int(attachment.number) if attachment.number.isdecimal() else 0
    return (attachment.created or 0.0, number)


def _change(file: UploadFile) -> Change:
    return Change("attachments", None, file.name)


def _deletion(attachment: Attachment) -> Change:
    return Change("attachments", attachment.filename, None)
