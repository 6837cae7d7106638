# SPDX-License-Identifier: GPL-3.0-or-later
"""Download a file completely and verified, or not at all [C8.1, repo-26]."""

from __future__ import annotations

from ...core.http.file_download import Fetched, RemoteContent, download_file, fetch_digests
from ..client import RepoClient, item_path
from .remote_files import RemoteFile

_PAGES = (".html", ".htm", ".xhtml")


class Fetcher:
    """Downloads files of a server. Redirects to another host are followed without credentials."""

    def __init__(self, client: RepoClient) -> None:
        self._client = client

    def save(self, file: RemoteFile, path: str, mode: int | None) -> Fetched:
        """Download a file to its destination, and return its size and digest."""
        return download_file(
            self._client.transport,
            f"downloading '{file.name}'",
            item_path(file.repo, file.path),
            path,
            content=_told(file),
            mode=mode,
        )

    def verify(self, file: RemoteFile) -> Fetched:
        """Read a file without saving it, if the server has no digests; return its size
        and digest.
        """
        return fetch_digests(
            self._client.transport,
            f"comparing '{file.name}'",
            item_path(file.repo, file.path),
            content=_told(file),
        )


def _told(file: RemoteFile) -> RemoteContent:
    # server fact [repo-20]: old files have no SHA-256
    stored = file.stored
    algorithm = "sha1" if stored.sha256 is None and stored.sha1 is not None else "sha256"
    return RemoteContent(
        stored.size,
        algorithm,
        stored.sha256 or stored.sha1,
        # server fact [repo-26]: the server returns an HTML page for a folder
        may_be_page=file.path.lower().endswith(_PAGES),
    )
