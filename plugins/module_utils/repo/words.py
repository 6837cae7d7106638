# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of the repository manager in an error answer, whatever shape they come in."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..core import errors
from ..core.wire import Answer

# server fact: a server without a licence refuses half of the interface with 400 and this text
_EDITION = re.compile(r"available only in .*\bpro\b", re.IGNORECASE | re.DOTALL)


def describe(answer: Answer) -> str:
    """The server's words: C(errors[]), C(messages[]) with their levels, registry errors, text,
    HTML.
    """
    said = "; ".join(
        f"{message['level']}: {message['message']}" for message in messages_of(answer.text)
    )
    said = said or errors.words(answer.text)
    if _EDITION.search(said):
        said = f"this edition of the server does not offer it: {said}"
    request_id = answer.headers.get("X-Request-Id")
    return f"{said} (request {request_id})" if said and request_id else said


def messages_of(body: str) -> list[dict[str, str]]:
    """The C(messages) of a JSON body as C(level) (upper case) and C(message); none where it has
    none.
    """
    try:
        decoded = json.loads(body)
    except ValueError:
        return []
    entries = decoded.get("messages") if isinstance(decoded, Mapping) else None
    if not isinstance(entries, list):
        return []
    return [_message(entry) for entry in entries]


def _message(entry: Any) -> dict[str, str]:
    if not isinstance(entry, Mapping):
        return {"level": "INFO", "message": str(entry)}
    level = str(entry.get("level") or "INFO").upper()
    return {"level": level, "message": str(entry.get("message") or "")}
