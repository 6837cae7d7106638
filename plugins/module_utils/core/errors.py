# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors are values with a kind; what a server says in one of its many shapes becomes one short
text here.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

Kind = Literal[
    "auth",
    "permission",
    "not_found",
    "conflict",
    "rejected",
    "rate_limited",
    "server",
    "network",
    "timeout",
    "protocol",
    "failed",
    "invalid",
]

#: Most characters of a server's own words that reach a message (interface contract, 1.3: about 1
#: KB).
WORDS_LIMIT = 900

_KIND_OF_STATUS: dict[int, Kind] = {
    401: "auth",
    403: "permission",
    404: "not_found",
    408: "timeout",
    409: "conflict",
    410: "not_found",
    412: "conflict",
    429: "rate_limited",
}
_HTML_PARTS = re.compile(r"<(title|h1|h2|h3|p)\b[^>]*>(.*?)</\1\s*>", re.IGNORECASE | re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_TAG = re.compile(r"<[^>]*>")
_MESSAGE_MEMBERS = ("message", "errorMessage", "error_description", "reason", "detail")
_LIST_MEMBERS = ("errors", "messages", "errorMessages", "error massages")


class ToolchainError(Exception):
    """What went wrong, for C(host) to turn into the failure of the task.

    :param kind: one of :data:`Kind` (interface contract, 1.3)
    :param message: one sentence that names the operation, the object and what to do
    :param detail: the server's own words, at most :data:`WORDS_LIMIT` characters
    :param unanswered: a request was sent and its answer is lost: the server may have acted on it
    :param result: return keys that the task shows in spite of the failure
    """

    def __init__(
        self,
        kind: Kind,
        message: str,
        *,
        status: int | None = None,
        method: str | None = None,
        url: str | None = None,
        detail: str | None = None,
        unanswered: bool = False,
        result: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.kind: Kind = kind
        self.message = message
        self.status = status
        self.method = method
        self.url = url
        self.detail = detail
        self.unanswered = unanswered
        self.result: dict[str, Any] = dict(result or {})

    def __str__(self) -> str:
        return self.message

    def with_words(self, addition: str) -> ToolchainError:
        """The error itself, saying more: as what the user can do about it."""
        self.message = f"{self.message}; {addition}"
        return self

    def as_dict(self) -> dict[str, Any]:
        """The C(error) return value: C(kind), C(status), C(method), C(url), C(detail)."""
        return {
            "kind": self.kind,
            "status": self.status,
            "method": self.method,
            "url": self.url,
            "detail": self.detail,
        }


def invalid(message: str) -> ToolchainError:
    """An error that we raise before the first request."""
    return ToolchainError("invalid", message)


def kind_of_status(status: int) -> Kind:
    """The kind that a status stands for where the service knows nothing better."""
    if status >= 500:
        return "server"
    if status >= 400:
        return _KIND_OF_STATUS.get(status, "rejected")
    return "protocol"


def shorten(text: str, limit: int = WORDS_LIMIT) -> str:
    """C(text) on one line, cut after C(limit) characters, without what steers a terminal."""
    line = " ".join(_CONTROL.sub(" ", text).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def looks_like_html(text: str) -> bool:
    head = text.lstrip("\ufeff \t\r\n")[:200].lower()
    return head.startswith(("<!doctype html", "<html", "<head", "<body")) or "<html" in head


def words(body: str) -> str:
    """The words of a server in an error body: JSON of any known shape, HTML, plain text or nothing.

    JSON shapes: C(errors[]) and C(messages[]) of the repository manager and of container
    registries,
    C(errorMessages)/C(errors{}) of the tracker, C(message)/C(data.errors[]) of the wiki and
    C(status)/C(message) of
    the analysis server. What has another shape is shown as it is.
    """
    if looks_like_html(body):
        return shorten(_words_of_html(body))
    try:
        found = list(dict.fromkeys(text for text in _words_of_json(json.loads(body)) if text))
    except (ValueError, RecursionError):
        return shorten(body)
    return shorten("; ".join(found) if found else body)


def _words_of_html(body: str) -> str:
    parts = [_TAG.sub(" ", text) for _tag, text in _HTML_PARTS.findall(body)]
    lines = [" ".join(html.unescape(part).split()) for part in parts]
    return (
        "; ".join(dict.fromkeys(line for line in lines if line)) or "an HTML page without a message"
    )


def _words_of_json(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value.strip()
    elif isinstance(value, list):
        for entry in value:
            yield from _words_of_json(entry)
    elif isinstance(value, Mapping):
        yield from _words_of_object(value)


def _words_of_object(value: Mapping[str, Any]) -> Iterator[str]:
    for member in _LIST_MEMBERS:
        entries = value.get(member)
        if isinstance(entries, Mapping):
            yield from (f"{name}: {text}" for name, text in entries.items())
        elif entries is not None:
            yield from _words_of_json(entries)
    for member in _MESSAGE_MEMBERS:
        text = value.get(member)
        if isinstance(text, (str, Mapping)):
            yield from _words_of_json(text)
    if isinstance(value.get("data"), Mapping):
        yield from _words_of_json(value["data"])
