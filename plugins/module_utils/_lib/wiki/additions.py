# SPDX-License-Identifier: GPL-3.0-or-later
"""What a page has besides its title, body and parent: labels, attachments and a mark.

Changes of these create no version of the page.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, Protocol
from urllib.parse import quote

from ..core.concurrency import spread
from ..core.errors import ToolchainError, conflict, invalid
from ..core.files import open_regular
from ..core.http.messages import json_or_none
from ..core.http.multipart import FilePart, MultipartForm
from ..core.json_text import member
from ..core.module.typed_options import Option, PathText
from ..core.plan import Change
from ..core.verification import not_saved
from .client import PROPERTIES, WikiClient
from .exchange import content_route
from .formats.markup import attachment_key
from .page import Page, composed, label_names, number, require_labels, same_title, whole_results

if TYPE_CHECKING:
    from ..core.http.bodies import Incoming


class PageAddition(Protocol):
    """Restrictions, labels or attachments of a page, compared with the server.

    Their changes create no version of the page.
    """

    noun: str

    @property
    def change(self) -> Change | None:
        """Return the difference, or None."""

    def text(self, *, after: bool) -> str:
        """Return the diff lines before or after the task."""

    def result(self) -> Any:
        """Return the desired state, as the return value `noun`."""

    def apply(self, page: Page) -> None:
        """Write the difference."""


def changes_of(additions: Sequence[PageAddition]) -> list[Change]:
    return [change for each in additions if (change := each.change) is not None]


# -- labels ([wiki-14]: `metadata.labels`, and the route `label`) ----------------------------------


class PageLabels:
    """Set the global labels of a page; personal and team labels stay.

    Raises `invalid` for an invalid label. The server stores labels in lower case.

    :param current: current labels of the page
    """

    noun = "labels"

    def __init__(
        self, client: WikiClient, wanted: Sequence[str], current: tuple[str, ...] = ()
    ) -> None:
        require_labels(wanted)
        self._client, self._current = client, current
        self._wanted = tuple(sorted({name.lower() for name in wanted}))

    def on(self, page: Page | None) -> PageLabels:
        current: tuple[str, ...] = ()
        if page is not None:
            current = self._read(page) if page.labels is None else page.labels
        return PageLabels(self._client, self._wanted, current)

    @property
    def change(self) -> Change | None:
        if self._current == self._wanted:
            return None
        return Change("labels", list(self._current), list(self._wanted))

    def text(self, *, after: bool) -> str:
        return f"labels: {', '.join(self._wanted if after else self._current) or '-'}\n"

    def result(self) -> Any:
        return list(self._wanted)

    def apply(self, page: Page) -> None:
        """Add and remove labels. Raises `rejected` if the server did not save them."""
        missing = [name for name in self._wanted if name not in self._current]
        surplus = [name for name in self._current if name not in self._wanted]
        if missing:
            purpose = (
                f"adding the labels {', '.join(missing)} to the page '{page.title}' ({page.id})"
            )
            added = [{"prefix": "global", "name": name} for name in missing]
            self._write(page, purpose, "POST", missing, True, json=added)
        for name in surplus:
            purpose = f"removing the label {name} from the page '{page.title}' ({page.id})"
            self._write(page, purpose, "DELETE", [name], False, query={"name": name})
        # labels that another user has changed meanwhile do not matter
        now = self._read(page) if missing or surplus else ()
        unsaved = [name for name in missing if name not in now]
        unsaved += [name for name in surplus if name in now]
        if unsaved:
            purpose = f"changing the labels of the page '{page.title}' ({page.id})"
            raise not_saved(purpose, [f"labels ({', '.join(unsaved)})"])

    def _read(self, page: Page) -> tuple[str, ...]:
        purpose = f"reading the labels of the page '{page.title}' ({page.id})"
        return label_names(self._client.labels(purpose, page.id))

    def _write(
        self, page: Page, purpose: str, method: str, names: list[str], there: bool, **parts: Any
    ) -> None:
        """Add or remove labels. After a lost response, check the labels of the page.

        :param names: labels to check
        :param there: whether the page must have these labels afterwards
        """

        def is_done() -> bool:
            now = self._read(page)
            return all((name in now) is there for name in names)

        route = content_route(page.id, "label")
        self._client.send(
            purpose, method, route, (200, 204), verify=is_done, repeatable=True, **parts
        )


# -- mark with the title that a task gives a page, by which a renamed page is found [wiki-6] -------

PAGE_MARK = "delivery-toolchain-page"
MARK_EXPANSION = f"{PROPERTIES}.{PAGE_MARK}"


def _title_on(page: Page) -> str | None:
    """Return the title in the mark of a page. A copied page has the id of the original in it."""
    value = member(page.content_property(PAGE_MARK), "value")
    title = member(value, "title")
    return title if isinstance(title, str) and member(value, "page") == page.id else None


class MarkedPages:
    """The marked pages of spaces. All pages of a task share one search in each space."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._marked: dict[str, list[tuple[str, Page]]] = {}

    def find(self, client: WikiClient, space: str, title: str, parallel: int) -> Page | None:
        """Return the page that is marked with a title although it has another one now, or None.

        Raises `conflict` if several pages are.
        """
        purpose = f"searching for the renamed page '{title}' in the space {space}"
        with self._lock:
            marked = self._marked.get(space.lower())
            if marked is None:
                listed = client.possibly_renamed(purpose, space, MARK_EXPANSION)
                pages = spread(parallel, lambda one: client.with_property(one, PAGE_MARK), listed)
                marked = [(known, one) for one in pages if (known := _title_on(one)) is not None]
                self._marked[space.lower()] = marked
        found = [page for known, page in marked if same_title(known, title)]
        if len(found) > 1:
            names = ", ".join(f"'{page.title}' ({page.id})" for page in found)
            message = f"the pages {names} in the space {space} are all marked as the page '{title}'"
            raise conflict(f"{message}: set page_id")
        return client.require(purpose, found[0].id, space) if found else None


class PageMark:
    """The mark of a page, compared with the server.

    :param current: title in the present mark
    """

    noun = "mark"

    def __init__(self, client: WikiClient, title: str, current: str | None = None) -> None:
        self._client, self._title, self._current = client, composed(title), current

    def on(self, page: Page | None) -> PageMark:
        current = None
        if page is not None:
            current = _title_on(self._client.with_property(page, PAGE_MARK))
        return PageMark(self._client, self._title, current)

    @property
    def change(self) -> Change | None:
        if self._current is not None and same_title(self._current, self._title):
            return None
        return Change("mark", self._current, self._title)

    def text(self, *, after: bool) -> str:
        return f"mark: {(self._title if after else self._current) or '-'}\n"

    def result(self) -> Any:
        return self._title

    def apply(self, page: Page) -> None:
        if self.change is not None:
            marked = self._client.with_property(page, PAGE_MARK)
            value = {"title": self._title, "page": page.id}
            self._client.write_property(marked, PAGE_MARK, value)


# -- attachments ([wiki-15]; routes `child/attachment` and `.../data`) -----------------------------
#
# The server reports no digest of an attachment. An upload therefore stores the SHA-256 of the file
# and the new version number in the comment of the attachment. If another user replaces the file,
# the version number no longer matches and the digest is ignored. Without a valid digest, a stored
# file of the same size is downloaded and compared.

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
        planned = []
        for file in self._files:
            there = stored.get(file.name)
            action = "uploaded"
            if there is not None:
                action = "unchanged" if self._same(file, there) else "updated"
            planned.append(PlannedAttachment(file, there, action))
        return PageAttachments(self._client, self._files, planned)

    @property
    def change(self) -> Change | None:
        changed = [planned.file.name for planned in self._planned if planned.action != "unchanged"]
        return Change(self.noun, None, changed) if changed else None

    def text(self, *, after: bool) -> str:
        lines = ""
        for planned in self._planned:
            file, stored = planned.file, planned.stored
            size: int | None = file.size
            digest: str | None = file.sha256
            if stored is None and not after:  # the attachment is new
                continue
            if stored is not None and not after and planned.action != "unchanged":
                size, digest = stored.size, stored.sha256
            lines += f"attachment: {file.name}, {size} bytes, sha256 {digest or '?'}\n"
        return lines

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

    def _same(self, file: WantedAttachment, stored: StoredAttachment) -> bool:
        if stored.size is not None and stored.size != file.size:
            return False
        if stored.sha256 is not None:
            return stored.sha256 == file.sha256
        return stored.link is not None and self._digest(file, stored.link) == file.sha256

    def _digest(self, file: WantedAttachment, link: str) -> str | None:
        """Return the SHA-256 of the stored file, or None if this account cannot download it."""
        purpose = f"downloading the attachment '{file.name}'"

        def sha256_of(response: Incoming) -> str:
            digest = hashlib.sha256()
            for block in response.iter_content():
                digest.update(block)
            return digest.hexdigest()

        try:
            return self._client.download(purpose, link, sha256_of)
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


#: Characters of a link that a server has encoded, or need not encode.
_ENCODED = "!#$%&'()*+,/:;=?@[]~"


def stored_of(entry: Mapping[str, Any]) -> StoredAttachment:
    """Parse an attachment. Newer servers return comment and size only in `extensions`.

    Whether the link is encoded is not documented for version 2 of the Cloud's interface.
    """
    comment = member(entry, "extensions", "comment") or member(entry, "metadata", "comment")
    link = member(entry, "_links", "download")
    return StoredAttachment(
        str(entry["id"]),
        number(member(entry, "extensions", "fileSize")),
        number(member(entry, "version", "number")),
        comment if isinstance(comment, str) else "",
        quote(link, safe=_ENCODED) if isinstance(link, str) else None,
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


def _size_in(body: bytes) -> int | None:
    """Return the stored size in bytes from the response to an upload, or None.

    The response contains a list for a new file, and an object for a new version.
    """
    decoded = json_or_none(body)
    results = member(decoded, "results")
    shown = results[0] if isinstance(results, list) and results else decoded
    return number(member(shown, "extensions", "fileSize"))
