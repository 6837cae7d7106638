# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of a server on the disk: whole and as the server tells of them, or not there at all."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from ..errors import ToolchainError, invalid
from ..files import make_folders, replacing
from .download import download, head_of
from .messages import Answer
from .transport import Transport

if TYPE_CHECKING:
    import requests

_BLOCK = 1024 * 1024


@dataclass(frozen=True)
class RemoteContent:
    """What a server tells of a file; C(None) for what it does not tell.

    :param digest: hexadecimal, of the C(algorithm) (C(md5), C(sha1), C(sha256))
    """

    size: int | None = None
    algorithm: str = "sha256"
    digest: str | None = None

    def new_hash(self) -> Any:
        return hashlib.new(self.algorithm, usedforsecurity=False)

    def is_at(self, path: str) -> bool:
        """Whether this file is there, as far as the server tells; C(invalid) where it cannot be
        read.
        """
        try:
            found = os.lstat(path)
            if not stat.S_ISREG(found.st_mode) or self.size not in (None, found.st_size):
                return False
            return self._has_digest(path)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise invalid(f"{path} cannot be read: {error.strerror or error}") from None

    def _has_digest(self, path: str) -> bool:
        if self.digest is None:
            return self.size is not None
        found = self.new_hash()
        with open(path, "rb") as file:
            for block in iter(lambda: file.read(_BLOCK), b""):
                found.update(block)
        return str(found.hexdigest()) == self.digest.lower()


@dataclass(frozen=True)
class Fetched:
    """What was written: its bytes and their SHA-256."""

    size: int
    sha256: str


def download_file(
    transport: Transport,
    what: str,
    address: str,
    path: str,
    *,
    content: RemoteContent,
    judge: Callable[[Answer], None] = lambda answer: None,
    mode: int | None = None,
) -> Fetched:
    """Fetch an address into a file, whose folders are made; C(protocol) where the bytes are not
    what the server has told of them. See :func:`download`.
    """
    make_folders(os.path.dirname(path) or ".")

    def take(response: requests.Response) -> Fetched:
        with replacing(path, mode) as file:
            return _written(what, response, file, content)

    return download(transport, what, address, take, judge=judge)


def _written(
    what: str, response: requests.Response, file: IO[bytes], content: RemoteContent
) -> Fetched:
    sha256, size = hashlib.sha256(), 0
    told = sha256 if content.algorithm == "sha256" else content.new_hash()
    for block in _blocks(what, response, content):
        file.write(block)
        sha256.update(block)
        if told is not sha256:
            told.update(block)
        size += len(block)
    digest = str(told.hexdigest())
    if content.digest is not None and digest != content.digest.lower():
        raise _differs(what, response, f"{content.algorithm} {digest}", content.digest)
    return Fetched(size, sha256.hexdigest())


def _blocks(what: str, response: requests.Response, content: RemoteContent) -> Iterator[bytes]:
    """The body; no more of it than the server has told, so that it does not fill the disk."""
    size = 0
    for block in response.iter_content(_BLOCK):
        size += len(block)
        if content.size is not None and size > content.size:
            break
        yield block
    if content.size not in (None, size):
        raise _differs(what, response, f"{size} bytes", str(content.size))


def _differs(what: str, response: requests.Response, sent: str, told: str) -> ToolchainError:
    said = f"the server sent a file of {sent}, and had told {told}; it is not kept"
    return head_of(what, response).error("protocol", said)
