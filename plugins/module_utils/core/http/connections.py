# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP connections with deadlines for slow responses [C1.4], for sessions of `requests`.

The library bounds every single wait for bytes, so a server that sends byte after byte never exceeds
that bound. Here the response head has the time of one wait, and the body a minimum rate.
"""

from __future__ import annotations

import functools
import io
import re
import ssl
import time
from base64 import b64encode
from collections.abc import Callable
from http.client import HTTPResponse, IncompleteRead
from typing import TYPE_CHECKING, Any

try:
    import urllib3
    from requests import PreparedRequest, Session, utils
    from requests.adapters import HTTPAdapter
    from requests.cookies import extract_cookies_to_jar
    from requests.structures import CaseInsensitiveDict
except ImportError:  # the runner has reported it; only the sanity test imports this file then
    Session = HTTPAdapter = object  # type: ignore[assignment, misc]

from ..address import Origin, UnfitRequest, origin, prepared_url
from ..concurrency import MAX_CONCURRENCY
from ..connection.auth import Login, Outgoing
from ..secret import hidden
from .bodies import ACCEPTED, BodyError, Incoming, SlowBody
from .multipart import SMALL

if TYPE_CHECKING:
    from ..accounting import Accounting

_HEADERS = {"Accept-Encoding": ACCEPTED, "Connection": "keep-alive"}
_HEADER = re.compile(r"(?=[\0-\xff]*\Z)[^:\s][^:\r\n]*: (?:[^\s\0][^\r\n\0]*)?")
#: Shorter cookie values are flags or languages, and parts of other words.
_SHORTEST_COOKIE = 8

#: Bytes a second that a body has to bring at least, on average over the time of one wait.
_MIN_RATE = 1024
#: Bytes of the lines in a head, and in the trailers after the chunks of a body.
_MAX_LINE_BYTES = 1024 * 1024
_BUFFER = 32 * 1024
#: Origins to which a session keeps connections.
_MAX_POOLS = 10
#: The library also accepts signs, blanks, `0x` and underscores, and reads on after `-1` [RFC 9112].
_CHUNK_SIZE = re.compile(rb"0*([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?\r?\n")


class DeadlineStream(io.RawIOBase):
    """Bytes of a response: the head must be complete within the time of one wait, and the body must
    keep :data:`_MIN_RATE`. Only the time spent on waiting counts.
    """

    def __init__(
        self, raw: io.RawIOBase, sock: Any, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._raw, self.socket, self._now = raw, sock, now
        self._limit: float = sock.gettimeout()
        self._in_head, self._waited, self._received = True, 0.0, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        if self._in_head and self._received:  # the first wait has this timeout anyway
            if self._waited >= self._limit:
                raise TimeoutError("the response head did not arrive in time")
            self.socket.settimeout(self._limit - self._waited)
        begun, cut = self._now(), False
        try:
            count = self._raw.readinto(buffer)
        except ssl.SSLEOFError:
            cut = True
        if cut:  # not raised above: its context would be taken for a failed handshake
            raise ConnectionAbortedError("the TLS connection ended without close_notify")
        self._waited += self._now() - begun
        self._received += count or 0
        if count and self._waited >= self._limit and not self._in_head:
            if self._received < _MIN_RATE * self._waited:
                raise SlowBody
            self._waited, self._received = 0.0, 0
        return count

    def end_head(self) -> None:
        """Restore the timeout of the socket; the body follows."""
        self._in_head, self._waited, self._received = False, 0.0, 0
        if self.socket.gettimeout() != self._limit:
            self.socket.settimeout(self._limit)

    def close(self) -> None:
        self._raw.close()
        super().close()


class ResponseReader(io.BufferedReader):
    """Stream for the library, which accepts endless lines, heads that end with the connection, and
    chunk sizes such as `-5`.
    """

    def __init__(self, stream: DeadlineStream) -> None:
        super().__init__(stream, _BUFFER)
        self.in_head, self.in_chunks, self._line_bytes = True, False, 0

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        if self.in_chunks and line:
            found = _CHUNK_SIZE.fullmatch(line)
            if found is None:
                raise BodyError("a chunk of the response has an invalid size")
            self.in_chunks = int(found[1], 16) > 0  # then come the trailers
            return line
        if self.in_head and self._line_bytes and not line:
            raise ConnectionAbortedError("the response ended inside its head")
        self._line_bytes += len(line)
        if self._line_bytes > _MAX_LINE_BYTES:
            raise ConnectionAbortedError("the response has too many header or trailer lines")
        return line


class DeadlineResponse(HTTPResponse):
    """Response of the standard library with deadlines, also for `CONNECT`. It rejects heads after
    which two readers would find different bodies.
    """

    def __init__(self, sock: Any, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self.stream = DeadlineStream(self.fp.detach(), sock)
        self.fp: ResponseReader = ResponseReader(self.stream)

    def begin(self) -> None:
        super().begin()
        encodings = self.headers.get_all("Transfer-Encoding", [])
        if encodings and (len(encodings) > 1 or not self.chunked):
            raise BodyError("the response has a Transfer-Encoding other than 'chunked'")
        lengths = ",".join(self.headers.get_all("Content-Length", [])).split(",")
        if len({length.strip() for length in lengths}) > 1:
            raise BodyError("the response has conflicting lengths")
        self.stream.end_head()
        self.fp.in_head, self.fp.in_chunks = False, bool(self.chunked)
        unbounded = self.length is None and not self.chunked
        if unbounded and hasattr(self.stream.socket, "suppress_ragged_eofs"):
            # only `close_notify` distinguishes the end of the body from a lost connection
            self.stream.socket.suppress_ragged_eofs = False

    def read(self, amt: int | None = None) -> bytes:
        data = super().read(amt)
        if amt and not data and self.length:  # urllib3 before 2 does not raise
            raise IncompleteRead(data, self.length)
        return data


class _DeadlineConnection:
    """Part of a connection class of urllib3: use the response class above, and send the head
    together with a small body. Otherwise the server wakes up twice.
    """

    response_class = DeadlineResponse
    sock: Any
    timeout: float | None
    #: Parts of the request that are sent together; `None`: each part is sent at once.
    unsent: list[bytes] | None = None

    def request(self, *arguments: Any, **options: Any) -> None:
        self.unsent = []
        try:
            super().request(*arguments, **options)  # type: ignore[misc]
        finally:
            parts, self.unsent = self.unsent, None
        if parts:
            self.send(b"".join(parts))

    def send(self, data: bytes) -> None:
        if self.unsent is not None and len(data) <= SMALL:
            self.unsent.append(data)
            return
        parts, self.unsent = self.unsent or [], None
        for part in (*parts, data):
            super().send(part)  # type: ignore[misc]

    def connect(self) -> None:
        try:
            super().connect()  # type: ignore[misc] # the connection class comes after this one
        except TimeoutError as error:  # of the proxy or of TLS: no request was sent
            raise urllib3.exceptions.ConnectTimeoutError(
                self, "the handshake did not finish in time"
            ) from error
        self.sock.settimeout(self.timeout)  # the response to CONNECT used some time


@functools.cache
def _with_deadlines(pool: Any) -> Any:
    """Return a subclass of a pool class; its connections have deadlines."""
    if issubclass(pool.ConnectionCls, _DeadlineConnection):
        return pool
    connection = type("DeadlineConnection", (_DeadlineConnection, pool.ConnectionCls), {})
    return type("DeadlinePool", (pool,), {"ConnectionCls": connection})


def _install(manager: Any) -> None:
    classes = manager.pool_classes_by_scheme.items()
    manager.pool_classes_by_scheme = {scheme: _with_deadlines(pool) for scheme, pool in classes}


class DeadlineAdapter(HTTPAdapter):
    """Adapter whose connections have deadlines, direct and through proxies (SOCKS too). All its
    requests have the same TLS options.

    :param connections: maximum number of connections to an origin; further requests wait
    """

    def __init__(self, connections: int) -> None:
        self._by_origin: dict[tuple[Origin, str | None], Any] = {}
        # urllib3 allocates a slot for every connection at once
        slots = min(connections, MAX_CONCURRENCY)
        super().__init__(pool_connections=_MAX_POOLS, pool_maxsize=slots, pool_block=True)

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options)
        _install(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **options)
        _install(manager)
        return manager

    def get_connection_with_tls_context(
        self, request: Any, verify: Any, proxies: Any = None, cert: Any = None
    ) -> Any:
        """Return the pool of an origin. The library's search takes as long as sending a head."""
        key = origin(request.url), (proxies or {}).get("http")
        pool = self._by_origin.get(key)
        if pool is None:
            pool = super().get_connection_with_tls_context(request, verify, proxies, cert)
            # no more than the library keeps, which closes the oldest
            known = self._by_origin if len(self._by_origin) < _MAX_POOLS else {}
            self._by_origin = {**known, key: pool}
        return pool

    def request_url(self, request: Any, proxies: Any) -> Any:
        return super().request_url(request, proxies) if proxies else request.path_url


class PooledSession(Session):
    """Session with its cache (the crumb of the CI server). It does not follow redirects: the
    transport does, within its rules.

    :param cookies_of: the only origin that sets and gets cookies, `None` if there is none. The
        library also sends them to other ports, and to neighbours in their domain.
    """

    def __init__(self, connections: int, cookies_of: Origin | None) -> None:
        super().__init__()
        self.memory: dict[str, Any] = {}
        self._cookies_of = cookies_of
        self._proxies: dict[Origin, str | None] = {}
        adapter = DeadlineAdapter(connections)
        self.mount("https://", adapter)
        self.mount("http://", adapter)

    def exchange(
        self, outgoing: Outgoing, login: Login, accounting: Accounting, *, timeout: float
    ) -> Incoming:
        """Send a request; the body of the response is not read. `Session.send` would read the body
        of a redirect, without bounds.
        """
        login(outgoing)
        headers, body, url = {**_HEADERS, **outgoing.headers}, outgoing.body, outgoing.url
        if body is not None or outgoing.method not in ("GET", "HEAD"):
            headers["Content-Length"] = str(len(body or b""))
        _require_headers(headers)
        # Not prepared by the library: most steps are done, and the signature of OAuth must stay.
        request = PreparedRequest()
        request.method, request.url = outgoing.method, prepared_url(url)
        request.headers = CaseInsensitiveDict(headers)
        request.body = body or None  # type: ignore[assignment] # an upload is iterable
        at_home, proxy = origin(url) == self._cookies_of, self._proxy(url)
        if at_home:
            request.prepare_cookies(self.cookies)
        adapter: Any = self.get_adapter(url)
        response = adapter.send(
            request,
            stream=True,
            timeout=timeout,
            verify=self.verify,
            cert=self.cert,
            proxies={"http": proxy, "https": proxy} if proxy else {},
        )
        if at_home:
            extract_cookies_to_jar(  # type: ignore[no-untyped-call]
                self.cookies, request, response.raw
            )
        cookies = [cookie.value or "" for cookie in (*response.cookies, *self.cookies)]
        hidden.add(*(value for value in cookies if len(value) >= _SHORTEST_COOKIE))
        return Incoming(response, url, accounting)

    def _proxy(self, url: str) -> str | None:
        """Return the proxy that `requests` chooses; its login is kept out of all output."""
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
            raise UnfitRequest(
                f"the header {name!r} contains a character that is invalid in a header"
            )
