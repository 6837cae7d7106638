# SPDX-License-Identifier: GPL-3.0-or-later
"""Container images: tags, catalog, manifests and promotion.

A tag is stored as `{image}/{tag}/manifest.json` in a docker repository, server fact [repo-24].
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, PlainTextResponse, Response

from sandbox.context import Context, context
from sandbox.repo import repositories
from sandbox.repo.answers import SERVICE, empty, error, may, quote, user_name
from sandbox.repo.tree import Tree
from sandbox.service import Answer, json_body
from sandbox.store import Blob

if TYPE_CHECKING:
    from starlette.requests import Request

    from sandbox.repo.tree import Node

MANIFEST, LIST_MANIFEST = "manifest.json", "list.manifest.json"
_DEFAULT_TYPE = "application/vnd.docker.distribution.manifest.v2+json"
_LISTS = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_OLD_TYPE = "application/vnd.docker.distribution.manifest.v1+prettyjws"
_VERSION_HEADER = {"Docker-Distribution-Api-Version": "registry/2.0"}


def push(
    current: Context, repo: str, image: str, tag: str, content: bytes, *, user: str = "deployer"
) -> str:
    """Store a manifest under a tag (an older one of the tag goes); returns its digest,
    `sha256:...`.
    """
    blob = current.store.blobs.put(content)
    tree = Tree(current)
    tree.remove(repo, f"{image}/{tag}")
    name = LIST_MANIFEST if media_type(content) in _LISTS else MANIFEST
    properties = {
        "docker.repoName": [image],
        "docker.manifest": [tag],
        "docker.manifest.digest": [f"sha256:{blob.sha256}"],
    }
    tree.put_file(repo, f"{image}/{tag}/{name}", blob, user, properties)
    return f"sha256:{blob.sha256}"


def media_type(content: bytes) -> str:
    data = json_body(content)
    found = data.get("mediaType") if isinstance(data, dict) else None
    return found if isinstance(found, str) else _DEFAULT_TYPE


def _manifests(current: Context, repo: str) -> list[tuple[str, str, Node]]:
    """(image, tag, manifest) of a repository, of a virtual one of its members."""
    found = []
    for member in repositories.members(current, repo):
        for node in Tree(current).below(member, ""):
            segments = node["path"].split("/")
            if segments[-1] in (MANIFEST, LIST_MANIFEST) and len(segments) > 2:
                found.append(("/".join(segments[:-2]), segments[-2], node))
    return found


def _require_docker(current: Context, repo: str) -> None:
    found = repositories.find(current, repo)
    if found is None or found["packageType"] != "docker":
        raise empty(404)


def _registry_error(status: int, code: str, message: str, detail: Any) -> Answer:
    """The shape of container registries, server fact [repo-2]."""
    body = {"errors": [{"code": code, "message": message, "detail": detail}]}
    return Answer(JSONResponse(body, status, _VERSION_HEADER))


def tags(request: Request) -> Response:
    """GET .../{repo}/v2/{image}/tags/list [W4.1, repo-23]."""
    current = context(request)
    repo, image = request.path_params["repo"], request.path_params["image"]
    _require_docker(current, repo)
    found = sorted({tag for name, tag, _node in _manifests(current, repo) if name == image})
    if not found:
        raise _registry_error(
            404, "NAME_UNKNOWN", "Repository name not known to registry.", {"name": image}
        )
    page, headers = _page(request, found, f"/v2/{image}/tags/list")
    body = {"name": image, "tags": page} if current.real(SERVICE) else {"tags": page}
    return JSONResponse(body, headers=headers)


def catalog(request: Request) -> Response:
    """GET .../{repo}/v2/_catalog [W4.1, repo-23]."""
    current, repo = context(request), request.path_params["repo"]
    _require_docker(current, repo)
    found = sorted({name for name, _tag, _node in _manifests(current, repo)})
    page, headers = _page(request, found, "/v2/_catalog")
    return JSONResponse({"repositories": page}, headers=headers)


def _page(request: Request, found: list[str], path: str) -> tuple[list[str], dict[str, str]]:
    """A page by `n` and `last`, with a Link to the next one: server fact [repo-23].

    `last` may be the last name or an offset. The setting `link_flavour`: `relative` (the whole
    path, the last name), `without_repo` (the repository key lost from the path, an offset), `none`;
    `auto` is `relative` on a real server and `none` else (the written interface has no such
    header).
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
        return found[start:], dict(_VERSION_HEADER)
    page, headers = found[start : start + size], dict(_VERSION_HEADER)
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
    """GET and HEAD .../v2/{image}/manifests/{reference}: real servers only, server fact [repo-24].

    A client that does not accept the manifest's own type gets an old conversion with another
    digest.
    """
    current = context(request)
    repo, image = request.path_params["repo"], request.path_params["image"]
    reference = request.path_params["reference"]
    _require_docker(current, repo)
    for name, tag, node in _manifests(current, repo):
        if name == image and reference in (tag, f"sha256:{node['sha256']}"):
            content = current.store.blobs.read(node["sha256"])
            kind = media_type(content)
            if kind not in request.headers.get("accept", ""):
                content, kind = _converted(image, tag), _OLD_TYPE
            digest = current.store.blobs.put(content).sha256
            headers = {"Docker-Content-Digest": f"sha256:{digest}", **_VERSION_HEADER}
            return Response(content, headers=headers, media_type=kind)
    raise _registry_error(
        404,
        "MANIFEST_UNKNOWN",
        "The named manifest is not known to the registry.",
        {"manifest": reference},
    )


def _converted(image: str, tag: str) -> bytes:
    return json.dumps({"schemaVersion": 1, "name": image, "tag": tag, "fsLayers": []}).encode()


async def put_manifest(request: Request) -> Response:
    """PUT .../v2/{image}/manifests/{tag}: real servers only, as container registries answer."""
    current = context(request)
    repo, image = request.path_params["repo"], request.path_params["image"]
    _require_docker(current, repo)
    target = repositories.deployment_target(current, repo)
    if target is None or not may(request, "deploy"):
        raise error(403, "Not enough permissions to deploy")
    tag = request.path_params["reference"]
    digest = push(current, target, image, tag, await request.body(), user=user_name(request))
    return Response(status_code=201, headers={"Docker-Content-Digest": digest, **_VERSION_HEADER})


async def promote(request: Request) -> Response:
    """POST .../{repo}/v2/promote [W2.1, W4.1, repo-25].

    Moves unless `copy`; without `tag` the whole image; what the target holds under the tag goes.
    """
    current, repo = context(request), request.path_params["repo"]
    body = json_body(await request.body())
    if not isinstance(body, dict) or not {"targetRepo", "dockerRepository"} <= set(body):
        raise error(400, "Bad Request")
    target = body["targetRepo"]
    for key in (repo, target):
        if not repositories.is_local(current, key):
            raise empty(404)
        _require_docker(current, key)
    if not may(request, "deploy"):
        raise error(403, f"Not enough permissions to deploy to '{target}'")
    image, tag = body["dockerRepository"], body.get("tag")
    sources = [
        (found_tag, node)
        for name, found_tag, node in _manifests(current, repo)
        if name == image and tag in (None, found_tag)
    ]
    if not sources:
        raise empty(404)
    _relocate_image(request, body, sources)
    return PlainTextResponse("Promotion ended successfully")


def _relocate_image(
    request: Request, body: dict[str, Any], sources: list[tuple[str, Node]]
) -> None:
    current = context(request)
    image = body.get("targetDockerRepository") or body["dockerRepository"]
    with current.store.transaction():
        for tag, node in sources:
            target_tag = (body.get("targetTag") or tag) if body.get("tag") else tag
            blob = Blob(node["sha256"], node["sha1"], node["md5"], node["size"])
            content = current.store.blobs.read(blob.sha256)
            same = (body["targetRepo"], image, target_tag) == (
                node["repo"],
                body["dockerRepository"],
                tag,
            )
            if not same:
                push(
                    current, body["targetRepo"], image, target_tag, content, user=user_name(request)
                )
                _carry_properties(current, node, body["targetRepo"], f"{image}/{target_tag}")
                if not body.get("copy", False):
                    Tree(current).remove(node["repo"], node["path"].rpartition("/")[0])


def _carry_properties(current: Context, node: Node, repo: str, folder: str) -> None:
    tree = Tree(current)
    target = tree.get(repo, f"{folder}/{node['path'].rpartition('/')[2]}")
    own = {
        name: values
        for name, values in node["properties"].items()
        if not name.startswith("docker.")
    }
    if target is not None and own:
        tree.set_properties(target, own)
