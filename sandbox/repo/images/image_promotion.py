# SPDX-License-Identifier: GPL-3.0-or-later
"""Promote container images: copy or move their tags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import PlainTextResponse, Response

from sandbox.context import Context, context
from sandbox.repo import permissions, repositories
from sandbox.repo.images.blobs import require_docker
from sandbox.repo.images.containers import find, is_digest, manifests
from sandbox.repo.items.tree import Tree
from sandbox.repo.responses import empty, error, user_name
from sandbox.service import json_body

if TYPE_CHECKING:
    from starlette.requests import Request

    from sandbox.repo.items.tree import Node


async def promote(request: Request) -> Response:
    """Handle POST .../{repo}/v2/promote [W2.1, W4.1, repo-25].

    Move a tag, or copy it if `copy` is set. Without `tag`, promote all tags of the image. Existing
    tags in the target are replaced.
    """
    current, repo = context(request), request.path_params["repo"]
    body = json_body(await request.body())
    if not isinstance(body, dict) or not {"targetRepo", "dockerRepository"} <= set(body):
        raise error(400, "Bad Request")
    target = body["targetRepo"]
    for key in (repo, target):
        if not repositories.is_local(current, key):
            raise empty(404)
        require_docker(request, key)
    permissions.require(request, permissions.DEPLOY, target)
    image, tag = body["dockerRepository"], body.get("tag")
    sources = [
        (found_tag, node)
        for name, found_tag, node in manifests(current, repo)
        if name == image and tag in (None, found_tag) and not is_digest(found_tag)
    ]
    if not sources:
        raise empty(404)
    if not body.get("copy", False):
        permissions.require(request, permissions.DELETE, repo, image)
    _relocate_image(request, body, sources)
    return PlainTextResponse("Promotion ended successfully")


def _relocate_image(
    request: Request, body: dict[str, Any], sources: list[tuple[str, Node]]
) -> None:
    current, repo = context(request), request.path_params["repo"]
    image = body.get("targetDockerRepository") or body["dockerRepository"]
    with current.store.transaction():
        for tag, node in sources:
            target_tag = (body.get("targetTag") or tag) if body.get("tag") else tag
            target = (body["targetRepo"], f"{image}/{target_tag}")
            if target == (repo, f"{body['dockerRepository']}/{tag}"):
                continue
            elsewhere = (target[0], image) != (repo, body["dockerRepository"])
            children = _children(current, node) if elsewhere else {}
            for digest, child in children.items():
                _put(request, child, (target[0], f"{image}/{digest}"), image)
            _put(request, node, target, image)
            if not body.get("copy", False):
                Tree(current).remove(repo, node["path"].rpartition("/")[0])


def _children(current: Context, node: Node) -> dict[str, Node]:
    """Return the manifests that an image index lists, by digest [repo-34]."""
    data = json_body(current.store.blobs.read(node["sha256"]))
    entries = data.get("manifests") if isinstance(data, dict) else None
    image = node["path"].rsplit("/", 2)[0]
    found = {
        entry["digest"]: find(current, node["repo"], image, entry["digest"])
        for entry in entries or []
    }
    return {digest: child for digest, child in found.items() if child is not None}


def _put(request: Request, node: Node, target: tuple[str, str], image: str) -> None:
    """Copy all files in the folder of a manifest, and replace the content of the target folder.

    :param target: repository and folder
    """
    current, (repo, folder) = context(request), target
    source = node["path"].rpartition("/")[0]
    tree = Tree(current)
    if tree.get(repo, folder) is not None and source != folder:
        permissions.require(request, permissions.DELETE, repo, folder)
    files = [record for record in tree.below(node["repo"], source) if not record["folder"]]
    if (node["repo"], source) == target:
        return
    tree.remove(repo, folder)
    for file in files:
        path = f"{folder}/{file['path'].rpartition('/')[2]}"
        tree.copy(file, repo, path, user_name(request))
        if "docker.manifest" in file["properties"]:
            changes = {"docker.repoName": [image], "docker.manifest": [folder.rpartition("/")[2]]}
            tree.set_properties({**file, "repo": repo, "path": path}, changes)
