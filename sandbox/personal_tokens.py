# SPDX-License-Identifier: GPL-3.0-or-later
"""Personal access tokens of issue tracker and wiki, as in server fact [tracker-41]."""

from __future__ import annotations

import secrets
from datetime import datetime, timezone
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from sandbox.accounts import login_of, token_kind
from sandbox.context import Service
from sandbox.service import json_body

ADDRESS = "/rest/pat/latest/tokens"
_DAY_MS = 86_400_000
#: Maximum number of tokens per account.
_MAX_TOKENS = 10


class PersonalTokens:
    """Request handlers for the tokens of a service."""

    def __init__(self, service: Service) -> None:
        self._service, self._kind = service, token_kind(service)

    async def tokens(self, request: Request) -> Response:
        """List the tokens of the account (GET), or create one (POST)."""
        if self._is_missing():
            return self._service.not_found(request)
        if request.method == "GET":
            return JSONResponse([_shown(token) for _number, token in self._owned(request)])
        return self._create(request, json_body(await request.body()))

    async def token(self, request: Request) -> Response:
        """Revoke a token of the account."""
        if self._is_missing():
            return self._service.not_found(request)
        number = request.path_params["id"]
        if number not in dict(self._owned(request)):
            return _refusal(404, "Token not found")
        self._service.context.store.delete(self._kind, number)
        return Response(status_code=204)

    def _is_missing(self) -> bool:
        service = self._service
        return not service.real or service.settings["deployment"] == "Cloud"

    def _owned(self, request: Request) -> list[tuple[str, dict[str, Any]]]:
        user = login_of(request).user
        every = self._service.context.store.items(self._kind)
        return [(number, token) for number, token in every if token["user"] == user]

    def _create(self, request: Request, data: Any) -> Response:
        name = data.get("name") if isinstance(data, dict) else None
        days = data.get("expirationDuration") if isinstance(data, dict) else None
        if not isinstance(name, str) or not name.strip() or len(name) > 255:
            return _refusal(400, "The token name is missing or too long")
        if days is not None and (not isinstance(days, int) or days < 1):
            return _refusal(400, "expirationDuration must be a positive number of days")
        if len(self._owned(request)) >= _MAX_TOKENS:
            return _refusal(400, "You have reached the maximum number of tokens")
        context = self._service.context
        now, number = context.now_ms(), context.store.next_id(self._kind)
        token = {
            "id": number,
            "name": name,
            "user": login_of(request).user,
            "secret": secrets.token_hex(22),
            "created": now,
            "expiring": None if days is None else now + days * _DAY_MS,
        }
        context.store.put(self._kind, str(number), token)
        return JSONResponse({**_shown(token), "rawToken": token["secret"]}, 201)


def _shown(token: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": token["id"],
        "name": token["name"],
        "createdAt": _iso(token["created"]),
        "expiringAt": None if token["expiring"] is None else _iso(token["expiring"]),
    }


def _iso(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "+0000")


def _refusal(status: int, message: str) -> Response:
    return JSONResponse({"errorMessages": [message], "errors": {}}, status)
