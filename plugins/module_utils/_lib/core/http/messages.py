# SPDX-License-Identifier: GPL-3.0-or-later
"""Dataclasses for requests and responses, and helpers for their headers and bodies."""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import IO, Any, TypeVar

from .. import errors, json_text
from ..errors import ToolchainError
from ..secret import clean_url


@dataclass
class Accounting:
    """Request counts of a task, or of a part of a task.

    :param acknowledged: writes with a successful response
    :param total: counts of the whole task, if this object counts a part; `add` updates both objects
    """

    requests: int = 0
    writes: int = 0
    acknowledged: int = 0
    retries: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    seconds: float = 0.0
    total: Accounting | None = field(default=None, repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, **counts: float) -> None:
        counters = self.__dict__
        with self._lock:
            for name, count in counts.items():
                counters[name] += count
        if self.total is not None:
            self.total.add(**counts)

    def as_dict(self) -> dict[str, Any]:
        """Return the return value `http`: requests, bytes of bodies, and seconds."""
        names = ("requests", "writes", "retries", "bytes_sent", "bytes_received")
        return {**{name: getattr(self, name) for name in names}, "seconds": round(self.seconds, 3)}


Found = TypeVar("Found")

REDIRECTS = frozenset({301, 302, 303, 307, 308})
#: Maximum length of a server's `Server` header in messages.
_SERVER_LIMIT = 60
_FIRST_WAIT = 0.5  # seconds
#: The forms and addresses of SAML, OAuth 2 and OpenID Connect, and of plugins for them.
_SIGN_ON = re.compile(
    r"name=[\"']?SAML(?:Request|Response)|[?&;]SAMLRequest=|[?&;]response_type=|/adfs/ls"
    r"|openid-connect/auth|oauth2/(?:v[0-9.]+/)?(?:authorize|start|sign_in)|commenceLogin",
    re.IGNORECASE,
)
#: Kinds of error responses that do not show whether the server has carried out a write.
_UNCERTAIN_KINDS = frozenset({"server", "rate_limited"})


@dataclass(frozen=True)
class Request:
    """An HTTP request.

    :param purpose: operation and object for messages, such as `reading the role 'x'`
    :param reads: the request does not change the server
    """

    purpose: str
    method: str
    url: str
    reads: bool
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    #: Opens a body that is too large for memory, for each attempt. `size` is its length in bytes.
    open_body: Callable[[], IO[bytes]] | None = None
    size: int = 0
    #: The caller reads the response body in chunks.
    streamed: bool = False
    #: Sends no credentials.
    anonymous: bool = False
    #: Allows addresses and redirects on other hosts, without credentials.
    foreign_hosts: bool = False
    #: Disables retries, for example to poll a server that restarts.
    once: bool = False
    #: Deadline for all attempts, in seconds of the monotonic clock; `None` means no deadline.
    deadline: float | None = None
    #: Headers by which the service is recognized, in error responses too.
    service_headers: Collection[str] = ()

    def left(self) -> float:
        """Return the seconds until the deadline, or infinity without a deadline."""
        return float("inf") if self.deadline is None else self.deadline - time.monotonic()


@dataclass(frozen=True)
class Response:
    """An HTTP response with its complete body.

    :param url: address of the response, after redirects
    """

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
        """Return the time of the response by the server's clock, or `None` if it is unknown."""
        return http_date(self.headers.get("Date"))

    def json(self) -> Any:
        """Return the body as decoded JSON.

        Raises `auth` if the body is a login form, and `protocol` if it is not JSON.
        """
        try:
            return json_text.loads(self.body)
        except json_text.TooDeep as error:
            message = f"the server returned {self.status} with JSON that cannot be parsed: {error}"
            raise self.with_unknown_outcome(self.error("protocol", message)) from None
        except ValueError:
            raise unexpected_body(self, "JSON") from None

    def with_unknown_outcome(self, error: ToolchainError) -> ToolchainError:
        """Set `outcome_unknown` of an error if the request is a write, and return the error."""
        error.outcome_unknown = not self.request.reads
        return error

    def error(self, kind: errors.Kind, message: str, detail: str | None = None) -> ToolchainError:
        """Return the error for the response, with the request's purpose before the message.

        `outcome_unknown` is set if the status does not show whether a write was carried out.
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
        named = any(name in self.headers for name in self.request.service_headers)
        if self.status == 404 and not named and not isinstance(json_or_none(self.body), Mapping):
            error.other_server = errors.shorten(self.headers.get("Server", ""), _SERVER_LIMIT)
        delay = retry_after(self.headers.get("Retry-After"))
        if self.status == 429 or (self.status == 503 and delay is not None):
            error.retry_after = delay or 0.0
        return error


@dataclass(frozen=True)
class Failure:
    """A failed request.

    :param may_repeat: the request is a read, or a write that certainly did not reach the server
    """

    error: ToolchainError
    may_repeat: bool


def expected(response: Response, kind: type[Found], wanted: str, *names: str) -> Found:
    """Return the JSON of a response, or a nested member of it.

    Raises `protocol` if it is not of the type `kind`.

    :param wanted: the expected body for the message, such as "a list of versions"
    """
    found = json_text.member(response.json(), *names)
    if not isinstance(found, kind):
        raise unexpected_body(response, wanted)
    return found


def unexpected_body(response: Response, wanted: str) -> ToolchainError:
    """Return the error for a response with a body of another type than expected.

    :param wanted: the expected body for the message, such as "JSON"
    """
    return response.with_unknown_outcome(_unexpected_body(response, wanted))


def _unexpected_body(response: Response, wanted: str) -> ToolchainError:
    text = response.text
    detail = errors.error_text(text)
    if not text.strip():
        return response.error(
            "protocol",
            f"the server returned {response.status} with an empty body instead of {wanted}",
        )
    if errors.looks_like_html(text) and (page := login_page(text)):
        return response.error(
            "auth",
            f"the server returned {response.status} with {page}: check the credentials",
            detail,
        )
    received = "HTML" if errors.looks_like_html(text) else "other text"
    return response.error(
        "protocol",
        f"the server returned {response.status} with {received} instead of {wanted}: check url",
        detail,
    )


def login_page(text: str) -> str:
    """Return what kind of login page an HTML page is, or "" if it is none.

    A program in front of the service, or a plugin, may send everybody who is not logged in to an
    identity provider, with a page that a browser submits or follows at once.
    """
    if 'type="password"' in text.lower():
        return "a login page"
    return "a page for a single sign-on in a browser" if _SIGN_ON.search(text) else ""


def json_or_none(body: str | bytes) -> Any:
    """Return the parsed body, or `None` if it is not JSON or is nested too deeply."""
    try:
        return json_text.loads(body)
    except ValueError:
        return None


def retry_after(value: str | None) -> float | None:
    """Return the delay in a `Retry-After` header in seconds, or `None` if it is invalid."""
    if value is None:
        return None
    if value.strip().isdecimal():
        return float(value)
    until = http_date(value)
    return None if until is None else max(0.0, until.timestamp() - time.time())


def http_date(value: str | None) -> datetime | None:
    """Parse the value of a header such as `Date`. Return `None` if it is invalid."""
    try:
        found = parsedate_to_datetime(value or "")
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=timezone.utc)


def back_off(attempt: int, longest: float) -> float:
    """Return the seconds to wait before a retry: exponential backoff with jitter.

    :param attempt: number of the attempt that failed, from 0
    :param longest: maximum number of seconds
    """
    # the largest exponent of a float is 1023, and no pause is longer than 2**30 s
    wait: float = min(longest, _FIRST_WAIT * 2.0 ** min(attempt, 30))
    return wait * (0.5 + random.random() / 2)
