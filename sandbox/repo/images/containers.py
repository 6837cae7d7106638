# SPDX-License-Identifier: GPL-3.0-or-later
"""List container images and tags, and read and store manifests.

A tag is stored as `{image}/{tag}/manifest.json` in a docker repository [repo-24].
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response

from sandbox.context import Context, context
from sandbox.repo import repositories
from sandbox.repo.images import blobs
from sandbox.repo.items.tree import Tree
from sandbox.repo.responses import (
    SERVICE,
    VERSION_HEADER,
    error,
    quote,
    registry_error,
    user_name,
)
from sandbox.service import json_body

if TYPE_CHECKING:
    from starlette.requests import Request

    from sandbox.repo.items.tree import Node

MANIFEST, LIST_MANIFEST = "manifest.json", "list.manifest.json"
_DEFAULT_TYPE = "application/vnd.docker.distribution.manifest.v2+json"
_LISTS = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_OLD_TYPE = "application/vnd.docker.distribution.manifest.v1+prettyjws"


def push(
    current: Context,
    repo: str,
    image: str,
    tag: str,
    content: bytes,
    *,
    user: str = "deployer",
    created: int | None = None,
    properties: dict[str, list[str]] | None = None,
) -> str:
    """Store a manifest under a tag and return its digest, `sha256:...`.

    An older manifest of the tag is removed.
    """
    blob = current.store.blobs.put(content)
    tree = Tree(current)
    tree.remove(repo, f"{image}/{tag}")
    name = LIST_MANIFEST if media_type(content) in _LISTS else MANIFEST
    properties = {
        **(properties or {}),
        "docker.repoName": [image],
        "docker.manifest": [tag],
        "docker.manifest.digest": [f"sha256:{blob.sha256}"],
    }
    tree.put_file(repo, f"{image}/{tag}/{name}", blob, user, properties, created=created)
    return f"sha256:{blob.sha256}"


def media_type(content: bytes) -> str:
    data = json_body(content)
    found = data.get("mediaType") if isinstance(data, dict) else None
    return found if isinstance(found, str) else _DEFAULT_TYPE


def is_digest(reference: str) -> bool:
    """Return whether a reference is a digest, not a tag. Manifests of an image index have one."""
    return reference.startswith("sha256:")


def manifests(current: Context, repo: str) -> list[tuple[str, str, Node]]:
    """Return image, tag (or digest) and manifest file of all manifests in a repository."""
    found = []
    for member in repositories.members(current, repo):
        for node in Tree(current).below(member, ""):
            segments = node["path"].split("/")
            if segments[-1] in (MANIFEST, LIST_MANIFEST) and len(segments) > 2:
                found.append(("/".join(segments[:-2]), segments[-2], node))
    return found


def find(current: Context, repo: str, image: str, digest: str) -> Node | None:
    """Return the file of the manifest with a digest, also in the folder of a tag [repo-34]."""
    files = (
        node
        for name, _tag, node in manifests(current, repo)
        if name == image and f"sha256:{node['sha256']}" == digest
    )
    return next(files, None)


def tags(request: Request) -> Response:
    """Handle GET .../{repo}/v2/{image}/tags/list [W4.1, repo-23]: list the tags of an image."""
    current = context(request)
    repo, image = request.path_params["repo"], request.path_params["image"]
    blobs.require_docker(request, repo)
    found = sorted(
        {
            tag
            for name, tag, _node in manifests(current, repo)
            if name == image and not is_digest(tag)
        }
    )
    if not found:
        raise registry_error(
            404, "NAME_UNKNOWN", "Repository name not known to registry.", {"name": image}
        )
    page, headers = _page(request, found, f"/v2/{image}/tags/list")
    body = {"name": image, "tags": page} if current.real(SERVICE) else {"tags": page}
    return JSONResponse(body, headers=headers)


def catalog(request: Request) -> Response:
    """Handle GET .../{repo}/v2/_catalog [W4.1, repo-23]: list the images of a repository."""
    current, repo = context(request), request.path_params["repo"]
    blobs.require_docker(request, repo)
    found = sorted({name for name, _tag, _node in manifests(current, repo)})
    page, headers = _page(request, found, "/v2/_catalog")
    return JSONResponse({"repositories": page}, headers=headers)


def _page(request: Request, found: list[str], path: str) -> tuple[list[str], dict[str, str]]:
    """Return a page of names, and its headers with a link to the next page [repo-23].

    The query parameters are `n`, the page size, and `last`, which is the last name or an offset.
    The setting `link_flavour` selects the format of the link:
    - `relative`: the full path and the last name
    - `without_repo`: a path without the repository key, and an offset
    - `none`: no link
    - `auto`: `relative` in the real flavour, otherwise `none`
    """
    try:
        size = int(request.query_params.get("n") or 0)
    except ValueError:
        raise error(400, "Bad Request") from None
    last = request.query_params.get("last") or ""
    start = 0
    if last in found:
        start = found.index(last) + 1
    elif last.isdigit():
        start = int(last)
    elif last:
        start = len([name for name in found if name <= last])
    if size <= 0:
        return found[start:], dict(VERSION_HEADER)
    page, headers = found[start : start + size], dict(VERSION_HEADER)
    if start + size < len(found):
        headers.update(_link(request, path, page[-1], start + size, size))
    return page, headers


def _link(request: Request, path: str, name: str, offset: int, size: int) -> dict[str, str]:
    current = context(request)
    flavour = current.settings(SERVICE)["link_flavour"]
    if flavour == "auto":
        flavour = "relative" if current.real(SERVICE) else "none"
    if flavour == "none":
        return {}
    if flavour == "without_repo":
        return {"Link": f'<{path}?last={offset}&n={size}>; rel="next"'}
    whole = request.scope["path"]
    return {"Link": f'<{whole}?last={quote(name)}&n={size}>; rel="next"'}


def manifest(request: Request) -> Response:
    """Handle GET and HEAD .../v2/{image}/manifests/{reference} [repo-24]: return a manifest.

    If the client does not accept the type of the manifest, the server converts it to the old
    format, which has another digest.
    """
    current = context(request)
    repo, image = request.path_params["repo"], request.path_params["image"]
    reference = request.path_params["reference"]
    blobs.require_docker(request, repo)
    for name, tag, node in manifests(current, repo):
        if name == image and reference in (tag, f"sha256:{node['sha256']}"):
            content = current.store.blobs.read(node["sha256"])
            kind = media_type(content)
            if kind not in ", ".join(request.headers.getlist("accept")):
                content, kind = _converted(image, tag), _OLD_TYPE
            digest = current.store.blobs.put(content).sha256
            headers = {"Docker-Content-Digest": f"sha256:{digest}", **VERSION_HEADER}
            return Response(content, headers=headers, media_type=kind)
    raise registry_error(
        404,
        "MANIFEST_UNKNOWN",
        "The named manifest is not known to the registry.",
        {"manifest": reference},
    )


def _converted(image: str, tag: str) -> bytes:
    return json.dumps({"schemaVersion": 1, "name": image, "tag": tag, "fsLayers": []}).encode()


async def put_manifest(request: Request) -> Response:
    """Handle PUT .../v2/{image}/manifests/{tag}: store a manifest whose blobs are uploaded."""
    current = context(request)
    repo, image = request.path_params["repo"], request.path_params["image"]
    blobs.require_docker(request, repo)
    target = blobs.deployment_target(request, repo)
    tag, content = request.path_params["reference"], await request.body()
    children, layers = _references(content)
    missing = [digest for digest in children if find(current, target, image, digest) is None]
    parts = {digest: blobs.find(current, target, image, digest) for digest in layers}
    missing += [digest for digest, node in parts.items() if node is None]
    if missing:
        raise registry_error(404, "MANIFEST_BLOB_UNKNOWN", "blob unknown to registry", missing)
    digest = push(current, target, image, tag, content, user=user_name(request))
    for node in parts.values():
        if node is not None:
            blobs.settle(request, node, f"{image}/{tag}")
    headers = {"Docker-Content-Digest": digest, **VERSION_HEADER}
    subject = _subject(content)
    if subject is not None:
        headers["OCI-Subject"] = subject
    return Response(status_code=201, headers=headers)


def referrers(request: Request) -> Response:
    """Handle GET .../v2/{image}/referrers/{digest} [repo-34]: list the manifests with a subject."""
    current, repo = context(request), request.path_params["repo"]
    blobs.require_docker(request, repo)
    image, subject = request.path_params["image"], request.path_params["digest"]
    found: dict[str, dict[str, Any]] = {}
    for name, _tag, node in manifests(current, repo):
        content = current.store.blobs.read(node["sha256"])
        if name == image and _subject(content) == subject:
            digest, size = f"sha256:{node['sha256']}", len(content)
            found[digest] = {"mediaType": media_type(content), "digest": digest, "size": size}
    index = {"schemaVersion": 2, "mediaType": _LISTS[0], "manifests": list(found.values())}
    return JSONResponse(index, headers=VERSION_HEADER, media_type=_LISTS[0])


def _subject(content: bytes) -> str | None:
    data = json_body(content)
    subject = data.get("subject") if isinstance(data, dict) else None
    return subject["digest"] if isinstance(subject, dict) else None


def _references(content: bytes) -> tuple[list[str], list[str]]:
    """Return the digests of the manifests, and those of the configuration and layers, that a
    manifest or index lists.
    """
    data = json_body(content)
    if not isinstance(data, dict):
        raise registry_error(400, "MANIFEST_INVALID", "manifest invalid", {})
    children = [entry["digest"] for entry in data.get("manifests") or []]
    parts = [data["config"]] if isinstance(data.get("config"), dict) else []
    return children, [entry["digest"] for entry in parts + (data.get("layers") or [])]
