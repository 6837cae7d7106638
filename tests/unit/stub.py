# SPDX-License-Identifier: GPL-3.0-or-later
"""A real HTTP server in a thread that responds as the test specifies and records the requests."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from urllib.parse import parse_qs, urlsplit

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.service import Crumb
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection.auth import (
    Anonymous,
    Login,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection.connection import (
    Connection,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.transport import (
    Transport,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.services import SERVICES

if TYPE_CHECKING:
    from typing import Self

SETTINGS = {"timeout": 5, "retries": 3, "retry_max_wait": 60, "validate_certs": True}


@dataclass(frozen=True)
class Seen:
    """A received request; `connection` numbers the TCP connections from 1."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    connection: int

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def form(self) -> dict[str, str]:
        """Return the fields of a form, with a single value per field."""
        fields = parse_qs(self.body.decode("ascii"), keep_blank_values=True, strict_parsing=True)
        assert all(len(values) == 1 for values in fields.values()), fields
        return {name: values[0] for name, values in fields.items()}


@dataclass(frozen=True)
class Reply:
    """A response.

    `truncate`: send only this number of bytes of the body, then close; `cut`: close without a
    response. `hold`: respond only when the server is closed; `trickle`: send the head, or the body,
    byte by byte, until the client stops reading; `protocol`: the start of the status line.
    """

    status: int = 200
    body: bytes | str | Mapping[str, Any] = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    truncate: int | None = None
    cut: bool = False
    hold: bool = False
    trickle: Literal["head", "body", ""] = ""
    protocol: str = "HTTP/1.1"
    reason: str = "Stub"

    @property
    def payload(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        text = self.body if isinstance(self.body, str) else json.dumps(self.body)
        return text.encode()


class Stub:
    """Respond with `replies` in order, then (or always) with the result of `response`.

    A context manager; `url` is the base address, with a context path. Its exit fails if there was a
    request without a reply, an error in `response`, or an unused reply.
    """

    def __init__(
        self,
        *replies: Reply,
        response: Callable[[Seen], Reply] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.replies = list(replies)
        self.response = response
        self.seen: list[Seen] = []
        self.connections = 0
        #: Errors in the threads of the server, which a test would not see otherwise.
        self.errors: list[BaseException] = []
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._server = _Server(self, tls)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        scheme = "http" if tls is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_address[1]}/base"

    def reply_to(self, seen: Seen) -> Reply:
        """Return the next reply; an error is recorded before the client can see its effect."""
        with self._lock:
            self.seen.append(seen)
            if self.replies:
                return self.replies.pop(0)
        try:
            assert self.response is not None, f"one request too many: {seen.method} {seen.target}"
            return self.response(seen)
        except Exception as error:
            self.errors.append(error)
            raise

    def wait_for(self, count: int) -> None:
        """Wait for this number of requests, also if the client has already given up."""
        deadline = time.monotonic() + 30
        while len(self.seen) < count and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(self.seen) == count

    def connected(self) -> int:
        with self._lock:
            self.connections += 1
            return self.connections

    def close(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
        if isinstance(error, AssertionError):
            return  # the test has failed already
        if self.errors:
            raise self.errors[0]
        assert not self.replies, f"{len(self.replies)} unused replies: {self.replies}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, stub: Stub, tls: ssl.SSLContext | None) -> None:
        self.stub, self._tls = stub, tls
        super().__init__(("127.0.0.1", 0), _Handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        if self._tls is not None:
            connection = self._tls.wrap_socket(
                connection, server_side=True, do_handshake_on_connect=False
            )
        return connection, address

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: a client that disconnects, or rejects a certificate, is not an error."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    number: int
    METHODS: ClassVar[tuple[str, ...]] = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")

    def setup(self) -> None:
        super().setup()
        self.number = self.server.stub.connected()

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        seen = Seen(self.command, self.path, dict(self.headers), body, self.number)
        reply = self.server.stub.reply_to(seen)
        if reply.hold:
            self.server.stub.closing.wait(30)
        if reply.cut or reply.hold:
            self.close_connection = True
            return
        payload = reply.payload
        headers = {"Content-Length": str(len(payload)), **reply.headers}
        head = f"{reply.protocol} {reply.status} {reply.reason}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n"
        sent = b"" if self.command == "HEAD" else payload[: reply.truncate]
        whole = head.encode("latin-1") + sent
        at_once = {"head": 20, "body": len(whole) - len(sent), "": len(whole)}[reply.trickle]
        self.wfile.write(whole[:at_once])
        for byte in whole[at_once:]:
            self.server.stub.closing.wait(0.01)
            self.wfile.write(bytes([byte]))
        self.close_connection = reply.truncate is not None

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is inherited
        """Print nothing to the terminal."""


for _method in _Handler.METHODS:
    setattr(_Handler, f"do_{_method}", _Handler._handle)


class Waits(list[float]):
    """A replacement for `sleep` that records the requested durations."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def connection_to(url: str, service: str = "repo", **fields: Any) -> Connection:
    """Return a connection; `settings` override :data:`SETTINGS`."""
    settings = {**SETTINGS, **fields.pop("settings", {})}
    return Connection(service=SERVICES[service], url=url, settings=settings, **fields)


def transport_to(
    url: str,
    *,
    login: Login | None = None,
    read_only: bool = False,
    sleep: Callable[[float], None] | None = None,
    connections: int = 10,
    crumbs: bool = False,
    **settings: Any,
) -> Transport:
    """Return a transport; by default it does not log in and does not wait."""
    return Transport(
        connection_to(url, settings=settings),
        login or Anonymous(),
        read_only=read_only,
        sleep=Waits() if sleep is None else sleep,
        connections=connections,
        guard=Crumb if crumbs else None,
    )
