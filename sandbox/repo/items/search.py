# SPDX-License-Identifier: GPL-3.0-or-later
"""Search for files by pattern, name, property, digest or build."""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response

from sandbox.context import context
from sandbox.repo import permissions, repositories
from sandbox.repo.builds.builds import carrying, of_name
from sandbox.repo.items import storage
from sandbox.repo.items.downloads import readable_repos
from sandbox.repo.items.tree import Tree
from sandbox.repo.responses import SERVICE, error
from sandbox.service import json_body

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from starlette.requests import Request

    from sandbox.repo.items.tree import Node


def pattern(request: Request) -> Response:
    """Handle GET /search/pattern [W4.1], or /api/search/pattern on real servers [repo-16].

    Return the paths of the files that match a pattern such as `repository:path/*.jar`.
    """
    current = context(request)
    repo, colon, path = request.query_params.get("pattern", "").partition(":")
    if not colon or not path or not repositories.is_local(current, repo):
        raise error(400, "Bad Request")
    permissions.require(request, permissions.READ, repo)
    wanted = re.compile(repositories.glob_expression(path), re.DOTALL)
    files = [node["path"] for node in Tree(current).files([repo]) if wanted.fullmatch(node["path"])]
    base = current.base_url(request, SERVICE)
    return JSONResponse(
        {"repoUri": f"{base}/{repo}", "sourcePattern": f"{repo}:{path}", "files": files}
    )


def artifact(request: Request) -> Response:
    """Handle GET /api/search/artifact?name=&repos=: find files whose name contains `name`, or
    matches it if it is a glob.
    """
    name = request.query_params.get("name", "")
    if not name:
        raise error(400, "The search name is missing")
    wanted = name if set(name) & set("*?") else f"*{name}*"
    return _found(request, lambda node: fnmatch.fnmatchcase(_name(node), wanted))


def prop(request: Request) -> Response:
    """Handle GET /api/search/prop?KEY=VALUE&repos=: find files that have all properties.

    A value may be a glob; an empty value matches any value.
    """
    wanted = [(key, value) for key, value in request.query_params.multi_items() if key != "repos"]
    if not wanted:
        raise error(400, "Search query is empty")

    def fits(node: Node) -> bool:
        return all(
            any(
                value == "" or fnmatch.fnmatchcase(found, value)
                for found in node["properties"].get(key, [])
            )
            for key, value in wanted
        )

    return _found(request, fits)


def checksum(request: Request) -> Response:
    """Handle GET /api/search/checksum?sha256= (or sha1, md5): find files by digest."""
    query = request.query_params
    kind = next((name for name in ("sha256", "sha1", "md5") if query.get(name)), None)
    if kind is None:
        raise error(400, "The checksum is missing")
    return _found(request, lambda node: bool(node[kind] == query[kind].lower()))


def _name(node: Node) -> str:
    return str(node["path"]).rpartition("/")[2]


def _found(request: Request, fits: Callable[[Node], bool]) -> Response:
    """Return a response with the URLs of the files that fit.

    The request header `X-Result-Detail` adds item information and properties.
    """
    detail = request.headers.get("x-result-detail", "")
    return JSONResponse(
        {"results": [_shown(request, node, detail) for node in _files(request) if fits(node)]}
    )


def _files(request: Request) -> Iterator[Node]:
    repos = readable_repos(request, request.query_params.get("repos"))
    return Tree(context(request)).files(repos)


def _shown(request: Request, node: Node, detail: str) -> dict[str, Any]:
    shown: dict[str, Any] = {"uri": storage.item_uri(request, node)}
    if "info" in detail:
        shown.update(storage.info(request, node))
    if "properties" in detail:
        shown["properties"] = node["properties"]
    return shown


async def build_artifacts(request: Request) -> Response:
    """Handle POST /api/search/buildArtifacts [repo-27]: return the URLs of a build's files."""
    current = context(request)
    body = json_body(await request.body())
    if not isinstance(body, dict) or not body.get("buildName") or not body.get("buildNumber"):
        raise error(400, "Cannot search without build name and build number")
    name, number = str(body["buildName"]), str(body["buildNumber"])
    permissions.require_for_builds(request, permissions.READ, name, number)
    if number == "LATEST":
        project = permissions.project_of(request)
        runs = sorted(of_name(current, name, project), key=lambda build: build["started"])
        number = runs[-1]["number"] if runs else ""
    allowed = readable_repos(request, ",".join(body.get("repos") or []))
    found = [
        {"downloadUri": storage.item_uri(request, node, api=False)}
        for node in carrying(current, name, number, None)
        if node["repo"] in allowed
    ]
    if not found:
        raise error(404, f"Could not find any build artifacts for build '{name}' number '{number}'")
    return JSONResponse({"results": found})
