# SPDX-License-Identifier: GPL-3.0-or-later
"""Connections on which no answer can take for ever [C1.4], and on which a small exchange is cheap.

The HTTP library knows how long a single wait for bytes may be. A server that sends one byte after
the other is within that for as long as it likes. And it takes three times as long as all the rest
to write a head field by field, and to read one as if it were a mail: here a request leaves as one
block, and the usual head of an answer is read in one go.
"""

from __future__ import annotations

import errno
import functools
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException, HTTPMessage, HTTPResponse
from typing import TYPE_CHECKING, Any

from ..address import UnfitRequest
from ..concurrency import MOST_AT_ONCE
from ..connection.auth import Content
from . import bodies
from .bodies import Begun, PacedBytes, Reader
from .messages import Headers

if TYPE_CHECKING:
    import urllib3
    from requests.adapters import HTTPAdapter

#: Bytes that are taken from the system at once: the most of small answers come whole.
_AT_ONCE = 32 * 1024
#: Bytes of a body that go in one block with the head.
_WITH_HEAD = 64 * 1024
#: A server may answer, and end the connection, while the body is still being sent.
_ANSWERED_EARLY = (errno.EPIPE, errno.ECONNRESET, errno.EPROTOTYPE)
_FIELD_PATTERN = r"[^:\s][^:\r\n]*: (?:[^\s\0][^\r\n\0]*)?"
_FIELD = re.compile(rf"(?=[\0-\xff]*\Z){_FIELD_PATTERN}")
_FIELDS = re.compile(rf"(?=[\0-\xff]*\Z){_FIELD_PATTERN}(?:\r\n{_FIELD_PATTERN})*")
#: The head of a whole answer as servers write it; any other one is left to the standard library.
_USUAL_HEAD = re.compile(
    rb"HTTP/1\.1 ([2-5][0-9][0-9])(?: ([^\r\n]*))?((?:\r\n[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n]*)*)"
    rb"\r\n\r\n"
)
_MOST_FIELDS = 100  # as in the standard library
_MOST_POOLS = 10  # as in C(requests): servers whose connections are kept
#: What urllib3 before 2 looks for mistakes in.
_NO_DEFECTS = HTTPMessage()


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
    #: The body as it is on the wire, where all of it was taken.
    came: bytes | None = None

    def __init__(self, sock: Any, *, method: str, begun: Begun | None = None) -> None:
        super().__init__(sock, method=method)
        self._paced = PacedBytes(self.fp.detach(), sock, begun=begun)
        self.fp: Reader = Reader(self._paced, _AT_ONCE)

    @classmethod
    def at_once(cls, came: bytes, method: str) -> Incoming | None:
        """The answer where it is a usual one, and exactly this is all of it; else C(None)."""
        found = cls.__new__(cls)
        found.fp, found._method = None, method  # type: ignore[assignment]
        end = found._take_head(came)
        if not end or len(came) != end + (found.length or 0):
            return None
        found.came = came[end:]
        return found

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
        self.fp.in_head = False

    def _begun_as_usual(self) -> bool:
        """Read the head; false where nothing was read of it."""
        end = self._take_head(self.fp.peek(1))
        self.fp.read(end)
        return end > 0

    def _take_head(self, came: bytes) -> int:
        """Take over what the head says that C(came) begins with, and where that ends; 0 where it is
        no usual one, or not whole.
        """
        found = _USUAL_HEAD.match(came)
        if found is None:
            return 0
        status, reason, lines = found.groups()
        headers = Headers.of_lines(lines.decode("latin-1"))
        length = headers.get("Content-Length", "")
        if "Transfer-Encoding" in headers or not length.isdecimal() or len(headers) > _MOST_FIELDS:
            return 0
        self.headers, self.msg = headers, _NO_DEFECTS
        self.code = self.status = int(status)
        self.reason, self.version = (reason or b"").decode("latin-1").strip(), 11
        is_empty = self.status in (204, 304) or self._method == "HEAD"
        self.chunked, self.length = False, 0 if is_empty else int(length)
        self.will_close = "close" in headers.get("Connection", "").lower()
        return found.end()

    def take(self) -> None:
        """Take the body now, so that the connection is free."""
        self.came = bodies.within_bounds(self.as_sent())

    def settle(self) -> None:
        """Give the connection back where the body was taken before the pool has named it."""
        if self.came is not None:
            self._give_back()

    def as_sent(self) -> Iterator[bytes]:
        """The body as it is on the wire, piece by piece."""
        if self.came is not None:
            yield self.came
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
        if self.sock is not None and self.sock.gettimeout() != self.timeout:
            self.sock.settimeout(self.timeout)
        blocks = (content,) if isinstance(content, bytes) else content or ()
        if len(content or b"") <= _WITH_HEAD:
            self.send(head + b"".join(blocks))
            return
        self.send(head)
        for block in blocks:
            self.send(block)

    def getresponse(self, **_options: Any) -> Incoming:
        """urllib3 before 2 gives an option, and shows it as trouble where it is not taken."""
        since = time.monotonic()
        came: bytes = self.sock.recv(_AT_ONCE)
        found = Incoming.at_once(came, self._method)
        if found is not None:
            if found.will_close:
                self.close()
            return found
        return self._read(Incoming(self.sock, method=self._method, begun=(since, came)))

    def _read(self, found: Incoming) -> Incoming:
        """Begin to read an answer, and take its body unless it is streamed."""
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
    lines = [f"{name}: {value}" for name, value in fields.items()]
    block = "\r\n".join(lines)
    if _FIELDS.fullmatch(block) is None or block.count("\r\n") >= len(lines):
        wrong = next(name for name, line in zip(fields, lines, strict=True) if not _fits(line))
        raise UnfitRequest(f"the header {wrong!r} has a character that no header can have")
    return f"{first}\r\n{block}\r\n\r\n".encode("latin-1")


def _fits(field: str) -> bool:
    return _FIELD.fullmatch(field) is not None


class Pool:
    """A pool of the HTTP library that can do without most of it where a connection is there."""

    scheme: str
    proxy_headers: Mapping[str, str]
    _get_conn: Callable[[], Any]
    _put_conn: Callable[[Any], None]
    request: Callable[..., Incoming]

    def exchange(
        self, method: str, target: str, load: Load, headers: Mapping[str, str], timeout: float
    ) -> Incoming:
        """Send a request once, and begin to read the answer; redirects are answers.

        What the library does for each request takes three times as long as a small exchange on a
        connection that is kept alive. It is asked only where a connection has to be made.
        """
        connection = self._get_conn()
        if connection.sock is None:
            self._put_conn(connection)
            return self._on_new_connection(method, target, load, headers, timeout)
        if self.proxy_headers and self.scheme == "http":  # a tunnel has told them when it was made
            headers = {**headers, **self.proxy_headers}
        connection.timeout, found = timeout, None
        try:
            found = on_kept_connection(connection, method, target, load, headers)
        finally:
            if found is None:
                connection.close()
                self._put_conn(None)
        found._pool, found._connection = self, connection
        found.settle()
        return found

    def _on_new_connection(
        self, method: str, target: str, load: Load, headers: Mapping[str, str], timeout: float
    ) -> Incoming:
        found = self.request(
            method,
            target,
            body=load,
            headers=headers,
            retries=_once(),
            redirect=False,
            assert_same_host=False,
            timeout=timeout,
            preload_content=False,
            decode_content=False,
            release_conn=False,
        )
        found.settle()
        return found


def on_kept_connection(
    connection: Any, method: str, target: str, load: Load, headers: Mapping[str, str]
) -> Incoming:
    """An exchange, whose trouble is raised as the HTTP library does."""
    try:
        try:
            connection.request(method, target, load, headers)
        except OSError as error:
            if error.errno not in _ANSWERED_EARLY:
                raise
        found: Incoming = connection.getresponse()
    except (OSError, HTTPException) as error:
        from urllib3.exceptions import ProtocolError

        raise ProtocolError("Connection aborted.", error) from error
    return found


@functools.cache
def _once() -> urllib3.Retry:
    """A request is not sent again by the library."""
    import urllib3

    return urllib3.Retry(0, read=False)


@functools.cache
def _paced(pool: Any) -> Any:
    """A kind of pools, with such connections; one to a SOCKS proxy connects in its own way."""
    if issubclass(pool, Pool):
        return pool
    connection = type("PacedConnection", (_Exchange, pool.ConnectionCls), {})
    return type("PacedPool", (Pool, pool), {"ConnectionCls": connection, "ResponseCls": Incoming})


def _pace(manager: Any) -> None:
    found = manager.pool_classes_by_scheme
    manager.pool_classes_by_scheme = {scheme: _paced(pool) for scheme, pool in found.items()}


class Pools:
    """The pools of the HTTP library with such connections, straight and through proxies."""

    def __init__(self, connections: int) -> None:
        import urllib3

        # urllib3 makes a place for each at once, though none of them may ever be taken
        self._most = min(connections, MOST_AT_ONCE)
        self._straight = urllib3.PoolManager(_MOST_POOLS, maxsize=self._most, block=True)
        _pace(self._straight)
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
        _pace(manager)
        return manager

    def close(self) -> None:
        self._straight.clear()
        if self._proxied is not None:
            self._proxied.close()
