# SPDX-License-Identifier: GPL-3.0-or-later
"""Handle requests for the list of repositories, single repositories and the storage summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response

from sandbox.context import context
from sandbox.repo import configuration, permissions, repositories
from sandbox.repo.items.tree import Tree
from sandbox.repo.responses import SERVICE, error, require_admin

if TYPE_CHECKING:
    from starlette.requests import Request


def repository_list(request: Request) -> Response:
    """Handle GET /api/repositories [W4.1]: list the repositories that the user may read.

    Server fact [repo-9]: real servers return more fields, and filter by type, package type and
    project.
    """
    current = context(request)
    every = [
        doc
        for doc in current.store.values(repositories.KIND)
        if permissions.may_read(request, doc["key"])
    ]
    if not current.real(SERVICE):
        return JSONResponse([{"key": doc["key"], "type": doc["type"]} for doc in every])
    wanted = request.query_params.get("type")
    package = request.query_params.get("packageType")
    project = request.query_params.get("project")
    rows = [
        {
            "key": doc["key"],
            "description": doc.get("description", ""),
            "type": doc["type"],
            "url": f"{current.base_url(request, SERVICE)}/{doc['key']}",
            "packageType": doc["packageType"].capitalize(),
        }
        for doc in every
        if (wanted is None or wanted.upper() == doc["type"])
        and (package is None or package.lower() == doc["packageType"])
        and (project is None or project == doc.get("projectKey", ""))
    ]
    return JSONResponse(rows, headers={"Cache-Control": "no-store"})


def repository(request: Request) -> Response:
    """Handle GET /api/repositories/{key} [W4.1]; real servers return the configuration."""
    current = context(request)
    if current.real(SERVICE):
        return configuration.read(request)
    doc = repositories.find(current, request.path_params["key"])
    if doc is None:
        raise error(404, "Not Found")
    kept = ("key", "type", "defaultDeploymentRepo")
    return JSONResponse({name: doc[name] for name in kept if name in doc})


def summary(request: Request) -> Response:
    """Handle GET /api/storageinfo [W2.1]: return the storage summary."""
    current = context(request)
    if current.real(SERVICE):  # server fact [repo-10]: the account must be an administrator
        require_admin(request)
    rows, total_files, total_folders, total_size = [], 0, 0, 0
    digests: dict[str, int] = {}
    for key, doc in current.store.items(repositories.KIND):
        nodes = Tree(current).below(key, "") if doc["type"] == "LOCAL" else []
        files = [node for node in nodes if not node["folder"]]
        digests.update({node["sha256"]: node["size"] for node in files})
        size = sum(node["size"] for node in files)
        total_files, total_size = total_files + len(files), total_size + size
        total_folders += len(nodes) - len(files)
        rows.append(_summary_row(doc, len(files), len(nodes) - len(files), size))
    total = {"key": "TOTAL", "type": "NA", "packageType": ""}
    rows.append(_summary_row(total, total_files, total_folders, total_size))
    binaries = sum(digests.values())
    share = 100 * binaries / total_size if total_size else 100
    return JSONResponse(
        {
            "binariesSummary": {
                "binariesCount": f"{len(digests):,}",
                "binariesSize": human(binaries),
                "artifactsSize": human(total_size),
                "optimization": f"{share:.2f}%",
                "itemsCount": f"{total_files + total_folders:,}",
                "artifactsCount": f"{total_files:,}",
            },
            "fileStoreSummary": {
                "storageType": "file-system",
                "storageDirectory": "/var/opt/repository/data/filestore",
                "totalSpace": "204.28 GB",
                "usedSpace": "32.22 GB (15.77%)",
                "freeSpace": "172.06 GB (84.23%)",
            },
            "repositoriesSummaryList": rows,
        }
    )


def human(size: int) -> str:
    """Format a size like the server: `1,234 bytes`, `3.48 GB`."""
    if size < 1024:
        return f"{size:,} bytes"
    power = min((size.bit_length() - 1) // 10, 4)
    return f"{size / 1024**power:,.2f} {('KB', 'MB', 'GB', 'TB')[power - 1]}"


def _summary_row(doc: dict[str, Any], files: int, folders: int, size: int) -> dict[str, Any]:
    return {
        "repoKey": doc["key"],
        "repoType": {"REMOTE": "CACHE"}.get(doc["type"], doc["type"]),
        "foldersCount": folders,
        "filesCount": files,
        "usedSpace": human(size),
        "itemsCount": files + folders,
        "packageType": doc["packageType"].capitalize(),
    }
