# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse multipart forms as a stream, and store their files, which may have any size."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

if TYPE_CHECKING:
    from sandbox.store import Blob, Blobs

_BOUNDARY = re.compile(r'(?i)boundary="?([^";]+)"?')
_PARAMETER = re.compile(rb'(?i)\b(name|filename)="((?:[^"\\]|\\.)*)"')
_CHARSET = re.compile(rb'(?i)^content-type:[^\r\n]*;\s*charset="?([\w-]+)', re.MULTILINE)


class Broken(ValueError):
    """Error for a body that is not a multipart form, or ends too early."""


@dataclass(frozen=True)
class Upload:
    """A file in a form. `name`: its file name."""

    name: str
    blob: Blob


@dataclass
class Form:
    """A parsed form. `fields`: values of each field by its name. `files`: file by field name."""

    fields: dict[str, list[str]] = field(default_factory=dict)
    files: dict[str, Upload] = field(default_factory=dict)


class _Reader:
    """Split a stream at delimiters without reading all of it into memory."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._buffer = b""

    async def _more(self) -> None:
        async for chunk in self._chunks:
            if chunk:
                self._buffer += chunk
                return
        raise Broken("the form ends too early")

    async def until(self, delimiter: bytes) -> AsyncIterator[bytes]:
        """Yield the chunks before the delimiter, and consume the delimiter."""
        while True:
            before, found, after = self._buffer.partition(delimiter)
            if found:
                self._buffer = after
                yield before
                return
            # The end of the buffer may be the start of the delimiter.
            safe = max(len(self._buffer) - len(delimiter), 0)
            yield self._buffer[:safe]
            self._buffer = self._buffer[safe:]
            await self._more()

    async def whole(self, delimiter: bytes) -> bytes:
        return b"".join([chunk async for chunk in self.until(delimiter)])

    async def take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            await self._more()
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken


async def read(content_type: str, chunks: AsyncIterator[bytes], blobs: Blobs) -> Form:
    """Parse a form and store its files in `blobs`. A part without a file name is a field."""
    boundary = _BOUNDARY.search(content_type)
    if boundary is None:
        raise Broken("the form has no boundary")
    delimiter = b"--" + boundary[1].encode("latin-1")
    reader, form = _Reader(chunks), Form()
    await reader.whole(delimiter)
    while await reader.take(2) != b"--":
        head = await reader.whole(b"\r\n\r\n")
        names = _names(head)
        content = reader.until(b"\r\n" + delimiter)
        name = names.get(b"name", "")
        if b"filename" in names:
            form.files[name] = Upload(names[b"filename"], await blobs.put_stream(content))
        else:
            value = b"".join([chunk async for chunk in content])
            form.fields.setdefault(name, []).append(value.decode(_charset(head), "replace"))
    return form


def _charset(head: bytes) -> str:
    """Return the charset of a part. Server fact [ci-26]: the default is ISO-8859-1."""
    found = _CHARSET.search(head)
    return "iso-8859-1" if found is None else found[1].decode("ascii")


def _names(head: bytes) -> dict[bytes, str]:
    return {
        key.lower(): unquote_to_bytes(value).decode("utf-8", "replace")
        for key, value in _PARAMETER.findall(head)
    }
