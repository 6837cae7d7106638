# SPDX-License-Identifier: GPL-3.0-or-later
"""Create, read and delete release bundles."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response

from sandbox.context import context
from sandbox.repo import permissions
from sandbox.repo.access.responses import body_of, refusal
from sandbox.repo.builds import builds
from sandbox.repo.items import aql
from sandbox.repo.items.tree import Tree
from sandbox.repo.lifecycle.responses import (
    KIND,
    PROMOTION,
    TRACKER,
    Bundle,
    asked,
    created,
    found,
    identity,
    key_of,
    page_of,
    repository_of,
    repository_of_project,
    require,
    status_of,
)
from sandbox.repo.responses import iso, user_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request

    from sandbox.context import Context
    from sandbox.repo.items.tree import Node

_SOURCES = ("aql", "artifacts", "builds", "release_bundles")


def store(current: Context, seed: dict[str, Any]) -> None:
    """Store a release bundle from the seed, whose keys `RepoService` describes."""
    repository = repository_of_project(seed.get("project"))
    nodes = [_item(current, {"path": path}) for path in seed.get("files", [])]
    status = seed.get("status", "COMPLETED")
    bundle = _bundle(seed["name"], seed["version"], repository, nodes)
    known = {"created": current.now_ms() - 3_600_000, "created_by": "admin", "status": status}
    current.store.put(KIND, key_of(repository, seed["name"], seed["version"]), {**bundle, **known})


def _bundle(name: str, version: str, repository: str, nodes: list[Node]) -> Bundle:
    artifacts = {f"{node['repo']}/{node['path']}": _artifact(node) for node in nodes}
    return {
        "name": name,
        "version": version,
        "repository_key": repository,
        "artifacts": list(artifacts.values()),
        "status": "COMPLETED",
        "messages": [],
    }


async def create(request: Request) -> Response:
    """Handle POST /release_bundle [repo-33]: create a version; 409 if it exists."""
    current, body = context(request), await body_of(request)
    repository = repository_of(request)
    require(request, permissions.DEPLOY, repository)
    name, version = body.get("release_bundle_name"), body.get("release_bundle_version")
    if not name or not version:
        raise refusal(400, "BAD_REQUEST", "release_bundle_name and release_bundle_version required")
    key = key_of(repository, name, version)
    if current.store.get(KIND, key) is not None:
        raise refusal(409, "CONFLICT", f"Release Bundle {name}/{version} already exists")
    nodes = [node for kind, source in _sources(body) for node in _content(current, kind, source)]
    bundle = _bundle(name, version, repository, nodes)
    bundle |= {"created": current.now_ms(), "created_by": user_name(request)}
    if not nodes and all(kind == "aql" for kind, _source in _sources(body)):
        bundle |= {"status": "FAILED", "messages": ["The query has no results"]}
    current.store.put(KIND, key, bundle)
    background = request.query_params.get("async", "true") == "true"
    return JSONResponse({**identity(bundle), **created(bundle)}, 202 if background else 201)


def _sources(body: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the sources in a request body as pairs of type and value.

    The newer format has a list `sources`, the older format a single source.
    """
    if body.get("sources"):
        return [
            (entry["source_type"], entry.get(entry["source_type"])) for entry in body["sources"]
        ]
    kind, source = body.get("source_type"), body.get("source")
    if kind not in _SOURCES or not isinstance(source, dict) or not source.get(kind):
        raise refusal(400, "BAD_REQUEST", "unknown source_type, or no source")
    return [(kind, source[kind])]


def _content(current: Context, kind: str, source: Any) -> Iterator[Node]:
    if kind == "aql":
        yield from aql.nodes(current, source)
    elif kind == "artifacts":
        yield from (_item(current, artifact) for artifact in source)
    elif kind == "builds":
        for build in source:
            yield from _build_files(current, build)
    else:
        for bundle in source:
            yield from _bundle_files(current, bundle)


def _item(current: Context, artifact: dict[str, Any]) -> Node:
    repo, _slash, path = artifact["path"].partition("/")
    node = Tree(current).get(repo, path)
    if node is None or node["folder"] or artifact.get("sha256") not in (None, node["sha256"]):
        raise refusal(400, "BAD_REQUEST", f"Artifact {artifact['path']} not found")
    return node


def _build_files(current: Context, build: dict[str, Any]) -> list[Node]:
    name, number = build["build_name"], build["build_number"]
    project = build["build_repository"].removesuffix("-build-info")
    runs = builds.of_number(current, name, number, "" if project == "artifactory" else project)
    if not runs:
        raise refusal(400, "BAD_REQUEST", f"Build {name}/{number} not found")
    wanted = builds.digests(runs[-1], "artifacts", None)
    if build.get("include_dependencies"):
        wanted |= builds.digests(runs[-1], "dependencies", None)
    nodes = {node["sha1"]: node for node in builds.local_files(current)}
    missing = wanted - set(nodes)
    if missing:
        raise refusal(400, "BAD_REQUEST", f"Artifacts of build {name}/{number} not found")
    return [nodes[sha1] for sha1 in sorted(wanted)]


def _bundle_files(current: Context, source: dict[str, Any]) -> list[Node]:
    name, version = source["release_bundle_name"], source["release_bundle_version"]
    key = key_of(source["repository_key"], name, version)
    bundle = current.store.get(KIND, key)
    if bundle is None:
        raise refusal(400, "BAD_REQUEST", f"Release Bundle {key} not found")
    return [
        {
            "repo": item["source_repository_key"],
            "path": item["path"],
            "sha256": item["checksum"],
            "size": item["size"],
        }
        for item in bundle["artifacts"]
    ]


def _artifact(node: Node) -> dict[str, Any]:
    return {
        "path": node["path"],
        "source_repository_key": node["repo"],
        "checksum": node["sha256"],
        "package_type": "generic",
        "size": node["size"],
    }


def existence(request: Request) -> Response:
    """Handle GET /release_bundle/existence/{name}/{version} [repo-33]."""
    there = context(request).store.get(KIND, asked(request)) is not None
    return JSONResponse({"exists": there})


def status(request: Request) -> Response:
    """Handle GET /release_bundle/statuses/{name}/{version} [repo-33]: return the status."""
    bundle = found(request)
    shown = status_of(context(request), bundle)
    return JSONResponse({"status": shown, "messages": bundle["messages"]})


def record(request: Request) -> Response:
    """Handle GET /release_bundle/records/{name}/{version} [repo-33]: return the artifacts."""
    bundle = found(request)
    shown = {"service_id": "jfrt@sandbox", "created_by": bundle["created_by"], **created(bundle)}
    return JSONResponse({**shown, **identity(bundle), "artifacts": bundle["artifacts"]})


def versions(request: Request) -> Response:
    """Handle GET /release_bundle/records/{name} [repo-33]: list all versions, newest first."""
    current, repository = context(request), repository_of(request)
    require(request, permissions.READ, repository)
    rows = current.store.values(KIND, f"{repository}/{request.path_params['name']}/")
    if not rows:
        raise refusal(404, "NOT_FOUND", "Release Bundle not found")
    rows.sort(key=lambda bundle: -bundle["created"])
    page, counts = page_of(request, rows)
    return JSONResponse({"release_bundles": [_row(current, bundle) for bundle in page], **counts})


def _row(current: Context, bundle: Bundle) -> dict[str, Any]:
    shown = {"status": status_of(current, bundle), "created_by": bundle["created_by"]}
    return {**shown, **identity(bundle), "created": iso(bundle["created"])}


def groups(request: Request) -> Response:
    """Handle GET /release_bundle/groups [repo-33]: list the names with their newest version."""
    current, repository = context(request), repository_of(request)
    require(request, permissions.READ, repository)
    by_name: dict[str, list[Bundle]] = {}
    for bundle in current.store.values(KIND, f"{repository}/"):
        by_name.setdefault(bundle["name"], []).append(bundle)
    rows = [
        {
            "repository_key": repository,
            "project_key": request.query_params.get("project", "default"),
            "release_bundle_name": name,
            "release_bundle_version_latest": max(bundles, key=itemgetter("created"))["version"],
            "release_bundle_versions_count": len(bundles),
        }
        for name, bundles in sorted(by_name.items())
    ]
    page, counts = page_of(request, rows)
    return JSONResponse({"release_bundles": page, **counts})


def delete(request: Request) -> Response:
    """Handle DELETE /release_bundle/records/{name}/{version} [repo-33]: delete a version."""
    current, bundle = context(request), found(request, permissions.DELETE)
    key = key_of(bundle["repository_key"], bundle["name"], bundle["version"])
    with current.store.transaction():
        current.store.delete(KIND, key)
        for kind in (PROMOTION, TRACKER):
            for dependent in current.store.keys(kind, f"{key}/"):
                current.store.delete(kind, dependent)
    if request.query_params.get("async", "true") == "true":
        return JSONResponse({"status": "DELETING"}, 200)
    return Response(status_code=204)
