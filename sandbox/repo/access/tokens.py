# SPDX-License-Identifier: GPL-3.0-or-later
"""Create, list, read and revoke access tokens."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response

from sandbox.context import Context, context
from sandbox.repo.access.responses import absent, body_of, may_administer, refusal
from sandbox.repo.responses import SERVICE, user_name

if TYPE_CHECKING:
    from starlette.requests import Request

KIND = "repo.access.token"
_ISSUER = "jfac@01sandbox"
_LONGEST = {"username": 255, "scope": 500, "description": 1024}
_GRANTS = ("client_credentials", "refresh_token")
_OWN = "applied-permissions/user"
_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_IDENTITY_TOKEN = "urn:ietf:params:oauth:token-type:id_token"
_ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"


def user_of(current: Context, secret: str) -> str | None:
    """Return the user of a token, or None if the token is unknown or expired."""
    for token in current.store.values(KIND):
        if token["secret"] == secret and not _is_expired(current, token):
            user: str = token["user"]
            return user
    return None


def _is_expired(current: Context, token: dict[str, Any]) -> bool:
    return bool(token["expiry"]) and token["expiry"] * 1000 <= current.now_ms()


async def create(request: Request) -> Response:
    """Handle POST /access/api/v1/tokens [repo-40]: create a token."""
    current, data = context(request), await body_of(request)
    if data.get("grant_type", "client_credentials") not in _GRANTS:
        raise refusal(400, "BAD_REQUEST", "unsupported grant_type")
    for name, longest in _LONGEST.items():
        if len(str(data.get(name) or "")) > longest:
            raise refusal(400, "BAD_REQUEST", f"{name} exceeds {longest} characters")
    user = str(data.get("username") or user_name(request)).lower()
    scope = str(data.get("scope") or _OWN)
    lifetime = data.get("expires_in")
    lifetime = current.settings(SERVICE)["token_default_seconds"] if lifetime is None else lifetime
    own = user == user_name(request) and scope == _OWN and lifetime > 0
    if not own and not may_administer(request):
        raise refusal(403, "FORBIDDEN", "Forbidden", "only an administrator creates this token")
    now = current.now_ms() // 1000
    number = f"{current.store.next_id(KIND):032x}"
    token: dict[str, Any] = {
        "token_id": number,
        "secret": f"eyJ.sandbox.{secrets.token_hex(24)}",
        "user": user,
        "scope": scope,
        "description": str(data.get("description") or ""),
        "issued_at": now,
        "expiry": now + lifetime if lifetime else 0,
        "refreshable": bool(data.get("refreshable", False)),
    }
    # server fact [repo-40]: a token with a lifetime below the threshold is not stored
    if not lifetime or lifetime >= current.settings(SERVICE)["token_threshold_seconds"]:
        current.store.put(KIND, number, token)
    response = {
        "token_id": number,
        "access_token": token["secret"],
        "expires_in": lifetime,
        "scope": scope,
        "token_type": "Bearer",
    }
    if token["refreshable"]:
        response["refresh_token"] = secrets.token_hex(16)
    return JSONResponse(response)


async def exchange(request: Request) -> Response:
    """Handle POST /access/api/v1/oidc/token [repo-44]: exchange an identity token."""
    current, data = context(request), await body_of(request)
    types = (data.get("grant_type"), data.get("subject_token_type"))
    if types != (_EXCHANGE, _IDENTITY_TOKEN):
        raise refusal(400, "BAD_REQUEST", "unsupported grant_type or subject_token_type")
    known = current.credentials(SERVICE).get("identities", {}).get(data.get("subject_token"))
    if known is None or known["provider"] != data.get("provider_name"):
        raise refusal(400, "BAD_REQUEST", "Invalid audience")
    wanted = (data.get("project_key"), data.get("identity_mapping_name", known.get("mapping")))
    if wanted != (known.get("project_key"), known.get("mapping")):
        raise refusal(403, "FORBIDDEN", "no identity mapping matches the claims")
    lifetime = current.settings(SERVICE)["oidc_token_seconds"]
    now, number = current.now_ms() // 1000, f"{current.store.next_id(KIND):032x}"
    token = {
        "token_id": number,
        "secret": f"eyJ.exchanged.{secrets.token_hex(24)}",
        "user": known["user"],
        "scope": _OWN,
        "description": "",
        "issued_at": now,
        "expiry": now + lifetime,
        "refreshable": False,
    }
    current.store.put(KIND, number, token)
    answer = {"access_token": token["secret"], "expires_in": lifetime, "scope": _OWN}
    return JSONResponse({**answer, "token_type": "Bearer", "issued_token_type": _ACCESS_TOKEN})


def listing(request: Request) -> Response:
    """Handle GET /access/api/v1/tokens [repo-40]: list the valid tokens.

    Administrators see the tokens of all users. Query parameters filter the list; the description
    may end with `*`.
    """
    current, query = context(request), request.query_params
    wanted = query.get("description")
    found = [
        _shown(token)
        for token in _visible(request)
        if not _is_expired(current, token)
        and (wanted is None or _fits(wanted, token["description"]))
        and query.get("username") in (None, token["user"])
        and query.get("refreshable") in (None, str(token["refreshable"]).lower())
    ]
    return JSONResponse({"tokens": found})


def _fits(wanted: str, description: str) -> bool:
    if wanted.endswith("*"):
        return description.startswith(wanted[:-1])
    return description == wanted


def _visible(request: Request) -> list[dict[str, Any]]:
    every = context(request).store.values(KIND)
    user = user_name(request)
    return [token for token in every if may_administer(request) or token["user"] == user]


def _shown(token: dict[str, Any]) -> dict[str, Any]:
    shown = {
        "token_id": token["token_id"],
        "subject": f"{_ISSUER}/users/{token['user']}",
        "issued_at": token["issued_at"],
        "issuer": _ISSUER,
        "description": token["description"],
        "refreshable": token["refreshable"],
    }
    return shown | ({"expiry": token["expiry"]} if token["expiry"] else {})


def _found(request: Request) -> dict[str, Any]:
    """Return the token whose id is in the path. Raise a 404 if it is not valid or not visible."""
    name = request.path_params["id"]
    for token in _visible(request):
        if token["token_id"] == name and not _is_expired(context(request), token):
            return token
    raise absent("Token")


def read(request: Request) -> Response:
    """Handle GET /access/api/v1/tokens/{id} [repo-40]; `me` is the token of the request."""
    if request.path_params["id"] == "me":
        secret = request.headers.get("authorization", "").removeprefix("Bearer ")
        stored = (token for token in _visible(request) if token["secret"] == secret)
        of_login = {"token_id": "login", "subject": f"{_ISSUER}/users/{user_name(request)}"}
        return JSONResponse(next(map(_shown, stored), of_login))
    return JSONResponse(_shown(_found(request)))


def revoke(request: Request) -> Response:
    """Handle DELETE /access/api/v1/tokens/{id} [repo-40]: revoke a token."""
    context(request).store.delete(KIND, _found(request)["token_id"])
    return Response(status_code=200)
