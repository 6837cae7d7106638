# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests and responses as values, and helpers for addresses, queries and headers."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import IO, Any

from .. import errors, json_text
from ..errors import ToolchainError
from ..secret import clean_url

REDIRECTS = frozenset({301, 302, 303, 307, 308})
#: Maximum length of a server's `Server` header in messages.
_SERVER_LIMIT = 60
_FIRST_WAIT = 0.5  # seconds
#: Kinds of errors after which the server may have acted, or may still act.
_UNCERTAIN_KINDS = frozenset({"server", "rate_limited"})
#: Headers that identify a service, whatever its response is.
_SERVICE_HEADERS = (
    "X-Jenkins",
    "X-JFrog-Version",
    "X-Artifactory-Id",
    "X-AREQUESTID",
    "X-AUSERNAME",
)


@dataclass(frozen=True)
class Request:
    """A request.

    `purpose` names operation and object for the error message, such as `reading the role 'x'`.
    """

    purpose: str
    method: str
    url: str
    reads: bool
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    #: Opens the body again for every attempt, if it is too large for memory; `size` is its length
    #: in bytes.
    open_body: Callable[[], IO[bytes]] | None = None
    size: int = 0
    #: The response body is read in chunks.
    streamed: bool = False
    #: Redirects and addresses on other hosts are followed, without credentials.
    foreign_hosts: bool = False
    #: Never sent again, whatever the response: for a server that is polled while it is down.
    once: bool = False
    #: Deadline by the monotonic clock, retries included; `None`: only the settings limit the time.
    deadline: float | None = None

    def left(self) -> float:
        """Return the seconds until the deadline, infinity if there is none."""
        return float("inf") if self.deadline is None else self.deadline - time.monotonic()


@dataclass(frozen=True)
class Response:
    """A response with its whole body. `url` is the address of the response, after redirects."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    request: Request
    url: str

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", errors="replace")

    @property
    def date(self) -> datetime | None:
        """Return the server's clock at the time of the response; `None` if it is unknown."""
        return http_date(self.headers.get("Date"))

    def json(self) -> Any:
        """Return the decoded body; raise `protocol` if the body is not JSON, `auth` for a login
        form.
        """
        try:
            return json_text.loads(self.body)
        except json_text.TooDeep as error:
            message = f"the server returned {self.status} with JSON that cannot be parsed: {error}"
            raise self.with_unknown_outcome(self.error("protocol", message)) from None
        except ValueError:
            raise unexpected_body(self, "JSON") from None

    def with_unknown_outcome(self, error: ToolchainError) -> ToolchainError:
        """Mark the outcome of a write as unknown in an error, and return the error."""
        error.outcome_unknown = not self.request.reads
        return error

    def _is_of_a_service(self) -> bool:
        """Return whether the response comes from a supported service, not from any other server."""
        known = any(name in self.headers for name in _SERVICE_HEADERS)
        return known or isinstance(json_or_none(self.body), Mapping)

    def error(self, kind: errors.Kind, message: str, detail: str | None = None) -> ToolchainError:
        """Return the error of this `kind` for the response. After an error of the server the
        outcome of a write is unknown.
        """
        error = ToolchainError(
            kind,
            f"{self.request.purpose}: {message}",
            status=self.status,
            method=self.request.method,
            url=clean_url(self.url),
            detail=detail or None,
            outcome_unknown=not self.request.reads
            and (kind in _UNCERTAIN_KINDS or self.status == 408)
            and self.status != 501,
        )
        if self.status == 404 and not self._is_of_a_service():
            error.other_server = errors.shorten(self.headers.get("Server", ""), _SERVER_LIMIT)
        asked = retry_after(self.headers.get("Retry-After"))
        if self.status == 429 or (self.status == 503 and asked is not None):
            error.retry_after = asked or 0.0
        return error


def unexpected_body(response: Response, wanted: str) -> ToolchainError:
    """Return the error for a response that is not a `wanted` body. The outcome of a write is
    unknown then.
    """
    return response.with_unknown_outcome(_unexpected_body(response, wanted))


def _unexpected_body(response: Response, wanted: str) -> ToolchainError:
    text = response.text
    detail = errors.error_text(text)
    if not text.strip():
        return response.error(
            "protocol",
            f"the server returned {response.status} with an empty body where {wanted} was expected",
        )
    if errors.looks_like_html(text) and 'type="password"' in text.lower():
        return response.error(
            "auth",
            f"the server returned {response.status} with a login page: check the credentials",
            detail,
        )
    seen = "HTML" if errors.looks_like_html(text) else "other text"
    return response.error(
        "protocol",
        f"the server returned {response.status} with {seen} where {wanted} was expected: check url",
        detail,
    )


def json_or_none(body: str | bytes) -> Any:
    """Return the parsed body; `None` if the body is not JSON, or is nested too deeply."""
    try:
        return json_text.loads(body)
    except ValueError:
        return None


def retry_after(value: str | None) -> float | None:
    """Return the seconds in a `Retry-After` header, a number or an HTTP date; `None` if invalid."""
    if value is None:
        return None
    if value.strip().isdecimal():
        return float(value)
    until = http_date(value)
    return None if until is None else max(0.0, until.timestamp() - time.time())


def http_date(value: str | None) -> datetime | None:
    """Return the time in a header such as `Date`, in UTC; `None` if invalid."""
    try:
        found = parsedate_to_datetime(value or "")
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=timezone.utc)


def back_off(attempt: int, longest: float) -> float:
    """Return the seconds to wait after an attempt (numbered from 0): exponential with jitter, so
    that many clients do not come back at the same moment.
    """
    wait: float = min(longest, _FIRST_WAIT * 2.0**attempt)
    return wait * (0.5 + random.random() / 2)
