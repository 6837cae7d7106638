# SPDX-License-Identifier: GPL-3.0-or-later
"""Bodies of answers, unpacked within bounds [C1.4]: the HTTP library unpacks whatever comes, so
that a megabyte may become gigabytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..accounting import Accounting
    from .connections import Incoming

#: Most bytes, unpacked, of a body that is not taken piece by piece.
MOST_BYTES = 256 * 1024 * 1024
#: Bytes a second that a body has to bring at least, on average over the time of one wait.
SLOWEST = 1024
#: The packings that are asked for, and read.
ACCEPTED = "gzip, deflate"
_UNPACKED = frozenset({"", "identity"})
_PACKED = frozenset({"gzip", "x-gzip", "deflate"})
#: Bytes of a body that are handed on at once.
PIECE = 1024 * 1024
_MOST_AT_ONCE = 1024 * 1024
_GZIP_OR_ZLIB, _BARE = 32 + zlib.MAX_WBITS, -zlib.MAX_WBITS


class BodyError(Exception):
    """A body that came, but cannot be taken."""


class TooLarge(BodyError):
    """A body beyond the bounds."""


class Unpackable(BodyError):
    """A body that is not packed in the way that its head says."""


class SlowBody(TimeoutError):
    """A body that came slower than :data:`SLOWEST`."""


def whole(response: Incoming) -> bytes:
    """The body of an answer. Of a refusal whose head lies about the packing it is what came, so
    that its status is not lost.
    """
    came, packing = within_bounds(response.as_sent()), _packing(response)
    if packing in _UNPACKED:
        return came
    try:
        return within_bounds(_unpacked([came], packing))
    except Unpackable:
        if response.status_code < 400:
            raise
        return came


def pieces(response: Incoming) -> Iterator[bytes]:
    """The body of an answer as it comes, of any length, unpacked."""
    return _unpacked(response.as_sent(), _packing(response))


def hold(response: Incoming, accounting: Accounting) -> None:
    """Take the body now, and let C(content) give it."""
    try:
        body = whole(response)
    except BodyError:
        response.close()  # what was not taken would keep its connection
        raise
    accounting.add(bytes_received=len(body))
    response.content = body


def count(response: Incoming, accounting: Accounting) -> None:
    """Let C(iter_content) give the body as :func:`pieces` does, and add what is taken of it to
    C(accounting). The connection itself does not count the bytes of a body in chunks.
    """

    def counted(*_arguments: object, **_options: object) -> Iterator[bytes]:
        for piece in pieces(response):
            accounting.add(bytes_received=len(piece))
            yield piece

    response.iter_content = counted  # type: ignore[method-assign]


def lines(found: Iterable[bytes], longest: int) -> Iterator[bytes]:
    """The lines of a body that comes in pieces, without their ends; none has more bytes than
    C(longest).
    """
    rest: list[bytes] = []
    size = 0
    for piece in found:
        first, *others = piece.split(b"\n")
        rest.append(first)
        size += len(first)
        for other in others:
            yield b"".join(rest).rstrip(b"\r")
            rest, size = [other], len(other)
        if size > longest:
            raise TooLarge(f"a line of the answer has more than {longest} bytes")
    if size:
        yield b"".join(rest).rstrip(b"\r")


def _packing(response: Incoming) -> str:
    return response.headers.get("Content-Encoding", "").strip().lower()


def within_bounds(found: Iterable[bytes]) -> bytes:
    """The pieces as one, C(TooLarge) where that would be too much."""
    taken, size = [], 0
    for piece in found:
        size += len(piece)
        if size > MOST_BYTES:
            raise TooLarge(f"the answer has more than {MOST_BYTES // 1024**2} MiB")
        taken.append(piece)
    return b"".join(taken)


def _unpacked(found: Iterable[bytes], packing: str) -> Iterator[bytes]:
    if packing in _UNPACKED:
        yield from found
        return
    inflated = _Inflated()
    for piece in found:
        if packing not in _PACKED:
            raise Unpackable(f"it is packed as '{packing[:40]}', which was not asked for")
        yield from inflated.take(piece)
    if not inflated.is_whole:
        raise Unpackable("it ends too early")


class _Inflated:
    """What becomes of a packed body, a bounded piece at a time. C(deflate) is sent with and
    without a head of its own; C(gzip) may have several parts, one after the other.
    """

    def __init__(self) -> None:
        self._inflater = zlib.decompressobj(_GZIP_OR_ZLIB)
        self._begun = False
        self.is_whole = True

    def take(self, piece: bytes) -> Iterator[bytes]:
        full = False
        while piece or full:
            if self._begun and self._inflater.eof:
                if not piece.startswith(b"\x1f"):
                    return  # padding behind the end
                self._inflater, self._begun = zlib.decompressobj(_GZIP_OR_ZLIB), False
            taken = self._inflate(piece)
            self._begun, full = True, len(taken) == _MOST_AT_ONCE and not self._inflater.eof
            piece = self._inflater.unconsumed_tail or self._inflater.unused_data
            self.is_whole = self._inflater.eof
            if taken:
                yield taken

    def _inflate(self, piece: bytes) -> bytes:
        try:
            return self._inflater.decompress(piece, _MOST_AT_ONCE)
        except zlib.error as error:
            if self._begun:
                raise Unpackable(str(error)) from None
        try:
            self._inflater = zlib.decompressobj(_BARE)
            return self._inflater.decompress(piece, _MOST_AT_ONCE)
        except zlib.error as error:
            raise Unpackable(str(error)) from None
