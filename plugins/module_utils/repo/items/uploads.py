# SPDX-License-Identifier: GPL-3.0-or-later
"""Send files and archives, and verify the stored content."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.errors import ToolchainError, shorten
from ...core.http.messages import Response
from ..client import RepoClient, item_path
from ..digests import Digests
from . import listing
from .file_states import common_folder
from .listing import UNKNOWN_ITEM, StoredItem
from .sources import HeldContent, LocalFile, WantedFile

_MAY_OVERWRITE = (
    "the server has different content at this path: overwriting it requires the permission to"
    " delete"
)


#: Below this number of bytes, asking for the content costs as much as sending it.
_SMALL = 64 * 1024
#: After this number of unknown small contents in a row, small files are sent without asking.
_TRIES = 10


@dataclass
class Uploader:
    """Deploys files to a repository.

    :param by_checksum: whether to ask if the server has the content already, instead of sending
        it; `None`: ask only if that is faster
    """

    client: RepoClient
    repo: str
    by_checksum: bool | None
    _unknown: int = 0

    def deploy(self, wanted: WantedFile, before: StoredItem | None) -> tuple[str, int]:
        """Deploy a file; return the action and the number of sent bytes.

        Server fact [repo-19]: with checksum headers the server rejects a damaged body, and can
        deploy content that it already has.
        """
        try:
            if self._asks_for(wanted) and self._put(wanted, send_bytes=False):
                self._unknown = 0
                return "checksum_deployed", 0
            self._put(wanted, send_bytes=True)
        except ToolchainError as error:
            if error.status == 403 and before is not None:
                error.with_hint(_MAY_OVERWRITE)
            raise
        return "uploaded", wanted.digests.size

    def _asks_for(self, wanted: WantedFile) -> bool:
        """Return whether to ask the server first if it already has the content."""
        if self.by_checksum is not None:
            return self.by_checksum
        if wanted.digests.size >= _SMALL:
            return True
        # counted before the response, so that workers do not all ask at once
        self._unknown += 1
        times, rest = divmod(self._unknown, _TRIES)
        # then double the interval after every attempt, so that at most half of the requests are in
        # vain
        return times == 0 or (rest == 0 and times & (times - 1) == 0)

    def _put(self, wanted: WantedFile, *, send_bytes: bool) -> bool:
        """Send the file, or only its checksums. Return whether it is deployed: without bytes it is
        not if the server does not have the content (404) or ignores the checksums.
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
        """Return whether a file was deployed although the response was lost; `None` if it is
        unknown.
        """
        found = listing.head(self.client, self.repo, wanted.path)
        if found in (None, UNKNOWN_ITEM) and not self.client.dialect.checksum_headers:
            # a server without HEAD may report an existing file as missing
            found = listing.find(self.client, self.repo, wanted.path)
        return False if found is None else found.holds(wanted.digests)

    def _check(self, wanted: WantedFile, response: Response) -> None:
        """Compare the checksums in the response, if there are any, with the sent content."""
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
        """Read the state of a file that was just deployed. A server without HEAD reports it as
        missing, so the listing is used.
        """
        found = listing.head(self.client, self.repo, wanted.path)
        if found is not None:
            return found
        if self._is_missing(wanted.path):
            raise response.error(
                "failed", "the server reported success, but the item does not exist"
            )
        self.client.reports_checksums = False
        return None

    def _is_missing(self, path: str) -> bool:
        """Return whether the listing lacks an item. A missing folder proves that only if the server
        lists the root.
        """
        listed = listing.listing(self.client, self.repo, path.rpartition("/")[0])
        if listed is None or path in listed:
            return False
        return bool(listed) or listing.listing(self.client, self.repo, "") is not None

    def explode(self, archive: LocalFile, folder: str, entries: Sequence[WantedFile]) -> int:
        """Let the server expand an archive below a folder, completely or not at all; return the
        number of sent bytes.

        Raises `failed` if entries are missing afterwards. [C1.5, repo-21]: at a path with a
        trailing slash a real server only makes a folder.
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
        """Return whether all entries are stored with their content; `None` if it is unknown."""
        found = self._verdicts(entries).values()
        if False in found:
            return False
        return None if None in found else True

    def _verdicts(self, entries: Sequence[WantedFile]) -> dict[str, bool | None]:
        """Return by entry whether it is stored with its content; `None` if unknown."""
        folder = common_folder([entry.path for entry in entries])
        found: Mapping[str, StoredItem | None] | None = listing.listing(
            self.client, self.repo, folder, deep=True
        )
        if found is None:
            paths = [entry.path for entry in entries]
            found = {path: listing.head(self.client, self.repo, path) for path in paths}
        return {entry.path: _is_there(found.get(entry.path), entry) for entry in entries}


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
    named, words = shorten(", ".join(missing), 300), shorten(response)
    heard = f"; the server reported: {words}" if words else ""
    return ToolchainError(
        "failed",
        f"{purpose}: the server reported success, but {len(missing)} of {total} entries are missing"
        f" or differ from the archive (check the option dialect): {named}{heard}",
        detail=words or None,
    )
