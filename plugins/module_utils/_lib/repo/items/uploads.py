# SPDX-License-Identifier: GPL-3.0-or-later
"""Send files and archives, and verify the stored content."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.errors import ToolchainError, shorten
from ...core.http.messages import Response
from ...core.verification import without_effect
from ..client import RepoClient, item_path
from . import listing
from .file_states import common_folder, read_state
from .listing import UNKNOWN_ITEM, Digests, StoredItem
from .snapshots import stored_paths
from .sources import HeldContent, LocalFile, WantedFile

_MAY_OVERWRITE = (
    "the server has different content at this path: overwriting it requires the permission to"
    " delete"
)


#: Maximum size of a small file in bytes: sending it is as fast as asking whether the server has its
#: content.
_SMALL = 64 * 1024
#: Number of consecutive small files that the server did not have, after which small files are
#: usually sent without asking.
_TRIES = 10


@dataclass
class Uploader:
    """Deploy files to a repository.

    :param by_checksum: whether to ask first if the server already has the content, and then not
        send it; `None` means only if that is faster
    """

    client: RepoClient
    repo: str
    by_checksum: bool | None
    #: Paths of files that the server stored under another name, by the path of the request.
    renamed: dict[str, str] = field(default_factory=dict)
    _unknown: int = 0

    def deploy(self, wanted: WantedFile, before: StoredItem | None) -> tuple[str, int]:
        """Deploy a file; return the action and the number of sent bytes.

        Server fact [repo-19]: with checksum headers, the server rejects a corrupted body, and can
        deploy content that it already has without a body.

        :param before: the current item at the path; `None` if it does not exist
        """
        try:
            if self._asks_first(wanted) and self._put(wanted, send_bytes=False):
                self._unknown = 0
                return "checksum_deployed", 0
            self._put(wanted, send_bytes=True)
        except ToolchainError as error:
            if error.status == 403 and before is not None:
                error.with_hint(_MAY_OVERWRITE)
            raise
        return "uploaded", wanted.digests.size

    def _asks_first(self, wanted: WantedFile) -> bool:
        """Return whether to ask first if the server already has the content."""
        if self.by_checksum is not None:
            return self.by_checksum
        if wanted.digests.size >= _SMALL:
            return True
        # count before the response, so that parallel workers do not all ask
        self._unknown += 1
        times, remainder = divmod(self._unknown, _TRIES)
        # after the first tries, double the interval between the questions
        return times == 0 or (remainder == 0 and times & (times - 1) == 0)

    def _put(self, wanted: WantedFile, *, send_bytes: bool) -> bool:
        """Send the file, or only its checksums; return whether it is deployed.

        With checksums only, it is not deployed if the server does not have the content (404) or
        ignores the checksums.
        """
        headers = self._checksums(wanted.digests)
        if send_bytes:
            body = _body(wanted)
        else:
            headers["X-Checksum-Deploy"], body = "true", dict[str, Any]()
        try:
            response = self.client.write(
                f"deploying '{self.repo}/{wanted.path}'",
                "PUT",
                item_path(self.repo, wanted.path),
                headers=headers,
                expect=(200, 201, 202, 204) if send_bytes else (200, 201, 202, 204, 404),
                verify=lambda: self._arrived(wanted),
                repeatable=True,
                **body,
            )
        except ToolchainError as error:
            if send_bytes or not error.verified_undone:
                raise
            return False
        if response.status == 404:
            return False
        self._check(wanted, response)
        return True

    def _checksums(self, digests: Digests) -> dict[str, str]:
        if not self.client.dialect.checksum_headers:
            return {}
        return {"X-Checksum-Sha1": digests.sha1, "X-Checksum-Sha256": digests.sha256}

    def _arrived(self, wanted: WantedFile) -> bool | None:
        """Return whether a file was deployed although the response was lost; `None` if unknown."""
        state = read_state(self.client, self.repo, wanted)
        if state.has_content and state.renamed is not None:
            self.renamed[wanted.path] = state.renamed
        found = state.stored
        if found in (None, UNKNOWN_ITEM) and not self.client.dialect.checksum_headers:
            # a server without HEAD may report an existing file as missing
            found = listing.find(self.client, self.repo, wanted.path)
        return False if found is None else found.holds(wanted.digests)

    def _check(self, wanted: WantedFile, response: Response) -> None:
        """Raise `failed` if the stored content differs from the sent content.

        The checksums come from the response or from a read.
        """
        path = listing.stored_path(response, self.repo, wanted.path)
        if path != wanted.path:
            self.renamed[wanted.path] = path
        found = listing.of_checksums(response)
        if found is None and self.client.reports_checksums:
            found = self._stored_item(wanted, response)
        if found is not None and found.holds(wanted.digests) is False:
            raise response.error(
                "failed",
                f"the stored content ({found.size} bytes, SHA-256 {found.sha256}) differs from the"
                f" sent content ({wanted.digests.size} bytes, SHA-256 {wanted.digests.sha256})",
                shorten(response.text),
            )

    def _stored_item(self, wanted: WantedFile, response: Response) -> StoredItem | None:
        """Read the state of a file that was just deployed; return `None` if HEAD is not supported.

        If HEAD and the listing do not find the file, raise `failed`.
        """
        path = self.renamed.get(wanted.path, wanted.path)
        found = listing.head(self.client, self.repo, path)
        if found is not None:
            return found
        if self._is_missing(path):
            raise without_effect(response.request.purpose, "the item does not exist")
        self.client.reports_checksums = False
        return None

    def _is_missing(self, path: str) -> bool:
        """Return whether the listing of the folder proves that an item does not exist.

        An empty listing proves it only if the server can list the root of the repository.
        """
        listed = listing.listing(self.client, self.repo, path.rpartition("/")[0])
        if listed is None or path in listed:
            return False
        return bool(listed) or listing.listing(self.client, self.repo, "") is not None

    def explode(self, archive: LocalFile, folder: str, entries: Sequence[WantedFile]) -> int:
        """Send an archive that the server expands below a folder; return the number of sent bytes.

        The server expands all files or none. Server fact [C1.5, repo-21]: if the path ends with a
        slash, Artifactory only creates a folder.

        :param entries: the files in the archive
        :raises ToolchainError: `failed` if files are missing afterwards
        """
        by_name = self.client.dialect.archive_by_name
        name, size = os.path.basename(archive.path), os.path.getsize(archive.path)
        path = f"{folder}/{name}" if by_name else folder
        purpose = f"expanding '{name}' below '{self.repo}/{folder}'"
        response = self.client.write(
            purpose,
            "PUT",
            item_path(self.repo, path, slash=not by_name),
            headers={"X-Explode-Archive-Atomic": "true"},
            open_body=archive.open,
            size=size,
            verify=lambda: self._are_there(entries),
            repeatable=True,
        ).text
        missing = self._missing(entries)
        if missing:
            raise _not_expanded(purpose, missing, len(entries), response)
        return size

    def _missing(self, entries: Sequence[WantedFile]) -> list[str]:
        found = self._verdicts(entries)
        return [entry.path for entry in entries if found[entry.path] is False]

    def _are_there(self, entries: Sequence[WantedFile]) -> bool | None:
        """Return whether all files are stored with their content; `None` if that is unknown."""
        found = self._verdicts(entries).values()
        if False in found:
            return False
        return None if None in found else True

    def _verdicts(self, entries: Sequence[WantedFile]) -> dict[str, bool | None]:
        """Return whether each file is stored with its content, by path; `None` if unknown."""
        folder = common_folder([entry.path for entry in entries])
        listed = listing.listing(self.client, self.repo, folder, deep=True)
        found: Mapping[str, StoredItem | None] = listed or {}
        if listed is None:
            paths = [entry.path for entry in entries]
            found = {path: listing.head(self.client, self.repo, path) for path in paths}
        else:
            self.renamed.update(stored_paths((entry.path for entry in entries), listed))
        return {
            entry.path: _is_there(found.get(self.renamed.get(entry.path, entry.path)), entry)
            for entry in entries
        }


def _body(wanted: WantedFile) -> dict[str, Any]:
    """Return the body parameters for the content of a file."""
    content = wanted.content
    if isinstance(content, HeldContent):
        return {"body": content.data}
    return {"open_body": content.open, "size": wanted.digests.size}


def _is_there(stored: StoredItem | None, entry: WantedFile) -> bool | None:
    return False if stored is None else stored.holds(entry.digests)


def _not_expanded(
    purpose: str, missing: Sequence[str], total: int, response: str
) -> ToolchainError:
    named, text = shorten(", ".join(missing), 300), shorten(response)
    reported = f". The server reported: {text}" if text else ""
    error = without_effect(
        purpose,
        f"{len(missing)} of {total} files are missing or differ from the archive (check the option"
        f" dialect): {named}{reported}",
    )
    error.detail = text or None
    return error
