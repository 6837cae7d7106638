# SPDX-License-Identifier: GPL-3.0-or-later
"""Upload and download blobs of container images.

The requests follow the OCI distribution specification. A blob stays in `{image}/_uploads/` until
the upload of a manifest moves it to the folder of its tag.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from starlette.responses import FileResponse, JSONResponse, Response

from sandbox.context import Context, context
from sandbox.repo import permissions, repositories
from sandbox.repo.items.tree import CONTENT, Tree
from sandbox.repo.responses import SERVICE, VERSION_HEADER, empty, error, registry_error, user_name
from sandbox.store import Blob

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request

    from sandbox.repo.items.tree import Node

_UPLOADS = "repo.upload"


def ping(_request: Request) -> Response:
    """Handle GET /v2/ and {repo}/v2/: confirm that the API exists and the login is valid."""
    return JSONResponse({}, headers=VERSION_HEADER)


def require_docker(request: Request, repo: str) -> None:
    """Raise an error if `repo` is not a container repository that the user may read."""
    found = repositories.find(context(request), repo)
    if found is None or found["packageType"] != "docker":
        raise empty(404)
    permissions.readable(request, repo)


def deployment_target(request: Request, repo: str) -> str:
    """Return the repository that stores pushed images. Raise a 403 if the user may not push."""
    target = repositories.deployment_target(context(request), repo)
    if target is None:
        raise error(403, f"'{repo}' does not accept deployments")
    permissions.require(request, permissions.DEPLOY, target)
    return target


def _name(digest: str) -> str:
    return digest.replace(":", "__")


def find(current: Context, repo: str, image: str, digest: str) -> Node | None:
    """Return a blob of an image in any of its folders, or None."""
    name = _name(digest)
    nodes = Tree(current).below(repo, image)
    return next((node for node in nodes if node["path"].rpartition("/")[2] == name), None)


def settle(request: Request, node: Node, folder: str) -> None:
    """Move an uploaded blob to the folder of the tag whose manifest lists it."""
    path = f"{folder}/{node['path'].rpartition('/')[2]}"
    tree = Tree(context(request))
    if node["path"] != path or tree.get(node["repo"], path) is None:
        tree.copy(node, node["repo"], path, user_name(request))
    if "/_uploads/" in node["path"]:
        tree.remove(node["repo"], node["path"])


def get(request: Request) -> Response:
    """Handle GET and HEAD .../v2/{image}/blobs/{digest}: return a blob."""
    current, repo = context(request), request.path_params["repo"]
    require_docker(request, repo)
    digest = request.path_params["digest"]
    for member in repositories.members(current, repo):
        node = find(current, member, request.path_params["image"], digest)
        if node is not None:
            headers = {"Docker-Content-Digest": digest, **VERSION_HEADER}
            path = current.store.blobs.path(node["sha256"])
            return FileResponse(path, headers=headers, media_type="application/octet-stream")
    raise registry_error(404, "BLOB_UNKNOWN", "blob unknown to registry", {"digest": digest})


async def start(request: Request) -> Response:
    """Handle POST .../v2/{image}/blobs/uploads/: start an upload (202).

    The status is 201 if the request mounts a blob of another image, or contains the whole blob.
    """
    current, query = context(request), request.query_params
    repo, image = request.path_params["repo"], request.path_params["image"]
    require_docker(request, repo)
    target = deployment_target(request, repo)
    mounted = query.get("mount")
    if mounted and query.get("from"):
        node = find(current, target, query["from"].removeprefix(f"{repo}/"), mounted)
        if node is not None and permissions.may(request, permissions.READ, target):
            Tree(current).copy(
                node, target, f"{image}/_uploads/{_name(mounted)}", user_name(request)
            )
            return _created(request, mounted)
    upload = {"repo": target, "image": image, "chunks": [], "size": 0}
    key = secrets.token_hex(16)
    current.store.put(_UPLOADS, key, upload)
    if query.get("digest"):
        return await _finish(request, key, upload)
    return _accepted(request, key, upload)


async def patch(request: Request) -> Response:
    """Handle PATCH .../blobs/uploads/{upload}: receive the next chunk."""
    key, upload = _upload(request)
    await _append_chunk(request, upload)
    context(request).store.put(_UPLOADS, key, upload)
    return _accepted(request, key, upload)


async def finish(request: Request) -> Response:
    """Handle PUT .../blobs/uploads/{upload}?digest=: receive the last chunk and end the upload."""
    key, upload = _upload(request)
    return await _finish(request, key, upload)


def progress(request: Request) -> Response:
    """Handle GET .../blobs/uploads/{upload}: return the progress of an upload."""
    key, upload = _upload(request)
    response = _accepted(request, key, upload)
    response.status_code = 204
    return response


def cancel(request: Request) -> Response:
    """Handle DELETE .../blobs/uploads/{upload}: cancel an upload."""
    key, _found = _upload(request)
    context(request).store.delete(_UPLOADS, key)
    return Response(status_code=204)


def _upload(request: Request) -> tuple[str, dict[str, Any]]:
    target = deployment_target(request, request.path_params["repo"])
    key = request.path_params["upload"]
    found = context(request).store.get(_UPLOADS, key)
    if found is None or (found["repo"], found["image"]) != (target, request.path_params["image"]):
        raise registry_error(404, "BLOB_UPLOAD_UNKNOWN", "blob upload unknown to registry", {})
    return key, found


async def _append_chunk(request: Request, upload: dict[str, Any]) -> None:
    """Append a chunk of an upload. Its Content-Range, if any, must start at the current offset."""
    begin = request.headers.get("content-range", "").partition("-")[0]
    if begin and begin != str(upload["size"]):
        raise registry_error(416, "BLOB_UPLOAD_INVALID", "blob upload invalid", {})
    blob = await context(request).store.blobs.put_stream(request.stream())
    if blob.size:
        upload["chunks"].append(blob.sha256)
        upload["size"] += blob.size


async def _finish(request: Request, key: str, upload: dict[str, Any]) -> Response:
    current = context(request)
    await _append_chunk(request, upload)
    blob = await _joined(current, upload["chunks"])
    digest = request.query_params.get("digest", "")
    if digest != f"sha256:{blob.sha256}":
        raise registry_error(
            400, "DIGEST_INVALID", "provided digest did not match uploaded content", {}
        )
    path = f"{upload['image']}/_uploads/{_name(digest)}"
    Tree(current).put_file(upload["repo"], path, blob, user_name(request))
    current.store.delete(_UPLOADS, key)
    return _created(request, digest)


async def _joined(current: Context, chunks: list[str]) -> Blob:
    """Return a blob with the content of all chunks.

    :param chunks: SHA-256 digests of the chunks
    """
    stored = current.store.blobs

    async def parts() -> AsyncIterator[bytes]:
        for sha256 in chunks:
            with open(stored.path(sha256), "rb") as file:
                while chunk := file.read(1024 * 1024):
                    yield chunk

    known = current.store.get(CONTENT, chunks[0]) if len(chunks) == 1 else None
    if known is not None:
        return Blob(chunks[0], known["sha1"], known["md5"], known["size"])
    return await stored.put_stream(parts())


def _base(request: Request) -> str:
    """Return the base URL for the blobs of the image in a request."""
    repo, image = request.path_params["repo"], request.path_params["image"]
    base = context(request).base_url(request, SERVICE)
    return f"{base}/api/docker/{repo}/v2/{image}/blobs"


def _created(request: Request, digest: str) -> Response:
    headers = {"Location": f"{_base(request)}/{digest}", "Docker-Content-Digest": digest}
    return Response(status_code=201, headers={**headers, **VERSION_HEADER})


def _accepted(request: Request, key: str, upload: dict[str, Any]) -> Response:
    headers = {
        "Location": f"{_base(request)}/uploads/{key}",
        "Docker-Upload-UUID": key,
        "Range": f"0-{max(upload['size'] - 1, 0)}",
    }
    return Response(status_code=202, headers={**headers, **VERSION_HEADER})
