# SPDX-License-Identifier: GPL-3.0-or-later
"""Attach files to an issue [tracker-27]."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from ...core.address import path
from ...core.errors import ToolchainError
from ...core.http.messages import json_or_none
from ...core.http.multipart import FilePart, MultipartForm
from ...core.json_text import member
from ...core.plan import Change
from ..issues.attachments import Attachment
from .edits import Edit
from .site import Site, TrackerIssue
from .upload_file import ComparedFiles, UploadFile


class AttachmentsPart:
    """Upload files that are missing or differ, then delete the older attachments."""

    names = ("attachment",)
    needs = ("CREATE_ATTACHMENTS",)

    def __init__(
        self, site: Site, files: Sequence[UploadFile], compared: ComparedFiles, *, replace: bool
    ) -> None:
        self._site, self._files = site, files
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
                if attachment not in same and _is_older(attachment, same)
            ]
            yield file, not same, older if self._replace else []

    def _attachments(self, items: Any) -> list[Attachment]:
        return [
            Attachment.of(item, self._site.client.url)
            for item in items or []
            if isinstance(item, Mapping) and item.get("id") and item.get("content")
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
                change = Change("attachments", attachment.filename, None)
                delete = partial(self._delete, issue, file, attachment, replaced)
                found.append(Edit((change,), delete, ()))
        return found

    def expected(self) -> tuple[Change, ...]:
        self._check_limit()
        return tuple(map(_change, self._files))

    def _check_limit(self) -> None:
        """Raise `rejected` if a file is larger than the upload limit of the server."""
        for file in self._files:
            if isinstance(self._limit, int) and file.size > self._limit:
                raise ToolchainError(
                    "rejected",
                    f"attachments: {file.src} has {file.size} bytes, but the server accepts at"
                    f" most {self._limit}",
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
            raise ToolchainError(
                "conflict",
                f"{purpose}: the issue has no newer attachment with this name, so it was kept",
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


def _is_older(attachment: Attachment, same: Sequence[Attachment]) -> bool:
    """Return whether an attachment is older than any in `same`, or whether `same` is empty."""
    return not same or any(_age(attachment) < _age(other) for other in same)


def _age(attachment: Attachment) -> tuple[float, int]:
    number = int(attachment.number) if attachment.number.isdecimal() else 0
    return (attachment.created or 0.0, number)


def _change(file: UploadFile) -> Change:
    return Change("attachments", None, file.name)
