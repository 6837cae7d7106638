# SPDX-License-Identifier: GPL-3.0-or-later
"""Bodies of answers, unpacked within bounds [C1.4]: the HTTP library unpacks whatever comes, so
that a megabyte may become gigabytes.
"""

from __future__ import annotations

import io
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from ..accounting import Accounting
    from .connections import Incoming

#: Most bytes, unpacked, of a body that is not taken piece by piece.
MOST_BYTES = 256 * 1024 * 1024
#: Bytes a second that a body has to bring at least, on average over the time of one wait.
SLOWEST = 1024
#: Bytes of lines one after the other: a head, the lines between the chunks of a body.
_MOST_IN_LINES = 1024 * 1024
_LONGEST_LINE = 64 * 1024 + 1  # the library refuses lines that are longer than 64 KiB
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


#: Since when an answer is waited for, and what the first wait has brought of it.
Begun: TypeAlias = "tuple[float, bytes]"


class _Socket(Protocol):
    def gettimeout(self) -> float | None:
        """The seconds of one wait."""

    def settimeout(self, value: float | None, /) -> None:
        """Set them."""


class PacedBytes(io.RawIOBase):
    """The bytes of one answer: the head has to be whole in the time of one wait, and the body comes
    at a pace. Only the time that is spent on waiting counts.

    :param begun: since when the answer is waited for, and what the first wait has brought
    """

    def __init__(
        self,
        raw: io.RawIOBase,
        sock: _Socket,
        now: Callable[[], float] = time.monotonic,
        begun: Begun | None = None,
    ) -> None:
        self._raw, self._socket, self._now = raw, sock, now
        since, self._first = begun or (now(), b"")
        self._limit = sock.gettimeout()
        self._end = None if self._limit is None else since + self._limit
        self._waits, self._waited, self._got = 0 if begun is None else 1, 0.0, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        if self._first:
            taken, self._first = self._first[: len(buffer)], self._first[len(buffer) :]
            buffer[: len(taken)] = taken
            return len(taken)
        if self._end is not None:
            left = self._end - self._now()
            if left <= 0:
                raise TimeoutError("the head of the answer is late")
            self._waits += 1
            if self._waits > 1:  # the first one has the time that the connection has anyway
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
        if self._waits > 1:
            self._socket.settimeout(self._limit)

    def close(self) -> None:
        self._raw.close()
        super().close()


class Reader(io.BufferedReader):
    """Stream for the library, which accepts endless lines, and a head that is cut by the end of the
    connection.
    """

    in_head = True
    _in_lines = 0

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(_LONGEST_LINE if size is None or size < 0 else size)
        self._in_lines += len(line)
        is_cut = len(line) < _LONGEST_LINE and not line.endswith(b"\n")
        if self.in_head and is_cut and self._in_lines:
            raise ConnectionAbortedError("it ended inside the head of the response")
        if self._in_lines > _MOST_IN_LINES:
            raise ConnectionAbortedError("the answer has too many lines beside its body")
        return line

    def read(self, size: int | None = -1, /) -> bytes:
        self._in_lines = 0
        return super().read(size)

    def readinto(self, buffer: Any, /) -> int:
        self._in_lines = 0
        return super().readinto(buffer)


def whole(incoming: Incoming) -> bytes:
    """The body of an answer. Of a refusal whose head lies about the packing it is what came, so
    that its status is not lost.
    """
    came = within_bounds(incoming.as_sent()) if incoming.came is None else incoming.came
    packing = _packing(incoming)
    if packing in _UNPACKED:
        return came
    try:
        return within_bounds(_unpacked([came], packing))
    except Unpackable:
        if incoming.status_code < 400:
            raise
        return came


def pieces(incoming: Incoming) -> Iterator[bytes]:
    """The body of an answer as it comes, of any length, unpacked."""
    return _unpacked(incoming.as_sent(), _packing(incoming))


def hold(incoming: Incoming, accounting: Accounting) -> None:
    """Take the body now, and let C(content) give it."""
    try:
        body = whole(incoming)
    except BodyError:
        incoming.close()  # what was not taken would keep its connection
        raise
    accounting.add(bytes_received=len(body))
    incoming.content = body


def count(incoming: Incoming, accounting: Accounting) -> None:
    """Let C(iter_content) give the body as :func:`pieces` does, and add what is taken of it to
    C(accounting). The connection itself does not count the bytes of a body in chunks.
    """

    def counted(*_arguments: object, **_options: object) -> Iterator[bytes]:
        for piece in pieces(incoming):
            accounting.add(bytes_received=len(piece))
            yield piece

    incoming.iter_content = counted  # type: ignore[method-assign]


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


def _packing(incoming: Incoming) -> str:
    packing: str = incoming.headers.get("Content-Encoding", "")
    return packing.strip().lower()


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
