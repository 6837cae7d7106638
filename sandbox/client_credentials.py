# SPDX-License-Identifier: GPL-3.0-or-later
"""Token service of the cloud for client credentials, as in server fact [tracker-42]."""

from __future__ import annotations

import secrets
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from sandbox.accounts import access_token_kind
from sandbox.context import Service
from sandbox.service import json_body

ADDRESS = "/oauth/token"


class ClientCredentials:
    """Exchange a client id and secret of the credentials (`clients`) for an access token.

    The setting `oauth2_seconds` is its lifetime.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    async def token(self, request: Request) -> Response:
        """Handle POST /oauth/token, which needs no other login."""
        data = json_body(await request.body())
        service = self._service
        if not service.real or not isinstance(data, dict):
            return service.not_found(request)
        if data.get("grant_type") != "client_credentials":
            return _refusal(403, "unauthorized_client", "Grant type not allowed for the client.")
        clients = service.context.credentials(service.name).get("clients", {})
        client: dict[str, Any] = clients.get(data.get("client_id"), {})
        if not client or client["secret"] != data.get("client_secret"):
            return _refusal(401, "access_denied", "Unauthorized")
        context, kind = service.context, access_token_kind(service)
        life = service.settings["oauth2_seconds"]
        token = {
            "user": client["user"],
            "secret": f"eyJ.exchanged.{secrets.token_hex(24)}",
            "expiring": context.now_ms() + int(life * 1000),
        }
        context.store.put(kind, str(context.store.next_id(kind)), token)
        answer = {"access_token": token["secret"], "expires_in": life, "token_type": "Bearer"}
        return JSONResponse(answer)


def _refusal(status: int, error: str, description: str) -> Response:
    return JSONResponse({"error": error, "error_description": description}, status)
