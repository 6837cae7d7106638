# SPDX-License-Identifier: GPL-3.0-or-later
"""The HTTP server: uvicorn, which sends head and body of a small response in one TCP segment."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from starlette.types import ASGIApp, Receive, Scope, Send

_SEGMENT_LIMIT = 64 * 1024


class SegmentTransport(asyncio.Transport):
    """Transport that collects the writes of an event loop iteration and sends them together.

    Otherwise, a client on a keep-alive connection could wait for a delayed acknowledgement between
    head and body.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._buffer = bytearray()
        self._scheduled = False

    def write(self, data: Any) -> None:
        self._buffer += data
        if len(self._buffer) >= _SEGMENT_LIMIT:
            self.flush()
        elif not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Send the collected data."""
        self._scheduled = False
        if self._buffer and not self._transport.is_closing():
            self._transport.write(bytes(self._buffer))
        self._buffer.clear()

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def close_inside_head(self, count: int | None) -> None:
        """Send an incomplete response head, then close the connection.

        :param count: number of headers after the status line; None means all
        """
        status, *headers, _blank, _body = bytes(self._buffer).split(b"\r\n")
        self._buffer[:] = b"".join(line + b"\r\n" for line in [status, *headers[:count]])
        self.close()

    def abort(self) -> None:
        self._buffer.clear()
        self._transport.abort()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()


class SegmentProtocol(H11Protocol):
    """HTTP/1.1 over a `SegmentTransport`, available as `sandbox.transport` in the scope."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        segments = SegmentTransport(transport, self.loop)
        super().connection_made(segments)
        application: ASGIApp = self.app

        async def with_transport(scope: Scope, receive: Receive, send: Send) -> None:
            scope["sandbox.transport"] = segments
            await application(scope, receive, send)

        self.app = with_transport

    def on_response_complete(self) -> None:
        """Send a complete response immediately."""
        if isinstance(self.transport, SegmentTransport):
            self.transport.flush()
        super().on_response_complete()


class _Server(uvicorn.Server):
    """Server that exits with 0 on SIGTERM and SIGINT. Uvicorn would raise the signal again."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        yield

    def _stop(self) -> None:
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


def serve(app: ASGIApp, host: str, port: int, ready: Callable[[int], None]) -> None:
    """Serve until SIGTERM or SIGINT.

    :param port: 0 means any free port
    :param ready: called with the port when the server listens
    """
    config = uvicorn.Config(
        app,
        http=SegmentProtocol,
        ws="none",
        lifespan="off",
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_keep_alive=600,
        timeout_graceful_shutdown=1,
    )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family, backlog=256) as listening:
        chosen = listening.getsockname()[1]
        server = _Server(config, lambda: ready(chosen))
        asyncio.run(server.serve(sockets=[listening]))
