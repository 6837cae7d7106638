# SPDX-License-Identifier: GPL-3.0-or-later
"""What is stored: information on an item, listing of a folder, storage summary."""

from __future__ import annotations

import mimetypes
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response

from sandbox.context import context
from sandbox.repo import repositories
from sandbox.repo.answers import SERVICE, empty, error, flag, http_time, iso, quote, require_admin
from sandbox.repo.tree import Tree

if TYPE_CHECKING:
    from starlette.requests import Request

    from sandbox.repo.tree import Node


def any_item(request: Request) -> Node:
    """The item of the path, of a virtual repository the first member's that has it; else 404."""
    current = context(request)
    repo, path = request.path_params["repo"], request.path_params["path"].strip("/")
    for member in repositories.members(current, repo):
        node = Tree(current).get(member, path)
        if node is not None:
            return node
    found = repositories.find(current, repo)
    if current.real(SERVICE) and found is not None and found["type"] == "VIRTUAL":
        # server fact [repo-7]: a virtual repository answers without a body
        raise empty(404)
    raise error(404, "Unable to find item")


def local_item(request: Request) -> Node:
    """The item to change (of a virtual repository: in its deployment repository); else 404."""
    current = context(request)
    target = repositories.deployment_target(current, request.path_params["repo"])
    node = Tree(current).get(target or "", request.path_params["path"].strip("/"))
    if node is None:
        raise error(404, "Unable to find item")
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
            for member in reversed(repositories.members(current, repo))
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
    for member in repositories.members(current, request.path_params["repo"]):
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


def file_headers(node: Node, *, checksums: bool) -> dict[str, str]:
    """Headers of GET and HEAD on a file: server fact [repo-20]."""
    headers = {
        "Content-Length": str(node["size"]),
        "Content-Type": mime_type(node["path"]),
        "Last-Modified": http_time(node["modified"]),
    }
    if checksums:
        headers.update(
            {
                "X-Checksum-Sha1": node["sha1"],
                "X-Checksum-Sha256": node["sha256"],
                "X-Checksum-Md5": node["md5"],
                "ETag": node["sha1"],
                "X-Artifactory-Filename": quote(node["path"].rpartition("/")[2]),
            }
        )
    return headers


def summary(request: Request) -> Response:
    """GET /api/storageinfo [W2.1, repo-10]: administrators only."""
    current = context(request)
    if current.real(SERVICE):
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
    """`1,234 bytes`, `3.48 GB`"""
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
