# SPDX-License-Identifier: GPL-3.0-or-later
"""Logins and crumbs (CSRF tokens) [W5, ci-1, ci-2]."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import secrets
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from sandbox.context import Context

ADMINISTER = "hudson.model.Hudson.Administer"
MANAGE = "hudson.model.Hudson.Manage"
SYSTEM_READ = "hudson.model.Hudson.SystemRead"
READ = "hudson.model.Hudson.Read"
ITEM_READ = "hudson.model.Item.Read"
ITEM_BUILD = "hudson.model.Item.Build"
ITEM_CANCEL = "hudson.model.Item.Cancel"
ITEM_CONFIG = "hudson.model.Item.ExtendedRead"
ITEM_CONFIGURE = "hudson.model.Item.Configure"
ITEM_CREATE = "hudson.model.Item.Create"
ITEM_DELETE = "hudson.model.Item.Delete"
RUN_DELETE = "hudson.model.Run.Delete"
RUN_UPDATE = "hudson.model.Run.Update"

#: Key of the API tokens in the store [ci-44].
API_TOKENS = "ci.api_token"
_SESSIONS, _STATE = "ci.session", "ci.state"


@dataclass(frozen=True)
class Login:
    """The login of a request.

    :param user: name of the user; `None` means anonymous
    :param by_token: whether the login uses an API token
    """

    user: str | None
    permissions: frozenset[str]
    by_token: bool = False
    #: Glob patterns for full names of jobs, with the permissions for these jobs only.
    on_jobs: tuple[tuple[str, frozenset[str]], ...] = ()

    def may(self, permission: str, job: str | None = None) -> bool:
        """Return whether the permission is granted globally or for the job with this full name."""
        if ADMINISTER in self.permissions or permission in self.permissions:
            return True
        return job is not None and any(
            permission in granted for glob, granted in self.on_jobs if fnmatchcase(job, glob)
        )

    def sees(self, job: str) -> bool:
        """Return whether the user may read the job and all its parent folders."""
        parts = job.split("/")
        paths = ("/".join(parts[: n + 1]) for n in range(len(parts)))
        return all(self.may(ITEM_READ, path) for path in paths)


def users(context: Context) -> dict[str, Any]:
    """Return the users of the server by name."""
    found: dict[str, Any] = context.credentials("ci").get("users") or {}
    return found


def log_in(context: Context, request: Request) -> Login | None:
    """Return the login of a request, or `None` for wrong credentials.

    The seed has the credentials `users: {name: {password, api_tokens, permissions,
    job_permissions}}` and `anonymous_permissions`. `job_permissions` maps glob patterns for full
    names of jobs to lists of permissions.
    """
    credentials = context.credentials("ci")
    kind, _space, coded = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "basic":
        return Login(None, frozenset(credentials.get("anonymous_permissions") or []))
    name, _colon, secret = _decoded(coded).partition(":")
    user: dict[str, Any] = users(context).get(name) or {}
    permissions = frozenset(user.get("permissions") or [])
    granted: dict[str, list[str]] = user.get("job_permissions") or {}
    on_jobs = tuple((glob, frozenset(names)) for glob, names in granted.items())
    if secret in (user.get("api_tokens") or []) or _is_api_token(context, name, secret):
        return Login(name, permissions, by_token=True, on_jobs=on_jobs)
    if secret != "" and secret == user.get("password"):
        return Login(name, permissions, on_jobs=on_jobs)
    return None


def _is_api_token(context: Context, user: str, secret: str) -> bool:
    """Return whether a secret is a valid API token that the user has created [ci-44]."""
    return any(
        (token["user"], token["secret"]) == (user, secret)
        and (token["expires"] is None or token["expires"] > context.now_ms())
        for token in context.store.values(API_TOKENS)
    )


def _decoded(coded: str) -> str:
    try:
        return base64.b64decode(coded).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return ""


class Crumbs:
    """Login sessions and their crumbs. A restart invalidates both."""

    def __init__(self, context: Context) -> None:
        self.context = context

    @property
    def mark(self) -> str:
        """Return the value of `X-Jenkins-Session`, which changes with each start of the server."""
        return str(self._boot()["mark"])

    def _boot(self) -> dict[str, Any]:
        boot = self.context.store.get(_STATE, "boot")
        return self.start() if boot is None else boot

    def start(self) -> dict[str, Any]:
        """Start the server: create a new session id of the server and remove all login sessions."""
        store = self.context.store
        for session in store.keys(_SESSIONS):
            store.delete(_SESSIONS, session)
        boot = {"mark": secrets.token_hex(4), "salt": secrets.token_hex(16)}
        store.put(_STATE, "boot", boot)
        return boot

    @property
    def cookie(self) -> str:
        """Return the name of the session cookie. It contains an id of the server [ci-2]."""
        return f"JSESSIONID.{self.mark}"

    def session(self, request: Request) -> str | None:
        """Return the valid session in the cookies of the request."""
        value = request.cookies.get(self.cookie)
        return value if value and self.context.store.get(_SESSIONS, value) is not None else None

    def open_session(self, request: Request) -> tuple[str, str | None]:
        """Return the session of the request, or a new session with its `Set-Cookie` header."""
        session = self.session(request)
        if session is not None:
            return session, None
        session = f"node0{secrets.token_hex(12)}"
        self.context.store.put(_SESSIONS, session, {})
        return session, f"{self.cookie}={session}; Path=/ci; HttpOnly"

    def crumb(self, login: Login, session: str) -> str:
        """Return the crumb of a session.

        Server fact [ci-2]: it is a hash of user and session. Earlier releases omit the session.
        """
        bound = f"{login.user};{session}"
        if not self.context.settings("ci")["crumb_needs_session"]:
            bound = ""
        salt = self._boot()["salt"]
        return hashlib.sha256(f"{bound};{salt}".encode()).hexdigest()

    def accepts(self, login: Login, request: Request, form: dict[str, str]) -> bool:
        """Return whether to accept a POST, because it uses an API token, contains the crumb, or
        crumbs are disabled.
        """
        settings = self.context.settings("ci")
        if login.by_token or not settings["crumb_issuer"]:
            return True
        field = settings["crumb_field"]
        given = request.headers.get(field) or form.get(field) or ""
        session = self.session(request)
        if session is None and settings["crumb_needs_session"]:
            return False
        return secrets.compare_digest(given.encode(), self.crumb(login, session or "").encode())

    def answer(self, login: Login, request: Request) -> tuple[dict[str, Any], str | None]:
        """Return the JSON members of the crumb issuer, and the session cookie to set or `None`."""
        session, cookie = self.open_session(request)
        exported = {
            "_class": "hudson.security.csrf.DefaultCrumbIssuer",
            "crumb": self.crumb(login, session),
            "crumbRequestField": self.context.settings("ci")["crumb_field"],
        }
        return exported, cookie


_EXACT = {
    'concat(//crumbRequestField,":",//crumb)': ":",
    "concat(//crumbRequestField,'=',//crumb)": "=",
}
_ANY_SEPARATOR = re.compile(
    r"concat\(\s*//crumbRequestField\s*,\s*(?:\"([^\"]*)\"|'([^']*)')\s*,\s*//crumb\s*\)\Z"
)


def separator(xpath: str, real: bool) -> str | None:
    """Return the separator in the XPath expression for a crumb, or `None` for other expressions.

    Server fact [ci-2]: real servers accept only two expressions. The interface description [W4.4]
    allows any separator.
    """
    if real:
        return _EXACT.get(xpath)
    found = _ANY_SEPARATOR.match(xpath)
    return None if found is None else found[1] if found[1] is not None else found[2]


def with_cookie(response: Response, cookie: str | None) -> Response:
    if cookie is not None:
        response.headers.append("Set-Cookie", cookie)
    return response
