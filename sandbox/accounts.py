# SPDX-License-Identifier: GPL-3.0-or-later
"""Logins of issue tracker and wiki: basic, bearer and OAuth 1.0a [W5].

They follow server facts [tracker-1, tracker-2, tracker-14]. Credentials in the seed: `{users:
{name: password}, tokens: {token: name}, oauth: {consumer_key, access_token, user},
clients: {id: {secret, user}}}`. A user may
also be `{password, permissions}`, see `sandbox.rights`.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from sandbox.context import Service
from sandbox.oauth import Consumer, OAuthProblem, SignedRequest, header_parameters, verify
from sandbox.rights import Rights, password_of

# `logins`: allowed authentication schemes. `refusal`: format of the response to a rejected login:
# html, text, json, or empty (200 without a body). `anonymous_on_bad_login`: run a request with a
# wrong login anonymously. `captcha`: reject basic logins as after too many failures. `max_url`: in
# characters. `oauth2_seconds`: lifetime of an access token.
SETTINGS: dict[str, Any] = {
    "logins": ["basic", "bearer", "oauth"],
    "refusal": "html",
    "anonymous_on_bad_login": False,
    "captcha": False,
    "oauth_public_key": "",
    "oauth_signature_methods": ["RSA-SHA1"],
    "max_url": 8192,
    "oauth2_seconds": 3600,
}

_FAILED = "AUTHENTICATED_FAILED"
_REASON = "X-Seraph-LoginReason"
_SCOPE_KEY = "sandbox.login"


@dataclass(frozen=True)
class Login:
    """Login of a request. `user`: None is anonymous. `reason`: result in the response header."""

    user: str | None
    reason: str | None = None


class _Refused(Exception):
    def __init__(self, response: Response) -> None:
        super().__init__(response.status_code)
        self.response = response


def token_kind(service: Service) -> str:
    """Return the kind of documents in the store for personal access tokens of a service."""
    return f"{service.name}.personal_token"


def access_token_kind(service: Service) -> str:
    """Return the kind of documents in the store for access tokens of client credentials."""
    return f"{service.name}.access_token"


def login_of(request: Request) -> Login:
    """Return the login that `Accounts.authenticate` accepted."""
    found: Login = request.scope[_SCOPE_KEY]
    return found


def rights_of(request: Request, service: Service) -> Rights:
    """Return the rights of the account that sent the request."""
    return Rights(service.context.credentials(service.name), login_of(request).user)


class Accounts:
    """Check the logins of a service."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._nonces: set[str] = set()

    def reset(self) -> None:
        self._nonces.clear()

    def authenticate(self, request: Request) -> Response | None:
        """Check the login. Return None if the request may proceed, else the error response.

        The length of the URL is checked first, because the web server limits it before the
        application sees the request [tracker-10].
        """
        query = request.scope["query_string"].decode("latin-1")
        if len(request.scope["path"]) + len(query) > self.service.settings["max_url"]:
            return HTMLResponse(_page(414, "Request-URI Too Long"), 414)
        try:
            request.scope[_SCOPE_KEY] = self._login(request, query)
        except _Refused as refused:
            return refused.response
        return None

    def _login(self, request: Request, query: str) -> Login:
        settings = self.service.settings
        authorization = request.headers.get("authorization", "")
        if authorization == "":
            if settings["anonymous_on_bad_login"]:
                return Login(None)
            raise _Refused(self._unauthorized(None))
        kind = authorization.partition(" ")[0].lower()
        if kind == "basic" and settings["captcha"]:
            raise _Refused(self._locked(request))
        if kind in ("basic", "bearer", "oauth") and kind not in settings["logins"]:
            raise _Refused(HTMLResponse(_page(403, f"{kind} authentication is disabled"), 403))
        if kind == "oauth":
            return self._oauth(request, query)
        user = self._user(kind, authorization)
        if user is not None:
            return Login(user, "OK")
        if settings["anonymous_on_bad_login"]:
            return Login(None, _FAILED)
        raise _Refused(self._unauthorized(_FAILED))

    def _user(self, kind: str, authorization: str) -> str | None:
        credentials = self.service.context.credentials(self.service.name)
        secret = authorization.partition(" ")[2].strip()
        if kind == "bearer":
            return _text(credentials.get("tokens", {}).get(secret)) or self._owner(secret)
        try:
            name, _colon, password = base64.b64decode(secret).decode("utf-8").partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return None
        known = password_of(credentials.get("users", {}).get(name))
        return name if kind == "basic" and known == password else None

    def _owner(self, secret: str) -> str | None:
        """Return the owner of a personal access token, or of an access token of client credentials.

        Return None if it is invalid [tracker-41, tracker-42].
        """
        context = self.service.context
        kinds = (token_kind(self.service), access_token_kind(self.service))
        for token in (token for kind in kinds for token in context.store.values(kind)):
            expired = token["expiring"] is not None and token["expiring"] <= context.now_ms()
            if token["secret"] == secret and not expired:
                return str(token["user"])
        return None

    def _oauth(self, request: Request, query: str) -> Login:
        settings = self.service.settings
        known = self.service.context.credentials(self.service.name).get("oauth", {})
        consumer = Consumer(
            known.get("consumer_key", ""),
            known.get("access_token", ""),
            settings["oauth_public_key"],
            settings["oauth_signature_methods"],
        )
        scope = request.scope
        signed = SignedRequest(
            request.method,
            f"{scope['scheme']}://{request.headers.get('host', '').lower()}{scope['path']}",
            query,
            header_parameters(request.headers["authorization"]),
        )
        try:
            nonce = verify(signed, consumer, self.service.context.now_ms() // 1000)
            if nonce in self._nonces:
                raise OAuthProblem("nonce_used")
        except OAuthProblem as problem:
            raise _Refused(_oauth_refusal(request, str(problem))) from None
        self._nonces.add(nonce)
        return Login(known["user"], "OK")

    def _unauthorized(self, reason: str | None) -> Response:
        shape = self.service.settings["refusal"]
        headers = {} if reason is None else {_REASON: reason}
        if shape == "empty":
            return Response(b"", 200, headers, "application/json")
        headers["WWW-Authenticate"] = f'OAuth realm="{self.service.name}"'
        if shape == "json":
            message = "You are not authenticated. Authentication required to perform this operation"
            return JSONResponse({"errorMessages": [message], "errors": {}}, 401, headers)
        if shape == "text":
            text = f"Basic Authentication Failure - Reason : {reason or 'Login Required'}"
            return PlainTextResponse(text, 401, headers)
        return HTMLResponse(_page(401, "Unauthorized"), 401, headers)

    def _locked(self, request: Request) -> Response:
        address = self.service.context.base_url(request, self.service.name) + "/login.jsp"
        headers = {
            _REASON: "AUTHENTICATION_DENIED",
            "X-Authentication-Denied-Reason": f"CAPTCHA_CHALLENGE; login-url={address}",
        }
        text = "Basic Authentication Failure - Reason : AUTHENTICATION_DENIED"
        return HTMLResponse(_page(403, text), 403, headers)

    def note(self, request: Request, response: Response) -> None:
        """Add the response headers that report the login and its user [tracker-3]."""
        login = request.scope.get(_SCOPE_KEY)
        if login is None:
            return
        real = self.service.real
        if login.reason is not None and (real or login.reason == _FAILED):
            response.headers.setdefault(_REASON, login.reason)
        if real:
            number = self.service.context.store.next_id(f"{self.service.name}.request")
            response.headers["X-AREQUESTID"] = f"{number}x1"
            response.headers["X-AUSERNAME"] = login.user or "anonymous"


def _oauth_refusal(request: Request, problem: str) -> Response:
    realm = f'OAuth realm="{request.url.hostname}", oauth_problem="{problem}"'
    return PlainTextResponse(f"oauth_problem={problem}", 401, {"WWW-Authenticate": realm})


def _page(status: int, words: str) -> str:
    return (
        f"<html><head><title>{words} ({status})</title></head>"
        f"<body><h1>HTTP Status {status}: {words}</h1></body></html>"
    )


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
