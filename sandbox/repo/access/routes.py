# SPDX-License-Identifier: GPL-3.0-or-later
"""Routes of the Access service, and of the older security API of the repository manager."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import PlainTextResponse

from sandbox.repo.access import groups, permissions, tokens, users
from sandbox.repo.access.responses import PREFIX, only
from sandbox.service import route

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from sandbox.service import Handler

PING = f"{PREFIX}/v1/system/ping"
EXCHANGE = f"{PREFIX}/v1/oidc/token"


def routes() -> list[Route]:
    listed = f"{PREFIX}/v1/tokens"
    return [
        route(PING, only("ping", _ping)),
        route(EXCHANGE, only("oidc", tokens.exchange), "POST"),
        route(listed, only("tokens", tokens.listing)),
        route(listed, only("tokens", tokens.create), "POST"),
        route(f"{listed}/{{id}}", only("tokens", tokens.read)),
        route(f"{listed}/{{id}}", only("tokens", tokens.revoke), "DELETE"),
        *_group_routes(),
        *_user_routes(),
        *_permission_routes(),
    ]


def old_routes(real: Callable[[Handler], Handler]) -> list[Route]:
    """Return the routes of the older security API.

    :param real: wraps a handler to respond in the real flavour only
    """
    found: list[Route] = []
    for name, kind in (("groups", groups), ("users", users)):
        listed = f"/api/security/{name}"
        found += [
            route(listed, real(kind.old_listing)),
            route(f"{listed}/{{name}}", real(kind.old_read)),
            route(f"{listed}/{{name}}", real(kind.old_put), "PUT"),
            route(f"{listed}/{{name}}", real(kind.old_update), "POST"),
            route(f"{listed}/{{name}}", real(kind.old_delete), "DELETE"),
        ]
    listed = "/api/v2/security/permissions"
    return [
        *found,
        route(listed, real(permissions.old_listing)),
        route(f"{listed}/{{name}}", real(permissions.old_read)),
        route(f"{listed}/{{name}}", real(permissions.old_create), "POST"),
        route(f"{listed}/{{name}}", real(permissions.old_replace), "PUT"),
        route(f"{listed}/{{name}}", real(permissions.old_delete), "DELETE"),
    ]


def _permission_routes() -> list[Route]:
    listed = f"{PREFIX}/v2/permissions"
    return [
        route(listed, only("permissions", permissions.listing)),
        route(listed, only("permissions", permissions.create), "POST"),
        route(f"{listed}/{{name}}", only("permissions", permissions.read)),
        route(f"{listed}/{{name}}", only("permissions", permissions.delete), "DELETE"),
        route(f"{listed}/{{name}}/{{type}}", only("permissions", permissions.replace), "PUT"),
        route(f"{listed}/{{name}}/{{type}}", only("permissions", permissions.remove), "DELETE"),
    ]


def _group_routes() -> list[Route]:
    listed = f"{PREFIX}/v2/groups"
    return [
        route(listed, only("groups", groups.listing)),
        route(listed, only("groups", groups.create), "POST"),
        route(f"{listed}/{{name}}", only("groups", groups.read)),
        route(f"{listed}/{{name}}", only("groups", groups.update), "PATCH"),
        route(f"{listed}/{{name}}", only("groups", groups.delete), "DELETE"),
        route(f"{listed}/{{name}}/members", only("groups", groups.members), "PATCH"),
    ]


def _user_routes() -> list[Route]:
    listed = f"{PREFIX}/v2/users"
    return [
        route(listed, only("users", users.listing)),
        route(listed, only("users", users.create), "POST"),
        route(f"{listed}/{{name}}", only("users", users.read)),
        route(f"{listed}/{{name}}", only("users", users.update), "PATCH"),
        route(f"{listed}/{{name}}", only("users", users.delete), "DELETE"),
        route(f"{listed}/{{name}}/groups", only("users", users.groups), "PATCH"),
    ]


def _ping(_request: Request) -> Response:
    """Handle GET /access/api/v1/system/ping [repo-31]: confirm that Access is running."""
    return PlainTextResponse("OK")
