# SPDX-License-Identifier: GPL-3.0-or-later
"""Handle requests for permissions: the API of Access, and the older API of the repository manager.

Permissions are stored in the format of Access. They have no effect on requests in the sandbox; the
module `sandbox.repo.permissions` checks those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, PlainTextResponse, Response

from sandbox.context import Context, context
from sandbox.repo import responses
from sandbox.repo.access import accounts
from sandbox.repo.access.responses import absent, body_of, page, refusal, require_admin
from sandbox.repo.repositories import KIND as REPOSITORIES
from sandbox.repo.responses import SERVICE, error

if TYPE_CHECKING:
    from starlette.requests import Request

KIND = "repo.access.permission"
_TYPES = ("artifact", "build", "release_bundle", "destination", "pipeline_source")
_OLD = {"repo": "artifact", "build": "build", "releaseBundle": "release_bundle"}
_OLD_ACTIONS = {"managedXrayMeta": "SCAN", "distribute": "EXECUTE"}
_NEW_ACTIONS = {new: old for old, new in _OLD_ACTIONS.items()}


def put(current: Context, name: str, resources: dict[str, Any]) -> dict[str, Any]:
    """Store a permission. An empty list of include patterns becomes `**` [repo-43]."""
    for resource in resources.values():
        for target in resource.get("targets", {}).values():
            target["include_patterns"] = target.get("include_patterns") or ["**"]
            target.setdefault("exclude_patterns", [])
    doc = {"name": name, "resources": resources}
    current.store.put(KIND, name, doc)
    return doc


def _shown(current: Context, doc: dict[str, Any]) -> dict[str, Any]:
    """Return a permission in the format of a response.

    Server fact [repo-43]: some servers list all local repositories next to `ANY LOCAL`. The setting
    `permissions_list_members` simulates that.
    """
    targets = doc["resources"].get("artifact", {}).get("targets", {})
    if current.settings(SERVICE)["permissions_list_members"] and "ANY LOCAL" in targets:
        for repo in current.store.values(REPOSITORIES):
            if repo["type"] == "LOCAL":
                targets.setdefault(repo["key"], targets["ANY LOCAL"])
    return doc


def listing(request: Request) -> Response:
    """Handle GET /access/api/v2/permissions [repo-43]: list the names of all permissions."""
    require_admin(request)
    names = context(request).store.keys(KIND)
    rows = [{"name": name, "uri": f"{request.url}/{responses.quote(name)}"} for name in names]
    return page(request, "permissions", rows)


def read(request: Request) -> Response:
    """Handle GET /access/api/v2/permissions/{name} [repo-43]: return a permission."""
    require_admin(request)
    return JSONResponse(_shown(context(request), _found(request)))


def _found(request: Request) -> dict[str, Any]:
    doc = context(request).store.get(KIND, request.path_params["name"])
    if doc is None:
        raise absent("Permission")
    return doc


def _problem(current: Context, resources: Any) -> str:
    """Return the server's error message for invalid resources, or "" for valid ones."""
    for kind, resource in resources.items():
        if kind not in _TYPES:
            return f"unknown resource type {kind}"
        if not resource.get("targets"):
            return f"{kind} has no targets"
        actions = resource.get("actions", {})
        for name in actions.get("users", {}):
            if accounts.find(current, name) is None:
                return f"User {name} not found"
        for name in actions.get("groups", {}):
            if current.store.get(accounts.GROUPS, name) is None:
                return f"Group {name} not found"
    return "" if resources else "resources are missing"


async def create(request: Request) -> Response:
    """Handle POST /access/api/v2/permissions [repo-43]: create a permission; 409 if it exists."""
    require_admin(request)
    current, data = context(request), await body_of(request)
    name, resources = str(data.get("name") or ""), data.get("resources") or {}
    if current.store.get(KIND, name) is not None:
        raise refusal(409, "CONFLICT", f"Permission {name} already exists")
    problem = _problem(current, resources)
    if problem or not name:
        raise refusal(400, "BAD_REQUEST", problem or "name is missing")
    return JSONResponse(put(current, name, resources), 201)


async def replace(request: Request) -> Response:
    """Handle PUT /access/api/v2/permissions/{name}/{type} [repo-43]: replace a resource."""
    require_admin(request)
    current, doc, data = context(request), _found(request), await body_of(request)
    given = {request.path_params["type"]: data}
    problem = _problem(current, given)
    if problem:
        raise refusal(400, "BAD_REQUEST", problem)
    put(current, doc["name"], {**doc["resources"], **given})
    return JSONResponse(data)


def remove(request: Request) -> Response:
    """Handle DELETE /access/api/v2/permissions/{name}/{type} [repo-43]: delete a resource."""
    require_admin(request)
    doc = _found(request)
    if doc["resources"].pop(request.path_params["type"], None) is None:
        raise absent("Resource")
    put(context(request), doc["name"], doc["resources"])
    return Response(status_code=204)


def delete(request: Request) -> Response:
    """Handle DELETE /access/api/v2/permissions/{name} [repo-43]."""
    require_admin(request)
    context(request).store.delete(KIND, _found(request)["name"])
    return Response(status_code=204)


# -- the older API --------------------------------------------------------------------------------


def old_listing(request: Request) -> Response:
    """Handle GET /api/v2/security/permissions [repo-43]: list the names of all permissions."""
    responses.require_admin(request)
    current = context(request)
    base = f"{current.base_url(request, SERVICE)}/api/v2/security/permissions"
    names = current.store.keys(KIND)
    return JSONResponse(
        [{"name": name, "uri": f"{base}/{responses.quote(name)}"} for name in names]
    )


def old_read(request: Request) -> Response:
    """Handle GET /api/v2/security/permissions/{name} [repo-43]: return a permission."""
    responses.require_admin(request)
    doc = _shown(context(request), _old_found(request))
    rows = {
        old: _to_old(doc["resources"][new]) for old, new in _OLD.items() if new in doc["resources"]
    }
    return JSONResponse({"name": doc["name"], **rows})


def _old_found(request: Request) -> dict[str, Any]:
    doc = context(request).store.get(KIND, request.path_params["name"])
    if doc is None:
        raise error(404, f"Permission '{request.path_params['name']}' not found")
    return doc


def _to_old(resource: dict[str, Any]) -> dict[str, Any]:
    targets = resource["targets"]
    first = next(iter(targets.values()))
    actions = {
        kind: {
            name: [_NEW_ACTIONS.get(action, action.lower()) for action in actions]
            for name, actions in rows.items()
        }
        for kind, rows in resource.get("actions", {}).items()
    }
    return {
        "include-patterns": first["include_patterns"],
        "exclude-patterns": first["exclude_patterns"],
        "repositories": list(targets),
        "actions": actions,
    }


def _from_old(resource: dict[str, Any]) -> dict[str, Any]:
    patterns = {
        "include_patterns": resource.get("include-patterns") or [],
        "exclude_patterns": resource.get("exclude-patterns") or [],
    }
    actions = {
        kind: {
            name: [_OLD_ACTIONS.get(action, action.upper()) for action in actions]
            for name, actions in rows.items()
        }
        for kind, rows in resource.get("actions", {}).items()
    }
    targets = {key: dict(patterns) for key in resource.get("repositories", [])}
    return {"targets": targets, "actions": actions}


async def _old_save(request: Request, status: int) -> Response:
    """Store a whole permission; resources that the request leaves out are deleted [repo-43]."""
    current, data = context(request), await body_of(request)
    resources = {new: _from_old(data[old]) for old, new in _OLD.items() if data.get(old)}
    problem = _problem(current, resources)
    if problem:
        raise error(400, problem)
    put(current, request.path_params["name"], resources)
    return Response(status_code=status)


async def old_create(request: Request) -> Response:
    """Handle POST /api/v2/security/permissions/{name} [repo-43]: create; 409 if it exists."""
    responses.require_admin(request)
    if context(request).store.get(KIND, request.path_params["name"]) is not None:
        raise error(409, "Permission already exists")
    return await _old_save(request, 201)


async def old_replace(request: Request) -> Response:
    """Handle PUT /api/v2/security/permissions/{name} [repo-43]: replace a permission."""
    responses.require_admin(request)
    _old_found(request)
    return await _old_save(request, 200)


def old_delete(request: Request) -> Response:
    """Handle DELETE /api/v2/security/permissions/{name} [repo-43]."""
    responses.require_admin(request)
    name = _old_found(request)["name"]
    context(request).store.delete(KIND, name)
    return PlainTextResponse(f"Permission '{name}' has been removed successfully.")
