# SPDX-License-Identifier: GPL-3.0-or-later
"""Login methods: classes that add the credential to a request [W5]."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from ..errors import invalid
from ..secret import Secret, hidden
from .connection import Connection

#: A value that a header may have without being encoded.
HEADER_VALUE = re.compile(r"[!-~]+")


class Streamed(Protocol):
    """A request body that is read while it is sent."""

    def __len__(self) -> int:
        """Return the length in bytes."""

    def __iter__(self) -> Iterator[bytes]:
        """Yield the chunks in order."""


Content: TypeAlias = "bytes | Streamed"


@dataclass
class Outgoing:
    """A request before it is sent, still without `Content-Length`."""

    method: str
    url: str
    headers: dict[str, str]
    body: Content | None = None


class Login(Protocol):
    """A login method. The credential is sent preemptively, without waiting for a challenge."""

    def __call__(self, request: Outgoing) -> None:
        """Add the credential to the request."""


class RenewedLogin(ABC):
    """A login with a token that is renewed, see `connection/short_lived.py`.

    Not a protocol, because the transport asks for it with each request, which took a twentieth of
    the processor time of a small file.
    """

    @abstractmethod
    def __call__(self, request: Outgoing) -> None:
        """Add the credential to the request."""

    @abstractmethod
    def prepare(self) -> object:
        """Request a token unless there is a fresh one."""

    @abstractmethod
    def is_replaced(self, request: Outgoing, status: int) -> bool:
        """Return whether a response with this status is due to a token that has been replaced."""


class Anonymous:
    def __call__(self, request: Outgoing) -> None:
        """Leave the request unchanged."""


class Header:
    """Login with a bearer token or an API key in headers.

    The API key is sent in several headers until it is known which of them the server reads.
    """

    def __init__(self, *names: str, secret: Secret, prefix: str = "") -> None:
        self._names, self._secret, self._prefix = names, secret, prefix

    def __call__(self, request: Outgoing) -> None:
        for name in self._names:
            request.headers[name] = f"{self._prefix}{self._secret.reveal()}"


class Basic:
    """HTTP basic authentication, with user and password in UTF-8."""

    def __init__(self, username: str, password: Secret) -> None:
        self._username, self._password = username, password

    def __call__(self, request: Outgoing) -> None:
        request.headers["Authorization"] = f"Basic {_basic(self._username, self._password)}"


def secret_of(service: str, option: str, text: str) -> Secret:
    """Return the value of an option as a secret for a header.

    Raises `invalid` for an invalid value. Otherwise the HTTP library would print it in its error.
    """
    if HEADER_VALUE.fullmatch(text) is None:
        raise invalid(
            f"the {option} for the {service} service is empty, or contains a space, a line break or"
            " a non-ASCII character"
        )
    return Secret(text)


def login_of(connection: Connection, *api_key_headers: str) -> Login:
    """Return the login method for the credentials of a connection.

    :param api_key_headers: names of the headers for an API key
    """
    if connection.token is not None:
        return Header("Authorization", secret=connection.token, prefix="Bearer ")
    if connection.api_key is not None:
        return Header(*api_key_headers, secret=connection.api_key)
    if connection.username is not None and connection.password is not None:
        return Basic(connection.username, connection.password)
    return Anonymous()


def hide(connection: Connection) -> None:
    """Mask the secrets of a connection in all output, also in their basic authentication form."""
    hidden.add(*(secret.reveal() for secret in connection.secrets))
    if connection.username is not None and connection.password is not None:
        hidden.add(_basic(connection.username, connection.password))


def _basic(username: str, password: Secret) -> str:
    return b64encode(f"{username}:{password.reveal()}".encode()).decode()
