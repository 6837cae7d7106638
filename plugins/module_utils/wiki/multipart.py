# SPDX-License-Identifier: GPL-3.0-or-later
"""The body of an upload: a form with one file, read from disk (RFC 7578)."""

from __future__ import annotations

import io
import mimetypes
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Any


@dataclass(frozen=True)
class MultipartForm:
    """C(fields), then the file C(src) of C(length) bytes as the field C(name) with a C(filename).

    Names are sent as they are, in UTF-8: they must hold neither quotes nor line breaks, which
    servers read in different ways.
    """

    fields: Mapping[str, str]
    name: str
    filename: str
    src: str
    length: int
    boundary: str = field(default_factory=lambda: secrets.token_hex(16))

    @property
    def content_type(self) -> str:
        return f"multipart/form-data; boundary={self.boundary}"

    @property
    def size(self) -> int:
        """Bytes of the whole body."""
        return len(self._head) + self.length + len(self._tail)

    def open(self) -> IO[bytes]:
        """The body, to be read from its beginning; no more of the file than its length."""
        return io.BufferedReader(_Chained(self._head, self.src, self.length, self._tail))

    @property
    def _head(self) -> bytes:
        lines = [
            f'--{self.boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in self.fields.items()
        ]
        kind = mimetypes.guess_type(self.filename)[0] or "application/octet-stream"
        lines.append(
            f"--{self.boundary}\r\n"
            f'Content-Disposition: form-data; name="{self.name}"; filename="{self.filename}"\r\n'
            f"Content-Type: {kind}\r\n\r\n"
        )
        return "".join(lines).encode()

    @property
    def _tail(self) -> bytes:
        return f"\r\n--{self.boundary}--\r\n".encode()


class _Chained(io.RawIOBase):
    """Bytes, a part of a file, bytes."""

    def __init__(self, head: bytes, src: str, length: int, tail: bytes) -> None:
        self._file = open(src, "rb")  # noqa: SIM115 - closed together with this stream
        self._parts: list[tuple[IO[bytes], int]] = [
            (io.BytesIO(head), len(head)),
            (self._file, length),
            (io.BytesIO(tail), len(tail)),
        ]

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        while self._parts:
            stream, left = self._parts[0]
            block = stream.read(min(left, len(view)))
            if block:
                self._parts[0] = (stream, left - len(block))
                view[: len(block)] = block
                return len(block)
            del self._parts[0]
        return 0

    def close(self) -> None:
        self._file.close()
        super().close()
