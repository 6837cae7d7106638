# SPDX-License-Identifier: GPL-3.0-or-later
"""Common responses of the artifact repository manager, and helpers to read a request."""

from __future__ import annotations

import urllib.parse
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response

from sandbox.context import context
from sandbox.repo.access import accounts
from sandbox.service import ErrorResponse

if TYPE_CHECKING:
    from starlette.requests import Request

SERVICE = "repo"
VERSION_HEADER = {"Docker-Distribution-Api-Version": "registry/2.0"}


def error(status: int, message: str, headers: dict[str, str] | None = None) -> ErrorResponse:
    """Return an error with a JSON body `errors` [repo-2], which the caller raises."""
    body = {"errors": [{"status": status, "message": message}]}
    return ErrorResponse(JSONResponse(body, status, headers))


def empty(status: int, headers: dict[str, str] | None = None) -> ErrorResponse:
    """Return an error without a body [repo-2], which the caller raises."""
    return ErrorResponse(Response(status_code=status, headers=headers))


def registry_error(status: int, code: str, message: str, detail: Any) -> ErrorResponse:
    """Return an error in the format of container registries [repo-2], which the caller raises."""
    body = {"errors": [{"code": code, "message": message, "detail": detail}]}
    return ErrorResponse(JSONResponse(body, status, VERSION_HEADER))


def user_name(request: Request) -> str:
    """Return the name of the authenticated user."""
    name: str = request.scope["sandbox.user"]
    return name


def account(request: Request) -> dict[str, Any]:
    """Return the account of the authenticated user; see `accounts.find`."""
    return accounts.find(context(request), user_name(request)) or {}


def require_admin(request: Request) -> None:
    """Raise a 403 if the user is not an administrator [repo-3]."""
    if not account(request).get("admin", False):
        raise error(403, f"The user: '{user_name(request)}' is not an administrator")


def raw_tail(request: Request, prefix: str) -> str:
    """Return the part of the path after a literal prefix, still percent-encoded."""
    path: str = request.scope["path"]
    return path.removeprefix(f"/{SERVICE}{prefix}")


def iso(milliseconds: int) -> str:
    """Format a time as `2024-01-02T03:04:05.678Z`."""
    moment = datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def java_time(milliseconds: int) -> str:
    """Format a time as in build records [repo-11]: `2024-01-02T03:04:05.678+0000`."""
    return iso(milliseconds)[:-1] + "+0000"


def http_time(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
    return moment.strftime("%a, %d %b %Y %H:%M:%S GMT")


def quote(text: str) -> str:
    """Percent-encode a path segment."""
    return urllib.parse.quote(text, safe="")


def flag(request: Request, name: str, default: int = 0) -> int:
    """Return a numeric query parameter, or `default` if it is missing or empty.

    Raise a 400 if the value is not a number.
    """
    text = request.query_params.get(name)
    if text is None or text == "":
        return default
    try:
        return int(text)
    except ValueError:
        raise error(400, f"Bad value for query parameter '{name}': {text}") from None
