# SPDX-License-Identifier: GPL-3.0-or-later
"""Common responses of the Access service, and checks of its requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

from sandbox.context import context
from sandbox.repo.responses import SERVICE, account, error
from sandbox.service import ErrorResponse, json_body

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from sandbox.service import Handler

    AsyncHandler = Callable[[Request], Awaitable[Response]]

PREFIX = "/access/api"


def refusal(status: int, code: str, message: str, detail: str = "") -> ErrorResponse:
    """Return an error in the format of Access [repo-31], which the caller raises."""
    body = {"errors": [{"code": code, "message": message, "detail": detail}]}
    return ErrorResponse(JSONResponse(body, status))


def absent(what: str) -> ErrorResponse:
    return refusal(404, "NOT_FOUND", f"{what} not found")


def may_administer(request: Request) -> bool:
    return bool(account(request).get("admin", False))


def require_admin(request: Request) -> None:
    """Raise a 403 unless the user is an administrator [repo-31]."""
    if not may_administer(request):
        raise refusal(403, "FORBIDDEN", "Forbidden", "the user is not an administrator")


async def body_of(request: Request) -> dict[str, Any]:
    """Return the JSON object in the body of a request. Raise a 400 for any other body."""
    found = json_body(await request.body())
    if not isinstance(found, dict):
        raise refusal(400, "BAD_REQUEST", "the body is not a JSON object")
    return found


def only(kind: str, handler: Handler) -> Handler:
    """Return a handler that responds with 404 if the setting `access` does not list its API.

    Server fact [repo-31]: a server without Access responds with the repository manager's 404.

    :param kind: name of the API, such as `tokens`
    """

    def guarded(request: Request) -> Response | Awaitable[Response]:
        current = context(request)
        known = current.settings(SERVICE)["access"]
        if not current.real(SERVICE) or not known:
            raise error(404, "Not Found")
        if kind not in known:
            raise refusal(404, "NOT_FOUND", "HTTP 404 Not Found")
        return handler(request)

    guarded.__doc__ = handler.__doc__
    return guarded


def page(request: Request, member: str, rows: list[dict[str, Any]]) -> Response:
    """Return a response with a page of a list, and with a `cursor` for the next page [repo-41].

    The setting `access_page` is the maximum number of rows.

    :param member: key of the list
    """
    size: int = context(request).settings(SERVICE)["access_page"]
    start = int(request.query_params.get("cursor") or 0)
    left = {"cursor": str(start + size)} if start + size < len(rows) else {}
    return JSONResponse({member: rows[start : start + size], **left})
