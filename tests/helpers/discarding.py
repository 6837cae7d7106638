# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulate a repository manager that discards deployed content, keeps only digests, and counts
requests.

The simulation serves its own files for downloads after `fill` or `have_huge`. It exists to measure
the client: it responds like a real server [repo-19, repo-20], trusts the digests that a client
sends, and does as little else as possible.

    python -m tests.helpers.discarding    prints its port, ends when its standard input is closed

A real server needs time to store a file (checksums, disk, database), and some for every other
response (network, login, database). `delay` simulates both.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import json
import selectors
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any
from urllib.parse import unquote

_HEAD = 64 * 1024
_BLOCK = 1024 * 1024
#: Responses to other requests are faster than storing a file by this factor.
_FASTER = 10
_REASONS = {200: "OK", 201: "Created", 404: "Not Found"}
_ROOT = "/repo"
_OPENERS = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass
class Counts:
    """Requests since the last reset; `body_bytes` excludes the heads."""

    connections: int = 0
    requests: int = 0
    puts: int = 0
    body_bytes: int = 0


@dataclass
class _Connection:
    """A partly received request: its head, then the number of missing body bytes."""

    socket: socket.socket
    head: bytearray = field(default_factory=bytearray)
    missing: int = 0
    size: int = 0
    method: str = ""
    target: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    counted: bool = False
    #: Number of bytes to send after the next response.
    zeros: int = 0


class Discarding:
    """Listens on a free loopback port. `serve` responds until the stream `until` ends."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._scratch = bytearray(_BLOCK)
        self._files: dict[str, dict[str, Any]] = {}
        self._known: dict[str, int] = {}
        self._counts = Counts()
        self._delay = 0.0
        self._late: list[tuple[float, int, _Connection, bytes]] = []
        self._numbers = itertools.count()
        self.port: int = self._listener.getsockname()[1]

    def serve(self, until: Any) -> None:
        self._selector.register(until, selectors.EVENT_READ)
        while True:
            for key, _events in self._selector.select(self._send_what_is_due()):
                if key.fileobj is until:
                    return
                if key.data is None:
                    self._accept()
                else:
                    self._receive(key.data)

    def _send_what_is_due(self) -> float | None:
        """Send the responses that are due. Return the seconds until the next response is due."""
        while self._late and self._late[0][0] <= time.monotonic():
            _due, _number, connection, response = heapq.heappop(self._late)
            _send(connection, response)
        return max(0.0, self._late[0][0] - time.monotonic()) if self._late else None

    def _accept(self) -> None:
        accepted, _address = self._listener.accept()
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = _Connection(accepted)
        self._selector.register(accepted, selectors.EVENT_READ, connection)

    def _receive(self, connection: _Connection) -> None:
        try:
            if connection.missing:
                count = connection.socket.recv_into(self._scratch)
                connection.missing -= count
                if count and not connection.missing:
                    self._response(connection)
            else:
                block = connection.socket.recv(_HEAD)
                count = len(block)
                connection.head += block
                self._read_head(connection)
        except BlockingIOError:
            return
        except OSError:
            count = 0
        if not count:
            self._selector.unregister(connection.socket)
            connection.socket.close()

    def _read_head(self, connection: _Connection) -> None:
        end = connection.head.find(b"\r\n\r\n")
        if end < 0:
            return
        first, *lines = connection.head[:end].decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines)
        connection.headers = {name.lower(): value.strip() for name, _colon, value in pairs}
        connection.method, connection.target, _version = first.split(" ")
        connection.size = int(connection.headers.get("content-length", 0))
        connection.missing = connection.size - (len(connection.head) - end - 4)
        connection.head.clear()
        if connection.missing > 0 and connection.headers.get("expect"):
            connection.socket.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if connection.missing <= 0:
            connection.missing = 0
            self._response(connection)

    def _response(self, connection: _Connection) -> None:
        headers: dict[str, str] = {}
        if connection.target.startswith("/-/"):
            status, body = 200, self._control(connection.target)
        else:
            self._count(connection)
            status, headers, body = self._respond(connection)
        headers = {"Content-Length": str(len(body)), **headers}
        lines = [f"HTTP/1.1 {status} {_REASONS[status]}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        response = head + (b"" if connection.method == "HEAD" else body)
        if self._delay and not connection.target.startswith("/-/"):
            due = time.monotonic() + (self._delay if status == 201 else self._delay / _FASTER)
            heapq.heappush(self._late, (due, next(self._numbers), connection, response))
        else:
            _send(connection, response)

    def _control(self, target: str) -> bytes:
        found = json.dumps(asdict(self._counts)).encode()
        if target == "/-/reset":
            self._counts = Counts()
        if target == "/-/forget":
            self._files.clear()
            self._known.clear()
        if target.startswith("/-/fill/"):
            self._fill(*map(int, target.split("/")[3:]))
        if target.startswith("/-/huge/"):
            self._have_huge(int(target.rpartition("/")[2]))
        if target.startswith("/-/delay/"):
            self._delay = float(target.rpartition("/")[2])
        return found

    def _fill(self, files: int, size: int) -> None:
        """Create files of this size below the folder `bench`, each with different content."""
        for number in range(files):
            content = number.to_bytes(16, "big") * (size // 16)
            sums = {name: hashlib.new(name, content).hexdigest() for name in ("sha1", "sha256")}
            path = f"{_ROOT}/bench/{number % 10}/{number}.bin"
            self._files[path] = {"size": size, "content": content, **sums}

    def _have_huge(self, size: int) -> None:
        """Create a file of `size` zero bytes without storing them."""
        sums = {"sha1": hashlib.sha1(), "sha256": hashlib.sha256()}
        for block in _zeros(size):
            for each in sums.values():
                each.update(block)
        digests = {name: each.hexdigest() for name, each in sums.items()}
        self._files[f"{_ROOT}/bench/huge.bin"] = {"size": size, "zeros": size, **digests}

    def _count(self, connection: _Connection) -> None:
        self._counts.requests += 1
        self._counts.puts += connection.method == "PUT"
        self._counts.body_bytes += connection.size
        self._counts.connections += not connection.counted
        connection.counted = True

    def _respond(self, connection: _Connection) -> tuple[int, dict[str, str], bytes]:
        path, _mark, query = unquote(connection.target).partition("?")
        if connection.method == "PUT":
            return self._put(connection, path)
        if connection.method == "HEAD":
            return self._head(path)
        if connection.method == "GET" and "content" in self._files.get(path, {}):
            return 200, self._head(path)[1], self._files[path]["content"]
        if connection.method == "GET" and "zeros" in self._files.get(path, {}):
            connection.zeros = self._files[path]["zeros"]
            return 200, self._head(path)[1], b""
        if path == "/api/system/version":
            return 200, {}, b'{"version": "7.77.5"}'
        if path.startswith("/api/repositories/"):
            return 200, {}, b'{"key": "repo", "rclass": "local", "packageType": "generic"}'
        if path.startswith(f"/api/storage{_ROOT}") and query.startswith("list"):
            return self._list(path.removeprefix("/api/storage"))
        return 404, {}, b'{"errors": [{"status": 404, "message": "Not Found"}]}'

    def _put(self, connection: _Connection, path: str) -> tuple[int, dict[str, str], bytes]:
        sums = {
            name: connection.headers.get(f"x-checksum-{name}", "") for name in ("sha1", "sha256")
        }
        reported = [digest for digest in sums.values() if digest]
        size = connection.size
        if connection.headers.get("x-checksum-deploy") == "true":
            known = [self._known[digest] for digest in reported if digest in self._known]
            if not known:
                return 404, {}, b""
            size = known[0]
        self._known.update(dict.fromkeys(reported, size))
        self._files[path] = {"size": size, **sums}
        body = {"path": path, "size": str(size), "checksums": sums}
        return 201, {"Content-Type": "application/json"}, json.dumps(body).encode()

    def _head(self, path: str) -> tuple[int, dict[str, str], bytes]:
        found = self._files.get(path)
        if found is None:
            return 404, {}, b""
        return (
            200,
            {
                "X-Checksum-Sha1": found["sha1"],
                "X-Checksum-Sha256": found["sha256"],
                "Content-Length": str(found["size"]),
            },
            b"",
        )

    def _list(self, folder: str) -> tuple[int, dict[str, str], bytes]:
        files = [
            {
                "uri": path.removeprefix(folder),
                "size": found["size"],
                "lastModified": "2024-01-02T03:04:05.678Z",
                "folder": False,
                "sha1": found["sha1"],
                "sha2": found["sha256"],
            }
            for path, found in self._files.items()
            if path.startswith(f"{folder}/")
        ]
        if not files:
            return 404, {}, b""
        return 200, {"Content-Type": "application/json"}, json.dumps({"files": files}).encode()


def _zeros(size: int) -> Iterator[bytes]:
    block = bytes(_BLOCK)
    for begin in range(0, size, _BLOCK):
        yield block[: size - begin]


def _send(connection: _Connection, response: bytes) -> None:
    connection.socket.setblocking(True)
    connection.socket.sendall(response)
    zeros, connection.zeros = connection.zeros, 0
    for block in _zeros(zeros):
        connection.socket.sendall(block)
    connection.socket.setblocking(False)


class Server:
    """Context manager that runs a discarding server in its own process; `url` is its
    base address.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.helpers.discarding"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}"

    def _control(self, name: str) -> Counts:
        with _OPENERS.open(f"{self.url}/-/{name}", timeout=600) as response:
            return Counts(**json.load(response))

    def counts(self) -> Counts:
        """Return the counts since the last call, and reset them."""
        return self._control("reset")

    def delay(self, seconds: float) -> None:
        """Set the seconds for storing a file; every other response takes a tenth of them. Delays
        run concurrently.
        """
        self._control(f"delay/{seconds}")

    def fill(self, files: int, size: int) -> None:
        """Create files for download below the folder `bench`."""
        self._control(f"fill/{files}/{size}")

    def have_huge(self, size: int) -> None:
        """Create the file `bench/huge.bin` of this size for download."""
        self._control(f"huge/{size}")

    def forget(self) -> None:
        """Drop all files and counts."""
        self._control("forget")
        self._control("reset")

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate()


if __name__ == "__main__":
    server = Discarding()
    print(server.port, flush=True)
    server.serve(sys.stdin)
