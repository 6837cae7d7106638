# SPDX-License-Identifier: GPL-3.0-or-later
"""The ways to log in, one small class each: the only place where secrets are unwrapped [W5]."""

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
        """Its bytes."""

    def __iter__(self) -> Iterator[bytes]:
        """Its blocks, one after the other."""


Content: TypeAlias = "bytes | Streamed"


@dataclass
class Outgoing:
    """A request as it leaves. Its length is told by who sends it."""

    method: str
    url: str
    headers: dict[str, str]
    body: Content | None = None


class Login(Protocol):
    """Puts the credential into a request before it leaves; no challenge is awaited."""

    def __call__(self, request: Outgoing) -> None:
        """Add the credential."""


class Anonymous:
    def __call__(self, request: Outgoing) -> None:
        """There is none."""


class Header:
    """A header that carries the secret: bearer token, API key. An API key goes in several where it
    is not known yet which of them the server reads.
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
    """C(user) and C(ltoken) as form parameters [W4.5]."""

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
    """OAuth 1.0a signatures with a key of RSA.

    The libraries are optional and named where they are missing; a key that cannot sign is refused.
    """
    try:
        import requests_oauthlib
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError:
        raise invalid(
            "OAuth needs the Python libraries requests-oauthlib and oauthlib[signedtoken]"
        ) from None
    try:
        key = load_pem_private_key(oauth.private_key.reveal().encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, RSAPrivateKey):
        raise invalid("oauth_private_key must be a private key of RSA in PEM, without a password")
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
    """Sign a request in the form that the library of OAuth takes."""
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
    """The way to log in that a connection asks for."""
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
    """Keep the secrets of a connection out of all output, in the header of HTTP basic, too."""
    hidden.add(*(secret.reveal() for secret in connection.secrets))
    if connection.username is not None and connection.password is not None:
        hidden.add(_basic(connection.username, connection.password))


def _basic(username: str, password: Secret) -> str:
    return b64encode(f"{username}:{password.reveal()}".encode()).decode()


def _is_header(name: str, value: str) -> bool:
    """Whether a header of this name can carry the value."""
    return bool(re.fullmatch(r"[A-Za-z0-9._-]+", name) and re.fullmatch(r"[!-~]+", value))


class Crumb:
    """The anti-forgery token of the CI server: asked for with the same credentials and the same
    session cookie.

    :param fetch: reads a path below the base address and gives status and body, without raising on
        a status
    :param kept: what the kept-alive session remembers, so that items of a loop ask once

    Sources: [W4.4, W5, repo-0]: the issuer answers 404 where protection is
    switched off; its XML form is answered for two exact expressions only. A server that answers 404
    and then refuses a write for want of a crumb is asked for the XML form, too.
    """

    _XML = ('concat(//crumbRequestField,":",//crumb)', "concat(//crumbRequestField,'=',//crumb)")

    def __init__(
        self, fetch: Callable[[str, Mapping[str, str]], tuple[int, Any]], kept: dict[str, Any]
    ) -> None:
        self._fetch, self._kept = fetch, kept
        self._needed = False

    def headers(self) -> dict[str, str]:
        """The header that a write needs; empty where the server asks for none."""
        if "crumb" not in self._kept:
            self._kept["crumb"] = self._ask()
        crumb: Mapping[str, str] = self._kept["crumb"]
        return dict(crumb)

    def forget(self) -> None:
        self._needed = self._kept.pop("crumb", None) == {}

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
            "protocol", "the CI server gave no crumb that can be understood", status=status
        )
