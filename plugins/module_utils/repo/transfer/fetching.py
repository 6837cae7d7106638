# SPDX-License-Identifier: GPL-3.0-or-later
"""Download files completely and verify their digests [C8.1, repo-26]."""

from __future__ import annotations

from ...core.http.file_download import Fetched, RemoteContent, download_file, fetch_digests
from ..client import RepoClient, item_path
from .remote_files import RemoteFile

#: Suffixes of files that may contain HTML.
_PAGES = (".html", ".htm", ".xhtml")


class Fetcher:
    """Download files. Credentials are not sent to the other host of a redirect."""

    def __init__(self, client: RepoClient) -> None:
        self._client = client

    def save(self, file: RemoteFile, path: str, mode: int | None) -> Fetched:
        """Download a file to a local path; return its size and digest.

        :param mode: permissions of the local file; `None` means the default
        """
        return download_file(
            self._client.transport,
            f"downloading '{file.name}'",
            item_path(file.repo, file.path),
            path,
            content=_expected_content(file),
            mode=mode,
        )

    def verify(self, file: RemoteFile) -> Fetched:
        """Download a file without saving it; return its size and digest.

        This is only needed if the server does not return its digests.
        """
        return fetch_digests(
            self._client.transport,
            f"comparing '{file.name}'",
            item_path(file.repo, file.path),
            content=_expected_content(file),
        )


def _expected_content(file: RemoteFile) -> RemoteContent:
    # server fact [repo-20]: files from older releases have no SHA-256
    stored = file.stored
    algorithm = "sha1" if stored.sha256 is None and stored.sha1 is not None else "sha256"
    return RemoteContent(
        stored.size,
        algorithm,
        stored.sha256 or stored.sha1,
        # server fact [repo-26]: the server returns an HTML page for a folder
        may_be_page=file.path.lower().endswith(_PAGES),
    )
