# SPDX-License-Identifier: GPL-3.0-or-later
"""Compute size and digests of a content in a single pass."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import IO

from ..core.concurrency import BackgroundThread

_BLOCK = 2 * 1024 * 1024
#: Most files are shorter, and allocating a whole block would take longer than reading them.
_FIRST_BLOCK = 64 * 1024


@dataclass(frozen=True, slots=True)
class Digests:
    """Size in bytes, and digests in lower-case hexadecimal."""

    size: int
    sha256: str
    sha1: str


def digests_of_bytes(content: bytes) -> Digests:
    """Return the digests of a content in memory."""
    sha1 = hashlib.sha1(content, usedforsecurity=False)
    return Digests(len(content), hashlib.sha256(content).hexdigest(), sha1.hexdigest())


def digests_of(stream: IO[bytes]) -> Digests:
    """Read a stream to its end once, in constant memory.

    For a long stream the two digests and the next read run concurrently: all three release the
    interpreter lock.
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
