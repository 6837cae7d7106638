# SPDX-License-Identifier: GPL-3.0-or-later
"""Attachments of a page ([wiki-15]; routes `child/attachment` and `.../data`).

The server reports no digest of an attachment. An upload therefore stores the SHA-256 of the file
and the new version number in the comment of the attachment. If another user replaces the file, the
version number no longer matches and the digest is ignored. Without a valid digest, a stored file of
the same size is downloaded and compared.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from ..core.errors import ToolchainError, invalid
from ..core.files import open_regular
from ..core.http.messages import json_or_none
from ..core.http.multipart import FilePart, MultipartForm
from ..core.json_text import member
from ..core.module.typed_options import Option, PathText
from ..core.plan import Change
from .client import WikiClient, content_route
from .formats.markup import attachment_key
from .page import Page, number, whole_results

if TYPE_CHECKING:
    from ..core.http.bodies import Incoming

_BLOCK = 1024 * 1024
#: In characters. Servers store 255 characters of a comment; the digest needs up to 90 of them.
_LONGEST_COMMENT = 160
_MARK = re.compile(r"\(sha256 ([0-9a-f]{64}), version ([0-9]+)\)$")
_UNSAFE = re.compile(r'[/\\"\x00-\x1f\x7f\ud800-\udfff]')
#: Error kinds for a file that this account cannot download. The file is then uploaded again.
_UNVERIFIABLE = frozenset({"auth", "permission", "not_found", "protocol", "rejected"})


@dataclass(frozen=True)
class PageAttachmentOptions:
    """An entry of the option `attachments`."""

    src: PathText
    name: str | None = None
    comment: Annotated[str | None, Option(empty=True)] = None


@dataclass(frozen=True)
class WantedAttachment:
    """A local file to attach. `name` is the name of the attachment, `size` is in bytes."""

    src: str
    name: str
    comment: str
    size: int
    sha256: str


@dataclass(frozen=True)
class StoredAttachment:
    """An attachment on the server. Fields that the server does not return are None."""

    id: str
    size: int | None
    version: int | None
    comment: str
    link: str | None

    @property
    def sha256(self) -> str | None:
        """Return the digest of this version from the comment, or None."""
        found = _MARK.search(self.comment)
        return found[1] if found is not None and number(found[2]) == self.version else None


@dataclass(frozen=True)
class PlannedAttachment:
    """A file and its action: `uploaded`, `updated` or `unchanged`."""

    file: WantedAttachment
    stored: StoredAttachment | None
    action: str

    def line(self, *, after: bool) -> str:
        """Return the diff line before or after the task. Empty if the attachment is new."""
        file, stored = self.file, self.stored
        if after or self.action == "unchanged":
            return f"attachment: {file.name}, {file.size} bytes, sha256 {file.sha256}\n"
        if stored is None:
            return ""
        return f"attachment: {file.name}, {stored.size} bytes, sha256 {stored.sha256 or '?'}\n"


class PageAttachments:
    """Upload the attachments of a page. Attachments that are not listed stay.

    :param planned: the files with their actions
    """

    noun = "attachments"

    def __init__(
        self,
        client: WikiClient,
        files: Sequence[WantedAttachment],
        planned: Sequence[PlannedAttachment] = (),
    ) -> None:
        self._client, self._files, self._planned = client, files, planned

    def on(self, page: Page | None) -> PageAttachments:
        stored: Mapping[str, StoredAttachment] = {}
        if page is not None and self._files:
            stored = _by_name(entries_of(self._client, page))
        planned = [self._decide(file, stored.get(file.name)) for file in self._files]
        return PageAttachments(self._client, self._files, planned)

    @property
    def change(self) -> Change | None:
        changed = [planned.file.name for planned in self._planned if planned.action != "unchanged"]
        return Change(self.noun, None, changed) if changed else None

    def text(self, *, after: bool) -> str:
        return "".join(planned.line(after=after) for planned in self._planned)

    def result(self) -> Any:
        return [
            {
                "name": planned.file.name,
                "size": planned.file.size,
                "sha256": planned.file.sha256,
                "action": planned.action,
            }
            for planned in self._planned
        ]

    def apply(self, page: Page) -> None:
        for planned in self._planned:
            if planned.action != "unchanged":
                self._upload(page, planned)

    def _decide(self, file: WantedAttachment, stored: StoredAttachment | None) -> PlannedAttachment:
        if stored is None:
            return PlannedAttachment(file, None, "uploaded")
        return PlannedAttachment(
            file, stored, "unchanged" if self._same(file, stored) else "updated"
        )

    def _same(self, file: WantedAttachment, stored: StoredAttachment) -> bool:
        if stored.size is not None and stored.size != file.size:
            return False
        if stored.sha256 is not None:
            return stored.sha256 == file.sha256
        return stored.link is not None and self._digest(file, stored.link) == file.sha256

    def _digest(self, file: WantedAttachment, link: str) -> str | None:
        """Return the SHA-256 of the stored file, or None if this account cannot download it."""
        try:
            return self._client.download(
                f"downloading the attachment '{file.name}'", link, _sha256_of
            )
        except ToolchainError as error:
            if error.kind not in _UNVERIFIABLE:
                raise
            return None

    def _upload(self, page: Page, planned: PlannedAttachment) -> None:
        """Upload a file. After a lost response, check the attachments instead of uploading again.

        Server fact [wiki-15]: a POST with the name of an existing attachment fails with 400. A new
        version is posted to `.../data`, because only the cloud supports PUT on the list.
        """
        file, stored = planned.file, planned.stored
        below = () if stored is None else (stored.id, "data")
        version = 1 if stored is None else (stored.version or 0) + 1
        mark = f"(sha256 {file.sha256}, version {version})"
        fields = [("comment", f"{file.comment} {mark}".lstrip()), ("minorEdit", "true")]
        form = MultipartForm(fields, [FilePart("file", file.name, file.src, file.size)])
        purpose = f"uploading the attachment '{file.name}' to the page '{page.title}' ({page.id})"
        try:
            response = self._client.send(
                purpose,
                "POST",
                content_route(page.id, "child", "attachment", *below),
                (200, 201),
                headers={"Content-Type": form.content_type},
                open_body=form.open,
                size=form.size,
                verify=lambda: self._has_arrived(page, planned),
            )
        except ToolchainError as error:
            taken = stored is None and error.status in (400, 409) and not error.outcome_unknown
            if taken and self._has_arrived(page, planned):
                return  # another task attached the same file at the same time
            raise
        size = _size_in(response.body)
        if size is not None and size != file.size:
            message = f"the server stored {size} bytes, but {file.size} were sent"
            raise response.error("failed", message)

    def _has_arrived(self, page: Page, planned: PlannedAttachment) -> bool | None:
        """Return whether the upload was stored, or None if another user replaced the file."""
        now = _by_name(_listed(self._client, page)).get(planned.file.name)
        if now == planned.stored:
            return False
        return True if now is not None and self._same(planned.file, now) else None


def _by_name(entries: Iterable[Any]) -> dict[str, StoredAttachment]:
    return {str(entry["title"]): stored_of(entry) for entry in entries}


def entries_of(client: WikiClient, page: Page) -> list[Any]:
    """Return the attachments of a page as JSON objects of the server.

    They are only requested if the list in the page is missing or incomplete.
    """
    results = whole_results(member(page.content, "children", "attachment"), "id", "title")
    return _listed(client, page) if results is None else results


def _listed(client: WikiClient, page: Page) -> list[Any]:
    purpose = f"listing the attachments of the page '{page.title}' ({page.id})"
    return client.attachments(purpose, page.id)


def stored_of(entry: Mapping[str, Any]) -> StoredAttachment:
    """Parse an attachment. Newer servers return comment and size only in `extensions`."""
    comment = member(entry, "extensions", "comment") or member(entry, "metadata", "comment")
    link = member(entry, "_links", "download")
    return StoredAttachment(
        str(entry["id"]),
        number(member(entry, "extensions", "fileSize")),
        number(member(entry, "version", "number")),
        comment if isinstance(comment, str) else "",
        link if isinstance(link, str) else None,
    )


def files_of(wanted: Iterable[PageAttachmentOptions]) -> list[WantedAttachment]:
    """Read the local files and compute their digests.

    Raises `invalid` for an unreadable file, an unsafe name, names that are equal without regard to
    case, or a comment that is too long to append the digest.
    """
    found: dict[str, WantedAttachment] = {}
    for entry in wanted:
        file = _file(entry.src, entry.name, entry.comment or "")
        other = found.setdefault(attachment_key(file.name), file)
        if other is not file:
            spelling = "" if other.name == file.name else f" (also as '{other.name}')"
            raise invalid(
                f"attachments: the name '{file.name}' is used twice{spelling}: change one of them"
            )
    return list(found.values())


def wrong_name(name: str) -> str | None:
    """Return the reason why the name of an attachment is invalid, or None."""
    if name in ("", ".", "..") or _UNSAFE.search(name) or name != name.strip():
        return (
            f"'{name}' is not a valid attachment name: use a file name without slashes, quotation"
            " marks, control characters and outer blanks"
        )
    return None


def _file(src: str, filename: str | None, comment: str) -> WantedAttachment:
    name = os.path.basename(src) if filename is None else filename
    wrong = wrong_name(name)
    if wrong is not None:
        raise invalid(f"attachments: {wrong}")
    if len(comment) > _LONGEST_COMMENT:
        raise invalid(
            f"attachments: the comment of '{name}' has {len(comment)} characters, but the maximum"
            f" is {_LONGEST_COMMENT}, because a digest is appended"
        )
    digest, size = hashlib.sha256(), 0
    try:
        with open(src, "rb", opener=open_regular) as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
                size += len(block)
    except OSError as error:
        raise invalid(f"attachments: cannot read '{src}': {error.strerror}") from None
    return WantedAttachment(src, name, comment.strip(), size, digest.hexdigest())


def _sha256_of(response: Incoming) -> str:
    digest = hashlib.sha256()
    for block in response.iter_content():
        digest.update(block)
    return digest.hexdigest()


def _size_in(body: bytes) -> int | None:
    """Return the stored size in bytes from the response to an upload, or None.

    The response contains a list for a new file, and an object for a new version.
    """
    decoded = json_or_none(body)
    results = member(decoded, "results")
    shown = results[0] if isinstance(results, list) and results else decoded
    return number(member(shown, "extensions", "fileSize"))
