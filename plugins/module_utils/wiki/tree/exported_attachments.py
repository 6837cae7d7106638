# SPDX-License-Identifier: GPL-3.0-or-later
"""Download the attachments of exported pages, and report those that cannot be exported."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from hashlib import sha256

from ...core.errors import ToolchainError
from ...core.export.file_content import FileContent, KeptFiles
from ...core.export.file_names import FileNames
from ...core.json_text import member
from ..attachments import StoredAttachment, entries_of, stored_of, wrong_name
from ..client import WikiClient
from ..markdown.attachment_names import attachment_key
from ..page import Page
from ..storage.page_file import named_attachments

#: Maximum length of a file extension that is kept.
_LONGEST_EXTENSION = 10
#: Extensions that are replaced, because such files would be read as pages or as desired states.
_RESERVED = ("md", "xml", "yml", "yaml", "json")
_REPLACEMENT = "bin"


@dataclass
class PageFiles:
    """Attachments of a page.

    `contents`: content by file name.
    `listed`: file name by attachment name, for the front matter; None means not managed.
    `left_out`: kind, name and reason of each attachment that is not exported.
    """

    contents: dict[str, FileContent] = field(default_factory=dict)
    listed: dict[str, str | None] = field(default_factory=dict)
    left_out: list[tuple[str, str, str]] = field(default_factory=list)


class AttachmentReader:
    """Download the attachments of several pages at once.

    :param largest: maximum size in bytes; larger attachments are left out
    """

    def __init__(self, client: WikiClient, largest: int) -> None:
        self._client, self._largest = client, largest
        self._kept = KeptFiles()

    def read(self, page: Page) -> PageFiles:
        """Download the attachments of a page."""
        found = PageFiles()
        try:
            entries = entries_of(self._client, page)
        except ToolchainError as error:
            if error.kind not in ("not_found", "permission"):
                raise
            reason = "the server does not report them"
            found.left_out.append(("attachments", page.title, reason))
            return found
        names, taken = FileNames(), dict[str, str]()
        shown = {member(entry, "title"): entry for entry in entries}
        for title in sorted(shown, key=str):
            name = title if isinstance(title, str) else ""
            other = taken.setdefault(attachment_key(name), name)
            if other == name:
                self._add(found, page, names, name, shown[title])
            else:
                found.listed[name] = None
                reason = f"its name equals '{other}' without regard to case"
                found.left_out.append(("attachment", f"{name} of the page {page.title}", reason))
        return found

    def _add(
        self, found: PageFiles, page: Page, names: FileNames, name: str, entry: object
    ) -> None:
        """Download an attachment, or add the reason why it is left out."""
        reason = wrong_name(name)
        if reason is None and isinstance(entry, dict) and "id" in entry:
            found.listed[name] = None
            content, reason = self._content(page, name, stored_of(entry))
            if content is not None:
                file = file_name(names, page.id, name)
                found.listed[name], found.contents[file] = file, content
                return
        shown = f"{name or 'without a name'} of the page {page.title}"
        found.left_out.append(("attachment", shown, reason or "the server does not report its id"))

    def _content(
        self, page: Page, name: str, stored: StoredAttachment
    ) -> tuple[FileContent | None, str | None]:
        """Return the content and None, or None and the reason why it is left out."""
        if stored.size is None or stored.link is None:
            return None, "the server does not report its size or its address"
        if stored.size > self._largest:
            return None, f"it has {stored.size} bytes, more than max_size"
        purpose = f"downloading the attachment '{name}' of the page '{page.title}' ({page.id})"
        try:
            with tempfile.TemporaryFile() as file:
                self._client.download_into(purpose, stored.link, file, stored.size)
                return self._kept.keep(file), None
        except ToolchainError as error:
            if error.kind not in ("not_found", "permission"):
                raise
            return None, f"it cannot be read: {error}"


def file_name(names: FileNames, page_id: str, name: str) -> str:
    """Return the file name of an attachment, which never equals that of a page or folder."""
    stem, dot, extension = name.rpartition(".")
    plain = extension.isascii() and extension.isalnum() and len(extension) <= _LONGEST_EXTENSION
    kept = bool(dot and stem and plain and extension.lower() not in _RESERVED)
    owner = (
        page_id
        if page_id.isdecimal()
        else sha256(page_id.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    )
    base = names.name("", f"{owner} {stem if kept else name}")
    return f"{base}.{extension if kept else _REPLACEMENT}"


def listed_of(files: PageFiles, body: str) -> dict[str, str | None]:
    """Return the file name of each attachment, for the front matter.

    Attachments that only the body refers to are None: they are not managed.
    """
    named = (name.strip() for name, _element in named_attachments(body))
    return {**{name: None for name in named if name}, **files.listed}
