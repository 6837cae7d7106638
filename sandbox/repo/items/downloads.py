# SPDX-License-Identifier: GPL-3.0-or-later
"""Download files: completely, in ranges, from inside an archive, or from an object store."""

from __future__ import annotations

import html
import re
import urllib.parse
import zipfile
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from sandbox import object_store
from sandbox.context import context
from sandbox.repo import permissions, repositories
from sandbox.repo.items import storage
from sandbox.repo.items.tree import Tree
from sandbox.repo.responses import SERVICE, error, http_time, quote, raw_tail
from sandbox.service import ErrorResponse

if TYPE_CHECKING:
    from starlette.requests import Request

    from sandbox.repo.items.tree import Node

_SMALL = 1024 * 1024
_RANGES = re.compile(r"bytes=\s*(\d+-\d*|-\d+)(\s*,\s*(\d+-\d*|-\d+))*\s*\Z")


def get(request: Request) -> Response:
    """Handle GET and HEAD /{repo}/{path} [repo-20, repo-26]: return a file.

    The written interface does not define HEAD. In that flavour, the response has checksums only if
    the setting `head_checksums` is true.
    """
    current = context(request)
    inside = _inside_archive(request)
    if inside is not None:
        return inside
    node = _item(request)
    if node["folder"]:
        return _index(request, node)
    checksums = current.real(SERVICE) or current.settings(SERVICE)["head_checksums"]
    headers = file_headers(node, checksums=checksums)
    if checksums and _unchanged(request, node):
        return Response(status_code=304, headers=headers)
    if request.method == "HEAD":
        return Response(headers=headers)
    redirect_from = current.settings(SERVICE)["redirect_bytes"]
    if redirect_from is not None and node["size"] >= redirect_from:
        return _redirect(request, node, headers)
    return _content(request, node, headers)


def _item(request: Request) -> Node:
    """Return the item at the path; raise a 404 if it lacks a property given after `;` [repo-26]."""
    current = context(request)
    raw, *matrix = raw_tail(request, "/").split(";")
    key, _slash, path = urllib.parse.unquote(raw).partition("/")
    request.path_params.update(repo=key, path=path)
    if repositories.find(current, key) is None:
        raise error(404, f"Repository '{key}' doesn't exist")
    node = storage.any_item(request)
    for pair in matrix:
        name, _equals, value = urllib.parse.unquote(pair).partition("=")
        if value not in node["properties"].get(name, []):
            raise error(404, "File not found.")
    return node


def _inside_archive(request: Request) -> Response | None:
    """Return the file in an archive for a path such as `a.zip!/b.txt` [repo-26], otherwise None."""
    key, _slash, path = urllib.parse.unquote(raw_tail(request, "/")).partition("/")
    archive, separator, name = path.partition("!/")
    if not separator:
        return None
    request.path_params.update(repo=key, path=archive)
    node, blobs = storage.any_item(request), context(request).store.blobs
    try:
        with zipfile.ZipFile(blobs.path(node["sha256"])) as found:
            return Response(found.read(name), media_type=storage.mime_type(name))
    except (KeyError, zipfile.BadZipFile):
        raise error(404, "File not found.") from None


def _index(request: Request, node: Node) -> Response:
    """Return the HTML index of a folder. Raise a 404 if `folder_index` disables it [repo-26]."""
    current = context(request)
    if not current.settings(SERVICE)["folder_index"]:
        raise error(404, "File not found.")
    names = [
        child["path"].rpartition("/")[2]
        for child in Tree(current).children(node["repo"], node["path"])
    ]
    links = "".join(f'<a href="{html.escape(name)}">{html.escape(name)}</a><br>' for name in names)
    return HTMLResponse(f"<html><body><h1>Index</h1>{links}</body></html>")


def file_headers(node: Node, *, checksums: bool) -> dict[str, str]:
    """Return the headers of a response to GET or HEAD for a file [repo-20, repo-26]."""
    headers = {
        "Content-Length": str(node["size"]),
        "Content-Type": storage.mime_type(node["path"]),
        "Last-Modified": http_time(node["modified"]),
    }
    if checksums:
        name = quote(node["path"].rpartition("/")[2])
        headers.update(
            {
                "X-Checksum-Sha1": node["sha1"],
                "X-Checksum-Sha256": node["sha256"],
                "X-Checksum-Md5": node["md5"],
                "ETag": node["sha1"],
                "Accept-Ranges": "bytes",
                "X-Artifactory-Filename": name,
                "Content-Disposition": f"attachment; filename=\"{name}\"; filename*=UTF-8''{name}",
            }
        )
    return headers


def _unchanged(request: Request, node: Node) -> bool:
    """Return whether the headers of a conditional request match the file [repo-26]."""
    known = request.headers.get("if-none-match")
    if known is not None:
        tags = {tag.strip().removeprefix("W/").strip('"') for tag in known.split(",")}
        return bool(tags & {"*", node["sha1"]})
    since = request.headers.get("if-modified-since")
    try:
        moment = None if since is None else parsedate_to_datetime(since)
    except ValueError:
        return False
    return moment is not None and node["modified"] // 1000 <= moment.timestamp()


def _content(request: Request, node: Node, headers: dict[str, str]) -> Response:
    blobs, ranges = context(request).store.blobs, request.headers.get("range")
    if ranges is not None and _RANGES.match(ranges) is None:
        # server fact [repo-26]: a range that the server cannot return is a 416
        raise ErrorResponse(
            Response(status_code=416, headers={"Content-Range": f"*/{node['size']}"})
        )
    if node["size"] > _SMALL or ranges is not None:
        return FileResponse(blobs.path(node["sha256"]), headers=headers)
    return Response(blobs.read(node["sha256"]), headers=headers)


def _redirect(request: Request, node: Node, headers: dict[str, str]) -> Response:
    """Return a redirect to a signed URL of an object store.

    Server fact [repo-26]: only the redirect has the headers with digests, not the object store.
    """
    address = object_store.address(request, SERVICE, node["sha256"])
    kept = {name: value for name, value in headers.items() if name.startswith("X-")}
    return RedirectResponse(address, 302, kept)


def readable_repos(request: Request, wanted: str | None) -> list[str]:
    """Return the keys of local repositories that the user may read.

    :param wanted: comma-separated repository keys; None or "" means all repositories
    """
    current = context(request)
    names = [name.strip() for name in (wanted or "").split(",") if name.strip()]
    keys = [
        key
        for key, doc in current.store.items(repositories.KIND)
        if doc["type"] == "LOCAL" and permissions.may(request, permissions.READ, key)
    ]
    chosen = {member for name in names for member in repositories.members(current, name)}
    return [key for key in keys if not names or key in chosen]
