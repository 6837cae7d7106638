# SPDX-License-Identifier: GPL-3.0-or-later
"""Error responses of the tracker [tracker-2, tracker-18, tracker-22]."""

from __future__ import annotations

from starlette.responses import JSONResponse

from sandbox.service import ErrorResponse

UNSEEN_SERVER = "Issue Does Not Exist"
UNSEEN_CLOUD = "Issue does not exist or you do not have permission to see it."


def refusal(status: int, *messages: str, errors: dict[str, str] | None = None) -> ErrorResponse:
    """Return an error response of the tracker. `errors`: messages by field."""
    return ErrorResponse(
        JSONResponse({"errorMessages": list(messages), "errors": errors or {}}, status)
    )


def not_on_screen(field: str) -> str:
    """Return the error message for a field that cannot be set.

    Server fact [tracker-22]: it is the same for a field that is not on the screen, a missing
    permission, and an unknown id.
    """
    return f"Field '{field}' cannot be set. It is not on the appropriate screen, or unknown."


class Unsuitable(Exception):
    """Error for a value that a field does not accept. The string is the server's message."""
