# SPDX-License-Identifier: GPL-3.0-or-later
"""Detect failed logins of tracker and wiki, which the status alone does not show.

If credentials are wrong, both servers may handle the request as anonymous and return 200; only
headers show the failed login. After too many failed logins they reject every login with 403 until
the user has solved a CAPTCHA in a browser [repo-0].
"""

from __future__ import annotations

from ..core.address import origin
from ..core.connection.connection import Connection
from ..core.errors import shorten
from ..core.http.messages import Response

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
    if not (connection.has_credentials and at_home) or response.status == 401:
        return
    header = ""  # that shows an anonymous user
    reasons = {word.strip().upper() for word in response.headers.get(_REASON, "").split(",")}
    for name in _USERS:
        if response.headers.get(name, "").strip().lower() == "anonymous":
            header = header or f"{name}: {response.headers[name]}"
    if "OK" not in reasons and reasons & _REJECTED:
        header = shorten(f"{_REASON}: {response.headers[_REASON]}")
    if header:
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
