# SPDX-License-Identifier: GPL-3.0-or-later
"""Stored build records and the requests that read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response

from sandbox.context import Context, context
from sandbox.repo import permissions, repositories
from sandbox.repo.items.tree import Tree
from sandbox.repo.responses import SERVICE, error, java_time, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request

    from sandbox.repo.items.tree import Node

KIND = "repo.build"

# `name`, `number`, `started` (ms), `project` and `info`, the `buildInfo` of the record.
Build = dict[str, Any]


def publish(
    current: Context,
    name: str,
    number: str,
    properties: dict[str, str],
    *,
    started: int | None = None,
    modules: list[dict[str, Any]] | None = None,
    project: str = "",
    statuses: list[dict[str, Any]] | None = None,
) -> None:
    """Store a build record. An existing number gets an additional record [repo-11].

    :param properties: properties of the record, such as `buildInfo.env.BUILD_URL`
    :param started: start time in epoch milliseconds; None means the current time
    """
    moment = current.now_ms() if started is None else started
    info: dict[str, Any] = {
        "version": "1.0.1",
        "name": name,
        "number": number,
        "started": java_time(moment),
        "durationMillis": 0,
        "modules": modules or [],
    }
    if properties:
        # server fact [repo-11]: a record without properties does not have this key
        info["properties"] = properties
    if statuses:
        info["statuses"] = statuses
    build = {"name": name, "number": number, "started": moment, "project": project}
    save(current, {**build, "info": info})


def save(current: Context, build: Build) -> None:
    current.store.put(KIND, key_of(build), build)


def key_of(build: Build) -> str:
    """Return the key under which a record is stored; each project has separate builds [repo-32]."""
    number = f"{quote(build['number'])}/{build['started']:015d}"
    return f"{_prefix(build['name'], build['project'])}{number}"


def _prefix(name: str, project: str) -> str:
    return f"{quote(name)}@{quote(project)}/"


def of_name(current: Context, name: str, project: str = "") -> list[Build]:
    return current.store.values(KIND, _prefix(name, project))


def of_number(current: Context, name: str, number: str, project: str = "") -> list[Build]:
    """Return the records of a build number, oldest first."""
    return current.store.values(KIND, f"{_prefix(name, project)}{quote(number)}/")


def names(request: Request) -> Response:
    """Handle GET /api/build: list the names of all builds; only real servers have this request."""
    current = context(request)
    permissions.require_for_builds(request, permissions.READ, "")
    newest: dict[str, int] = {}
    project = permissions.project_of(request)
    for build in current.store.values(KIND):
        if build["project"] != project:
            continue
        newest[build["name"]] = max(build["started"], newest.get(build["name"], 0))
    if not newest:
        raise error(404, "No builds were found")
    uri = f"{current.base_url(request, SERVICE)}/api/build"
    shown = [
        {"uri": f"/{quote(name)}", "lastStarted": java_time(started)}
        for name, started in newest.items()
    ]
    return JSONResponse({"uri": uri, "builds": shown})


def listing(request: Request) -> Response:
    """Handle GET /api/build/{name} [W2.1, repo-11]: list the builds with a name."""
    current, name = context(request), request.path_params["name"]
    permissions.require_for_builds(request, permissions.READ, name)
    found = of_name(current, name, permissions.project_of(request))
    if not found:
        raise error(404, f"No build was found for build name: {name}")
    real = current.real(SERVICE)
    numbers = [
        {
            "uri": "/" + (quote(build["number"]) if real else build["number"]),
            "started": java_time(build["started"]),
        }
        for build in found
    ]
    uri = f"{current.base_url(request, SERVICE)}/api/build/{quote(name)}"
    return JSONResponse({"uri": uri, "buildsNumbers": numbers})


def record(request: Request) -> Response:
    """Handle GET /api/build/{name}/{number} [W2.1]: return a build record.

    Server fact [repo-11]: if several builds have the number, `started` selects one; the default is
    the newest. The written interface only defines the members `started` and `properties`; in that
    flavour the response also contains `statuses`, unless the setting `build_statuses` is false.
    """
    current = context(request)
    name, number = request.path_params["name"], request.path_params["number"]
    permissions.require_for_builds(request, permissions.READ, name, number)
    started = request.query_params.get("started")
    found = [
        build
        for build in of_number(current, name, number, permissions.project_of(request))
        if started is None or build["info"]["started"] == started
    ]
    if not found:
        raise error(404, f"No build was found for build name: {name}, build number: {number}")
    info = found[-1]["info"]
    if current.real(SERVICE):
        uri = f"{current.base_url(request, SERVICE)}/api/build/{quote(name)}/{quote(number)}"
        return JSONResponse({"uri": uri, "buildInfo": info})
    shown = {"started": info["started"], "properties": info.get("properties", {})}
    if current.settings(SERVICE)["build_statuses"] and "statuses" in info:
        shown["statuses"] = info["statuses"]
    return JSONResponse({"buildInfo": shown})


def carrying(current: Context, name: str, number: str, repo: str | None) -> list[Node]:
    """Return the files that have the name and number of a build as properties [repo-30].

    :param repo: key of a repository; None means all local repositories
    """
    return [
        node
        for node in local_files(current, repo)
        if name in node["properties"].get("build.name", [])
        and number in node["properties"].get("build.number", [])
    ]


def local_files(current: Context, repo: str | None = None) -> Iterator[Node]:
    """Return the files of a local repository, or of all local repositories if `repo` is None."""
    repos = [
        key
        for key, doc in current.store.items(repositories.KIND)
        if doc["type"] == "LOCAL" and repo in (None, key)
    ]
    return Tree(current).files(repos)


def digests(build: Build, part: str, scopes: list[str] | None) -> set[str]:
    """Return the SHA-1 digests of the artifacts or dependencies of a build.

    :param part: `artifacts` or `dependencies`
    :param scopes: return only files with one of these scopes; None or empty means all files
    """
    return {
        item["sha1"]
        for module in build["info"].get("modules", [])
        for item in module.get(part, [])
        if item.get("sha1") and (not scopes or set(scopes) & set(item.get("scopes", [])))
    }
