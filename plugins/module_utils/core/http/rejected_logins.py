# SPDX-License-Identifier: GPL-3.0-or-later
"""Detect logins that issue tracker and wiki ignore: a success status does not prove a login.

Server facts [repo-0]: with wrong credentials both may return 200 as for an anonymous user, or 200
with an empty body; only headers show the failure. After too many wrong logins every login is
rejected with 403 until a CAPTCHA has been solved in a browser.
"""

from __future__ import annotations

import re

from ..address import origin
from ..connection.options import Connection
from ..errors import Kind, kind_of_status, shorten
from .messages import Response

#: Headers and messages of a gateway about a missing scope.
_SCOPE_HEADER = "X-Failure-Category"
_SCOPE_CATEGORY = "FAILURE_CLIENT_SCOPE_CHECK"
_SCOPE_MESSAGE = "scope does not match"
_REASON = "X-Seraph-LoginReason"
_DENIED = "X-Authentication-Denied-Reason"
_REJECTED = frozenset({"AUTHENTICATED_FAILED", "AUTHENTICATION_DENIED"})
_USERS = ("X-AUSERNAME", "X-AACCOUNTID")

#: Matches the message of a 403 about the permissions of an account that is logged in.
_PERMISSION = re.compile(r"permi(?:ssion|tted)|privilege|not allowed|unauthori[sz]ed to", re.I)
_KEYS_ENDED = (
    "servers no longer accept API keys, or only if configured to do so: use a token instead"
)


def kind_of_rejection(response: Response, connection: Connection, detail: str) -> tuple[Kind, str]:
    """Return the kind of a failed response, and a remedy for an API key that is not accepted.

    Server fact [repo-3]: 403 for such a key, as for a missing permission.
    """
    kind = kind_of_status(response.status)
    at_home = origin(response.url) == origin(connection.url)
    key = response.status in (401, 403) and connection.api_key is not None and at_home
    if not key or (response.status == 403 and _PERMISSION.search(detail)):
        return kind, ""
    return "auth", _KEYS_ENDED


def require_login(response: Response, connection: Connection) -> None:
    """Raise `auth` if the server did not accept the credentials that were sent.

    A response from another host, as after a redirect to a file store, was requested without
    credentials.
    """
    at_home = origin(response.url) == origin(connection.url)
    denied = response.headers.get(_DENIED)
    if response.status in (401, 403) and denied is not None:
        raise response.error(
            "auth",
            f"the server returned {response.status} and rejects every login of this account"
            f" ({shorten(denied)}): log in once with a browser, then try again",
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


def require_scope(response: Response, scopes: str) -> None:
    """Raise `permission` if the token lacks a scope: the server returns 401, although the login is
    right [tracker-40].

    :param scopes: the scopes that the request needs
    """
    if response.status not in (401, 403):
        return
    category = response.headers.get(_SCOPE_HEADER, "")
    if _SCOPE_CATEGORY not in category.upper() and _SCOPE_MESSAGE not in response.text.lower():
        return
    raise response.error(
        "permission",
        f"the server returned {response.status}, because the token lacks a scope: the request"
        f" requires {scopes}",
        shorten(response.text) or category,
    )


def _anonymous_header(response: Response) -> str | None:
    """Return the header which shows that nobody is logged in."""
    reasons = {word.strip().upper() for word in response.headers.get(_REASON, "").split(",")}
    if "OK" not in reasons and reasons & _REJECTED:
        return shorten(f"{_REASON}: {response.headers[_REASON]}")
    for name in _USERS:
        if response.headers.get(name, "").strip().lower() == "anonymous":
            return f"{name}: {response.headers[name]}"
    return None
