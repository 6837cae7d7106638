# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep-alive sessions: one per server and credential in a process, shared by loop items."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import sys
import threading
from base64 import b64encode
from dataclasses import dataclass, field
from http.cookiejar import Cookie, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any
from urllib.request import Request as CookieRequest

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
#: A session per service, and some for a loop over logins.
MAX_SESSIONS = 8


@functools.cache
def request_errors() -> tuple[type[Exception], ...]:
    """Return the errors that a request, or reading its response, raises."""
    import requests
    import urllib3

    return requests.RequestException, urllib3.exceptions.HTTPError, BodyError, UnfitRequest


class _OwnCookies(DefaultCookiePolicy):
    """Cookies to and from the origin of the connection only: the default also sends them to other
    ports, and to neighbours in their domain.

    :param home: that origin; `None`: no cookies
    """

    def __init__(self, home: Origin | None) -> None:
        super().__init__()
        self._home = home

    def set_ok(self, cookie: Cookie, request: CookieRequest) -> bool:
        return self._is_home(request) and super().set_ok(cookie, request)

    def return_ok(self, cookie: Cookie, request: CookieRequest) -> bool:
        return self._is_home(request) and super().return_ok(cookie, request)

    def _is_home(self, request: CookieRequest) -> bool:
        return self._home is not None and origin(request.get_full_url()) == self._home


@dataclass
class PooledSession:
    """A session of `requests`, with its cache (the crumb of the CI server).

    :param verify: a file or a folder of certificates, or whether to check certificates at all
    :param cert: the files of client certificate and key
    """

    session: requests.Session
    verify: bool | str
    cert: str | tuple[str, str] | None
    cookies: bool
    memory: dict[str, Any] = field(default_factory=dict)

    def send(
        self,
        outgoing: Outgoing,
        login: Login,
        accounting: Accounting,
        *,
        timeout: float,
        proxy: str | None,
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
        if self.cookies:
            request.prepare_cookies(self.session.cookies)
        response = self.session.send(
            request,
            stream=True,
            timeout=timeout,
            verify=self.verify,
            cert=self.cert,
            proxies=dict.fromkeys(("http", "https"), proxy) if proxy else {},
        )
        hidden.add(*(str(each.value) for each in response.cookies if _is_session(each)))
        return Incoming(response, outgoing.url, accounting)

    def forget_cookies(self) -> None:
        self.session.cookies.clear()


def _is_session(cookie: Cookie) -> bool:
    return len(cookie.value or "") >= _SHORTEST_COOKIE


def _require_headers(headers: dict[str, str]) -> None:
    """Raise `UnfitRequest` if a header cannot be sent. The message of the library shows its value,
    which may be a secret.
    """
    for name, value in headers.items():
        if _HEADER.fullmatch(f"{name}: {value}") is None:
            raise UnfitRequest(f"the header {name!r} has a character that no header can have")


class Proxies:
    """The proxies of the environment, which is searched once per task and origin."""

    def __init__(self) -> None:
        self._known: dict[Origin, str | None] = {}

    def of(self, place: Origin, url: str) -> str | None:
        """Return the proxy for an address, whose origin is `place`."""
        if place not in self._known:
            self._known[place] = _proxy_for(url) if names_proxies() else None
        return self._known[place]


def names_proxies() -> bool:
    """Return whether there may be a proxy; macOS also has them in its settings."""
    names = (name.lower() for name, value in os.environ.items() if value)
    named = any(name.endswith("_proxy") and name != "no_proxy" for name in names)
    return named or sys.platform == "darwin"


def _proxy_for(url: str) -> str | None:
    """Return the proxy that `requests` chooses; its login is kept out of all output."""
    from requests.utils import get_auth_from_url, get_environ_proxies, select_proxy

    proxy = select_proxy(url, get_environ_proxies(url))
    user, password = get_auth_from_url(proxy or "")
    hidden.add(password, b64encode(f"{user}:{password}".encode()).decode() if user else "")
    return proxy


_sessions: dict[tuple[Any, ...], PooledSession] = {}  # last item: most recently used
_lock = threading.Lock()


def pooled_session(connection: Connection, *, connections: int, cookies: bool) -> PooledSession:
    """Return the session of a connection in this process.

    The key holds address, credential and TLS options: sessions with different credentials are never
    shared, and a forked worker does not use those of its parent.
    """
    tls = tuple(
        connection.settings.get(name)
        for name in ("validate_certs", "ca_path", "client_cert", "client_key")
    )
    bundle = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE")
    key = (os.getpid(), connection, tls, bundle, connections, cookies)
    with _lock:
        found = _sessions.pop(key, None) or _new_session(connection, bundle, connections, cookies)
        _sessions[key] = found
        while len(_sessions) > MAX_SESSIONS:
            oldest = next(iter(_sessions))
            session = _sessions.pop(oldest)
            if oldest[0] == os.getpid():  # others belong to the process before the fork
                session.session.close()
        return found


def _new_session(
    connection: Connection, bundle: str | None, connections: int, cookies: bool
) -> PooledSession:
    from .connections import DirectSession

    settings, home = connection.settings, origin(connection.url)
    verify: bool | str = bool(settings.get("validate_certs", True))
    if verify:
        verify = settings.get("ca_path") or bundle or True
        if home[0] == "https" and verify == bundle and not os.path.exists(bundle or ""):
            raise invalid(f"REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE: there is no '{bundle}'")
    else:
        import urllib3

        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    own, key = settings.get("client_cert") or None, settings.get("client_key")
    session = DirectSession(connections)
    session.cookies.set_policy(_OwnCookies(home if cookies else None))
    return PooledSession(session, verify, (own, key) if own and key else own, cookies)
