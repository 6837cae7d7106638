# SPDX-License-Identifier: GPL-3.0-or-later
"""Kept-alive sessions: one per server and credential in a process, shared by the items of a loop
and by nobody else.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import runpy
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from ..address import DEFAULT_PORTS, Origin, UnfitRequest, origin, request_target
from ..connection.auth import Login, Outgoing
from ..connection.options import Connection
from ..errors import ToolchainError, invalid
from .bodies import ACCEPTED, BodyError
from .connections import Incoming, Load, Pool, Pools

if TYPE_CHECKING:
    from urllib.request import Request

    from ..accounting import Accounting

#: The traceback of the missing library, C(None) where it is there.
REQUESTS_MISSING: str | None = None
REQUEST_ERRORS: tuple[type[Exception], ...] = ()
try:
    import urllib3

    # It is loaded where it is needed, which is seldom: that takes as long as a small task.
    _found = importlib.util.find_spec("requests")
    if _found is None or not _found.submodule_search_locations:
        raise ImportError("No module named 'requests'")
    REQUEST_ERRORS = (urllib3.exceptions.HTTPError, BodyError, UnfitRequest)
except ImportError:
    REQUESTS_MISSING = traceback.format_exc()


#: Bytes of a body that are read and sent at once.
_BLOCK = 1024 * 1024
#: Up to so many bytes a file is read whole before it is sent.
SMALL = 64 * 1024
#: What goes with every request that does not say otherwise.
_USUAL = {"Accept-Encoding": ACCEPTED, "Connection": "keep-alive"}


def small_body(what: str, open_body: Callable[[], IO[bytes]], size: int) -> bytes:
    """The body of a few bytes that are read from a file: to send them costs less than a stream."""
    blocks, missing = list[bytes](), size
    try:
        with open_body() as file:
            while missing and (block := file.read(missing)):
                blocks.append(block)
                missing -= len(block)
    except OSError as error:
        raise _unexpected_body(what, error) from None
    if missing:
        raise _shorter(what)
    return b"".join(blocks)


def _unexpected_body(what: str, error: OSError) -> ToolchainError:
    return ToolchainError("failed", f"{what}: the file cannot be read: {error.strerror or error}")


def _shorter(what: str) -> ToolchainError:
    return ToolchainError("failed", f"{what}: the file got shorter while it was sent")


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
                raise _shorter(self._what)
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
            raise _unexpected_body(self._what, error) from None


class Cookies:
    """Those of a session. What keeps them is loaded for the sessions that do."""

    def __init__(self) -> None:
        from http.cookiejar import CookieJar

        self._jar = CookieJar()

    def add_to(self, outgoing: Outgoing, address: str) -> Request:
        """Add those that are kept for an address; what they were chosen by."""
        from urllib.request import Request

        asked = Request(address)  # noqa: S310 - one of the web, as the connection has it
        self._jar.add_cookie_header(asked)
        outgoing.headers.update(asked.unredirected_hdrs)
        return asked

    def take(self, incoming: Incoming, asked: Request) -> None:
        self._jar.extract_cookies(incoming, asked)

    def forget(self) -> None:
        self._jar.clear()


@dataclass(frozen=True)
class Way:
    """The connections to an origin; C(before_path): what a proxy wants to see before the path."""

    pool: Pool
    host: str
    before_path: str


@dataclass
class Kept:
    """A session and what is remembered with it (the crumb of the CI server).

    C(home) is the origin of the connection. Cookies go there only, and come from there only: a
    cookie jar alone would send them to other ports, and to neighbours in their domain.
    """

    home: Origin
    pools: Pools
    checks: bool
    authorities: str | None
    certificate: tuple[str, str | None]
    cookies: Cookies | None = None
    memory: dict[str, Any] = field(default_factory=dict)
    _ways: dict[tuple[Origin, str | None], Way] = field(default_factory=dict)

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

        It goes to the pool of urllib3: what C(requests) does for each exchange (preparing it,
        cookies that nobody keeps, an answer of its own) takes as long as the rest.

        :param place: the origin of the address
        """
        login(outgoing)
        way = self._ways.get((place, proxy)) or self._way(place, proxy)
        path = request_target(outgoing.url)
        cookies = self.cookies if place == self.home else None
        asked = cookies and cookies.add_to(outgoing, f"{place[0]}://{way.host}{path}")
        incoming = way.pool.exchange(
            outgoing.method,
            way.before_path + path,
            Load(outgoing.body, way.host, streamed),
            {**_USUAL, **outgoing.headers},
            timeout,
        )
        incoming.url = outgoing.url
        if cookies and asked:
            cookies.take(incoming, asked)
        return incoming

    def _way(self, place: Origin, proxy: str | None) -> Way:
        """The connections to an origin, which are made when they are needed."""
        scheme, name, port = place
        shown = f"[{name}]" if ":" in name else name
        host = shown if port == DEFAULT_PORTS[scheme] else f"{shown}:{port}"
        before_path = ""
        if proxy is not None:
            from requests.utils import prepend_scheme_if_needed

            proxy = str(prepend_scheme_if_needed(proxy, "http"))  # type: ignore[no-untyped-call]
            if not urllib3.util.parse_url(proxy).host:
                raise UnfitRequest("the address of the proxy has no host")
            is_asked = scheme == "http" and not proxy.lower().startswith("socks")
            before_path = f"http://{host}" if is_asked else ""
        pool = self.pools.of(f"{scheme}://{shown}:{port}/", proxy)
        if scheme == "https":
            trusted = (self.authorities or usual_authorities()) if self.checks else None
            _check_certificates(pool, trusted, self.certificate)
        return self._ways.setdefault((place, proxy), Way(pool, host, before_path))


def _check_certificates(pool: Any, authorities: str | None, own: tuple[str, str | None]) -> None:
    """How a pool of TLS connections sees who the server is, and shows who it is itself.

    :param authorities: a file or a folder of certificates; C(None): nobody checks the server
    :param own: the files of certificate and key, empty where there is none
    """
    pool.cert_reqs = "CERT_NONE" if authorities is None else "CERT_REQUIRED"
    if authorities is not None:
        setattr(pool, "ca_cert_dir" if os.path.isdir(authorities) else "ca_certs", authorities)
    if own[0]:
        pool.cert_file, pool.key_file = own


@functools.cache
def usual_authorities() -> str:
    """The certificates that C(requests) trusts. Distributions name theirs in its file C(certs),
    which is read alone: the whole library takes as long as a small task.
    """
    found = importlib.util.find_spec("requests")
    for folder in found.submodule_search_locations or () if found is not None else ():
        path = os.path.join(folder, "certs.py")
        if os.path.isfile(path):
            return str(runpy.run_path(path)["where"]())
    from requests.utils import DEFAULT_CA_BUNDLE_PATH

    return str(DEFAULT_CA_BUNDLE_PATH)


class Proxies:
    """The proxies that the environment names, which is searched once per task and origin: that
    takes as long as a small exchange.
    """

    def __init__(self) -> None:
        self._known: dict[Origin, str | None] = {}

    def of(self, place: Origin, url: str) -> str | None:
        """The proxy for an address, whose origin is C(place); C(None) where there is none."""
        if place not in self._known:
            self._known[place] = _proxy_for(url) if names_proxies() else None
        return self._known[place]


def names_proxies() -> bool:
    """Whether there may be a proxy at all; a Mac keeps them in its settings, too."""
    names = (name.lower() for name, value in os.environ.items() if value)
    named = any(name.endswith("_proxy") and name != "no_proxy" for name in names)
    return named or sys.platform == "darwin"


def _proxy_for(url: str) -> str | None:
    """The proxy that C(requests) takes."""
    from requests.utils import get_environ_proxies, select_proxy

    return select_proxy(url, get_environ_proxies(url))


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
        kept.pools.close()


def _new_session(
    connection: Connection, bundle: str | None, connections: int, cookies: bool
) -> Kept:
    settings = connection.settings
    checks = bool(settings.get("validate_certs", True))
    authorities = (settings.get("ca_path") or bundle or None) if checks else None
    if checks:
        secure = connection.url.startswith("https:")
        if secure and bundle and authorities == bundle and not os.path.exists(bundle):
            raise invalid(f"REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE: there is no '{bundle}'")
    else:
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    own = (settings.get("client_cert") or "", settings.get("client_key") or None)
    kept = Cookies() if cookies else None
    return Kept(origin(connection.url), Pools(connections), checks, authorities, own, kept)
