# SPDX-License-Identifier: GPL-3.0-or-later
"""Delete build records by number, or by count and age."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

from starlette.responses import PlainTextResponse, Response

from sandbox.context import Context, context
from sandbox.repo import permissions
from sandbox.repo.builds.builds import KIND, Build, carrying, key_of, of_name, of_number
from sandbox.repo.items import trash
from sandbox.repo.items.tree import Tree
from sandbox.repo.responses import SERVICE, empty, error, quote, user_name
from sandbox.service import ErrorResponse, json_body

if TYPE_CHECKING:
    from starlette.requests import Request


def delete(request: Request) -> Response:
    """Handle DELETE /api/build/{name}?buildNumbers=&artifacts=: delete builds by number.

    Server fact [repo-12]: commas separate the numbers.
    """
    current, name = context(request), request.path_params["name"]
    query = request.query_params
    numbers = [number for number in query.get("buildNumbers", "").split(",") if number]
    if query.get("deleteAll") == "1":
        numbers = _all_numbers(current, name, permissions.project_of(request))
    if not numbers:
        raise error(400, "Either buildNumbers or deleteAll is needed")
    project = permissions.project_of(request)
    return _delete_numbers(request, name, numbers, project, artifacts=query.get("artifacts") == "1")


def _all_numbers(current: Context, name: str, project: str) -> list[str]:
    return sorted({build["number"] for build in of_name(current, name, project)})


async def delete_by_body(request: Request) -> Response:
    """Handle POST /api/build/delete: delete builds by number. Real servers have it since 6.13.

    Server fact [repo-12]: unlike the query parameter, the body allows numbers that contain commas.
    """
    body = json_body(await request.body())
    if not isinstance(body, dict) or not body.get("buildName"):
        raise error(400, "Bad Request")
    name, numbers = body["buildName"], [str(number) for number in body.get("buildNumbers") or []]
    project = str(body.get("project") or "")
    if body.get("deleteAll"):
        numbers = _all_numbers(context(request), name, project)
    if not numbers:
        raise error(400, "Either buildNumbers or deleteAll is needed")
    artifacts = bool(body.get("deleteArtifacts"))
    return _delete_numbers(request, name, numbers, project, artifacts=artifacts)


def _delete_numbers(
    request: Request, name: str, numbers: list[str], project: str, *, artifacts: bool
) -> Response:
    current = context(request)
    permissions.require_for_builds(request, permissions.DELETE, name, project=project)
    runs = {number: of_number(current, name, number, project) for number in numbers}
    missing = [number for number in numbers if not runs[number]]
    if missing:
        raise error(404, f"Could not find builds: {', '.join(f'{name}#{n}' for n in missing)}")
    with current.store.transaction():
        for number in numbers:
            _delete_runs(request, name, number, runs[number], artifacts=artifacts)
    gone = ", ".join(f"'{name}#{number}'" for number in numbers)
    return PlainTextResponse(f"The following builds has been deleted successfully: {gone}.")


def _delete_runs(
    request: Request, name: str, number: str, runs: list[Build], *, artifacts: bool
) -> None:
    current = context(request)
    for build in runs:
        current.store.delete(KIND, key_of(build))
        place = f"{quote(name)}/{quote(number)}/{build['started']:015d}"
        key = permissions.builds_key(current, build["project"])
        current.store.put(trash.KIND, f"{key}/{place}", build)
    if artifacts:
        for node in carrying(current, name, number, None):
            if not permissions.may(request, permissions.DELETE, node["repo"]):
                continue
            trash.keep(
                current, Tree(current).remove(node["repo"], node["path"]), user_name(request)
            )


async def retention(request: Request) -> Response:
    """Handle POST /api/build/retention/{name} [W2.1, repo-13]: delete old builds.

    Delete builds beyond the newest `count` (-1 means no limit) and builds before
    `minimumBuildDate`, except promoted builds and those in `buildNumbersNotToBeDiscarded`.
    """
    current, name = context(request), request.path_params["name"]
    permissions.require_for_builds(request, permissions.DELETE, name)
    body = json_body(await request.body())
    if not isinstance(body, dict):
        raise error(400, "Bad Request")
    count = int(body.get("count", -1))
    if count == 0:
        raise ErrorResponse(
            PlainTextResponse("Max count retention needs to be a positive number", 400)
        )
    project = permissions.project_of(request)
    found = sorted(of_name(current, name, project), key=lambda build: -build["started"])
    if not found:
        raise error(404, f"No build was found for build name: {name}")
    kept = {str(number) for number in body.get("buildNumbersNotToBeDiscarded") or []}
    since = _epoch(body.get("minimumBuildDate"))
    artifacts = bool(body.get("deleteBuildArtifacts"))
    for position, build in enumerate(found):
        expired = (0 < count <= position) or (since is not None and build["started"] < since)
        if expired and build["number"] not in kept and not build["info"].get("statuses"):
            with current.store.transaction():
                _delete_runs(request, name, build["number"], [build], artifacts=artifacts)
    if not current.real(SERVICE):
        return Response(status_code=200)
    raise empty(204)


def _epoch(value: Any) -> int | None:
    """Parse epoch milliseconds or an ISO 8601 time; return epoch milliseconds."""
    if value is None:
        return None
    if isinstance(value, int) or re.fullmatch(r"\d+", str(value)):
        return int(value)
    try:
        return int(datetime.fromisoformat(str(value)).timestamp() * 1000)
    except ValueError:
        raise error(400, f"Invalid format: {value}") from None
