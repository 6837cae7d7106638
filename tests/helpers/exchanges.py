# SPDX-License-Identifier: GPL-3.0-or-later
"""Collect every exchange of the modules with a server, as it was sent and received."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Client, Listener
from secrets import token_hex
from typing import Any
from unittest import mock

Send = Callable[[dict[str, Any]], None]


@contextmanager
def passed_to(send: Send) -> Iterator[None]:
    """Call `send` with each exchange in this process and its forks, until the block ends."""
    # importable in plays and tests only
    from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http import (
        bodies,
        connections,
    )

    class Passing(bodies.Incoming):
        """A response that is passed on when its body has been read."""

        def __init__(self, response: Any, *arguments: Any) -> None:
            super().__init__(response, *arguments)
            self._exchange = response.exchange

        def read(self) -> None:
            super().read()
            send({**self._exchange, "response": self.content})

        def iter_content(self) -> Iterator[bytes]:
            content = b""
            for chunk in super().iter_content():
                content += chunk
                yield chunk
            send({**self._exchange, "response": content})

    plain: Callable[..., Any] = connections.DeadlineAdapter.open

    def timed(adapter: Any, method: str, url: str, headers: Any, body: Any, **options: Any) -> Any:
        begun = time.monotonic()
        response = plain(adapter, method, url, headers, body, **options)
        response.exchange = {
            "method": method,
            "url": url,
            "headers": dict(headers),
            "body": _bytes(body),
            "status": response.status,
            "response_headers": dict(response.headers),
            "begun": begun,
            "seconds": time.monotonic() - begun,
        }
        return response

    with (
        mock.patch.object(connections, "Incoming", Passing),
        mock.patch.object(connections.DeadlineAdapter, "open", timed),
    ):
        yield


@contextmanager
def listening(found: list[dict[str, Any]]) -> Iterator[dict[str, str]]:
    """Add the exchanges of a play to a list. Yield the variables that the play needs."""
    with tempfile.TemporaryDirectory(prefix="toolchain-recorder-") as folder:
        address, key = f"{folder}/socket", token_hex(16)
        with Listener(address, authkey=key.encode()) as listener:

            def listen() -> None:
                while (exchange := listener.accept().recv()) is not None:
                    found.append(exchange)

            thread = threading.Thread(target=listen, daemon=True)
            thread.start()
            variables = {"EXCHANGES_SOCKET": address, "EXCHANGES_KEY": key}
            try:
                yield {**variables, "ANSIBLE_CALLBACKS_ENABLED": "recorder,exchanges"}
            finally:
                with Client(address, authkey=key.encode()) as end:
                    end.send(None)
                thread.join()


def _bytes(body: Any) -> bytes:
    """Return the body of a request; nothing for an upload, which cannot be read twice."""
    return body.encode() if isinstance(body, str) else body if isinstance(body, bytes) else b""
