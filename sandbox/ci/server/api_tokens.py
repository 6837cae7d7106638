# SPDX-License-Identifier: GPL-3.0-or-later
"""API tokens of users [ci-44]."""

from __future__ import annotations

import hashlib
import secrets
import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from starlette.responses import JSONResponse, Response

from sandbox.ci.call import Action, Call, form_fields
from sandbox.ci.plugins.versions import older
from sandbox.ci.server import access, pages
from sandbox.context import Context
from sandbox.service import ErrorResponse

_PROPERTY = ["descriptorByName", "jenkins.security.ApiTokenProperty"]
#: First release whose tokens expire.
_EXPIRING = "2.548"
_HASHED = "11"
_DAY_MS = 86_400_000


def put(context: Context, entry: Mapping[str, Any]) -> None:
    """Store a token of a seed, with the keys `id, user, name, secret, age, days`.

    `age` is the number of days since the creation. `days` is the number of days until the token
    expires; without `days` it never expires.
    """
    created = context.now_ms() - entry.get("age", 0) * _DAY_MS
    days = entry.get("days")
    expires = None if days is None else context.now_ms() + days * _DAY_MS
    names = ("id", "user", "name", "secret")
    token = {**{name: entry[name] for name in names}, "created": created, "expires": expires}
    context.store.put(access.API_TOKENS, entry["id"], token)


def action(call: Call) -> Action | None:
    """Return the action for a path below `user/NAME` or `me` that creates or revokes tokens."""
    owner = 1 if call.rest[:1] == ["me"] else 2
    if call.rest[:1] not in (["me"], ["user"]) or call.rest[owner : owner + 2] != _PROPERTY:
        return None
    actions = {"generateNewToken": _create, "revoke": _revoke}
    handler = actions.get("/".join(call.rest[owner + 2 :]))
    return handler and Action(handler, "POST", "", listed=False)


def listing(call: Call) -> dict[str, Any]:
    """Return a rule that simulates the script which lists the tokens of a user."""
    return {
        "match": r"getProperty\(ApiTokenProperty\)[\s\S]*tokenListSortedByName",
        "result": lambda arguments: _listed(call, arguments),
    }


def _listed(call: Call, arguments: Mapping[str, Any]) -> dict[str, Any]:
    user = arguments.get("user") or call.login.user
    if user not in access.users(call.site.context):
        return {"user": None}
    tokens = call.site.context.store.values(access.API_TOKENS)
    return {
        "user": user,
        "may_create": _may_create(call, user),
        "stores_ends": _stores_ends(call),
        "now": call.site.context.now_ms(),
        "new_end": _new_end(call, arguments.get("days")),
        "tokens": [
            {
                "id": token["id"],
                "name": token["name"],
                "created": token["created"],
                "expires": token["expires"],
                "logs_in": arguments.get("digest") == _digest(token["secret"]),
            }
            for token in sorted(tokens, key=lambda token: str(token["name"]).lower())
            if token["user"] == user and token["name"].startswith(arguments.get("prefix", ""))
        ],
    }


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.removeprefix(_HASHED).encode()).hexdigest()


def _stores_ends(call: Call) -> bool:
    return not older(call.site.context.settings("ci")["version"], _EXPIRING)


def _may_create(call: Call, user: str) -> bool:
    trusted = call.site.context.settings("ci")["admin_creates_tokens"]
    return call.login.user == user or (trusted and call.login.may(access.ADMINISTER))


def _owner(call: Call) -> str:
    user = call.login.user if call.rest[0] == "me" else call.rest[1]
    if user is None or user not in access.users(call.site.context):
        raise ErrorResponse(pages.not_found())
    return user


async def _create(call: Call) -> Response:
    user = _owner(call)
    if not _may_create(call, user):
        return Response(status_code=403)
    form = {name: values[-1] for name, values in (await form_fields(call.request)).items()}
    context = call.site.context
    now = _now(context)
    token_id, value = str(uuid.uuid4()), _HASHED + secrets.token_hex(16)
    name = form.get("newTokenName") or f"Token created on {now.isoformat()}"
    data = {"tokenUuid": token_id, "tokenName": name, "tokenValue": value}
    expires = None
    if _stores_ends(call):
        try:
            end = _end(form, now)
        except (ValueError, OverflowError):
            return pages.oops("the expiration cannot be parsed")
        if end is not None and end <= now:
            return JSONResponse({"status": "error", "message": "The expiration date is past"})
        expires = None if end is None else int(end.timestamp() * 1000)
        last = None if end is None else end - timedelta(days=1)
        data["expirationDate"] = "never" if last is None else f"{last:%m/%d/%y}"
    token = {"id": token_id, "name": name, "user": user, "secret": value, "expires": expires}
    context.store.put(access.API_TOKENS, token_id, {**token, "created": context.now_ms()})
    return JSONResponse({"status": "ok", "data": data})


def _now(context: Context) -> datetime:
    return datetime.fromtimestamp(context.now_ms() / 1000, timezone.utc)


def _new_end(call: Call, days: int | None) -> int | None:
    """Return the end of a token that would be created now, in epoch ms."""
    form = {"expirationDuration": str(days or "never")}
    end = _end(form, _now(call.site.context))
    return None if end is None else int(end.timestamp() * 1000)


def _end(form: Mapping[str, str], now: datetime) -> datetime | None:
    """Return the end of the last day on which a token is valid, or `None` if it never expires."""
    duration = form.get("expirationDuration", "").strip()
    if duration in ("", "never"):
        return None
    if duration == "custom":
        last = datetime.fromisoformat(form.get("tokenExpiration", "")).replace(tzinfo=timezone.utc)
    else:
        last = now + timedelta(days=int(duration))
    return last.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)


async def _revoke(call: Call) -> Response:
    user = _owner(call)
    if call.login.user != user:
        call.require(access.ADMINISTER)
    token_id = (await form_fields(call.request)).get("tokenUuid", [""])[-1]
    if not token_id.strip():
        return pages.text("The tokenUuid cannot be empty", 400)
    store = call.site.context.store
    if (store.get(access.API_TOKENS, token_id) or {}).get("user") == user:
        store.delete(access.API_TOKENS, token_id)
    return Response(status_code=200)
