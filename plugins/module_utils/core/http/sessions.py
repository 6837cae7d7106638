# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep-alive sessions: one per server and credential in a process, shared by loop items."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
from base64 import b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..address import Origin, UnfitRequest, origin, prepared_url
from ..connection.auth import Login, Outgoing
from ..connection.options import Connection
from ..errors import invalid
from ..secret import hidden
from .bodies import ACCEPTED, BodyError, Incoming

if TYPE_CHECKING:
    import requests

    from ..accounting import Accounting

#: Why the library is missing; `None` if it is there. It is loaded with the first session: a task
#: that sends nothing does not need it.
REQUESTS_MISSING: str | None = None
_found = importlib.util.find_spec("requests")
if _found is None or not _found.submodule_search_locations:
    REQUESTS_MISSING = "ImportError: No module named 'requests'"

_HEADERS = {"Accept-Encoding": ACCEPTED, "Connection": "keep-alive"}
_HEADER = re.compile(r"(?=[\0-\xff]*\Z)[^:\s][^:\r\n]*: (?:[^\s\0][^\r\n\0]*)?")
#: Shorter cookie values are flags or languages, and parts of other words.
_SHORTEST_COOKIE = 8
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


@dataclass
class PooledSession:
    """A session of `requests`, with its cache (the crumb of the CI server)."""

    session: requests.Session
    memory: dict[str, Any] = field(default_factory=dict)
    _proxies: dict[Origin, str | None] = field(default_factory=dict)

    def send(
        self, outgoing: Outgoing, login: Login, accounting: Accounting, *, timeout: float
    ) -> Incoming:
        """Send a request without following redirects; the body of the response is not read."""
        import requests

        login(outgoing)
        headers, body = {**_HEADERS, **outgoing.headers}, outgoing.body
        if body is not None or outgoing.method not in ("GET", "HEAD"):
            headers["Content-Length"] = str(len(body or b""))
        _require_headers(headers)
        # Not prepared by the library: most steps are done, and the signature of OAuth must stay.
        request = requests.PreparedRequest()
        request.method, request.url = outgoing.method, prepared_url(outgoing.url)
        request.headers = requests.structures.CaseInsensitiveDict(headers)
        request.body = body or None  # type: ignore[assignment] # an upload is iterable
        proxy, session = self._proxy(outgoing.url), self.session
        proxies = {"http": proxy, "https": proxy} if proxy else {}
        response = session.send(request, stream=True, timeout=timeout, proxies=proxies)
        cookies = [cookie.value or "" for cookie in (*response.cookies, *session.cookies)]
        hidden.add(*(value for value in cookies if len(value) >= _SHORTEST_COOKIE))
        return Incoming(response, outgoing.url, accounting)

    def _proxy(self, url: str) -> str | None:
        """Return the proxy that `requests` chooses; its login is kept out of all output."""
        from requests import utils

        there = origin(url)
        if there not in self._proxies:
            self._proxies[there] = utils.select_proxy(url, utils.get_environ_proxies(url))
        proxy = self._proxies[there]
        if proxy is not None:
            user, password = utils.get_auth_from_url(proxy)
            hidden.add(password, b64encode(f"{user}:{password}".encode()).decode() if user else "")
        return proxy


def _require_headers(headers: dict[str, str]) -> None:
    """Raise `UnfitRequest` if a header cannot be sent. The message of the library shows its value,
    which may be a secret.
    """
    for name, value in headers.items():
        if _HEADER.fullmatch(f"{name}: {value}") is None:
            raise UnfitRequest(f"the header {name!r} has a character that no header can have")


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
    from .connections import DirectSession

    settings, home = connection.settings, origin(connection.url)
    session = DirectSession(connections, home if cookies else None)
    if not settings.get("validate_certs", True):
        import urllib3

        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        session.verify = False
    else:
        bundle = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE")
        session.verify = settings.get("ca_path") or bundle or True
        if home[0] == "https" and session.verify == bundle and not os.path.exists(bundle or ""):
            raise invalid(f"REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE: there is no '{bundle}'")
    own, key = settings.get("client_cert") or None, settings.get("client_key")
    session.cert = (own, key) if own and key else own
    return PooledSession(session)
