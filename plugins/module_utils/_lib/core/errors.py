# SPDX-License-Identifier: GPL-3.0-or-later
"""The error class of the collection, and the extraction of error messages from responses."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from . import json_text
from .free_text import mask_free_text
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
    "waiting",
    "invalid",
]

#: Maximum characters of the server's error message in an error ([C1.3]: about 1 KB).
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
#: Maximum characters of the query in `error.url`; a longer query is omitted.
_LONGEST_QUERY = 200
#: Maximum characters of an address in a message.
ADDRESS_LIMIT = 300
_LONGEST_VALUE = 200
# Tags of the HTML elements that usually contain the error message. All patterns below take linear
# time, because no match contains a character at which another match could start.
_HTML_MARK = re.compile(r"<(/?)(title|h1|h2|h3|p|pre)\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
# Terminal escape sequences: with parameters, with a terminated string, or with a single letter.
_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"
)
# Commands of CI servers, which act on a line of the output that begins with or contains them.
_COMMAND = re.compile(
    r"#(?=#(?:vso|teamcity)?\[)|^[ \t]*:(?=:[a-z][\w-]*(?: [^\n]*)?::)", re.I | re.M
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
#: Characters that end a line, and in YAML a comment.
_LINE_BREAK = re.compile("[\n\u2028\u2029]")
# Characters that change the direction of writing, and invisible characters.
_DIRECTION = re.compile(r"[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
# Lone surrogates, which cannot be encoded in UTF-8.
_SURROGATE = re.compile("[\ud800-\udfff]")
# Characters that `escape_controls` escapes; a carriage return before a line feed is harmless.
_UNSAFE = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)"
    f"|{_DIRECTION.pattern}|{_SURROGATE.pattern}"
)
_MESSAGE_MEMBERS = ("message", "errorMessage", "error_description", "reason", "title", "detail")
_LIST_MEMBERS = ("errors", "messages", "errorMessages", "error massages")


class ToolchainError(Exception):
    """An error that fails the task; the runner formats it.

    :param kind: a :data:`Kind` [C1.3]
    :param message: a sentence that names the operation, the object and the remedy
    :param detail: the server's error message, at most :data:`DETAIL_LIMIT` characters
    :param outcome_unknown: a write was sent and its response is lost or inconclusive: the server
        may have carried it out
    :param result: return values of the failed task
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
        #: Findings of the failed task, if its return values do not contain them.
        self.findings: Sequence[Any] = ()
        #: Status of the service that exchanges the login; `status` describes an object.
        self.login_status: int | None = None
        #: Seconds to wait before a retry, as requested by the server, or `None`.
        self.retry_after: float | None = None
        #: Name of the proxy or other program that responded instead of the service. "" means that
        #: the name is unknown, `None` that the service responded.
        self.other_server: str | None = None
        #: `resent`: the failed request was a retry. `verified_undone`: a verification read showed
        #: that the earlier request had no effect.
        self.resent = self.verified_undone = False

    def __str__(self) -> str:
        return self.message

    def with_message(self, message: str) -> ToolchainError:
        """Return a copy with another message. It keeps every other attribute."""
        error = ToolchainError(self.kind, message)
        vars(error).update({**vars(self), "message": message, "result": dict(self.result)})
        return error

    def with_hint(self, addition: str) -> ToolchainError:
        """Add a clause to the message, such as a remedy, and return the error."""
        self.message = append_clause(self.message, addition)
        return self

    def as_dict(self) -> dict[str, Any]:
        """Return the value of `error` in the result of the task."""
        url = self.url
        if url is not None and len(url.partition("?")[2]) > _LONGEST_QUERY:
            url = url.partition("?")[0]  # a long query only lists the requested fields
        return {
            "kind": self.kind,
            "status": self.login_status if self.status is None else self.status,
            "method": self.method,
            "url": url,
            "detail": self.detail,
        }


def combined(
    errors: Sequence[ToolchainError], message: str, result: Mapping[str, Any] | None = None
) -> ToolchainError:
    """Return one error for several, with every attribute of the first.

    The outcome is unknown if any error has an unknown outcome. `changed` is true if any error says
    so, and missing if an error does not tell.

    :param result: more return values of the failed task
    """
    error = errors[0].with_message(message)
    error.outcome_unknown = any(other.outcome_unknown for other in errors)
    changed = [other.result.get("changed") for other in errors]
    error.result.pop("changed", None)
    if True in changed or None not in changed:
        error.result["changed"] = True in changed
    error.result.update(result or {})
    return error


def append_clause(message: str, clause: str) -> str:
    """Append a clause to a message, and remove the full stop at the end of the message."""
    stem = message if message.endswith("..") else message.removesuffix(".")
    return f"{stem}; {clause}"


def listed(names: Iterable[str], limit: int = 10) -> str:
    """Return names for a message, separated by commas, and how many are left out."""
    shown = list(names)
    more = f" and {len(shown) - limit} more" if len(shown) > limit else ""
    return ", ".join(shown[:limit]) + more


def quoted(names: Iterable[object], limit: int = 10) -> str:
    """Return names that may contain commas for a message: each in quotation marks, or `none`."""
    return listed((f"'{name}'" for name in names), limit) or "none"


def invalid(message: str) -> ToolchainError:
    """Return an error for invalid input, to be raised before the first request."""
    return ToolchainError("invalid", message)


def conflict(message: str) -> ToolchainError:
    """Return an error for an object in a state that the task must not change."""
    return ToolchainError("conflict", message)


def not_found(message: str, *, status: int | None = None) -> ToolchainError:
    """Return an error for an object that does not exist, or that the account cannot see."""
    return ToolchainError("not_found", message, status=status)


def protocol(message: str) -> ToolchainError:
    """Return an error for a response that does not have the documented form."""
    return ToolchainError("protocol", message)


def rejected(message: str) -> ToolchainError:
    """Return an error for a request that the server would not carry out, or has not."""
    return ToolchainError("rejected", message)


def kind_of_status(status: int) -> Kind:
    """Return the default error kind for an HTTP status."""
    if status >= 500:
        return "server"
    if status >= 400:
        return _KIND_OF_STATUS.get(status, "rejected")
    return "protocol"


def printable(text: str, limit: int = MESSAGE_LIMIT) -> str:
    """Return a string for output: secrets masked, control characters removed, commands of CI
    servers such as `##vso[` broken up, truncated.

    Line breaks and tabs stay. All code must truncate output with this function, because half of a
    secret would not be recognised and masked.

    :param limit: maximum number of characters
    """
    return _cut(_bare(text), limit)


def single_line(text: str) -> str:
    """Like :func:`printable`, but replace line breaks by spaces."""
    return _LINE_BREAK.sub(" ", printable(text))


def shorten(text: str, limit: int = DETAIL_LIMIT) -> str:
    """Like :func:`printable`, but reduce white space to single spaces."""
    return _cut(" ".join(_bare(text).split()), limit)


def excerpt(value: object) -> str:
    """Return an invalid value of any type for a message, truncated."""
    return shorten(repr(value), _LONGEST_VALUE)


def escape_controls(value: Any) -> Any:
    """Escape the control characters in a value for a diff.

    They are not removed, because that would hide a difference.
    """
    if isinstance(value, str):
        return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), value)
    if isinstance(value, Mapping):
        return {escape_controls(name): escape_controls(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [escape_controls(item) for item in value]
    return value


def _bare(text: str) -> str:
    # masked before and after, because removed characters may be in or between parts of a secret
    text = _DIRECTION.sub("", _ESCAPE.sub("", hidden.mask(text)))
    text = _SURROGATE.sub("\ufffd", _CONTROL.sub(" ", text))
    return mask_free_text(hidden.mask(_COMMAND.sub(r"\g<0> ", text)))


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def looks_like_html(text: str) -> bool:
    head = text.lstrip("\ufeff \t\r\n")[:200].lower()
    return head.startswith(("<!doctype html", "<html", "<head", "<body")) or "<html" in head


def error_text(body: str) -> str:
    """Return the error message in the body of a response, which may be JSON, HTML or plain text.

    Known JSON: the lists `errors` and `messages`, also with `title` and `detail`, `errorMessages`
    with the object `errors`, `message` with `data.errors`, and `status` with `message`. Any other
    body is returned unchanged.
    """
    if looks_like_html(body):
        # masked first: a secret that contains a tag or two spaces is not recognisable afterwards
        parts = [_TAG.sub(" ", text) for text in _html_parts(hidden.mask(body))]
        lines = [" ".join(html.unescape(part).split()) for part in parts]
        shown = "; ".join(dict.fromkeys(line for line in lines if line))
        return shorten(shown or "an HTML page without a message")
    try:
        found = list(dict.fromkeys(filter(None, _messages_of_json(json_text.loads(body)))))
    except ValueError:
        return shorten(body)
    return shorten("; ".join(found) if found else body)


def _html_parts(body: str) -> Iterator[str]:
    """Yield the content of the HTML elements that usually contain the error message."""
    tags = list(_HTML_MARK.finditer(body))
    last_end = {tag[2].lower(): tag.start() for tag in tags if tag[1]}
    name, begin = "", 0
    for tag in tags:
        found = tag[2].lower()
        if name == "" and not tag[1] and last_end.get(found, 0) > tag.start():
            name, begin = found, tag.end()
        elif found == name and tag[1]:
            yield body[begin : tag.start()]
            name = ""


def _messages_of_json(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value.strip()
    elif isinstance(value, list):
        for entry in value:
            yield from _messages_of_json(entry)
    elif isinstance(value, Mapping):
        yield from _messages_of_object(value)


def _messages_of_object(value: Mapping[str, Any]) -> Iterator[str]:
    for member in _LIST_MEMBERS:
        entries = value.get(member)
        if isinstance(entries, Mapping):
            yield from (f"{name}: {text}" for name, text in entries.items())
        elif entries is not None:
            yield from _messages_of_json(entries)
    for member in _MESSAGE_MEMBERS:
        text = value.get(member)
        if isinstance(text, (str, Mapping)):
            yield from _messages_of_json(text)
    if isinstance(value.get("data"), Mapping):
        yield from _messages_of_json(value["data"])
    if isinstance(value.get("code"), str) and not any(map(value.get, _MESSAGE_MEMBERS)):
        yield value["code"]
