# SPDX-License-Identifier: GPL-3.0-or-later
"""Store deleted files in the trash can, and handle requests to list and remove them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, PlainTextResponse, Response

from sandbox.context import Context, context
from sandbox.repo.responses import SERVICE, error, require_admin

if TYPE_CHECKING:
    from starlette.requests import Request

    from sandbox.repo.items.tree import Node

KIND = "repo.trash"
REPOSITORY = "auto-trashcan"


def keep(current: Context, nodes: list[Node], user: str) -> None:
    """Put deleted files into the trash can, with properties about their deletion [repo-8]."""
    for node in nodes:
        properties = {
            **node["properties"],
            "trash.time": [str(current.now_ms())],
            "trash.deletedBy": [user],
            "trash.originalRepository": [node["repo"]],
            "trash.originalRepositoryType": ["local"],
            "trash.originalPath": [node["path"]],
        }
        current.store.put(
            KIND, f"{node['repo']}/{node['path']}", {**node, "properties": properties}
        )


def listing(request: Request) -> Response:
    """Handle GET /api/storage/auto-trashcan [W2.1]: list the keys of repositories in the trash can.

    Server fact [repo-8]: only administrators may read and empty the trash can. Real servers return
    404 if it is empty.
    """
    require_admin(request)
    current = context(request)
    keys = sorted({key.partition("/")[0] for key in current.store.keys(KIND)})
    if not current.real(SERVICE):
        return JSONResponse({"children": [{"uri": f"/{key}"} for key in keys]})
    if not keys:
        raise error(404, "Unable to find item")
    children = [{"uri": f"/{key}", "folder": True} for key in keys]
    return JSONResponse({"repo": REPOSITORY, "path": "/", "children": children})


def item(request: Request) -> Response:
    """Handle GET /api/storage/auto-trashcan/{repo}/{path} [repo-8]: return a deleted item.

    A folder exists as long as it contains a deleted file.
    """
    require_admin(request)
    current = context(request)
    target = request.path_params["target"].strip("/")
    shown = {"repo": REPOSITORY, "path": f"/{target}"}
    node: Node | None = current.store.get(KIND, target)
    below = current.store.keys(KIND, f"{target}/")
    if node is None and not below:
        raise error(404, "Unable to find item")
    return JSONResponse(shown if node is None else {**shown, "size": str(node.get("size", -1))})


def empty_all(request: Request) -> Response:
    """Handle POST /api/trash/empty [W4.1, repo-8]: remove all items from the trash can."""
    require_admin(request)
    current = context(request)
    with current.store.transaction():
        for key in current.store.keys(KIND):
            current.store.delete(KIND, key)
    return PlainTextResponse("Successfully deleted all trashcan items", 202)


def clean(request: Request) -> Response:
    """Handle DELETE /api/trash/clean/{repo}[/{path}]: remove items from the trash can.

    Server fact [repo-8]: the status is 400 if there is no such item.
    """
    require_admin(request)
    current = context(request)
    target = request.path_params["target"].strip("/")
    gone = [
        key
        for key in current.store.keys(KIND, target)
        if key == target or key.startswith(target + "/")
    ]
    if not gone:
        raise error(400, f"Could not locate artifact '{target}'")
    with current.store.transaction():
        for key in gone:
            current.store.delete(KIND, key)
    return Response(status_code=204)
