# SPDX-License-Identifier: GPL-3.0-or-later
"""Count the files that would be lost if a repository is deleted."""

from __future__ import annotations

from ...core.errors import ToolchainError
from ..client import RepoClient
from ..items.listing import listing


def file_count(client: RepoClient, key: str, rclass: str) -> int | None:
    """Return the number of files in a repository; `None` if they cannot be listed.

    Server fact [repo-7]: the files of a remote repository `x` are stored in the repository
    `x-cache`.
    """
    stored = f"{key}-cache" if rclass == "remote" else key
    try:
        top = listing(client, stored, "", folders=True)
        if not top:
            return 0 if top is not None or rclass == "remote" else None
        found = listing(client, stored, "", deep=True)
    except ToolchainError as error:
        if error.kind not in ("protocol", "timeout", "server"):
            raise
        return None
    return None if found is None else len(found)
