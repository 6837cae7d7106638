# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors are values with a kind; what a server says in one of its many shapes becomes one short
text here.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from . import json_text
from .secret import hidden

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

#: Most characters of a server's own words that reach a message ([C1.3]: about 1
#: KB).
DETAIL_LIMIT = 900

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
#: Maximum characters of a message: :data:`DETAIL_LIMIT`, operation and object, and a hint.
MESSAGE_LIMIT = 1400
#: Maximum characters of an address in a message.
ADDRESS_LIMIT = 300
# The elements of a page that have its reason. Each of these patterns takes linear time: none looks
# beyond the next sign with which it could begin anew.
_HTML_MARK = re.compile(r"<(/?)(title|h1|h2|h3|p|pre)\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
# Whole sequences that steer a terminal: with parameters, with a text up to its end, of one letter.
_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Marks that change the direction of writing, and those that are not seen.
_DIRECTION = re.compile(r"[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
# Halves of characters, which no output takes.
_HALF = re.compile("[\ud800-\udfff]")
# All of these, where they are to be seen; a carriage return before a line break steers nothing.
_STEERING = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)" + f"|{_DIRECTION.pattern}|{_HALF.pattern}"
)
_MESSAGE_MEMBERS = ("message", "errorMessage", "error_description", "reason", "detail")
_LIST_MEMBERS = ("errors", "messages", "errorMessages", "error massages")


class ToolchainError(Exception):
    """What went wrong, for C(host) to turn into the failure of the task.

    :param kind: one of :data:`Kind` [C1.3]
    :param message: one sentence that names the operation, the object and what to do
    :param detail: the server's own words, at most :data:`DETAIL_LIMIT` characters
    :param outcome_unknown: a write was sent, and its response is lost or inconclusive: the server
        may have acted on it
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
        outcome_unknown: bool = False,
        result: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.kind: Kind = kind
        self.message = message
        self.status = status
        self.method = method
        self.url = url
        self.detail = detail
        self.outcome_unknown = outcome_unknown
        self.result: dict[str, Any] = dict(result or {})
        #: Seconds after which the server may be asked again; C(None): it does not say so.
        self.retry_after: float | None = None
        #: What answered in place of the service, as far as it tells; C(None): the service did.
        self.other_server: str | None = None
        #: The request had been sent before; a look at the server showed that it is not done.
        self.resent = self.verified_undone = False

    def __str__(self) -> str:
        return self.message

    def with_hint(self, addition: str) -> ToolchainError:
        """The error itself, saying more: as what the user can do about it."""
        self.message = append_clause(self.message, addition)
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


def append_clause(said: str, addition: str) -> str:
    """One sentence of two parts; the first may be one of the server, with a full stop."""
    part = said if said.endswith("..") else said.removesuffix(".")
    return f"{part}; {addition}"


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


def printable(text: str, limit: int = MESSAGE_LIMIT) -> str:
    """C(text) without what steers a terminal or turns the direction of writing; the secrets of the
    task are masked, and then it is cut after C(limit) characters. Line breaks and tabs stay.

    Nothing else may cut a text that a user sees: of a secret on the cut, one half would stay. What
    is taken out may have stood inside a secret, so it is masked before and after.
    """
    return _cut(_bare(text), limit)


def single_line(text: str) -> str:
    """C(text) as :func:`printable` gives it, on one line: names in it may hold line breaks."""
    return printable(text).replace("\n", " ")


def shorten(text: str, limit: int = DETAIL_LIMIT) -> str:
    """C(text) as :func:`printable` gives it, on one line."""
    return _cut(" ".join(_bare(text).split()), limit)


def escape_controls(value: Any) -> Any:
    """C(value) with what steers a terminal, or turns the direction of writing, written as escapes
    in all of its texts: for a diff, where taking it out would hide the difference.
    """
    if isinstance(value, str):
        return _STEERING.sub(_escaped, value)
    if isinstance(value, Mapping):
        return {escape_controls(name): escape_controls(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [escape_controls(one) for one in value]
    return value


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


def _bare(text: str) -> str:
    text = _DIRECTION.sub("", _ESCAPE.sub("", hidden.mask(text)))
    return hidden.mask(_HALF.sub("\ufffd", _CONTROL.sub(" ", text)))


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def looks_like_html(text: str) -> bool:
    head = text.lstrip("\ufeff \t\r\n")[:200].lower()
    return head.startswith(("<!doctype html", "<html", "<head", "<body")) or "<html" in head


def error_text(body: str) -> str:
    """The words of a server in an error body: JSON of any known shape, HTML, plain text or nothing.

    JSON shapes: C(errors[]) and C(messages[]) of the repository manager and of container
    registries,
    C(errorMessages)/C(errors{}) of the tracker, C(message)/C(data.errors[]) of the wiki and
    C(status)/C(message) of
    the analysis server. What has another shape is shown as it is.
    """
    if looks_like_html(body):
        # masked first: taken apart, a secret with a tag or two blanks in it is not found again
        return shorten(_words_of_html(hidden.mask(body)))
    try:
        found = list(dict.fromkeys(text for text in _words_of_json(json_text.loads(body)) if text))
    except ValueError:
        return shorten(body)
    return shorten("; ".join(found) if found else body)


def _words_of_html(body: str) -> str:
    parts = [_TAG.sub(" ", text) for text in _html_parts(body)]
    lines = [" ".join(html.unescape(part).split()) for part in parts]
    return (
        "; ".join(dict.fromkeys(line for line in lines if line)) or "an HTML page without a message"
    )


def _html_parts(body: str) -> Iterator[str]:
    """What stands in the elements that have the reason, from the first begin to the next end."""
    marks = list(_HTML_MARK.finditer(body))
    last_end = {mark[2].lower(): mark.start() for mark in marks if mark[1]}
    name, begin = "", 0
    for mark in marks:
        found = mark[2].lower()
        if name == "" and not mark[1] and last_end.get(found, 0) > mark.start():
            name, begin = found, mark.end()
        elif found == name and mark[1]:
            yield body[begin : mark.start()]
            name = ""


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
