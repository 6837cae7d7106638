# SPDX-License-Identifier: GPL-3.0-or-later
"""Response bodies within bounds [C1.4]: the library decompresses without a limit, so one megabyte
may become gigabytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from .messages import Accounting

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

#: Maximum number of decompressed bytes of a body that is held in memory.
MAX_BODY = 256 * 1024 * 1024
#: Files up to this size are read into memory before they are sent.
SMALL = 64 * 1024
#: The content encodings that are asked for.
ACCEPTED = "gzip, deflate"
#: Bytes that are read from a connection at once.
_CHUNK = 64 * 1024
#: Bytes that are decompressed at once.
_MAX_DECOMPRESSED = 1024 * 1024
_GZIP_OR_ZLIB, _RAW_DEFLATE = 32 + zlib.MAX_WBITS, -zlib.MAX_WBITS
_GZIP = b"\x1f"  # the first byte of a member


class BodyError(Exception):
    """A body that cannot be used: it is too large, or has no recognizable end."""


class Undecodable(BodyError):
    """A body that is not in the content encoding that its head names."""


class SlowBody(TimeoutError):
    """A body that arrives slower than 1 KiB/s."""


class Incoming:
    """Response whose body is read in chunks, or was read as a whole into `content`."""

    def __init__(self, raw: BaseHTTPResponse, url: str, accounting: Accounting) -> None:
        self._raw, self._accounting = raw, accounting
        self.status_code, self.headers, self.url = raw.status, raw.headers, url
        self._encoding = raw.headers.get("Content-Encoding", "").strip().lower()
        self.content = b""

    def read(self) -> None:
        """Read the body into `content`; the raw bytes if an error response has a wrong content
        encoding, because its status must not be lost.
        """
        try:
            self.content = within_bounds(self._received())
            if self._encoding:
                self.content = within_bounds(_decoded([self.content], self._encoding))
        except Undecodable:
            if self.status_code < 400:
                raise
        finally:
            self.close()  # a body that was not read to its end keeps the connection
        self._accounting.add(bytes_received=len(self.content))

    def iter_content(self) -> Iterator[bytes]:
        """Yield the decoded body, of any length, in chunks as they arrive."""
        for chunk in _decoded(self._received(), self._encoding):
            self._accounting.add(bytes_received=len(chunk))
            yield chunk

    def close(self) -> None:
        """Return the connection; close it if the body was not read to its end."""
        self._raw.close()
        self._raw.release_conn()

    def _received(self) -> Iterator[bytes]:
        """Yield the body in chunks as it was sent."""
        raw = self._raw
        while chunk := raw.read(_CHUNK, decode_content=False):
            yield chunk
            if raw.closed:  # complete: a further read would only take time
                return


def lines(chunks: Iterable[bytes], longest: int) -> Iterator[bytes]:
    """Yield the lines of a body without their ends; `BodyError` beyond `longest` bytes."""
    rest = bytearray()
    for chunk in chunks:
        rest += chunk
        if b"\n" in chunk:
            *complete, rest = rest.split(b"\n")
            yield from (bytes(line).rstrip(b"\r") for line in complete)
        if len(rest) > longest:
            raise BodyError(f"a line of the response has more than {longest} bytes")
    if rest:
        yield bytes(rest).rstrip(b"\r")


def within_bounds(chunks: Iterable[bytes]) -> bytes:
    """Join chunks; `BodyError` beyond :data:`MAX_BODY`."""
    found, size = list[bytes](), 0
    for chunk in chunks:
        found.append(chunk)
        size += len(chunk)
        if size > MAX_BODY:
            raise BodyError(f"the response has more than {MAX_BODY // 1024**2} MiB")
    return b"".join(found)


def _decoded(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Yield the decompressed body in bounded steps; `gzip` may have several members."""
    if encoding in ("", "identity"):
        yield from chunks
        return
    inflater = None
    for chunk in chunks:
        data, found = chunk, b""
        while data or found:  # the inflater may hold more
            if inflater is None:
                inflater = zlib.decompressobj(_format_of(data, encoding))
            elif inflater.eof and data:
                if data[:1] != _GZIP:
                    return  # padding after the end
                inflater = zlib.decompressobj(_GZIP_OR_ZLIB)
            try:
                found = inflater.decompress(data, _MAX_DECOMPRESSED)
            except zlib.error as error:
                raise Undecodable(str(error)) from None
            data = inflater.unconsumed_tail or inflater.unused_data
            if found:
                yield found
    if inflater is not None and not inflater.eof:
        raise Undecodable("it is truncated")


def _format_of(data: bytes, encoding: str) -> int:
    """Return the `wbits` of zlib. Servers send `deflate` with and without a zlib header."""
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise Undecodable(f"it is encoded as '{encoding[:40]}', which was not requested")
    has_header = data[:1] == _GZIP or data[0] & 15 == zlib.DEFLATED
    return _GZIP_OR_ZLIB if has_header else _RAW_DEFLATE
