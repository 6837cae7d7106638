# SPDX-License-Identifier: GPL-3.0-or-later
"""A TCP server that sends prepared bytes, for responses that no HTTP library writes."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class RawServer:
    """Responses of a server, and the received requests: head and body of each request as bytes.

    The last response also serves all connections that follow. `pause` are the seconds between the
    bytes of a response; 0 sends it as a whole.
    """

    responses: tuple[bytes, ...]
    tls: ssl.SSLContext | None = None
    pause: float = 0
    close_notify: bool = False
    url: str = ""
    requests: list[bytes] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    def serve(self, listening: socket.socket) -> None:
        while True:
            connection = listening.accept()[0]
            if self.closing.is_set():
                connection.close()
                return
            with suppress(OSError), connection:
                self._respond(connection)

    def _respond(self, connection: socket.socket) -> None:
        tls = self.tls
        with connection if tls is None else tls.wrap_socket(connection, server_side=True) as plain:
            plain.settimeout(10)
            self.requests.append(_request(plain))
            data = self.responses[min(len(self.requests), len(self.responses)) - 1]
            blocks = [bytes([byte]) for byte in data] if self.pause else [data]
            for block in blocks:
                if self.pause and self.closing.wait(self.pause):
                    return
                plain.sendall(block)
            if self.close_notify and isinstance(plain, ssl.SSLSocket):
                plain.unwrap().close()


@contextmanager
def raw_server(
    *responses: bytes,
    tls: ssl.SSLContext | None = None,
    pause: float = 0,
    close_notify: bool = False,
) -> Iterator[RawServer]:
    """Send a response to every connection, then close it (TLS without `close_notify`)."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}/base"
        url = f"http{'s' if tls else ''}://{address}"
        server = RawServer(responses, tls, pause, close_notify, url)
        thread = threading.Thread(target=server.serve, args=(listening,))
        thread.start()
        try:
            yield server
        finally:
            server.closing.set()
            with suppress(OSError):  # wakes accept()
                socket.create_connection(listening.getsockname(), timeout=5).close()
            thread.join()


def _request(connection: socket.socket) -> bytes:
    """Read a request whose body has a `Content-Length`, or none."""
    data = b""
    while b"\r\n\r\n" not in data:
        block = connection.recv(65536)
        if not block:
            raise ConnectionAbortedError("the client closed the connection")
        data += block
    head, _end, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body
