# SPDX-License-Identifier: GPL-3.0-or-later
"""Response bodies within bounds [C1.4]: the library decompresses without a limit, so one megabyte
may become gigabytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from http.client import HTTPException
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import requests

    from ..accounting import Accounting

#: Maximum number of decompressed bytes of a body that is held in memory.
MAX_BODY = 256 * 1024 * 1024
#: The content encodings that are asked for.
ACCEPTED = "gzip, deflate"
_IDENTITY = frozenset({"", "identity"})
_ENCODINGS = frozenset({"gzip", "x-gzip", "deflate"})
#: Bytes that are read from a connection at once.
_CHUNK = 64 * 1024
#: Bytes that are decompressed at once.
_MAX_DECOMPRESSED = 1024 * 1024
_GZIP_OR_ZLIB, _RAW_DEFLATE = 32 + zlib.MAX_WBITS, -zlib.MAX_WBITS
_GZIP = b"\x1f"  # the first byte of a member


class BodyError(Exception):
    """A body that arrived, but cannot be used."""


class TooLarge(BodyError):
    """A body beyond the bounds."""


class Undecodable(BodyError):
    """A body that is not in the content encoding that its head names."""


class MalformedResponse(HTTPException):
    """A response without a recognizable end."""


class SlowBody(TimeoutError):
    """A body that arrives slower than 1 KiB/s."""


class Incoming:
    """Response whose body is read in chunks, or was read as a whole into `content`."""

    def __init__(self, response: requests.Response, url: str, accounting: Accounting) -> None:
        self._response, self._accounting = response, accounting
        self.status_code, self.headers, self.url = response.status_code, response.headers, url
        self.content = b""

    @property
    def text(self) -> str:
        return self.content.decode("utf-8", errors="replace")

    def read(self) -> None:
        """Read the body into `content`.

        If an error response has a wrong content encoding, `content` has the raw bytes: the status
        must not be lost.
        """
        try:
            received = within_bounds(self._received())
            try:
                self.content = within_bounds(_decoded([received], self._encoding))
            except Undecodable:
                if self.status_code < 400:
                    raise
                self.content = received
        except BodyError:
            self.close()  # a body that was not read to its end keeps the connection
            raise
        self._accounting.add(bytes_received=len(self.content))

    def iter_content(self) -> Iterator[bytes]:
        """Yield the decoded body, of any length, in chunks as they arrive."""
        for chunk in _decoded(self._received(), self._encoding):
            self._accounting.add(bytes_received=len(chunk))
            yield chunk

    def close(self) -> None:
        """Return the connection; close it if the body was not read to its end."""
        self._response.close()

    @property
    def _encoding(self) -> str:
        return self.headers.get("Content-Encoding", "").strip().lower()

    def _received(self) -> Iterator[bytes]:
        """Yield the body in chunks as it was sent."""
        raw = self._response.raw
        while chunk := raw.read(_CHUNK, decode_content=False):
            yield chunk
            if raw.closed:  # complete: a further read would only take time
                return


def lines(chunks: Iterable[bytes], longest: int) -> Iterator[bytes]:
    """Yield the lines of a body without their ends; `TooLarge` if a line has more bytes than
    `longest`.
    """
    rest = bytearray()
    for chunk in chunks:
        rest += chunk
        if b"\n" in chunk:
            *complete, rest = rest.split(b"\n")
            yield from (bytes(line).rstrip(b"\r") for line in complete)
        if len(rest) > longest:
            raise TooLarge(f"a line of the response has more than {longest} bytes")
    if rest:
        yield bytes(rest).rstrip(b"\r")


def within_bounds(chunks: Iterable[bytes]) -> bytes:
    """Join chunks; `TooLarge` beyond :data:`MAX_BODY`."""
    found, size = [], 0
    for chunk in chunks:
        size += len(chunk)
        if size > MAX_BODY:
            raise TooLarge(f"the response has more than {MAX_BODY // 1024**2} MiB")
        found.append(chunk)
    return b"".join(found)


def _decoded(chunks: Iterable[bytes], encoding: str) -> Iterable[bytes]:
    return chunks if encoding in _IDENTITY else _decompressed(chunks, encoding)


def _decompressed(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Yield the decompressed body in bounded steps. `gzip` may have several members; servers send
    `deflate` with and without a zlib header.
    """
    inflater = None
    for chunk in chunks:
        if encoding not in _ENCODINGS:
            raise Undecodable(f"it is encoded as '{encoding[:40]}', which was not requested")
        data, more = chunk, False
        while data or more:
            if inflater is None:
                has_header = data[:1] == _GZIP or data[0] & 15 == zlib.DEFLATED
                inflater = zlib.decompressobj(_GZIP_OR_ZLIB if has_header else _RAW_DEFLATE)
            elif inflater.eof:
                if data[:1] != _GZIP:
                    return  # padding after the end
                inflater = zlib.decompressobj(_GZIP_OR_ZLIB)
            try:
                found = inflater.decompress(data, _MAX_DECOMPRESSED)
            except zlib.error as error:
                raise Undecodable(str(error)) from None
            more = len(found) == _MAX_DECOMPRESSED and not inflater.eof
            data = inflater.unconsumed_tail or inflater.unused_data
            if found:
                yield found
    if inflater is not None and not inflater.eof:
        raise Undecodable("it is truncated")
