# SPDX-License-Identifier: GPL-3.0-or-later
"""Kept-alive sessions: one per server and credential in a process, shared by the items of a loop
and by nobody else.
"""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from ..address import DEFAULT_PORTS, Origin, request_target
from ..connection.auth import Login, Outgoing
from ..connection.options import Connection
from ..errors import ToolchainError, invalid
from .bodies import ACCEPTED, BodyError
from .connections import Incoming, Load, UnfitHeader, paced_adapter

if TYPE_CHECKING:
    from ..accounting import Accounting

#: The traceback of the missing library, C(None) where it is there.
REQUESTS_MISSING: str | None = None
REQUEST_ERRORS: tuple[type[Exception], ...] = ()
try:
    import requests
    import urllib3
    from requests.cookies import MockRequest, MockResponse, get_cookie_header
    from requests.utils import get_environ_proxies, prepend_scheme_if_needed, select_proxy

    _RAISED = (requests.RequestException, urllib3.exceptions.HTTPError)
    REQUEST_ERRORS = (*_RAISED, BodyError, UnfitHeader)
except ImportError:
    REQUESTS_MISSING = traceback.format_exc()


#: Bytes of a body that are read and sent at once.
_BLOCK = 1024 * 1024
#: What goes with every request that does not say otherwise.
_USUAL = {"Accept-Encoding": ACCEPTED, "Connection": "keep-alive"}


class Upload:
    """A body that is read from a file while it is sent; its length is known, so that it is not sent
    in chunks.
    """

    def __init__(
        self, what: str, open_body: Callable[[], IO[bytes]], size: int, accounting: Accounting
    ) -> None:
        self._what, self._size, self._accounting = what, size, accounting
        with self._reading():
            self._file = open_body()

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[bytes]:
        missing = self._size
        while missing:
            with self._reading():
                block = self._file.read(min(missing, _BLOCK))
            if not block:
                said = f"{self._what}: the file got shorter while it was sent"
                raise ToolchainError("failed", said)
            missing -= len(block)
            self._accounting.add(bytes_sent=len(block))
            yield block

    def close(self) -> None:
        self._file.close()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Trouble with the file is none with the connection."""
        try:
            yield
        except OSError as error:
            said = f"{self._what}: the file cannot be read: {error.strerror or error}"
            raise ToolchainError("failed", said) from None


@dataclass(frozen=True)
class Way:
    """The connections to an origin; C(before_path): what a proxy wants to see before the path."""

    pool: Any
    host: str
    before_path: str


@dataclass
class Kept:
    """A session and what is remembered with it (the crumb of the CI server)."""

    session: requests.Session
    verify: bool | str
    cert: tuple[str, str] | str | None
    keeps_cookies: bool = False
    memory: dict[str, Any] = field(default_factory=dict)
    _ways: dict[tuple[Origin, str | None], Way] = field(default_factory=dict)
    _once: Any = field(default_factory=lambda: urllib3.Retry(0, read=False))

    def send(
        self,
        outgoing: Outgoing,
        login: Login,
        *,
        place: Origin,
        timeout: float,
        proxy: str | None,
        streamed: bool,
    ) -> Incoming:
        """One exchange without following redirects; of the environment only proxies count.

        It goes to the pool of urllib3, below what C(requests) does for each exchange (preparing
        it, cookies that nobody keeps, an answer of its own), which takes as long as the rest.

        :param place: the origin of the address
        """
        login(outgoing)
        prepared = self._with_cookies(outgoing) if self.keeps_cookies else None
        way = self._ways.get((place, proxy)) or self._way(place, proxy)
        incoming: Incoming = way.pool.request(
            outgoing.method,
            way.before_path + request_target(outgoing.url),
            body=Load(outgoing.body, way.host, streamed),
            headers={**_USUAL, **outgoing.headers},
            retries=self._once,
            redirect=False,
            assert_same_host=False,
            timeout=timeout,
            preload_content=False,
            decode_content=False,
            release_conn=False,
        )
        incoming.url = outgoing.url
        incoming.settle()
        if prepared is not None:
            jar: Any = self.session.cookies
            jar.extract_cookies(MockResponse(incoming.headers), MockRequest(prepared))
        return incoming

    def _with_cookies(self, outgoing: Outgoing) -> requests.PreparedRequest:
        """Add those that are kept for the address; what they were chosen by."""
        prepared = requests.PreparedRequest()
        prepared.prepare_method(outgoing.method)
        prepared.prepare_url(outgoing.url, None)
        prepared.prepare_headers(outgoing.headers)
        kept = get_cookie_header(  # type: ignore[no-untyped-call]
            self.session.cookies, prepared
        )
        if kept is not None:
            outgoing.headers["Cookie"] = kept
        return prepared

    def _way(self, place: Origin, proxy: str | None) -> Way:
        """The connections to an origin, which are made when they are needed."""
        scheme, name, port = place
        shown = f"[{name}]" if ":" in name else name
        host = shown if port == DEFAULT_PORTS[scheme] else f"{shown}:{port}"
        adapter: Any = self.session.get_adapter(f"{scheme}://")
        manager, before_path = adapter.poolmanager, ""
        if proxy is not None:
            proxy = str(prepend_scheme_if_needed(proxy, "http"))  # type: ignore[no-untyped-call]
            if not urllib3.util.parse_url(proxy).host:
                raise requests.exceptions.InvalidProxyURL("the address of the proxy has no host")
            manager = adapter.proxy_manager_for(proxy)
            is_asked = scheme == "http" and not proxy.lower().startswith("socks")
            before_path = f"http://{host}" if is_asked else ""
        pool = manager.connection_from_url(f"{scheme}://{shown}:{port}/")
        adapter.cert_verify(pool, f"{scheme}://{host}/", self.verify, self.cert)
        return self._ways.setdefault((place, proxy), Way(pool, host, before_path))


class Proxies:
    """The proxies that the environment names, which is searched once per task and origin: that
    takes as long as a small exchange.
    """

    def __init__(self) -> None:
        self._known: dict[Origin, str | None] = {}

    def of(self, place: Origin, url: str) -> str | None:
        """The proxy for an address, whose origin is C(place); C(None) where there is none."""
        if place not in self._known:
            self._known[place] = select_proxy(url, get_environ_proxies(url))
        return self._known[place]


#: Most sessions that are kept: one for each service, and some for a loop over logins.
_MOST_KEPT = 8
_kept: dict[tuple[Any, ...], Kept] = {}  # the one that was used last at the end
_lock = threading.Lock()


def kept_session(connection: Connection, *, connections: int, cookies: bool) -> Kept:
    """The session of a connection in this process, made where there is none yet.

    The key holds address, credential and TLS options: sessions with different credentials are never
    shared, and a
    forked worker does not use its parent's.
    """
    tls = tuple(
        connection.settings.get(name)
        for name in ("validate_certs", "ca_path", "client_cert", "client_key")
    )
    bundle = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE")
    key = (os.getpid(), connection, tls, bundle, connections, cookies)
    with _lock:
        kept = _kept.pop(key, None) or _new_session(connection, bundle, connections, cookies)
        _kept[key] = kept
        while len(_kept) > _MOST_KEPT:
            _forget(next(iter(_kept)))
        return kept


def _forget(key: tuple[Any, ...]) -> None:
    """Close a session; that of the process before the fork is the other process's to close."""
    kept = _kept.pop(key)
    if key[0] == os.getpid():
        kept.session.close()


def _new_session(
    connection: Connection, bundle: str | None, connections: int, cookies: bool
) -> Kept:
    settings = connection.settings
    session = requests.Session()
    session.trust_env = False  # a ~/.netrc that nobody named must not replace the credential
    adapter = paced_adapter()(pool_maxsize=connections, max_retries=0, pool_block=True)
    session.mount("https://", adapter)
    session.mount("http://", adapter)
    verify: bool | str = bool(settings.get("validate_certs", True))
    if verify:
        verify = settings.get("ca_path") or bundle or True
        secure = connection.url.startswith("https:")
        if secure and bundle and verify == bundle and not os.path.exists(bundle):
            raise invalid(f"REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE: there is no '{bundle}'")
    else:
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    certificate, key = settings.get("client_cert"), settings.get("client_key")
    both = (certificate, key) if certificate and key else certificate
    return Kept(session, verify, both, cookies)
