# SPDX-License-Identifier: GPL-3.0-or-later
"""What is, or is to be, in a file: texts in memory, anything else in one temporary file that has no
name, so that nothing of it stays, however the task ends.
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
#: What an export writes as text, and shows in a diff.
_TEXTS = (".yml", ".xml")


@dataclass(frozen=True)
class FileContent:
    """C(blocks): the bytes, anew with each call. C(shown): what a diff has of it."""

    digest: str
    size: int
    blocks: Callable[[], Iterator[bytes]]
    text: bytes | None = None

    @classmethod
    def of(cls, text: bytes) -> FileContent:
        return cls(hashlib.sha256(text).hexdigest(), len(text), lambda: iter([text]), text)

    @classmethod
    def at(cls, path: str, *, whole: bool = False) -> FileContent | None:
        """Of a file that is there; C(None) where none is.

        :param whole: whether it is held, which a text always is
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
            raise ToolchainError("failed", f"reading {path}: {error.strerror or error}") from None
        return cls(digest.hexdigest(), size, lambda: _blocks_at(path))

    @property
    def shown(self) -> str:
        """For a diff."""
        if self.text is None:
            return f"{self.size} bytes, sha256 {self.digest}\n"
        return self.text.decode("utf-8", "replace")


class KeptFiles:
    """Bytes of many files, in one file that has no name."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (as long as the task lives)
        self._lock = threading.Lock()
        self._end = 0

    def keep(self, source: IO[bytes]) -> FileContent:
        """All that is in an open file; it may be used for others afterwards."""
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
                said = f"writing a temporary file: {error.strerror or error}"
                raise ToolchainError("failed", said) from None
            size = self._end - begin
        return FileContent(digest.hexdigest(), size, lambda: self._blocks(begin, size))

    def _blocks(self, begin: int, size: int) -> Iterator[bytes]:
        for start in range(begin, begin + size, _BLOCK):
            self._file.seek(start)
            yield self._file.read(min(_BLOCK, begin + size - start))


def _blocks_at(path: str) -> Iterator[bytes]:
    with open(path, "rb") as file:
        yield from iter(lambda: file.read(_BLOCK), b"")
