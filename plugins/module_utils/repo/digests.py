# SPDX-License-Identifier: GPL-3.0-or-later
"""Compute the size and the digests of a file in a single pass."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import IO

from ..core.concurrency import BackgroundThread

_BLOCK = 2 * 1024 * 1024
#: Size of the first read: allocating 2 MiB would take longer than reading a typical file.
_FIRST_BLOCK = 64 * 1024


@dataclass(frozen=True, slots=True)
class Digests:
    """Size in bytes, and digests as lower-case hexadecimal strings."""

    size: int
    sha256: str
    sha1: str


def digests_of_bytes(content: bytes) -> Digests:
    """Return size and digests of a byte string."""
    sha1 = hashlib.sha1(content, usedforsecurity=False)
    return Digests(len(content), hashlib.sha256(content).hexdigest(), sha1.hexdigest())


def digests_of(stream: IO[bytes]) -> Digests:
    """Read a stream to its end and return its size and digests, in constant memory.

    For a large file, both digests and the next read run in parallel, because all three release the
    GIL.
    """
    sha256, size = hashlib.sha256(), 0
    sha1 = hashlib.sha1(usedforsecurity=False)
    block = stream.read(_FIRST_BLOCK)
    while block and size < _BLOCK:
        sha256.update(block)
        sha1.update(block)
        size += len(block)
        block = stream.read(_BLOCK)
    with BackgroundThread() as first, BackgroundThread() as second:
        while block:
            first.do(sha256.update, block)
            second.do(sha1.update, block)
            size += len(block)
            block = stream.read(_BLOCK)
    return Digests(size, sha256.hexdigest(), sha1.hexdigest())
