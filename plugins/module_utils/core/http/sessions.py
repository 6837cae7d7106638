# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep-alive sessions: one per server and credential in a process, shared by loop items."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
from typing import TYPE_CHECKING

from ..address import UnfitRequest, origin
from ..connection.options import Connection
from ..errors import invalid
from .bodies import BodyError

if TYPE_CHECKING:
    from .connections import PooledSession

#: Why the library is missing; `None` if it is there. It is loaded with the first session: a task
#: that sends nothing does not need it.
REQUESTS_MISSING: str | None = None
_found = importlib.util.find_spec("requests")
if _found is None or not _found.submodule_search_locations:
    REQUESTS_MISSING = "ImportError: No module named 'requests'"

#: Matches the variables on which a session depends.
_SELECTING = re.compile(r"_(?:proxy|ca_bundle)\Z", re.IGNORECASE)
#: A session per service, and some for a loop over logins.
MAX_SESSIONS = 8


@functools.cache
def request_errors() -> tuple[type[Exception], ...]:
    """Return the errors that a request, or reading its response, raises."""
    import requests
    import urllib3

    return requests.RequestException, urllib3.exceptions.HTTPError, BodyError, UnfitRequest


def pooled_session(connection: Connection, *, connections: int, cookies: bool) -> PooledSession:
    """Return the session of a connection in this process.

    Sessions with different credentials or TLS options are never shared. A forked worker does not
    use those of its parent, and a task with another environment may need another proxy.
    """
    environment = tuple(
        (name, value) for name, value in os.environ.items() if _SELECTING.search(name) and value
    )
    return _session(connection, connections, cookies, environment, os.getpid())


@functools.lru_cache(maxsize=MAX_SESSIONS)
def _session(
    connection: Connection,
    connections: int,
    cookies: bool,
    _environment: tuple[tuple[str, str], ...],
    _process: int,
) -> PooledSession:
    from .connections import PooledSession

    settings, home = connection.settings, origin(connection.url)
    session = PooledSession(connections, home if cookies else None)
    if not settings.get("validate_certs", True):
        import urllib3

        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        session.verify = False
    else:
        bundle = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE")
        session.verify = settings.get("ca_path") or bundle or True
        if home[0] == "https" and session.verify == bundle and not os.path.exists(bundle or ""):
            raise invalid(f"REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE: '{bundle}' does not exist")
    certificate, key = settings.get("client_cert") or None, settings.get("client_key")
    session.cert = (certificate, key) if certificate and key else certificate
    return session
