# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers in processes of their own, so that they take no time of what is measured."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection as Pipe


@contextmanager
def started(serve: Callable[[Pipe], None]) -> Iterator[str]:
    """The address of a server, which `serve` runs in its process until it is ended."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,))
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.terminate()
        process.join()


def answer(pipe: Pipe, handler: type[BaseHTTPRequestHandler]) -> None:
    """Tell the port, then answer until the process is ended."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    pipe.send(server.server_address[1])
    server.serve_forever()
