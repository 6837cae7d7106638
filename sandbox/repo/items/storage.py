# SPDX-License-Identifier: GPL-3.0-or-later
"""What is stored: information on an item, listing of a folder, storage summary."""

from __future__ import annotations

import mimetypes
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response

from sandbox.context import context
from sandbox.repo import permissions, repositories
from sandbox.repo.answers import SERVICE, empty, error, flag, iso, quote
from sandbox.repo.items.tree import Tree

if TYPE_CHECKING:
    from starlette.requests import Request

    from sandbox.repo.items.tree import Node


def any_item(request: Request) -> Node:
    """The item of the path, of a virtual repository the first readable member's; else 404."""
    current = context(request)
    repo, path = request.path_params["repo"], request.path_params["path"].strip("/")
    for member in permissions.readable(request, repo):
        node = Tree(current).get(member, path)
        if node is not None:
            return node
    found = repositories.find(current, repo)
    if current.real(SERVICE) and found is not None and found["type"] == "VIRTUAL":
        # server fact [repo-7]: a virtual repository answers without a body
        raise empty(404)
    raise error(404, "Unable to find item")


def local_item(request: Request, permission: str) -> Node:
    """The item to change (of a virtual repository: in its deployment repository); else 404, or 403
    without the permission to.
    """
    current = context(request)
    target = repositories.deployment_target(current, request.path_params["repo"]) or ""
    path = request.path_params["path"].strip("/")
    if target:
        permissions.require(request, permissions.READ, target, path)
    node = Tree(current).get(target, path)
    if node is None:
        raise error(404, "Unable to find item")
    permissions.require(request, permission, target, path)
    return node


def item_uri(request: Request, node: Node, *, api: bool = True) -> str:
    """Address of an item, below /api/storage or to download."""
    base = context(request).base_url(request, SERVICE) + ("/api/storage" if api else "")
    path = "/".join(quote(segment) for segment in [node["repo"], *node["path"].split("/")])
    return f"{base}/{path}".rstrip("/")


def mime_type(path: str) -> str:
    return mimetypes.guess_type(path)[0] or "application/octet-stream"


def info(request: Request, node: Node) -> dict[str, Any]:
    """What is known of an item: server fact [repo-7]; sizes are strings."""
    shown: dict[str, Any] = {
        "repo": node["repo"],
        "path": "/" + node["path"],
        "created": iso(node["created"]),
        "createdBy": node["createdBy"],
        "lastModified": iso(node["modified"]),
        "modifiedBy": node["modifiedBy"],
        "lastUpdated": iso(node["modified"]),
        "uri": item_uri(request, node),
    }
    if not node["folder"]:
        checksums = {name: node[name] for name in ("sha1", "md5", "sha256")}
        shown.update(
            downloadUri=item_uri(request, node, api=False),
            mimeType=mime_type(node["path"]),
            size=str(node["size"]),
            checksums=checksums,
            originalChecksums=checksums,
        )
    return shown


def get_item(request: Request) -> Response:
    """GET /api/storage/{repo}/{path}: `?list`, `?properties`, or information (the last two real
    only).
    """
    if "list" in request.query_params:
        return listing(request)
    if not context(request).real(SERVICE):
        raise error(404, "Not Found")
    if "properties" in request.query_params:
        return _properties(request)
    return JSONResponse(_merged_info(request, any_item(request)))


def _properties(request: Request) -> Response:
    """GET ?properties[=a,b]: server fact [repo-18], 404 also where an item has none."""
    node = any_item(request)
    names = [name for name in request.query_params.get("properties", "").split(",") if name]
    shown = {n: values for n, values in node["properties"].items() if not names or n in names}
    if not shown:
        raise error(404, "No properties could be found.")
    return JSONResponse({"properties": shown, "uri": item_uri(request, node)})


def _merged_info(request: Request, node: Node) -> dict[str, Any]:
    """Information with the children of a folder; a virtual repository merges its members and shows
    its own key.
    """
    current = context(request)
    repo = request.path_params["repo"]
    found = repositories.find(current, repo)
    if found is not None and found["type"] == "VIRTUAL":
        node = {**node, "repo": repo}
    shown = info(request, node)
    if node["folder"]:
        children = {
            child["path"].rpartition("/")[2]: child["folder"]
            for member in reversed(permissions.readable(request, repo))
            for child in Tree(current).children(member, node["path"])
        }
        shown["children"] = [
            {"uri": "/" + name, "folder": folder} for name, folder in sorted(children.items())
        ]
    return shown


def listing(request: Request) -> Response:
    """GET /api/storage/{repo}/{folder}?list [W2.1, W4.1, repo-6].

    Flat and files only unless `deep` and `listFolders` ask for more; `depth` limits `deep`.
    """
    current = context(request)
    folder = any_item(request)
    if not folder["folder"]:
        raise error(
            400, f"Expected a folder but found a file, at: {folder['repo']}:{folder['path']}"
        )
    depth = flag(request, "depth") if flag(request, "deep") else 1
    folders, times = flag(request, "listFolders"), flag(request, "mdTimestamps")
    start = len(folder["path"]) + 1 if folder["path"] else 0
    entries: dict[str, dict[str, Any]] = {}
    if flag(request, "includeRootPath"):
        entries["/"] = _entry(folder, "/", current.real(SERVICE), times)
    for member in permissions.readable(request, request.path_params["repo"]):
        for node in Tree(current).below(member, folder["path"]):
            relative = node["path"][start:]
            too_deep = depth > 0 and relative.count("/") >= depth
            if not too_deep and (folders or not node["folder"]):
                uri = "/" + relative
                entries.setdefault(uri, _entry(node, uri, current.real(SERVICE), times))
    shown: dict[str, Any] = {"files": list(entries.values())}
    if current.real(SERVICE):
        shown = {"uri": item_uri(request, folder), "created": iso(current.now_ms()), **shown}
    return JSONResponse(shown)


def _entry(node: Node, uri: str, real: bool, times: int) -> dict[str, Any]:
    if not real:
        return {"uri": uri}
    entry: dict[str, Any] = {
        "uri": uri,
        "size": -1 if node["folder"] else node["size"],
        "lastModified": iso(node["modified"]),
        "folder": node["folder"],
    }
    if not node["folder"]:
        entry.update(sha1=node["sha1"], sha2=node["sha256"])
    if times and node["propertiesModified"] is not None:
        entry["mdTimestamps"] = {"properties": iso(node["propertiesModified"])}
    return entry
