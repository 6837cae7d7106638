# SPDX-License-Identifier: GPL-3.0-or-later
"""Error responses of the wiki [wiki-2, wiki-3]."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from starlette.responses import JSONResponse

from sandbox.service import ErrorResponse, json_body

_JAVA = "com.atlassian.confluence.api.service.exceptions"


def error(status: int, message: str) -> ErrorResponse:
    """Return an error response of the wiki. `authorized` is false in all errors [wiki-2]."""
    return ErrorResponse(
        JSONResponse(
            {
                "statusCode": status,
                "data": {"authorized": False, "valid": True, "errors": [], "successful": False},
                "message": message,
                "reason": HTTPStatus(status).phrase,
            },
            status,
        )
    )


def bad_request(message: str) -> ErrorResponse:
    return error(400, f"{_JAVA}.BadRequestException: {message}")


def no_content(content_id: str) -> ErrorResponse:
    message = f"No content found with id: ContentId{{id={content_id}}}"
    return error(404, f"{_JAVA}.NotFoundException: {message}")


def no_space(key: str) -> ErrorResponse:
    return error(404, f"{_JAVA}.NotFoundException: No space with key : {key}")


def conflict(message: str) -> ErrorResponse:
    return error(409, f"{_JAVA}.ConflictException: {message}")


def forbidden(message: str) -> ErrorResponse:
    return error(403, f"{_JAVA}.PermissionException: {message}")


def json_object(body: bytes) -> dict[str, Any]:
    """Parse a body that must be a JSON object. Raises a 400 otherwise."""
    members = json_body(body)
    if not isinstance(members, dict):
        raise bad_request("Could not parse the request body as a JSON object")
    return members


def member(value: Any, *path: str) -> Any:
    """Return the nested member `value[path[0]][path[1]]...`, or None if it is missing."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
