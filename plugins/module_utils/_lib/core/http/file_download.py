# SPDX-License-Identifier: GPL-3.0-or-later
"""Download files atomically: a local file is replaced only if the download matches the server's
metadata.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any, TypeVar

from ..concurrency import BackgroundThread
from ..errors import ToolchainError, invalid, looks_like_html
from ..files import atomic_write, make_folders
from .messages import Request, Response, back_off, unexpected_body
from .transport import Transport

if TYPE_CHECKING:
    from .bodies import Incoming


Taken = TypeVar("Taken")

_BROKEN = ("network", "timeout")
#: Prevents compression, because the size of the body must match the server's metadata.
AS_STORED = {"Accept-Encoding": "identity"}


def download(
    transport: Transport,
    purpose: str,
    address: str,
    take: Callable[[Incoming], Taken],
    *,
    validate: Callable[[Response], None],
    headers: Mapping[str, str] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Taken:
    """Send a GET request and pass the response to `take`. Return the result of `take`.

    The address may be on another host or redirect to one; credentials are not sent there. If the
    connection breaks while the body is read, request and `take` are repeated, at most `retries`
    times [C1.4].

    :param take: reads the body
    :param validate: raises an error for an invalid response; the `body` of a response with status
        200 is empty
    """
    settings = transport.connection.settings
    for attempt in itertools.count():
        begun = False
        try:
            with transport.stream(
                purpose,
                address,
                headers={**AS_STORED, **(headers or {})},
                foreign_hosts=True,
                validate=validate,
            ) as incoming:
                validate(head_of(purpose, incoming))
                begun = True
                return take(incoming)
        except ToolchainError as error:
            if not begun or error.kind not in _BROKEN or attempt >= settings["retries"]:
                raise
        transport.accounting.add(retries=1)
        sleep(back_off(attempt, settings["retry_max_wait"]))
    raise AssertionError("the number of attempts is unlimited")


def head_of(purpose: str, incoming: Incoming, body: bytes = b"") -> Response:
    """Convert an incoming response to a `Response`.

    :param body: the bytes that have been read from the body
    """
    request = Request(purpose, "GET", incoming.url, True)
    return Response(incoming.status_code, incoming.headers, body, request, incoming.url)


_BLOCK = 1024 * 1024
#: Maximum size in bytes of a file that is held in memory.
_FEW = 512 * 1024
#: Number of bytes at the start of a file in which an HTML page is detected.
_HEAD = 4096


@dataclass(frozen=True)
class RemoteContent:
    """Metadata of a file on a server.

    :param size: in bytes, `None` if unknown
    :param algorithm: of the digest: `md5`, `sha1` or `sha256`
    :param digest: in hexadecimal digits, `None` if unknown
    :param may_be_page: accept an HTML page even if there is no digest to verify it
    """

    size: int | None = None
    algorithm: str = "sha256"
    digest: str | None = None
    may_be_page: bool = True

    def new_hash(self) -> Any:
        return hashlib.new(self.algorithm, usedforsecurity=False)

    def is_at(self, path: str) -> bool:
        """Return whether a local file matches the metadata.

        Raises `invalid` if the file cannot be read.
        """
        try:
            found = os.lstat(path)
            if not stat.S_ISREG(found.st_mode) or self.size not in (None, found.st_size):
                return False
            if self.digest is None:
                return self.size is not None
            digest = self.new_hash()
            with open(path, "rb") as file:
                for block in iter(lambda: file.read(_BLOCK), b""):
                    digest.update(block)
            return str(digest.hexdigest()) == self.digest.lower()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise invalid(f"{path} cannot be read: {error.strerror or error}") from None


@dataclass(frozen=True)
class Fetched:
    """Size in bytes and SHA-256 digest of a downloaded file."""

    size: int
    sha256: str


def download_file(
    transport: Transport,
    purpose: str,
    address: str,
    path: str,
    *,
    content: RemoteContent,
    validate: Callable[[Response], None] = lambda response: None,
    mode: int | None = None,
) -> Fetched:
    """Download a file to `path`, and create missing folders. See :func:`download`.

    Raises `protocol` if the content does not match the server's metadata.

    :param mode: permissions, see :func:`atomic_write`
    """
    make_folders(os.path.dirname(path) or ".")

    def take(response: Response, blocks: Iterable[bytes]) -> Fetched:
        with atomic_write(path, mode) as file:
            return _write_and_compare(response, blocks, file.write, content)

    return _Source(transport, purpose, address, content, validate).receive(take)


def download_into(
    transport: Transport,
    purpose: str,
    address: str,
    file: IO[bytes],
    *,
    content: RemoteContent,
    validate: Callable[[Response], None],
) -> Fetched:
    """Download a file into an open file, replacing its content. See :func:`download_file`."""

    def write(block: bytes) -> None:
        try:
            file.write(block)
        except OSError as error:
            message = f"cannot write a temporary file: {error.strerror or error}"
            raise ToolchainError("failed", message) from None

    def take(response: Response, blocks: Iterable[bytes]) -> Fetched:
        file.seek(0)
        file.truncate()
        return _write_and_compare(response, blocks, write, content)

    return _Source(transport, purpose, address, content, validate).receive(take)


def fetch_digests(
    transport: Transport, purpose: str, address: str, *, content: RemoteContent
) -> Fetched:
    """Download a file without storing it, if the server does not provide the digest."""

    def drop(block: bytes) -> None:
        """Discard a block: only the digest is needed."""

    source = _Source(transport, purpose, address, content)
    return source.receive(
        lambda response, blocks: _write_and_compare(response, blocks, drop, content)
    )


@dataclass(frozen=True)
class _Source:
    """The address of a remote file, with the parameters of its download."""

    transport: Transport
    purpose: str
    address: str
    content: RemoteContent
    validate: Callable[[Response], None] = lambda response: None

    def receive(self, take: Callable[[Response, Iterable[bytes]], Fetched]) -> Fetched:
        """Return the result of `take` for the response and its body.

        A small file is read into memory, which is faster than a stream.
        """
        purpose, size = self.purpose, self.content.size
        if size is not None and size <= _FEW:
            response = self.transport.read(
                purpose, self.address, headers=AS_STORED, foreign_hosts=True, validate=self.validate
            )
            return take(response, [response.body])

        def streamed(incoming: Incoming) -> Fetched:
            return take(head_of(purpose, incoming), incoming.iter_content())

        return download(self.transport, purpose, self.address, streamed, validate=self.validate)


def _write_and_compare(
    response: Response,
    blocks: Iterable[bytes],
    write: Callable[[bytes], object],
    content: RemoteContent,
) -> Fetched:
    """Write the blocks. Raises `protocol` if size or digest differ from the metadata."""
    sha256, size, head = hashlib.sha256(), 0, b""
    expected = sha256 if content.algorithm == "sha256" else content.new_hash()

    def digest_of(block: bytes) -> None:
        sha256.update(block)
        if expected is not sha256:
            expected.update(block)

    with BackgroundThread() as background:
        for block in blocks:
            head = head or block[:_HEAD]
            size += len(block)
            if content.size is not None and size > content.size:
                break  # an endless body would fill the disk
            if size == len(block):  # often the only block: a thread would cost more
                digest_of(block)
            else:
                background.do(digest_of, block)
            write(block)
        background.wait()
    digest = str(expected.hexdigest())
    if content.size not in (None, size):
        raise _differs(response, head, f"{size} bytes", str(content.size))
    if content.digest is not None and digest != content.digest.lower():
        raise _differs(response, head, f"{content.algorithm} {digest}", content.digest)
    if content.digest is None and not content.may_be_page and _is_page(head):
        raise unexpected_body(_with_body(response, head), "the file")
    return Fetched(size, sha256.hexdigest())


def _differs(response: Response, head: bytes, received: str, expected: str) -> ToolchainError:
    if _is_page(head):  # probably a login page or an error page of a proxy
        return unexpected_body(_with_body(response, head), "the file")
    message = (
        f"the server sent a file with {received} instead of {expected}: the file was discarded"
    )
    return response.error("protocol", message)


def _is_page(head: bytes) -> bool:
    return looks_like_html(head.decode(errors="replace"))


def _with_body(response: Response, body: bytes) -> Response:
    return replace(response, body=body)
