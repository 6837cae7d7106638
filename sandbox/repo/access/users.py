# SPDX-License-Identifier: GPL-3.0-or-later
"""Handle requests for users: the API of Access, and the older API of the repository manager."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, PlainTextResponse, Response

from sandbox.context import Context, context
from sandbox.repo import responses
from sandbox.repo.access import accounts
from sandbox.repo.access.responses import absent, body_of, page, refusal, require_admin
from sandbox.repo.responses import SERVICE, error

if TYPE_CHECKING:
    from starlette.requests import Request

_FLAGS = ("admin", "profile_updatable", "disable_ui_access", "internal_password_disabled")
_FIELDS = ("email", *_FLAGS)
#: Fields, and their names in the older API.
_OLD = {
    "email": "email",
    "admin": "admin",
    "profile_updatable": "profileUpdatable",
    "disable_ui_access": "disableUIAccess",
    "internal_password_disabled": "internalPasswordDisabled",
}


def _shown(current: Context, user: dict[str, Any]) -> dict[str, Any]:
    fields = {name: user[name] for name in (*_FIELDS, "realm")}
    groups = accounts.groups_of(current, user["name"])
    return {"username": user["name"], **fields, "groups": groups, "status": "enabled"}


def listing(request: Request) -> Response:
    """Handle GET /access/api/v2/users [repo-42]: list the names of all users."""
    require_admin(request)
    current = context(request)
    rows = [
        {"username": name, "uri": f"{request.url}/{responses.quote(name)}", "realm": "internal"}
        for name in accounts.names(current)
    ]
    return page(request, "users", rows)


def read(request: Request) -> Response:
    """Handle GET /access/api/v2/users/{name} [repo-42]: return a user without the password."""
    require_admin(request)
    return JSONResponse(_shown(context(request), _found(request)))


def _found(request: Request) -> dict[str, Any]:
    user = accounts.find(context(request), request.path_params["name"].lower())
    if user is None:
        raise absent("User")
    return user


def _problem(current: Context, user: dict[str, Any], groups: list[str]) -> str:
    """Return the server's error message for an invalid user, or "" for a valid one [repo-42]."""
    if user.get("disable_ui_access") and (user.get("admin") or user.get("profile_updatable")):
        return "disable_ui_access excludes admin and profile_updatable"
    if not user.get("password") and not user.get("internal_password_disabled"):
        return "password is required"
    unknown = [name for name in groups if current.store.get(accounts.GROUPS, name) is None]
    return f"Group {unknown[0]} not found" if unknown else ""


def _save(current: Context, user: dict[str, Any], groups: set[str] | None) -> dict[str, Any]:
    kept = {name: user[name] for name in (*_FIELDS, "name", "password", "realm") if name in user}
    current.store.put(accounts.USERS, user["name"], kept)
    if groups is not None:
        accounts.set_groups(current, user["name"], groups)
    return accounts.find(current, user["name"]) or {}


def _automatic(current: Context) -> set[str]:
    """Return the names of the groups that every new user joins [repo-41]."""
    return {group["name"] for group in current.store.values(accounts.GROUPS) if group["auto_join"]}


async def create(request: Request) -> Response:
    """Handle POST /access/api/v2/users [repo-42]: create a user; 409 if the name exists."""
    require_admin(request)
    current, data = context(request), await body_of(request)
    name = str(data.get("username") or "").lower()
    if accounts.find(current, name) is not None:
        raise refusal(409, "CONFLICT", f"User {name} already exists")
    groups = data.get("groups") or []
    user = {"name": name, "profile_updatable": True, **data}
    problem = _problem(current, user, groups)
    if problem or not name or not data.get("email"):
        raise refusal(400, "BAD_REQUEST", problem or "username and email are required")
    made = _save(current, user, {*groups, *_automatic(current)})
    return JSONResponse(_shown(current, made), 201)


async def update(request: Request) -> Response:
    """Handle PATCH /access/api/v2/users/{name} [repo-42]: change the given fields of a user."""
    require_admin(request)
    current, user, data = context(request), _found(request), await body_of(request)
    given = {name: data[name] for name in (*_FIELDS, "password") if name in data}
    problem = _problem(current, {**user, **given}, [])
    if problem:
        raise refusal(400, "BAD_REQUEST", problem)
    return JSONResponse(_shown(current, _save(current, {**user, **given}, None)))


async def groups(request: Request) -> Response:
    """Handle PATCH /access/api/v2/users/{name}/groups [repo-42]: add and remove groups."""
    require_admin(request)
    current, user, data = context(request), _found(request), await body_of(request)
    add = data.get("add", [])
    unknown = [name for name in add if current.store.get(accounts.GROUPS, name) is None]
    if unknown:
        raise refusal(404, "NOT_FOUND", f"Group {unknown[0]} not found")
    wanted = {*accounts.groups_of(current, user["name"]), *add} - {*data.get("remove", [])}
    accounts.set_groups(current, user["name"], wanted)
    return JSONResponse({"groups": accounts.groups_of(current, user["name"])})


def _remove(current: Context, name: str) -> None:
    accounts.set_groups(current, name, set())
    current.store.put(accounts.USERS, name, {"deleted": True})


def delete(request: Request) -> Response:
    """Handle DELETE /access/api/v2/users/{name} [repo-42]."""
    require_admin(request)
    _remove(context(request), _found(request)["name"])
    return Response(status_code=204)


# -- the older API --------------------------------------------------------------------------------


def old_listing(request: Request) -> Response:
    """Handle GET /api/security/users [repo-42]: list the names of all users."""
    responses.require_admin(request)
    current = context(request)
    base = f"{current.base_url(request, SERVICE)}/api/security/users"
    return JSONResponse(
        [
            {"name": name, "uri": f"{base}/{responses.quote(name)}", "realm": "internal"}
            for name in accounts.names(current)
        ]
    )


def old_read(request: Request) -> Response:
    """Handle GET /api/security/users/{name} [repo-42]: return a user without the password."""
    responses.require_admin(request)
    current, user = context(request), _old_found(request)
    fields = {old: user[new] for new, old in _OLD.items()}
    groups = accounts.groups_of(current, user["name"])
    return JSONResponse({"name": user["name"], **fields, "realm": user["realm"], "groups": groups})


def _old_found(request: Request) -> dict[str, Any]:
    name = request.path_params["name"].lower()
    user = accounts.find(context(request), name)
    if user is None:
        raise error(404, f"User '{name}' not found")
    return user


def _old_save(current: Context, user: dict[str, Any], data: dict[str, Any]) -> None:
    given = {new: data[old] for new, old in _OLD.items() if data.get(old) is not None}
    given |= {"password": data["password"]} if data.get("password") else {}
    changed = {**user, **given}
    problem = _problem(current, changed, data.get("groups") or [])
    if problem:
        raise error(400, problem)
    groups = data.get("groups")
    _save(current, changed, None if groups is None else set(groups))


async def old_put(request: Request) -> Response:
    """Handle PUT /api/security/users/{name} [repo-42]: create or replace a user."""
    responses.require_admin(request)
    current, data = context(request), await body_of(request)
    name = request.path_params["name"].lower()
    groups = data.get("groups")
    data["groups"] = list(_automatic(current)) if groups is None else groups
    blank = {"name": name, "email": "", "profile_updatable": True}
    _old_save(current, blank, data)
    return Response(status_code=201)


async def old_update(request: Request) -> Response:
    """Handle POST /api/security/users/{name} [repo-42]: change the given fields of a user."""
    responses.require_admin(request)
    user, data = _old_found(request), await body_of(request)
    _old_save(context(request), user, data)
    return Response(status_code=200)


def old_delete(request: Request) -> Response:
    """Handle DELETE /api/security/users/{name} [repo-42]."""
    responses.require_admin(request)
    name = _old_found(request)["name"]
    _remove(context(request), name)
    return PlainTextResponse(f"The user: '{name}' has been removed successfully.")
