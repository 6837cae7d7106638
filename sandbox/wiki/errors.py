# SPDX-License-Identifier: GPL-3.0-or-later
"""How the wiki says no [wiki-2, wiki-3]."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from starlette.responses import JSONResponse

from sandbox.service import Answer, json_body

_JAVA = "com.atlassian.confluence.api.service.exceptions"


def error(status: int, message: str) -> Answer:
    """The wiki's envelope; `authorized` is false whatever went wrong [wiki-2]."""
    return Answer(
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


def bad_request(message: str) -> Answer:
    return error(400, f"{_JAVA}.BadRequestException: {message}")


def no_content(content_id: str) -> Answer:
    words = f"No content found with id: ContentId{{id={content_id}}}"
    return error(404, f"{_JAVA}.NotFoundException: {words}")


def no_space(key: str) -> Answer:
    return error(404, f"{_JAVA}.NotFoundException: No space with key : {key}")


def conflict(message: str) -> Answer:
    return error(409, f"{_JAVA}.ConflictException: {message}")


def forbidden(message: str) -> Answer:
    return error(403, f"{_JAVA}.PermissionException: {message}")


def json_object(body: bytes) -> dict[str, Any]:
    """The members of a JSON body; anything else is 400."""
    members = json_body(body)
    if not isinstance(members, dict):
        raise bad_request("Could not parse the request body as a JSON object")
    return members


def member(value: Any, *path: str) -> Any:
    """`value[a][b]`, or None where a step is missing."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
