# SPDX-License-Identifier: GPL-3.0-or-later
"""Request bodies that are read from files: plain, or in a multipart form (RFC 7578)."""

from __future__ import annotations

import io
import mimetypes
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from ..errors import ToolchainError, invalid

if TYPE_CHECKING:
    from .messages import Accounting

#: Number of bytes that are read from a file and sent at a time.
_BLOCK = 1024 * 1024


@dataclass(frozen=True)
class FilePart:
    """A file field of a form.

    :param name: name of the field
    :param filename: name of the file for the server
    :param src: path of the local file
    :param length: number of bytes to send from the start of the file
    """

    name: str
    filename: str
    src: str
    length: int


@dataclass(frozen=True)
class MultipartForm:
    """A multipart form with fields and files.

    Names are sent in UTF-8 without escapes. A name with a quotation mark, a backslash or a control
    character is rejected, because servers decode such names in different ways.

    :param fields: pairs of name and value; names may repeat
    """

    fields: Iterable[tuple[str, str]]
    files: Sequence[FilePart]
    boundary: str = field(default_factory=lambda: secrets.token_hex(16))

    @property
    def content_type(self) -> str:
        return f"multipart/form-data; boundary={self.boundary}"

    @property
    def size(self) -> int:
        """Return the length of the body in bytes."""
        return sum(len(part) if isinstance(part, bytes) else part.length for part in self._parts())

    def open(self) -> IO[bytes]:
        """Return the body as a readable file."""
        return io.BufferedReader(_Chained(self._parts()))

    def _parts(self) -> Iterator[bytes | FilePart]:
        for name, value in self.fields:
            # server fact [ci-26]: without a charset, a string is decoded as ISO-8859-1
            kind = "text/plain; charset=UTF-8"
            head = self._head(f'name="{_plain(name)}"\r\nContent-Type: {kind}')
            yield head + f"{value}\r\n".encode()
        for file in self.files:
            kind = mimetypes.guess_type(file.filename)[0] or "application/octet-stream"
            named = f'name="{_plain(file.name)}"; filename="{_plain(file.filename)}"'
            yield self._head(f"{named}\r\nContent-Type: {kind}")
            yield file
            yield b"\r\n"
        yield f"--{self.boundary}--\r\n".encode()

    def _head(self, words: str) -> bytes:
        return f"--{self.boundary}\r\nContent-Disposition: form-data; {words}\r\n\r\n".encode()


def _plain(name: str) -> str:
    if any(char in '"\\' or ord(char) < 32 for char in name):
        raise invalid(
            f"the name {name!r} cannot be sent in a form: it contains a quotation mark, a"
            " backslash or a control character"
        )
    return name


class _Chained(io.RawIOBase):
    """Concatenates bytes and files; only one file is open at a time."""

    def __init__(self, parts: Iterator[bytes | FilePart]) -> None:
        self._parts = parts
        self._stream: IO[bytes] = io.BytesIO()
        self._left = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        while True:
            block = self._stream.read(min(self._left, len(view)))
            if block:
                self._left -= len(block)
                view[: len(block)] = block
                return len(block)
            if not self._next():
                return 0

    def _next(self) -> bool:
        self._stream.close()
        part = next(self._parts, None)
        if isinstance(part, FilePart):
            self._stream, self._left = open(part.src, "rb"), part.length  # noqa: SIM115
        else:
            self._stream, self._left = io.BytesIO(part or b""), len(part or b"")
        return part is not None

    def close(self) -> None:
        self._stream.close()
        super().close()


def small_body(purpose: str, open_body: Callable[[], IO[bytes]], size: int) -> bytes:
    """Read a small body into memory. Raises `failed` if the file is shorter than `size` bytes."""
    blocks, missing = list[bytes](), size
    with _reading(purpose), open_body() as file:
        while missing and (block := file.read(missing)):
            blocks.append(block)
            missing -= len(block)
    if missing:
        raise _truncated(purpose)
    return b"".join(blocks)


@contextmanager
def _reading(purpose: str) -> Iterator[None]:
    """Raise `failed` for an OSError of the file, which would look like a network error."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise ToolchainError("failed", f"{purpose}: the file cannot be read: {reason}") from None


def _truncated(purpose: str) -> ToolchainError:
    return ToolchainError("failed", f"{purpose}: the file was truncated while it was sent")


class Upload:
    """A request body of known length that is read from a file while it is sent."""

    def __init__(
        self, purpose: str, open_body: Callable[[], IO[bytes]], size: int, accounting: Accounting
    ) -> None:
        self._purpose, self._size, self._accounting = purpose, size, accounting
        with _reading(purpose):
            self._file = open_body()

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[bytes]:
        missing = self._size
        while missing:
            with _reading(self._purpose):
                block = self._file.read(min(missing, _BLOCK))
            if not block:
                raise _truncated(self._purpose)
            missing -= len(block)
            self._accounting.add(bytes_sent=len(block))
            yield block

    def close(self) -> None:
        self._file.close()
