# SPDX-License-Identifier: GPL-3.0-or-later
"""Repositories: what there is, and which one receives deployments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response

from sandbox.context import Context, context
from sandbox.repo.answers import SERVICE, account, error

if TYPE_CHECKING:
    from starlette.requests import Request

KIND = "repo.repository"


def find(current: Context, key: str) -> dict[str, Any] | None:
    """The repository, or None.

    `key`, `type` (LOCAL, REMOTE, VIRTUAL), `packageType`, `description`; of a virtual one also
    `repositories` (keys) and `defaultDeploymentRepo` (absent: none).
    """
    return current.store.get(KIND, key)


def members(current: Context, key: str) -> list[str]:
    """The repositories that hold the items of this one; itself unless it is virtual or remote."""
    found = find(current, key)
    if found is None:
        return []
    if found["type"] == "REMOTE":
        # server fact [repo-7]: a remote key is resolved to its cache
        return [key + "-cache"]
    if found["type"] != "VIRTUAL":
        return [key]
    return [name for member in found.get("repositories", []) for name in members(current, member)]


def deployment_target(current: Context, key: str) -> str | None:
    """The local repository that receives deployments to this key; None where there is none."""
    found = find(current, key)
    if found is None or found["type"] == "REMOTE":
        return None
    if found["type"] == "VIRTUAL":
        default = found.get("defaultDeploymentRepo")
        return deployment_target(current, default) if default else None
    return key


def is_local(current: Context, key: str) -> bool:
    found = find(current, key)
    return found is not None and found["type"] == "LOCAL"


def listing(request: Request) -> Response:
    """GET /api/repositories [W4.1, repo-9]: filters, fields."""
    current = context(request)
    every = current.store.values(KIND)
    if not current.real(SERVICE):
        return JSONResponse([{"key": doc["key"], "type": doc["type"]} for doc in every])
    wanted = request.query_params.get("type")
    package = request.query_params.get("packageType")
    rows = [
        {
            "key": doc["key"],
            "description": doc.get("description", ""),
            "type": doc["type"],
            "url": f"{current.base_url(request, SERVICE)}/{doc['key']}",
            "packageType": doc["packageType"].capitalize(),
        }
        for doc in every
        if (wanted is None or wanted.upper() == doc["type"])
        and (package is None or package.lower() == doc["packageType"])
    ]
    return JSONResponse(rows, headers={"Cache-Control": "no-store"})


def one(request: Request) -> Response:
    """GET /api/repositories/{key} [W4.1, repo-9]: `rclass`, 400 for
    an unknown key, a partial object for non-administrators."""
    current = context(request)
    doc = find(current, request.path_params["key"])
    if not current.real(SERVICE):
        if doc is None:
            raise error(404, "Not Found")
        kept = ("key", "type", "defaultDeploymentRepo")
        return JSONResponse({name: doc[name] for name in kept if name in doc})
    if doc is None:
        raise error(400, "Bad Request")
    shown = {
        "key": doc["key"],
        "rclass": doc["type"].lower(),
        "packageType": doc["packageType"],
        "description": doc.get("description", ""),
    }
    if doc["type"] == "VIRTUAL":
        shown["repositories"] = doc.get("repositories", [])
        shown["defaultDeploymentRepo"] = doc.get("defaultDeploymentRepo", "")
    if account(request).get("admin", False):
        shown.update({"notes": "", "includesPattern": "**/*", "excludesPattern": ""})
    return JSONResponse(shown)
