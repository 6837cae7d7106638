# SPDX-License-Identifier: GPL-3.0-or-later
"""The attachments of a page ([wiki-15]; routes C(child/attachment) and C(.../data)).

No server shows a digest. What this module uploads carries one in its comment, together with the
version that the upload made: a file that others replaced has another version, and its digest does
not count. Where no digest counts, a file of the same size is downloaded and compared.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from ..core.errors import ToolchainError, invalid
from ..core.files import open_regular
from ..core.http.messages import json_or_none
from ..core.http.multipart import FilePart, MultipartForm
from ..core.module.typed_options import Option, PathText
from ..core.plan import Change
from .client import WikiClient, place_of
from .page import Page, member, number

if TYPE_CHECKING:
    from ..core.http.bodies import Incoming

_BLOCK = 1024 * 1024
#: Characters. Servers keep 255 of a comment; the mark takes up to 90.
_LONGEST_COMMENT = 160
_MARK = re.compile(r"\(sha256 ([0-9a-f]{64}), version ([0-9]+)\)$")
_UNSAFE = re.compile(r'[/\\"\x00-\x1f\x7f\ud800-\udfff]')
#: Kinds of errors that mean "this login cannot download it", not "the server is in trouble".
_CANNOT_TELL = frozenset({"auth", "permission", "not_found", "protocol", "rejected"})


@dataclass(frozen=True)
class PageAttachmentOptions:
    """An entry of the option C(attachments)."""

    src: PathText
    name: str | None = None
    comment: Annotated[str | None, Option(empty=True)] = None


@dataclass(frozen=True)
class WantedAttachment:
    """A local file to attach: its C(name) on the page, its C(size) in bytes."""

    src: str
    name: str
    comment: str
    size: int
    sha256: str


@dataclass(frozen=True)
class StoredAttachment:
    """An attachment as the server shows it; what it does not show is C(None)."""

    id: str
    size: int | None
    version: int | None
    comment: str
    link: str | None

    @property
    def sha256(self) -> str | None:
        """The digest that stands in the comment of this version."""
        found = _MARK.search(self.comment)
        return found[1] if found is not None and number(found[2]) == self.version else None


@dataclass(frozen=True)
class PlannedAttachment:
    """A file and the action for it: C(uploaded), C(updated) or C(unchanged)."""

    file: WantedAttachment
    stored: StoredAttachment | None
    action: str

    def line(self, *, after: bool) -> str:
        """For a diff; empty where there is no such file."""
        file, stored = self.file, self.stored
        if after or self.action == "unchanged":
            return f"attachment: {file.name}, {file.size} bytes, sha256 {file.sha256}\n"
        if stored is None:
            return ""
        return f"attachment: {file.name}, {stored.size} bytes, sha256 {stored.sha256 or '?'}\n"


class PageAttachments:
    """Attaches files to a page; other attachments stay."""

    def __init__(self, client: WikiClient, wanted: Iterable[PageAttachmentOptions]) -> None:
        self._client = client
        self._files = files_of(wanted)
        self._planned: list[PlannedAttachment] = []

    def plan(self, page: Page | None) -> Change | None:
        stored: Mapping[str, StoredAttachment] = {}
        if page is not None and self._files:
            stored = _by_name(entries_of(self._client, page))
        self._planned = [self._decide(file, stored.get(file.name)) for file in self._files]
        differing = [
            planned.file.name for planned in self._planned if planned.action != "unchanged"
        ]
        return Change("attachments", None, differing) if differing else None

    def text(self, *, after: bool) -> str:
        return "".join(planned.line(after=after) for planned in self._planned)

    def result(self) -> Mapping[str, Any]:
        return {
            "attachments": [
                {
                    "name": planned.file.name,
                    "size": planned.file.size,
                    "sha256": planned.file.sha256,
                    "action": planned.action,
                }
                for planned in self._planned
            ]
        }

    def apply(self, page: Page) -> None:
        for planned in self._planned:
            if planned.action != "unchanged":
                self._upload(page, planned)

    def _listing(self, page: Page) -> dict[str, StoredAttachment]:
        return _by_name(_listed(self._client, page))

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
        """Of what the server holds; C(None) where it cannot be downloaded with this login."""
        try:
            return self._client.download(
                f"downloading the attachment '{file.name}'", link, _sha256_of
            )
        except ToolchainError as error:
            if error.kind not in _CANNOT_TELL:
                raise
            return None

    def _upload(self, page: Page, planned: PlannedAttachment) -> None:
        """Send a file once; where the answer does not tell, the listing does.

        Server fact [wiki-15]: a name that is in use is refused with 400, its next version has a
        route of its own (C(PUT) on the listing is known to the cloud alone).
        """
        file, stored = planned.file, planned.stored
        below = () if stored is None else (stored.id, "data")
        version = 1 if stored is None else (stored.version or 0) + 1
        mark = f"(sha256 {file.sha256}, version {version})"
        fields = [("comment", f"{file.comment} {mark}".lstrip()), ("minorEdit", "true")]
        form = MultipartForm(fields, [FilePart("file", file.name, file.src, file.size)])
        what = f"uploading the attachment '{file.name}' to the page '{page.title}' ({page.id})"
        try:
            response = self._client.send(
                what,
                "POST",
                place_of(page.id, "child", "attachment", *below),
                (200, 201),
                headers={"Content-Type": form.content_type},
                open_body=form.open,
                size=form.size,
                verify=lambda: self._has_arrived(page, planned),
            )
        except ToolchainError as error:
            taken = stored is None and error.status in (400, 409) and not error.outcome_unknown
            if taken and self._has_arrived(page, planned):
                return  # another task has attached it at the same time
            raise
        size = _size_in(response.body)
        if size is not None and size != file.size:
            said = f"the server stored {size} bytes, and {file.size} were sent"
            raise response.error("failed", said)

    def _has_arrived(self, page: Page, planned: PlannedAttachment) -> bool | None:
        """Whether an upload has; C(None) where others have replaced the file."""
        now = self._listing(page).get(planned.file.name)
        if now == planned.stored:
            return False
        return True if now is not None and self._same(planned.file, now) else None


def _by_name(entries: Iterable[Any]) -> dict[str, StoredAttachment]:
    return {
        entry["title"]: stored_of(entry)
        for entry in entries
        if isinstance(member(entry, "title"), str) and member(entry, "id") is not None
    }


def entries_of(client: WikiClient, page: Page) -> list[Any]:
    """The attachments of a page: those that came with it, where they are all of them; else they are
    listed.
    """
    listing = member(page.content, "children", "attachment")
    results, following = member(listing, "results"), member(listing, "_links", "next")
    whole = isinstance(results, list) and following is None
    return list(results) if whole else _listed(client, page)


def _listed(client: WikiClient, page: Page) -> list[Any]:
    what = f"listing the attachments of the page '{page.title}' ({page.id})"
    return client.listing(what, place_of(page.id, "child", "attachment"), expand="version")


def stored_of(entry: Mapping[str, Any]) -> StoredAttachment:
    """An entry of the listing: newer servers show comment and size in C(extensions) alone."""
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
    """The local files, each read once for its digest. Raises C(invalid): a file that cannot be
    read, a name that is unsafe or is there twice, a comment that leaves no room for the digest.
    """
    found: dict[str, WantedAttachment] = {}
    for entry in wanted:
        file = _file(entry.src, entry.name, entry.comment or "")
        if file.name in found:
            raise invalid(f"attachments: two files would have the name '{file.name}'")
        found[file.name] = file
    return list(found.values())


def wrong_name(name: str) -> str | None:
    """What is wrong with a name that an attachment shall have; C(None): nothing."""
    if name in ("", ".", "..") or _UNSAFE.search(name) or name != name.strip():
        return f"'{name}' is not a file name that a page can have"
    return None


def _file(src: str, given: str | None, comment: str) -> WantedAttachment:
    name = os.path.basename(src) if given is None else given
    wrong = wrong_name(name)
    if wrong is not None:
        raise invalid(f"attachments: {wrong}")
    if len(comment) > _LONGEST_COMMENT:
        raise invalid(
            f"attachments: the comment of '{name}' has {len(comment)} characters; with the digest"
            f" that is added, servers keep at most {_LONGEST_COMMENT}"
        )
    digest, size = hashlib.sha256(), 0
    try:
        with open(src, "rb", opener=open_regular) as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
                size += len(block)
    except OSError as error:
        raise invalid(f"attachments: '{src}' cannot be read: {error.strerror}") from None
    return WantedAttachment(src, name, comment.strip(), size, digest.hexdigest())


def _sha256_of(response: Incoming) -> str:
    digest = hashlib.sha256()
    for block in response.iter_content(_BLOCK):
        digest.update(block)
    return digest.hexdigest()


def _size_in(body: bytes) -> int | None:
    """Bytes that an upload was answered with: a list for a new file, one object for a version."""
    decoded = json_or_none(body)
    results = member(decoded, "results")
    shown = results[0] if isinstance(results, list) and results else decoded
    return number(member(shown, "extensions", "fileSize"))
