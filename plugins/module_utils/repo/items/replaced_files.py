# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the promoted builds whose files a deployment replaces [C2.1, repo-27]."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ...core.errors import ToolchainError
from .. import aql
from ..client import RepoClient, objects
from .file_states import common_folder

_NAME, _NUMBER = "artifact.module.build.name", "artifact.module.build.number"
_PROMOTION = "artifact.module.build.promotion.status"
#: Maximum length of a list of files in a query, and that of each entry without the file.
_LONGEST, _OVERHEAD = 4000, 30


def promoted_builds(client: RepoClient, repo: str, paths: Collection[str]) -> dict[str, list[str]]:
    """Return the promoted builds to which files belong, as `name/number` by path.

    Sends a single query. The result is empty if the server does not support it: it only serves a
    warning, so an error must not prevent the deployment.
    """
    if not paths or not client.dialect.query_by_property:
        return {}
    folder = common_folder(list(paths))
    criteria = {
        "repo": repo,
        "type": "file",
        _PROMOTION: {"$match": "*"},
        **_places(paths, folder),
    }
    purpose = f"searching for promoted builds with files below '{repo}/{folder}'"
    try:
        rows = aql.ask_if_supported(client, purpose, criteria, [_NAME, _NUMBER])
    except ToolchainError:
        return {}
    found: dict[str, list[str]] = {}
    for row in rows or ():
        path = aql.path_in(row)
        builds = sorted({f"{name}/{number}" for name, number in _builds_in(row)})
        if path in paths and builds:
            found[path] = builds
    return found


def _places(paths: Collection[str], folder: str) -> dict[str, Any]:
    """Return criteria that match files; all files in their common folder if a list is too long."""
    if sum(map(len, paths)) + _OVERHEAD * len(paths) <= _LONGEST:
        parts = (path.rpartition("/") for path in sorted(paths))
        return {"$or": [{"path": parent or ".", "name": name} for parent, _slash, name in parts]}
    return aql.below(folder)


def _builds_in(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the names and numbers of the builds in a query row, in which domains are nested."""
    for artifact in objects(row.get("artifacts")):
        for module in objects(artifact.get("modules")):
            for build in objects(module.get("builds")):
                yield str(build.get("build.name")), str(build.get("build.number"))
