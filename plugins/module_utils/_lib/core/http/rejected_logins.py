# SPDX-License-Identifier: GPL-3.0-or-later
"""Detect failed logins of tracker and wiki, which the status alone does not show.

If credentials are wrong, both servers may handle the request as anonymous and return 200; only
headers show the failed login. After too many failed logins they reject every login with 403 until
the user has solved a CAPTCHA in a browser [repo-0].
"""

from __future__ import annotations

import re

from ..address import origin
from ..connection.connection import Connection
from ..errors import Kind, kind_of_status, shorten
from .messages import Response

#: Header, its value, and the message with which the API gateway reports a missing scope.
_SCOPE_HEADER = "X-Failure-Category"
_SCOPE_CATEGORY = "FAILURE_CLIENT_SCOPE_CHECK"
_SCOPE_MESSAGE = "scope does not match"
_REASON = "X-Seraph-LoginReason"
_DENIED = "X-Authentication-Denied-Reason"
#: The account is locked until its user solves a CAPTCHA [tracker-1].
_LOCKED = "AUTHENTICATION_DENIED"
_REJECTED = frozenset({"AUTHENTICATED_FAILED", _LOCKED})
_USERS = ("X-AUSERNAME", "X-AACCOUNTID")

#: Matches the message of a 403 about a rejected API key. Any other 403 is about one object.
_ABOUT_KEY = re.compile(r"api.?key|token|credential|login|log in|authenticat", re.I)
_PERMISSION = re.compile(r"permi(?:ssion|tted)|privilege|not allowed|unauthori[sz]ed to", re.I)
_KEYS_ENDED = "newer servers accept API keys only if configured to do so: use a token instead"
#: Matches the message of Data Center and Cloud if they accept no passwords.
_NO_BASIC = re.compile(r"basic auth\w*(?: \w+){0,3} (?:disabled|deprecated)", re.I)
_USE_TOKEN = (
    "this server accepts no passwords: use a personal access token, or an API token in the cloud"
)


def kind_of_rejection(response: Response, connection: Connection, detail: str) -> tuple[Kind, str]:
    """Return the kind of an error response, and a remedy if the kind of login is rejected, else "".

    Servers that no longer accept API keys return 401 or 403 for them. A 403 that does not mention
    the login is about an object [repo-3].

    :param detail: the server's error message
    """
    kind = kind_of_status(response.status)
    at_home = origin(response.url) == origin(connection.url)
    if response.status not in (401, 403) or not at_home:
        return kind, ""
    if _NO_BASIC.search(detail) and connection.password is not None:
        return "auth", _USE_TOKEN
    if connection.api_key is None:
        return kind, ""
    about_key = _ABOUT_KEY.search(detail) and not _PERMISSION.search(detail)
    return ("auth", _KEYS_ENDED) if response.status == 401 or about_key else (kind, "")


def require_login(response: Response, connection: Connection) -> None:
    """Raise `auth` if the server did not accept the credentials, even if the status is 200.

    Responses from another host, such as a file store, are not checked: no credentials were sent.
    """
    at_home = origin(response.url) == origin(connection.url)
    denied = response.headers.get(_DENIED)
    if denied is None and _LOCKED in response.headers.get(_REASON, "").upper():
        denied = response.headers[_REASON]
    if response.status in (401, 403) and denied is not None:
        raise response.error(
            "auth",
            f"the server returned {response.status} and rejects all logins of this account"
            f" ({shorten(denied)}): log in with a browser, which may ask for a CAPTCHA, then try"
            " again",
            denied,
        )
    sent = connection.has_credentials and at_home
    header = _anonymous_header(response) if sent and response.status != 401 else None
    if header is not None:
        raise response.error(
            "auth",
            f"the server returned {response.status}, but did not accept the credentials ({header})",
            header,
        )


def require_scope(response: Response, scope: str) -> None:
    """Raise `permission` if the token lacks a scope.

    The gateway returns 401 for a missing scope, as for an invalid token [tracker-40].

    :param scope: a scope that the request requires, for the message
    """
    if response.status not in (401, 403):
        return
    category = response.headers.get(_SCOPE_HEADER, "")
    if _SCOPE_CATEGORY not in category.upper() and _SCOPE_MESSAGE not in response.text.lower():
        return
    raise response.error(
        "permission",
        f"the server returned {response.status}, because the token lacks a scope: the request"
        f" requires {scope}; the page Connections of the manual lists all scopes of each module",
        shorten(response.text) or category,
    )


def _anonymous_header(response: Response) -> str | None:
    """Return the header that shows an anonymous user, as `name: value`, or `None`."""
    reasons = {word.strip().upper() for word in response.headers.get(_REASON, "").split(",")}
    if "OK" not in reasons and reasons & _REJECTED:
        return shorten(f"{_REASON}: {response.headers[_REASON]}")
    for name in _USERS:
        if response.headers.get(name, "").strip().lower() == "anonymous":
            return f"{name}: {response.headers[name]}"
    return None
