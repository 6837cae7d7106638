# SPDX-License-Identifier: GPL-3.0-or-later
"""Connections on which no answer can take for ever [C1.4], and on which a small exchange is cheap.

The HTTP library knows how long a single wait for bytes may be. A server that sends one byte after
the other is within that for as long as it likes. And it takes three times as long as all the rest
to write a head field by field, and to read one as if it were a mail: here a request leaves as one
block, and the usual head of an answer is read in one go.
"""

from __future__ import annotations

import functools
import importlib.util
import io
import os
import re
import runpy
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException, HTTPMessage, HTTPResponse
from typing import TYPE_CHECKING, Any, Protocol

from ..address import UnfitRequest
from ..connection.auth import Content
from . import bodies
from .bodies import SLOWEST, SlowBody
from .messages import Headers

if TYPE_CHECKING:
    import urllib3
    from requests.adapters import HTTPAdapter

#: Bytes of lines one after the other: a head, the lines between the chunks of a body.
_MOST_IN_LINES = 1024 * 1024
_LONGEST_LINE = 64 * 1024 + 1  # the library refuses lines that are longer than 64 KiB
#: Bytes that are taken from the system at once: the most of small answers come whole.
_AT_ONCE = 32 * 1024
#: Bytes of a body that go in one block with the head.
_WITH_HEAD = 64 * 1024
_FIELD = re.compile(r"(?=[\0-\xff]*\Z)[^:\s][^:\r\n]*: (?:[^\s\0][^\r\n\0]*)?")
#: The head of a whole answer as servers write it; any other one is left to the standard library.
_USUAL_HEAD = re.compile(
    rb"HTTP/1\.1 ([2-5][0-9][0-9])(?: ([^\r\n]*))?((?:\r\n[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n]*)*)"
    rb"\r\n\r\n"
)
_MOST_FIELDS = 100  # as in the standard library
_MOST_POOLS = 10  # as in C(requests): servers whose connections are kept
#: What urllib3 before 2 looks for mistakes in.
_NO_DEFECTS = HTTPMessage()


class _Socket(Protocol):
    def gettimeout(self) -> float | None:
        """The seconds of one wait."""

    def settimeout(self, value: float | None, /) -> None:
        """Set them."""


class PacedBytes(io.RawIOBase):
    """The bytes of one answer: the head has to be whole in the time of one wait, and the body comes
    at a pace. Only the time that is spent on waiting counts.
    """

    def __init__(
        self, raw: io.RawIOBase, sock: _Socket, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._raw, self._socket, self._now = raw, sock, now
        self._limit = sock.gettimeout()
        self._end = None if self._limit is None else now() + self._limit
        self._waits, self._waited, self._got = 0, 0.0, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        if self._end is not None:
            left = self._end - self._now()
            if left <= 0:
                raise TimeoutError("the head of the answer is late")
            self._waits += 1
            if self._waits > 1:  # the first one has the time that the connection has anyway
                self._socket.settimeout(left)
            return self._raw.readinto(buffer)
        begun = self._now()
        count = self._raw.readinto(buffer)
        self._waited += self._now() - begun
        self._got += count or 0
        if count and self._limit is not None and self._waited >= self._limit:
            if self._got < SLOWEST * self._waited:
                raise SlowBody
            self._waited, self._got = 0.0, 0
        return count

    def head_is_whole(self) -> None:
        self._end = None
        if self._waits > 1:
            self._socket.settimeout(self._limit)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Reader(io.BufferedReader):
    """What the library reads from; it would take lines without an end."""

    _in_lines = 0

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(_LONGEST_LINE if size is None or size < 0 else size)
        self._in_lines += len(line)
        if self._in_lines > _MOST_IN_LINES:
            raise ConnectionAbortedError("the answer has too many lines beside its body")
        return line

    def read(self, size: int | None = -1, /) -> bytes:
        self._in_lines = 0
        return super().read(size)

    def readinto(self, buffer: Any, /) -> int:
        self._in_lines = 0
        return super().readinto(buffer)


@dataclass(frozen=True)
class Load:
    """What an exchange carries beside the head that the HTTP library hands on.

    :param host: what the header C(Host) says
    :param streamed: the body of a good answer is taken piece by piece, that of others at once
    """

    content: Content | None
    host: str
    streamed: bool


class Incoming(HTTPResponse):
    """An answer as it comes; its body is C(content) once it was taken whole.

    The pool of the HTTP library sets C(retries), and C(_connection) with C(_pool) where the
    connection is to be given back at the end of the body.
    """

    headers: Headers  # type: ignore[assignment]
    content, url = b"", ""
    _method: str
    retries: Any = None
    version_string, length_remaining = "HTTP/1.1", None
    _pool: Any = None
    _connection: Any = None
    _came: bytes | None = None

    def __init__(self, sock: Any, *, method: str) -> None:
        super().__init__(sock, method=method)
        self._paced = PacedBytes(self.fp.detach(), sock)
        self.fp = _Reader(self._paced, _AT_ONCE)

    @property
    def status_code(self) -> int:
        return self.status

    @property
    def text(self) -> str:
        return self.content.decode("utf-8", errors="replace")

    def begin(self) -> None:
        if not self._begun_as_usual():
            super().begin()
            self.headers = Headers(self.msg.items())
            lengths = self.headers.get("Content-Length", "").split(",")
            if len({length.strip() for length in lengths}) > 1:
                raise HTTPException("the answer has several lengths")
        self._paced.head_is_whole()

    def _begun_as_usual(self) -> bool:
        """Read the head; false where nothing was read of it."""
        found = _USUAL_HEAD.match(self.fp.peek(1))
        if found is None:
            return False
        status, reason, lines = found.groups()
        headers = Headers.of_lines(lines.decode("latin-1"))
        length = headers.get("Content-Length", "")
        if "Transfer-Encoding" in headers or not length.isdecimal() or len(headers) > _MOST_FIELDS:
            return False
        self.fp.read(found.end())
        self.headers, self.msg = headers, _NO_DEFECTS
        self.code = self.status = int(status)
        self.reason, self.version = (reason or b"").decode("latin-1").strip(), 11
        is_empty = self.status in (204, 304) or self._method == "HEAD"
        self.chunked, self.length = False, 0 if is_empty else int(length)
        self.will_close = "close" in headers.get("Connection", "").lower()
        return True

    def take(self) -> None:
        """Take the body now, so that the connection is free."""
        self._came = bodies.within_bounds(self.as_sent())

    def settle(self) -> None:
        """Give the connection back where the body was taken before the pool has named it."""
        if self._came is not None:
            self._give_back()

    def as_sent(self) -> Iterator[bytes]:
        """The body as it is on the wire, piece by piece."""
        if self._came is not None:
            yield self._came
            return
        try:
            while block := self.read(bodies.PIECE):
                yield block
            if self.length:
                raise HTTPException(f"the body ends {self.length} bytes too early")
        except (OSError, HTTPException) as error:
            from urllib3.exceptions import ProtocolError

            raise ProtocolError("Connection broken", error) from error
        self._give_back()

    def iter_content(self, _size: int = 0) -> Iterator[bytes]:
        """The body as it comes, unpacked."""
        return bodies.pieces(self)

    def close(self) -> None:
        super().close()
        if self._connection is not None:  # what is left of the body would be the next answer
            self._connection.close()
        self._give_back()

    def _give_back(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool._put_conn(connection)

    @classmethod
    def from_httplib(cls, found: Incoming, *, pool: Any, connection: Any, **_rest: Any) -> Incoming:
        """urllib3 before 2 asks for its own kind of answer here, and takes this one."""
        found._pool, found._connection = pool, connection
        return found


class _Exchange:
    """How a connection of the HTTP library sends a request and begins to read the answer."""

    sock: Any
    timeout: float | None
    send: Callable[[bytes], None]
    close: Callable[[], None]
    _method = ""
    _load: Load

    def request(
        self,
        method: str,
        url: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        **_options: Any,
    ) -> None:
        """C(body) is the C(Load)."""
        self._method, self._load = method, body
        content = self._load.content
        fields = {"Host": self._load.host, **(headers or {})}
        if content is not None or method not in ("GET", "HEAD"):
            fields["Content-Length"] = str(len(content or b""))
        head = _head(f"{method} {url} HTTP/1.1", fields)
        if self.sock is not None:
            self.sock.settimeout(self.timeout)
        blocks = (content,) if isinstance(content, bytes) else content or ()
        if len(content or b"") <= _WITH_HEAD:
            self.send(head + b"".join(blocks))
            return
        self.send(head)
        for block in blocks:
            self.send(block)

    def getresponse(self) -> Incoming:
        found = Incoming(self.sock, method=self._method)
        try:
            found.begin()
            if found.will_close:
                self.close()
            if found.status != 200 or not self._load.streamed:
                found.take()
        except BaseException:
            found.close()
            raise
        return found


def _head(first: str, fields: Mapping[str, str]) -> bytes:
    """The head of a request; C(UnfitRequest), without the value, where one cannot be sent."""
    lines = [first]
    for name, value in fields.items():
        line = f"{name}: {value}"
        if _FIELD.fullmatch(line) is None:
            raise UnfitRequest(f"the header {name!r} has a character that no header can have")
        lines.append(line)
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


class Pools:
    """The pools of the HTTP library with such connections, straight and through proxies."""

    def __init__(self, connections: int) -> None:
        import urllib3

        self._most = connections
        self._straight = urllib3.PoolManager(_MOST_POOLS, maxsize=connections, block=True)
        self._straight.pool_classes_by_scheme = _pool_classes()
        self._proxied: HTTPAdapter | None = None

    def of(self, address: str, proxy: str | None) -> Any:
        """The pool of connections to an address; through a proxy as C(requests) reads that."""
        manager = self._straight if proxy is None else self._through(proxy)
        return manager.connection_from_url(address)

    def _through(self, proxy: str) -> urllib3.PoolManager:
        from requests import RequestException
        from requests.adapters import HTTPAdapter

        if self._proxied is None:
            self._proxied = HTTPAdapter(pool_maxsize=self._most, pool_block=True)
        try:
            manager: urllib3.PoolManager = self._proxied.proxy_manager_for(proxy)
        except RequestException as error:
            raise UnfitRequest(str(error)) from None
        manager.pool_classes_by_scheme = _pool_classes()
        return manager

    def close(self) -> None:
        self._straight.clear()
        if self._proxied is not None:
            self._proxied.close()


@functools.cache
def _pool_classes() -> dict[str, Any]:
    """They are made when they are asked for: without the library, whose absence is told elsewhere,
    this file can be loaded all the same.
    """
    import urllib3
    from urllib3.connection import HTTPConnection, HTTPSConnection

    class PacedHttp(_Exchange, HTTPConnection):  # type: ignore[misc]
        pass

    class PacedHttps(_Exchange, HTTPSConnection):  # type: ignore[misc]
        pass

    class HttpPool(urllib3.HTTPConnectionPool):
        ConnectionCls = PacedHttp  # type: ignore[assignment]
        ResponseCls = Incoming

    class HttpsPool(urllib3.HTTPSConnectionPool):
        ConnectionCls = PacedHttps  # type: ignore[assignment]
        ResponseCls = Incoming

    return {"http": HttpPool, "https": HttpsPool}


def check_certificates(pool: Any, authorities: str | None, own: tuple[str, str | None]) -> None:
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
