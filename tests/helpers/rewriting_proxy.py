# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy in front of another server that rewrites the address of each request."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_SECONDS = 30
_BETWEEN_TWO = ("connection", "keep-alive", "transfer-encoding")


@contextmanager
def started(
    port: int, translate: Callable[[str], str], added: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Start a proxy for the server at `port` and yield its address. `translate` rewrites request
    addresses. `added` are headers that it adds to all responses.
    """
    proxy = _Proxy(port, translate, added or {})
    thread = threading.Thread(target=proxy.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{proxy.server_port}"
    finally:
        proxy.shutdown()
        proxy.server_close()
        thread.join()


class _Proxy(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(
        self, port: int, translate: Callable[[str], str], added: Mapping[str, str]
    ) -> None:
        self.behind, self.translate, self.added = port, translate, added
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Proxy

    def _pass_on(self) -> None:
        """Forward a request. Keep the `Host` header, because the server builds
        addresses with it.
        """
        content = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        behind = http.client.HTTPConnection("127.0.0.1", self.server.behind, timeout=_SECONDS)
        address = self.server.translate(self.path)
        behind.request(self.command, address, content or None, _end_to_end(self.headers))
        response = behind.getresponse()
        body = response.read()
        self.send_response_only(response.status, response.reason)
        for name, value in {**self.server.added, **_end_to_end(response.headers)}.items():
            if name.lower() != "content-length" or self.command == "HEAD":
                self.send_header(name, value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        behind.close()

    do_GET = do_HEAD = do_POST = do_DELETE = _pass_on  # noqa: N815 - the names are inherited

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is inherited
        """Suppress the request log."""


def _end_to_end(headers: Message) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _BETWEEN_TWO}
