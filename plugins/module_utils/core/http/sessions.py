# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep-alive sessions: one per server and credential in a process, shared by loop items."""

from __future__ import annotations

import functools
import importlib.util
import os
from typing import TYPE_CHECKING, Any

from ..address import origin
from ..connection.connection import Connection
from ..errors import invalid

if TYPE_CHECKING:
    from .connections import PooledSession

#: Why the library is missing; `None` if it is there. It is loaded with the first session: a task
#: that sends nothing does not need it.
REQUESTS_MISSING: str | None = None
_found = importlib.util.find_spec("requests")
if _found is None or not _found.submodule_search_locations:
    REQUESTS_MISSING = "ImportError: No module named 'requests'"


def pooled_session(connection: Connection, *, connections: int, cookies: bool) -> PooledSession:
    """Return the session of a connection in this process. Sessions with different credentials or
    TLS options are never shared; a forked worker, or another environment, has its own.
    """
    names = [name for name in os.environ if name.lower().endswith(("_proxy", "_ca_bundle"))]
    environment = [(name, os.environ[name]) for name in names]
    return _session(connection, connections, cookies, os.getpid(), *environment)


@functools.lru_cache(maxsize=8)  # a session per service, and some for a loop over logins
def _session(connection: Connection, connections: int, cookies: bool, *_key: Any) -> PooledSession:
    from .connections import PooledSession

    settings, home = connection.settings, origin(connection.url)
    session = PooledSession(connections, home if cookies else None)
    bundle = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE")
    session.verify = settings.get("ca_path") or bundle or True
    if not settings.get("validate_certs", True):
        import urllib3

        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        session.verify = False
    elif home[0] == "https" and session.verify == bundle and not os.path.exists(bundle or ""):
        raise invalid(f"REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE: '{bundle}' does not exist")
    certificate, key = settings.get("client_cert") or None, settings.get("client_key")
    session.cert = (certificate, key) if certificate and key else certificate
    return session
