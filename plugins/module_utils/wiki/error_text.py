# SPDX-License-Identifier: GPL-3.0-or-later
"""Error messages in responses of the wiki [wiki-2]."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..core import errors
from ..core.http.messages import Response, json_or_none

_JAVA_PACKAGE = re.compile(r"^(?:[a-z]\w*\.)+(?=[A-Z]\w*(?:Exception|Error)\b)")


def describe(response: Response) -> str:
    """Return the error message without the Java package of its exception ([wiki-2])."""
    decoded = json_or_none(response.body)
    if not isinstance(decoded, Mapping) or not isinstance(decoded.get("message"), str):
        return errors.error_text(response.text)
    lines = [_JAVA_PACKAGE.sub("", decoded["message"]).strip(), *_details(decoded.get("data"))]
    return "; ".join(dict.fromkeys(filter(None, lines)))


def _details(data: Any) -> Iterator[str]:
    entries = data.get("errors") if isinstance(data, Mapping) else None
    for entry in entries if isinstance(entries, list) else []:
        message = entry.get("message") if isinstance(entry, Mapping) else None
        if isinstance(message, Mapping):
            message = message.get("translation") or message.get("key")
        if isinstance(message, str):
            yield message
