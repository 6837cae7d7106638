# SPDX-License-Identifier: GPL-3.0-or-later
"""Connections on which no answer can take for ever [C1.4].

The HTTP library knows how long a single wait for bytes may be. A server that sends one byte after
the other is within that for as long as it likes.
"""

from __future__ import annotations

import functools
import io
import time
from collections.abc import Callable
from http.client import HTTPResponse
from typing import TYPE_CHECKING, Any, Protocol

from .bodies import SLOWEST, SlowBody

if TYPE_CHECKING:
    import requests.adapters
    import urllib3

#: Bytes of lines one after the other: a head, the lines between the chunks of a body.
_MOST_IN_LINES = 1024 * 1024
_LONGEST_LINE = 64 * 1024 + 1  # the library refuses lines that are longer than 64 KiB


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
        self._waited, self._got = 0.0, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        if self._end is not None:
            left = self._end - self._now()
            if left <= 0:
                raise TimeoutError("the head of the answer is late")
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


class _PacedResponse(HTTPResponse):
    def __init__(self, sock: Any, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self._paced = PacedBytes(self.fp.detach(), sock)
        self.fp = _Reader(self._paced)

    def begin(self) -> None:
        super().begin()
        self._paced.head_is_whole()


@functools.cache
def paced_adapter() -> type[requests.adapters.HTTPAdapter]:
    """The adapter of the library with such connections, through proxies, too.

    It is made when it is asked for: without the library, whose absence is told elsewhere, this file
    can be loaded all the same.
    """
    import requests.adapters
    import urllib3
    from urllib3.connection import HTTPConnection, HTTPSConnection

    class PacedHttp(HTTPConnection):
        response_class = _PacedResponse

    class PacedHttps(HTTPSConnection):
        response_class = _PacedResponse

    class HttpPool(urllib3.HTTPConnectionPool):
        ConnectionCls = PacedHttp

    class HttpsPool(urllib3.HTTPSConnectionPool):
        ConnectionCls = PacedHttps

    pools = {"http": HttpPool, "https": HttpsPool}

    class PacedAdapter(requests.adapters.HTTPAdapter):
        def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
            super().init_poolmanager(*arguments, **options)
            self.poolmanager.pool_classes_by_scheme = pools

        def proxy_manager_for(self, *arguments: Any, **options: Any) -> urllib3.ProxyManager:
            manager: urllib3.ProxyManager = super().proxy_manager_for(*arguments, **options)
            manager.pool_classes_by_scheme = pools
            return manager

    return PacedAdapter
