# SPDX-License-Identifier: GPL-3.0-or-later
"""Size and digests of a content, in one pass over it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import IO

from ..core.concurrency import Beside

_BLOCK = 2 * 1024 * 1024
#: Most files are shorter: room for a whole block would cost more than reading them.
_FIRST_BLOCK = 64 * 1024


@dataclass(frozen=True, slots=True)
class Digests:
    """C(size) in bytes, digests in lower-case hexadecimal."""

    size: int
    sha256: str
    sha1: str


def digests_of_bytes(content: bytes) -> Digests:
    """The digests of a content that is held."""
    sha1 = hashlib.sha1(content, usedforsecurity=False)
    return Digests(len(content), hashlib.sha256(content).hexdigest(), sha1.hexdigest())


def digests_of(stream: IO[bytes]) -> Digests:
    """Read a stream to its end once, in memory that does not depend on its length.

    Of a long one the two digests are made side by side, and the next block is read meanwhile: all
    of them leave the interpreter to others.
    """
    sha256, size = hashlib.sha256(), 0
    sha1 = hashlib.sha1(usedforsecurity=False)
    block = stream.read(_FIRST_BLOCK)
    while block and size < _BLOCK:
        sha256.update(block)
        sha1.update(block)
        size += len(block)
        block = stream.read(_BLOCK)
    with Beside() as one, Beside() as other:
        while block:
            one.do(sha256.update, block)
            other.do(sha1.update, block)
            size += len(block)
            block = stream.read(_BLOCK)
    return Digests(size, sha256.hexdigest(), sha1.hexdigest())
