# SPDX-License-Identifier: GPL-3.0-or-later
"""Extract the repository manager's error message from its various response formats."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core import errors
from ..core.http.messages import Response, json_or_none

# server fact [repo-4]: a server without a licence rejects half of the interface with 400 and this
# message
_EDITION = re.compile(r"available only in ", re.IGNORECASE)
#: Substrings of bodies that may report errors, to avoid parsing others. JSON may escape a key with
#: `\u`.
_MAY_REPORT_ERRORS = ('"errors"', '"messages"', "\\u")
_EDITION_NAME = re.compile(r"\bpro\b", re.IGNORECASE)


def describe(response: Response) -> str:
    """Return the error message of a response; "" if it has none.

    The message comes from `messages[]` (prefixed with their levels), from `errors[]`, or from a
    body that is text or HTML. The request id is appended if the server sends one.
    """
    error_message = "; ".join(
        f"{message['level']}: {message['message']}" for message in messages_of(response.text)
    )
    error_message = error_message or errors.error_text(response.text)
    if _names_edition(error_message):
        error_message = f"this edition of the server does not support it: {error_message}"
    request_id = response.headers.get("X-Request-Id")
    return (
        f"{error_message} (request {request_id})" if error_message and request_id else error_message
    )


def lacks_licence(response: Response) -> bool:
    """Return whether the server rejected a request because its licence excludes it [repo-4]."""
    return response.status == 400 and _names_edition(errors.error_text(response.text))


def _names_edition(text: str) -> bool:
    edition = _EDITION.search(text)
    return edition is not None and _EDITION_NAME.search(text, edition.end()) is not None


def messages_of(body: str) -> list[dict[str, str]]:
    """Return the `messages` of a JSON body; empty if it has none.

    Every message is a dict with `level` (in upper case) and `message`.
    """
    decoded = json_or_none(body)
    return _messages(decoded) if isinstance(decoded, Mapping) else []


def errors_in(body: str) -> str:
    """Return the errors that a body reports, joined by semicolons; "" if it reports none.

    Server fact [repo-2]: a successful response may also contain `errors[]`, or `messages[]` of the
    level ERROR.
    """
    decoded = json_or_none(body) if any(part in body for part in _MAY_REPORT_ERRORS) else None
    if not isinstance(decoded, Mapping):
        return ""
    messages = _messages(decoded)
    found = [record["message"] for record in messages if record["level"] == "ERROR"]
    if found:
        return "; ".join(filter(None, found)) or "an error without a message"
    return errors.error_text(body) if decoded.get("errors") else ""


def text_of(body: str) -> str:
    """Return a body as text, decoded if it is a JSON string; "" for `null`."""
    if body.strip() == "null":
        return ""
    decoded = json_or_none(body)
    return decoded if isinstance(decoded, str) else body.strip()


def _messages(decoded: Mapping[str, Any]) -> list[dict[str, str]]:
    entries = decoded.get("messages")
    return [_message(entry) for entry in entries] if isinstance(entries, list) else []


def _message(entry: Any) -> dict[str, str]:
    if not isinstance(entry, Mapping):
        return {"level": "INFO", "message": str(entry)}
    level = str(entry.get("level") or "INFO").upper()
    return {"level": level, "message": str(entry.get("message") or "")}
