# SPDX-License-Identifier: GPL-3.0-or-later
"""Handle requests for groups: the API of Access, and the older API of the repository manager."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, PlainTextResponse, Response

from sandbox.context import context
from sandbox.repo import responses
from sandbox.repo.access import accounts
from sandbox.repo.access.responses import absent, body_of, page, refusal, require_admin
from sandbox.repo.responses import SERVICE, error

if TYPE_CHECKING:
    from starlette.requests import Request

_FIELDS = ("description", "external_id", "auto_join", "admin_privileges")
#: Fields, and their names in the older API.
_OLD = {
    "description": "description",
    "external_id": "externalId",
    "auto_join": "autoJoin",
    "admin_privileges": "adminPrivileges",
    "members": "userNames",
}


def listing(request: Request) -> Response:
    """Handle GET /access/api/v2/groups [repo-41]: list the names of all groups."""
    require_admin(request)
    names = context(request).store.keys(accounts.GROUPS)
    rows = [{"group_name": name, "uri": f"{request.url}/{responses.quote(name)}"} for name in names]
    return page(request, "groups", rows)


def read(request: Request) -> Response:
    """Handle GET /access/api/v2/groups/{name} [repo-41]: return a group."""
    require_admin(request)
    return JSONResponse(_found(request))


def _found(request: Request) -> dict[str, Any]:
    group = context(request).store.get(accounts.GROUPS, request.path_params["name"])
    if group is None:
        raise absent("Group")
    return group


def _checked(request: Request, group: dict[str, Any]) -> dict[str, Any]:
    """Return a group unchanged if it is valid [repo-41].

    Raise a 400 for flags that exclude each other, a 404 for an unknown member.
    """
    if group.get("auto_join") and group.get("admin_privileges"):
        raise refusal(400, "BAD_REQUEST", "auto_join and admin_privileges exclude each other")
    for name in group.get("members") or ():
        if accounts.find(context(request), name) is None:
            raise refusal(404, "NOT_FOUND", f"User {name} not found")
    return group


async def create(request: Request) -> Response:
    """Handle POST /access/api/v2/groups [repo-41]: create a group; 409 if the name exists."""
    require_admin(request)
    current, data = context(request), await body_of(request)
    if current.store.get(accounts.GROUPS, str(data.get("name"))) is not None:
        raise refusal(409, "CONFLICT", f"Group {data['name']} already exists")
    kept = {name: data[name] for name in ("name", "members", *_FIELDS) if name in data}
    return JSONResponse(accounts.put_group(current, _checked(request, kept)), 201)


async def update(request: Request) -> Response:
    """Handle PATCH /access/api/v2/groups/{name} [repo-41]: change the given fields of a group."""
    require_admin(request)
    group, data = _found(request), await body_of(request)
    given = {name: data[name] for name in _FIELDS if name in data}
    changed = _checked(request, {**group, **given})
    return JSONResponse(accounts.put_group(context(request), changed))


async def members(request: Request) -> Response:
    """Handle PATCH /access/api/v2/groups/{name}/members [repo-41]: add and remove members."""
    require_admin(request)
    group, data = _found(request), await body_of(request)
    _checked(request, {"members": data.get("add")})
    left = {*group["members"], *data.get("add", [])} - {*data.get("remove", [])}
    changed = accounts.put_group(context(request), {**group, "members": list(left)})
    return JSONResponse({"members": changed["members"]})


def delete(request: Request) -> Response:
    """Handle DELETE /access/api/v2/groups/{name} [repo-41]."""
    require_admin(request)
    context(request).store.delete(accounts.GROUPS, _found(request)["name"])
    return Response(status_code=204)


# -- the older API --------------------------------------------------------------------------------


def old_listing(request: Request) -> Response:
    """Handle GET /api/security/groups [repo-41]: list the names of all groups."""
    responses.require_admin(request)
    current = context(request)
    base = f"{current.base_url(request, SERVICE)}/api/security/groups"
    names = current.store.keys(accounts.GROUPS)
    return JSONResponse(
        [{"name": name, "uri": f"{base}/{responses.quote(name)}"} for name in names]
    )


def old_read(request: Request) -> Response:
    """Handle GET /api/security/groups/{name} [repo-41]; `includeUsers=true` adds the members."""
    responses.require_admin(request)
    group = _old_found(request)
    shown = {old: group[new] for new, old in _OLD.items() if new != "members"}
    if request.query_params.get("includeUsers") == "true":
        shown["userNames"] = group["members"]
    return JSONResponse({"name": group["name"], **shown, "realm": group["realm"]})


def _old_found(request: Request) -> dict[str, Any]:
    group = context(request).store.get(accounts.GROUPS, request.path_params["name"])
    if group is None:
        raise error(404, f"Unable to find group '{request.path_params['name']}'")
    return group


def _given(data: dict[str, Any]) -> dict[str, Any]:
    if data.get("autoJoin") and data.get("adminPrivileges"):
        raise error(400, "autoJoin and adminPrivileges exclude each other")
    return {new: data[old] for new, old in _OLD.items() if data.get(old) is not None}


def _require_members(request: Request, given: dict[str, Any]) -> None:
    for name in given.get("members", ()):
        if accounts.find(context(request), name) is None:
            raise error(404, f"User '{name}' does not exist")


async def old_put(request: Request) -> Response:
    """Handle PUT /api/security/groups/{name} [repo-41]: create or replace a group."""
    responses.require_admin(request)
    given = _given(await body_of(request))
    _require_members(request, given)
    accounts.put_group(context(request), {"name": request.path_params["name"], **given})
    return Response(status_code=201)


async def old_update(request: Request) -> Response:
    """Handle POST /api/security/groups/{name} [repo-41]: change the given fields of a group."""
    responses.require_admin(request)
    group, given = _old_found(request), _given(await body_of(request))
    _require_members(request, given)
    accounts.put_group(context(request), {**group, **given})
    return Response(status_code=200)


def old_delete(request: Request) -> Response:
    """Handle DELETE /api/security/groups/{name} [repo-41]."""
    responses.require_admin(request)
    name = _old_found(request)["name"]
    context(request).store.delete(accounts.GROUPS, name)
    return PlainTextResponse(f"Group '{name}' has been removed successfully.")
