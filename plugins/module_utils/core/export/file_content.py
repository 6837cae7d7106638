# SPDX-License-Identifier: GPL-3.0-or-later
"""Contents of exported files: YAML and XML in memory, other content in an anonymous temporary file,
which disappears even if the task crashes.
"""

from __future__ import annotations

import hashlib
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO

from ..errors import ToolchainError

_BLOCK = 1024 * 1024
#: Suffixes of the files that are held in memory and shown in a diff.
_TEXTS = (".yml", ".xml")


@dataclass(frozen=True)
class FileContent:
    """The content of a file.

    :param digest: SHA-256 in hexadecimal digits
    :param blocks: returns an iterator over all bytes
    :param text: the content if it is in memory, else `None`
    """

    digest: str
    size: int
    blocks: Callable[[], Iterator[bytes]]
    text: bytes | None = None

    @classmethod
    def of(cls, text: bytes) -> FileContent:
        return cls(hashlib.sha256(text).hexdigest(), len(text), lambda: iter([text]), text)

    @classmethod
    def at(cls, path: str, *, whole: bool = False) -> FileContent | None:
        """Return the content of the file at `path`, or `None` if the file does not exist.

        :param whole: hold the content in memory even if it is not YAML or XML
        """
        digest, size = hashlib.sha256(), 0
        try:
            if whole or path.endswith(_TEXTS):
                return cls.of(b"".join(_blocks_at(path)))
            for block in _blocks_at(path):
                digest.update(block)
                size += len(block)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            message = f"cannot read {path}: {error.strerror or error}"
            raise ToolchainError("failed", message) from None
        return cls(digest.hexdigest(), size, lambda: _blocks_at(path))

    @property
    def shown(self) -> str:
        """Return the representation of the content in a diff."""
        if self.text is None:
            return f"{self.size} bytes, sha256 {self.digest}\n"
        return self.text.decode("utf-8", "replace")


class KeptFiles:
    """A store for the content of many files in one anonymous temporary file."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (as long as the task lives)
        self._lock = threading.Lock()
        self._end = 0

    def keep(self, source: IO[bytes]) -> FileContent:
        """Store the content of an open file. The caller may reuse the file afterwards."""
        digest = hashlib.sha256()
        with self._lock:
            begin = self._end
            try:
                source.seek(0)
                self._file.seek(begin)
                for block in iter(lambda: source.read(_BLOCK), b""):
                    digest.update(block)
                    self._end += self._file.write(block)
                self._file.flush()
            except OSError as error:
                message = f"cannot write a temporary file: {error.strerror or error}"
                raise ToolchainError("failed", message) from None
            size = self._end - begin
        return FileContent(digest.hexdigest(), size, lambda: self._blocks(begin, size))

    def _blocks(self, begin: int, size: int) -> Iterator[bytes]:
        for start in range(begin, begin + size, _BLOCK):
            self._file.seek(start)
            yield self._file.read(min(_BLOCK, begin + size - start))


def _blocks_at(path: str) -> Iterator[bytes]:
    with open(path, "rb") as file:
        yield from iter(lambda: file.read(_BLOCK), b"")
