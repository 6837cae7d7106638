# SPDX-License-Identifier: GPL-3.0-or-later
"""Run servers in separate processes, so that they do not affect the measured time."""

from __future__ import annotations

import atexit
import functools
import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection as Pipe

from sandbox.client import Sandbox
from tests.helpers.sizes import smallest


@contextmanager
def sandbox() -> Iterator[Sandbox]:
    """Yield a sandbox with its seeds. At the smallest size, benchmarks share one."""
    if smallest():
        _shared().reset()
        yield _shared()
    else:
        with Sandbox.start(flavour="real") as started:
            yield started


@functools.cache
def _shared() -> Sandbox:
    shared = Sandbox.start(flavour="real")
    atexit.register(shared.stop)
    return shared


@contextmanager
def started(serve: Callable[[Pipe], None]) -> Iterator[str]:
    """Yield the address of a server. `serve` runs it in a separate process until the block ends."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,))
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.terminate()
        process.join()


def response(pipe: Pipe, handler: type[BaseHTTPRequestHandler]) -> None:
    """Send the port to the parent process, then respond until the process is terminated."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    pipe.send(server.server_address[1])
    server.serve_forever()
