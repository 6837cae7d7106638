# SPDX-License-Identifier: GPL-3.0-or-later
"""Handle requests for item information, properties and folder listings."""

from __future__ import annotations

import mimetypes
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response

from sandbox.context import context
from sandbox.repo import permissions, repositories
from sandbox.repo.items import snapshots
from sandbox.repo.items.tree import Tree
from sandbox.repo.responses import SERVICE, empty, error, flag, iso, quote

if TYPE_CHECKING:
    from starlette.requests import Request

    from sandbox.repo.items.tree import Node


def any_item(request: Request) -> Node:
    """Return the item at the path of a request. Raise a 404 if it does not exist.

    In a virtual repository, return the item of the first readable member that has it.
    """
    current = context(request)
    repo, path = request.path_params["repo"], request.path_params["path"].strip("/")
    for member in permissions.readable(request, repo):
        node = Tree(current).get(member, snapshots.newest(current, member, path))
        if node is not None:
            return node
    found = repositories.find(current, repo)
    if found is not None and found["type"] == "VIRTUAL":
        # server fact [repo-7]: the 404 of a virtual repository has no body
        raise empty(404)
    raise error(404, "Unable to find item")


def local_item(request: Request, permission: str) -> Node:
    """Return the item to change. Raise a 404 if it does not exist, a 403 without the permission.

    In a virtual repository, return the item of its deployment repository.
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
    """Return the URL of an item.

    :param api: whether to return the URL below /api/storage, or else the download URL
    """
    base = context(request).base_url(request, SERVICE) + ("/api/storage" if api else "")
    path = "/".join(quote(segment) for segment in [node["repo"], *node["path"].split("/")])
    return f"{base}/{path}".rstrip("/")


def mime_type(path: str) -> str:
    return mimetypes.guess_type(path)[0] or "application/octet-stream"


def info(request: Request, node: Node) -> dict[str, Any]:
    """Return the item information, in which sizes are strings [repo-7]."""
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
    """Handle GET /api/storage/{repo}/{path}: return item information.

    With `?list` return a folder listing, with `?properties` the properties. The written flavour
    only supports the listing.
    """
    if "list" in request.query_params:
        return listing(request)
    if not context(request).real(SERVICE):
        raise error(404, "Not Found")
    if "properties" in request.query_params:
        return _properties(request)
    return JSONResponse(_merged_info(request, any_item(request)))


def _properties(request: Request) -> Response:
    """Return all properties, or those in `?properties=a,b` [repo-18]; 404 if none are set."""
    node = any_item(request)
    names = [name for name in request.query_params.get("properties", "").split(",") if name]
    shown = {n: values for n, values in node["properties"].items() if not names or n in names}
    if not shown:
        raise error(404, "No properties could be found.")
    return JSONResponse({"properties": shown, "uri": item_uri(request, node)})


def _merged_info(request: Request, node: Node) -> dict[str, Any]:
    """Return item information, with the children of a folder.

    For a virtual repository, the children of all members are merged, and `repo` is its own key.
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
    """Handle GET /api/storage/{repo}/{folder}?list [W2.1, W4.1, repo-6]: list a folder.

    `deep` includes subfolders up to the level `depth`, `listFolders` includes folders.
    """
    current, real = context(request), context(request).real(SERVICE)
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
        entries["/"] = _entry(folder, "/", real, times)
    for member in permissions.readable(request, request.path_params["repo"]):
        for node in Tree(current).below(member, folder["path"]):
            relative = node["path"][start:]
            too_deep = depth > 0 and relative.count("/") >= depth
            if not too_deep and (folders or not node["folder"]):
                uri = "/" + relative
                entries.setdefault(uri, _entry(node, uri, real, times))
    shown: dict[str, Any] = {"files": list(entries.values())}
    if real:
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
