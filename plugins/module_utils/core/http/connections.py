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
from collections.abc import Callable
from http.client import HTTPResponse, IncompleteRead
from typing import Any

try:
    import urllib3
    from requests import Session
    from requests.adapters import HTTPAdapter
except ImportError:  # the runner has reported it; only the sanity test imports this file then
    Session = HTTPAdapter = object  # type: ignore[assignment, misc]

from ..concurrency import MAX_CONCURRENCY
from .bodies import MalformedResponse, SlowBody

#: Bytes a second that a body has to bring at least, on average over the time of one wait.
_MIN_RATE = 1024
#: Bytes of consecutive lines: a head, or the lines between the chunks of a body.
_MAX_LINE_BYTES = 1024 * 1024
_MAX_LINE = 64 * 1024 + 1  # the library rejects lines longer than 64 KiB
_BUFFER = 32 * 1024
#: The library also accepts signs, blanks, `0x` and underscores, and reads on after `-1` [RFC 9112].
_CHUNK_SIZE = re.compile(rb"0*([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?\r?\n")


class DeadlineStream(io.RawIOBase):
    """Bytes of a response: the head must be complete within the time of one wait, and the body must
    keep :data:`_MIN_RATE`. Only the time spent on waiting counts.
    """

    def __init__(
        self, raw: io.RawIOBase, sock: Any, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._raw, self._socket, self._now = raw, sock, now
        self._limit: float | None = sock.gettimeout()
        self._end = None if self._limit is None else now() + self._limit
        self._waits, self._waited, self._received = 0, 0.0, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        if self._end is not None:
            self._waits += 1
            if self._waits > 1:  # the first wait has the timeout of the connection anyway
                left = self._end - self._now()
                if left <= 0:
                    raise TimeoutError("the response head is late")
                self._socket.settimeout(left)
            return self._raw.readinto(buffer)
        begun, cut = self._now(), False
        try:
            count = self._raw.readinto(buffer)
        except ssl.SSLEOFError:
            cut = True
        if cut:  # not raised above: its context would be taken for a failed handshake
            raise ConnectionAbortedError("the TLS connection ended without close_notify")
        self._waited += self._now() - begun
        self._received += count or 0
        if count and self._limit is not None and self._waited >= self._limit:
            if self._received < _MIN_RATE * self._waited:
                raise SlowBody
            self._waited, self._received = 0.0, 0
        return count

    def end_head(self) -> None:
        """Restore the timeout of the socket; the body follows."""
        self._end = None
        if self._waits > 1:
            self._socket.settimeout(self._limit)

    def require_close_notify(self) -> None:
        """Require `close_notify`: without a length, only that alert distinguishes the end of a body
        from a lost connection. By default a TLS socket ignores a missing alert.
        """
        if hasattr(self._socket, "suppress_ragged_eofs"):
            self._socket.suppress_ragged_eofs = False

    def close(self) -> None:
        self._raw.close()
        super().close()


class ResponseReader(io.BufferedReader):
    """Stream for the library, which accepts endless lines, heads that end with the connection, and
    chunk sizes such as `-5`.
    """

    def __init__(self, stream: DeadlineStream) -> None:
        super().__init__(stream, _BUFFER)
        self._in_head, self._in_chunks, self._line_bytes = True, False, 0

    def end_head(self, *, chunked: bool) -> None:
        self._in_head, self._in_chunks = False, chunked

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(_MAX_LINE if size is None or size < 0 else size)
        self._line_bytes += len(line)
        if self._line_bytes > _MAX_LINE_BYTES:
            raise ConnectionAbortedError("the response has too many lines besides its body")
        if self._in_head and self._line_bytes and len(line) < _MAX_LINE and line[-1:] != b"\n":
            raise ConnectionAbortedError("it ended inside the head of the response")
        if self._in_chunks and line:
            found = _CHUNK_SIZE.fullmatch(line)
            if found is None:
                raise MalformedResponse("a chunk of the response has no valid size")
            self._in_chunks = int(found[1], 16) > 0  # then come the trailers
        return line

    def read(self, size: int | None = -1, /) -> bytes:
        self._line_bytes = 0
        return super().read(size)

    def readinto(self, buffer: Any, /) -> int:
        self._line_bytes = 0
        return super().readinto(buffer)


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
            raise MalformedResponse("the response has another Transfer-Encoding than 'chunked'")
        lengths = ",".join(self.headers.get_all("Content-Length", [])).split(",")
        if len({length.strip() for length in lengths}) > 1:
            raise MalformedResponse("the response has several lengths")
        self.stream.end_head()
        self.fp.end_head(chunked=bool(self.chunked))
        if self.length is None and not self.chunked:
            self.stream.require_close_notify()

    def read(self, amt: int | None = None) -> bytes:
        data = super().read(amt)
        if amt and not data and self.length:  # urllib3 before 2 does not raise
            raise IncompleteRead(data, self.length)
        return data


class _DeadlineConnection:
    """Part of a connection class of urllib3: use the response class above."""

    response_class = DeadlineResponse
    sock: Any
    timeout: float | None

    def connect(self) -> None:
        try:
            super().connect()  # type: ignore[misc] # the connection class comes after this one
        except TimeoutError as error:  # of the proxy or of TLS: no request was sent
            raise urllib3.exceptions.ConnectTimeoutError(self, "the handshake is late") from error
        self.sock.settimeout(self.timeout)  # the response to CONNECT used some time


@functools.cache
def _with_deadlines(pool: Any) -> Any:
    """Return a subclass of a pool class; its connections have deadlines."""
    if issubclass(pool.ConnectionCls, _DeadlineConnection):
        return pool
    connection = type("DeadlineConnection", (_DeadlineConnection, pool.ConnectionCls), {})
    return type("DeadlinePool", (pool,), {"ConnectionCls": connection})


def _install(manager: Any) -> None:
    classes = manager.pool_classes_by_scheme
    manager.pool_classes_by_scheme = {
        scheme: _with_deadlines(pool) for scheme, pool in classes.items()
    }


class DeadlineAdapter(HTTPAdapter):
    """Adapter whose connections have deadlines, direct and through proxies (SOCKS too).

    :param connections: maximum number of connections to an origin; further requests wait
    """

    def __init__(self, connections: int) -> None:
        # urllib3 allocates a slot for every connection at once
        super().__init__(pool_maxsize=min(connections, MAX_CONCURRENCY), pool_block=True)

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options)
        _install(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **options)
        _install(manager)
        return manager


class DirectSession(Session):
    """Session that does not follow redirects: the transport does, within its rules."""

    def __init__(self, connections: int) -> None:
        super().__init__()
        adapter = DeadlineAdapter(connections)
        self.mount("https://", adapter)
        self.mount("http://", adapter)

    def get_redirect_target(self, resp: Any) -> None:
        """Find none. The library would read the body of a redirect without bounds."""
