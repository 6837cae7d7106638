# SPDX-License-Identifier: GPL-3.0-or-later
"""The routes of the Access service, and of the older interface of the repository manager."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import PlainTextResponse

from sandbox.repo.access import tokens
from sandbox.repo.access.answers import PREFIX, only
from sandbox.service import route

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

PING = f"{PREFIX}/v1/system/ping"


def routes() -> list[Route]:
    listed = f"{PREFIX}/v1/tokens"
    return [
        route(PING, only("ping", _ping)),
        route(listed, only("tokens", tokens.listing)),
        route(listed, only("tokens", tokens.create), "POST"),
        route(f"{listed}/{{id}}", only("tokens", tokens.read)),
        route(f"{listed}/{{id}}", only("tokens", tokens.revoke), "DELETE"),
    ]


def _ping(_request: Request) -> Response:
    """GET /access/api/v1/system/ping: server fact [repo-31]."""
    return PlainTextResponse("OK")
