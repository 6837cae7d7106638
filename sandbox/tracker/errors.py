# SPDX-License-Identifier: GPL-3.0-or-later
"""How the tracker says no [tracker-2, tracker-18, tracker-22]."""

from __future__ import annotations

from starlette.responses import JSONResponse

from sandbox.service import Answer

UNSEEN_SERVER = "Issue Does Not Exist"
UNSEEN_CLOUD = "Issue does not exist or you do not have permission to see it."


def refusal(status: int, *messages: str, errors: dict[str, str] | None = None) -> Answer:
    """The tracker's envelope: messages, and errors by field."""
    return Answer(JSONResponse({"errorMessages": list(messages), "errors": errors or {}}, status))


def not_on_screen(field: str) -> str:
    """[tracker-22]: a missing screen, a missing right and an unknown id alike."""
    return f"Field '{field}' cannot be set. It is not on the appropriate screen, or unknown."


class Unsuitable(Exception):
    """A value that a field does not take; the server's words."""
