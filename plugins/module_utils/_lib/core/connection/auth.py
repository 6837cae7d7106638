# SPDX-License-Identifier: GPL-3.0-or-later
"""Login methods: classes that add the credential to a request [W5]."""

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
from .connection import Connection, OAuth

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


class FormToken:
    """Login with the form parameters `user` and `ltoken` [W4.5]."""

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
    """Return a login that signs requests with OAuth 1.0a and an RSA key.

    Raises `invalid` if an optional library is missing, or for a key other than an RSA private key.
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
    """Sign a request with the OAuth library, which expects a `PreparedRequest`."""
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
    """Return the login method for the credentials of a connection.

    :param api_key_headers: names of the headers for an API key
    """
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
    """Mask the secrets of a connection in all output, also in their basic authentication form."""
    hidden.add(*(secret.reveal() for secret in connection.secrets))
    if connection.username is not None and connection.password is not None:
        hidden.add(_basic(connection.username, connection.password))


def _basic(username: str, password: Secret) -> str:
    return b64encode(f"{username}:{password.reveal()}".encode()).decode()


def _is_header(name: str, value: str) -> bool:
    """Return whether name and value form a valid header."""
    return bool(re.fullmatch(r"[A-Za-z0-9._-]+", name) and HEADER_VALUE.fullmatch(value))


class Crumb:
    """The CSRF crumb of the CI server, requested with the credentials and cookies of the write.

    The crumb issuer returns 404 if CSRF protection is switched off. If the server nevertheless
    rejects a write without a crumb, the XML API of the issuer is tried. It accepts only the two
    XPath expressions in `_XML` [W4.4, W5, repo-0].

    :param fetch: sends a GET request with a path below the base address and a query; returns the
        status and the body, and raises no error for any status
    :param memory: cache of the keep-alive session, which lets a loop request the crumb only once
    """

    _XML = ('concat(//crumbRequestField,":",//crumb)', "concat(//crumbRequestField,'=',//crumb)")

    def __init__(
        self, fetch: Callable[[str, Mapping[str, str]], tuple[int, Any]], memory: dict[str, Any]
    ) -> None:
        self._fetch, self._memory = fetch, memory
        self._needed = False

    def headers(self) -> dict[str, str]:
        """Return the header that a write needs, or an empty dict if the server requires none."""
        if "crumb" not in self._memory:
            self._memory["crumb"] = self._request()
        crumb: Mapping[str, str] = self._memory["crumb"]
        return dict(crumb)

    def forget(self) -> None:
        """Discard the crumb that the server rejected, and remember whether it was empty."""
        self._needed = self._memory.pop("crumb", None) == {}

    def _request(self) -> dict[str, str]:
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
            "protocol", "the CI server returned an invalid CSRF crumb", status=status
        )
