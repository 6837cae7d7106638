# SPDX-License-Identifier: GPL-3.0-or-later
"""Size and digests of a content, in one pass over it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import IO

_BLOCK = 1024 * 1024


@dataclass(frozen=True)
class Digests:
    """C(size) in bytes, digests in lower-case hexadecimal."""

    size: int
    sha256: str
    sha1: str


def digests_of(stream: IO[bytes]) -> Digests:
    """Read a stream to its end once, in memory that does not depend on its length."""
    sha256, size = hashlib.sha256(), 0
    sha1 = hashlib.sha1(usedforsecurity=False)
    while block := stream.read(_BLOCK):
        sha256.update(block)
        sha1.update(block)
        size += len(block)
    return Digests(size, sha256.hexdigest(), sha1.hexdigest())
