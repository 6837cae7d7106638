# SPDX-License-Identifier: GPL-3.0-or-later
"""The login methods, as small classes. Only this module unwraps secrets [W5]."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias
from urllib.parse import quote, urlencode

from ..address import UnfitRequest, prepared
from ..errors import ToolchainError, invalid
from ..secret import Secret, hidden
from .options import Connection, OAuth


class Streamed(Protocol):
    """A body that is read while it is sent."""

    def __len__(self) -> int:
        """Return the length in bytes."""

    def __iter__(self) -> Iterator[bytes]:
        """Yield the blocks in order."""


Content: TypeAlias = "bytes | Streamed"


@dataclass
class Outgoing:
    """A request before it is sent. The sender sets its length."""

    method: str
    url: str
    headers: dict[str, str]
    body: Content | None = None


class Login(Protocol):
    """Adds the credential to a request before it is sent; no challenge is awaited."""

    def __call__(self, request: Outgoing) -> None:
        """Add the credential."""


class Anonymous:
    def __call__(self, request: Outgoing) -> None:
        """Add nothing: there is no credential."""


class Header:
    """Headers that carry the secret: bearer token, API key. An API key is sent in several headers
    if it is not yet known which of these headers the server reads.
    """

    def __init__(self, *names: str, secret: Secret, prefix: str = "") -> None:
        self._names, self._secret, self._prefix = names, secret, prefix

    def __call__(self, request: Outgoing) -> None:
        for name in self._names:
            request.headers[name] = f"{self._prefix}{self._secret.reveal()}"


class Basic:
    """HTTP basic in UTF-8, sent with the first request."""

    def __init__(self, username: str, password: Secret) -> None:
        self._username, self._password = username, password

    def __call__(self, request: Outgoing) -> None:
        request.headers["Authorization"] = f"Basic {_basic(self._username, self._password)}"


class FormToken:
    """`user` and `ltoken` as form parameters [W4.5]."""

    def __init__(self, username: str, ltoken: Secret | None) -> None:
        self._username, self._ltoken = username, ltoken

    def __call__(self, request: Outgoing) -> None:
        fields = {"user": self._username}
        if self._ltoken is not None:
            fields["ltoken"] = self._ltoken.reveal()
        text = request.body.decode("ascii") if isinstance(request.body, bytes) else ""
        request.body = "&".join(filter(None, [text, urlencode(fields, quote_via=quote)])).encode(
            "ascii"
        )


def oauth1(oauth: OAuth) -> Login:
    """Return a login with OAuth 1.0a signatures and an RSA key.

    The libraries are optional; errors name a missing library. A key that cannot sign is rejected.
    """
    try:
        import requests_oauthlib
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError:
        raise invalid(
            "OAuth requires the Python libraries requests-oauthlib and oauthlib[signedtoken]"
        ) from None
    try:
        key = load_pem_private_key(oauth.private_key.reveal().encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, RSAPrivateKey):
        raise invalid(
            "oauth_private_key must be an RSA private key in PEM format, without a password"
        )
    signer = requests_oauthlib.OAuth1(
        oauth.consumer_key,
        rsa_key=oauth.private_key.reveal(),
        resource_owner_key=oauth.access_token.reveal(),
        resource_owner_secret=oauth.access_token_secret.reveal(),
        signature_method=oauth.signature_method,
        client_secret=None,
    )
    return partial(_sign, signer)


def _sign(signer: Any, request: Outgoing) -> None:
    """Sign a request in the form that the OAuth library expects."""
    from requests import RequestException

    ready = prepared(request.url)
    try:
        ready.prepare_method(request.method)
        ready.prepare_headers(request.headers)
        ready.prepare_body(request.body, None)
        signed = signer(ready)
    except RequestException as error:
        raise UnfitRequest(str(error)) from None
    request.headers = {_text(name): _text(value) for name, value in signed.headers.items()}
    request.body = signed.body


def _text(part: str | bytes) -> str:
    return part.decode("ascii") if isinstance(part, bytes) else part


def login_of(connection: Connection, *api_key_headers: str) -> Login:
    """Return the login method of a connection."""
    if connection.service == "analysis":
        return FormToken(connection.username or "", connection.ltoken)
    if connection.token is not None:
        return Header("Authorization", secret=connection.token, prefix="Bearer ")
    if connection.api_key is not None:
        return Header(*api_key_headers, secret=connection.api_key)
    if connection.oauth is not None:
        return oauth1(connection.oauth)
    if connection.username is not None and connection.password is not None:
        return Basic(connection.username, connection.password)
    return Anonymous()


def hide(connection: Connection) -> None:
    """Mask the secrets of a connection in all output, also as encoded for HTTP basic."""
    hidden.add(*(secret.reveal() for secret in connection.secrets))
    if connection.username is not None and connection.password is not None:
        hidden.add(_basic(connection.username, connection.password))


def _basic(username: str, password: Secret) -> str:
    return b64encode(f"{username}:{password.reveal()}".encode()).decode()


def _is_header(name: str, value: str) -> bool:
    """Return whether a header of this name can carry the value."""
    return bool(re.fullmatch(r"[A-Za-z0-9._-]+", name) and re.fullmatch(r"[!-~]+", value))


class Crumb:
    """The CSRF crumb of the CI server, requested with the same credentials and session cookie as
    the write.

    :param fetch: reads a path below the base address; returns status and body, raises for no status
    :param memory: cache of the keep-alive session, so that a loop requests the crumb once

    Sources: [W4.4, W5, repo-0]: the issuer returns 404 if CSRF protection is switched off; its XML
    form accepts exactly two expressions. If a server returns 404 and then rejects a write without a
    crumb, the XML form is also requested.
    """

    _XML = ('concat(//crumbRequestField,":",//crumb)', "concat(//crumbRequestField,'=',//crumb)")

    def __init__(
        self, fetch: Callable[[str, Mapping[str, str]], tuple[int, Any]], memory: dict[str, Any]
    ) -> None:
        self._fetch, self._memory = fetch, memory
        self._needed = False

    def headers(self) -> dict[str, str]:
        """Return the header that a write needs; empty if the server requires none."""
        if "crumb" not in self._memory:
            self._memory["crumb"] = self._ask()
        crumb: Mapping[str, str] = self._memory["crumb"]
        return dict(crumb)

    def forget(self) -> None:
        self._needed = self._memory.pop("crumb", None) == {}

    def _ask(self) -> dict[str, str]:
        status, body = self._fetch("crumbIssuer/api/json", {})
        switched_off = status == 404
        if switched_off and not self._needed:
            return {}
        if status == 200 and isinstance(body, Mapping):
            field, crumb = body.get("crumbRequestField") or "Jenkins-Crumb", body.get("crumb")
            if crumb and _is_header(str(field), str(crumb)):
                return {str(field): str(crumb)}
        for expression in self._XML:
            status, body = self._fetch("crumbIssuer/api/xml", {"xpath": expression})
            field, separator, crumb = (
                str(body).strip().partition(expression[len("concat(//crumbRequestField,") + 1])
            )
            if status == 200 and separator and _is_header(field, crumb):
                return {field: crumb}
        if switched_off:
            return {}
        raise ToolchainError(
            "protocol", "the CI server returned an unreadable crumb", status=status
        )
