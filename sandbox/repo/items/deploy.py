# SPDX-License-Identifier: GPL-3.0-or-later
"""Deploy and delete items by path."""

from __future__ import annotations

import urllib.parse
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, Response

from sandbox.context import context
from sandbox.repo import permissions, repositories
from sandbox.repo.items import archives, snapshots, storage, trash
from sandbox.repo.items.properties import check_names
from sandbox.repo.items.tree import BY_SHA1, CONTENT, Node, Tree
from sandbox.repo.responses import SERVICE, empty, error, raw_tail, user_name
from sandbox.store import Blob

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from starlette.requests import Request


class _Target:
    """Target of a deployment: local repository, path, and the properties after `;` in the path.

    `folder` is true if the path ends with a slash.
    """

    def __init__(self, request: Request) -> None:
        current = context(request)
        raw, *matrix = raw_tail(request, "/").split(";")
        key, _slash, path = urllib.parse.unquote(raw).partition("/")
        found = repositories.find(current, key)
        if found is None or found["type"] == "REMOTE":
            # server fact [repo-19]: remote repositories are reported as missing, too
            raise error(404, f"Could not find a local repository named {key} to deploy to.")
        target = repositories.deployment_target(current, key)
        if target is None:
            # server fact [repo-19]: a virtual repository without defaultDeploymentRepo returns 405
            raise error(405, f"No default deployment repository for '{key}'", {"Allow": "GET"})
        self.repo = target
        self.path = path.strip("/")
        self.folder = path.endswith("/")
        self.properties: dict[str, list[str]] = {}
        for pair in matrix:
            name, _equals, value = urllib.parse.unquote(pair).partition("=")
            self.properties.setdefault(name, []).extend(value.split(","))
        check_names(self.properties)

    def __str__(self) -> str:
        return f"{self.repo}:{self.path}"


async def put(request: Request) -> Response:
    """Handle PUT /{repo}/{path} [W4.1]: deploy a file, or an archive that the server expands.

    In the written flavour, an archive is expanded if the path ends with a slash. Server facts
    [repo-19, repo-20, repo-21]: a real server creates a folder in that case, and expands an archive
    if the path ends with an archive suffix. It also checks checksum headers, and can deploy known
    content by checksum.
    """
    target = _Target(request)
    permissions.require(request, permissions.DEPLOY, target.repo, target.path)
    if not target.path and not target.folder:
        raise error(400, "Bad Request")
    if not repositories.accepts(context(request), target.repo, target.path):
        # server fact [repo-19]: a path that the patterns exclude is a 409
        message = f"The repository '{target.repo}' rejected the artifact '{target}'"
        raise error(409, f"{message} due to its include/exclude patterns")
    real = context(request).real(SERVICE)
    if target.folder:
        return await (_put_folder(request, target) if real else _put_archive(request, target))
    if not real:
        await _store(request, target)
        return Response(status_code=201)
    return await _put_real(request, target)


async def _put_real(request: Request, target: _Target) -> Response:
    headers = request.headers
    if _explode_header(request) and target.path.lower().endswith(archives.SUFFIXES):
        return await _put_archive(request, target)
    if headers.get("x-checksum-deploy", "").lower() == "true":
        node = _put_known(request, target)
    else:
        node = await _store(request, target)
    location = storage.item_uri(request, node, api=False)
    return JSONResponse(storage.info(request, node), 201, {"Location": location})


def _explode_header(request: Request) -> str | None:
    """Return the name of the header that asks to expand an archive, or None without one."""
    for name in ("x-explode-archive-atomic", "x-explode-archive"):
        if request.headers.get(name, "").lower() == "true":
            return name
    return None


async def _chunks(request: Request) -> AsyncIterator[bytes]:
    async for chunk in request.stream():
        yield chunk


async def _store(request: Request, target: _Target) -> Node:
    current = context(request)
    target.path = snapshots.stored_path(current, target.repo, target.path)
    _refuse_overwrite(request, target, None)
    blob = await current.store.blobs.put_stream(_chunks(request))
    if current.real(SERVICE):
        _check_digests(request, target, blob)
    properties = _allowed_properties(request, target)
    return Tree(current).put_file(target.repo, target.path, blob, user_name(request), properties)


def _allowed_properties(request: Request, target: _Target) -> dict[str, list[str]]:
    """Return the properties of the request, or none if the user may not set properties.

    Server fact [repo-19]: the server then drops them without an error.
    """
    allowed = permissions.may(request, permissions.ANNOTATE, target.repo)
    return target.properties if allowed else {}


def _refuse_overwrite(
    request: Request, target: _Target, sha256: str | None, path: str | None = None
) -> None:
    """Raise a 403 if the user may not overwrite a file, which requires DELETE [repo-19].

    The same content may be deployed again without that permission.

    :param sha256: digest of the new content; None means that of the request headers
    :param path: path of the file; None means that of the target
    """
    path = target.path if path is None else path
    node = Tree(context(request)).get(target.repo, path)
    if node is None or node["folder"]:
        return
    if permissions.may(request, permissions.DELETE, target.repo):
        return
    same = sha256 or request.headers.get("x-checksum-sha256")
    if same != node["sha256"] and request.headers.get("x-checksum-sha1") != node["sha1"]:
        raise error(
            403,
            f"Not enough permissions to delete/overwrite artifact '{target.repo}:{path}'"
            f" (user: '{user_name(request)}' needs DELETE permission)",
        )


def _check_digests(request: Request, target: _Target, blob: Blob) -> None:
    """Raise a 409 if a checksum header does not match the content [repo-19]."""
    stored = {"sha1": blob.sha1, "sha256": blob.sha256, "md5": blob.md5}
    for name, digest in stored.items():
        sent = request.headers.get(f"x-checksum-{name}")
        if sent is not None and sent.lower() != digest:
            raise error(
                409,
                f"Checksum policy 'CLIENT_CHECKSUMS' rejected the artifact '{target}'."
                f" Checksum info: {name} original='{sent}' actual='{digest}'",
            )


def _put_known(request: Request, target: _Target) -> Node:
    """Deploy stored content by checksum. Raise a 404 if the server does not have it [repo-20]."""
    current = context(request)
    sha256 = request.headers.get("x-checksum-sha256") or request.headers.get("x-checksum", "")
    if len(sha256) != 64:
        sha1 = request.headers.get("x-checksum-sha1") or sha256
        sha256 = (current.store.get(BY_SHA1, sha1.lower()) or {}).get("sha256", "")
    known = current.store.get(CONTENT, sha256.lower())
    if known is None:
        raise error(404, "Checksum deploy failed. No existing file with the given checksum")
    target.path = snapshots.stored_path(current, target.repo, target.path)
    _refuse_overwrite(request, target, sha256)
    blob = Blob(sha256.lower(), known["sha1"], known["md5"], known["size"])
    return Tree(current).put_file(
        target.repo, target.path, blob, user_name(request), _allowed_properties(request, target)
    )


async def _put_folder(request: Request, target: _Target) -> Response:
    async for _chunk in request.stream():
        pass
    node = Tree(context(request)).make_folder(target.repo, target.path, user_name(request))
    return JSONResponse(storage.info(request, node), 201)


async def _put_archive(request: Request, target: _Target) -> Response:
    """Expand an archive: in the written flavour below its path, otherwise in its parent folder."""
    current = context(request)
    real, header = current.real(SERVICE), _explode_header(request)
    if header is None or (not real and header != "x-explode-archive-atomic"):
        raise error(
            400, "Only an archive with X-Explode-Archive-Atomic: true goes to a path with a slash"
        )
    folder = target.path.rpartition("/")[0] if real else target.path
    blob = await current.store.blobs.put_stream(_chunks(request))
    if current.settings(SERVICE)["drop_explode"]:
        Tree(current).make_folder(target.repo, folder, user_name(request))
        return Response(status_code=200, media_type="text/plain")
    found: Iterable[tuple[str, Blob]] = (
        (name, current.store.blobs.put_file(content))
        for name, content in archives.entries(current.store.blobs.path(blob.sha256), tar=real)
    )
    properties = _allowed_properties(request, target)
    try:
        if header == "x-explode-archive-atomic":
            # read all files before storing the first one, because the archive may be broken
            found = list(found)
        for name, stored in found:
            path = snapshots.stored_path(current, target.repo, f"{folder}/{name}".lstrip("/"))
            _refuse_overwrite(request, target, stored.sha256, path)
            Tree(current).put_file(target.repo, path, stored, user_name(request), properties)
    except archives.BrokenArchive as broken:
        raise error(400, f"Could not expand the archive: {broken}") from broken
    return Response(status_code=200, media_type="text/plain")


def delete(request: Request) -> Response:
    """Handle DELETE /{repo}/{path} [W4.1, repo-22]: move an item and its content to the trash."""
    current = context(request)
    key, path = request.path_params["repo"], request.path_params["path"].strip("/")
    if repositories.find(current, key) is None:
        raise empty(404)
    repo = repositories.deployment_target(current, key) or key
    permissions.require(request, permissions.READ, repo, path)
    if Tree(current).get(repo, path) is None:
        raise error(404, f"Could not locate artifact '{key}:{path}' (Nothing to delete).")
    permissions.require(request, permissions.DELETE, repo, path)
    with current.store.transaction():
        trash.keep(current, Tree(current).remove(repo, path), user_name(request))
    return Response(status_code=204)
