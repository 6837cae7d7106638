# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults: wrong, late or missing responses to the next matching requests."""

from __future__ import annotations

import asyncio
import re
import zlib
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.types import Message, Send


@dataclass
class Fault:
    """A fault. All given conditions must match; the first matching fault is used.

    Conditions:

    - `service`, `method`: of the request.
    - `path`: regular expression, searched in the encoded path without the prefix of the service.
    - `match`: regular expression, searched in a text body and in the decoded `name=value` lines of
      a form.
    - `write`: whether the log counts the request as a write.
    - `skip`: number of matching requests that pass first; `times`: number of affected requests.

    Effects:

    - `status`, `headers`, `body` (a string, or an object sent as JSON), `content_type`: response.
    - `redirect`: `Location` header, with status 302 unless `status` is given.
    - `bomb`: size in MiB of a gzip-compressed body of blanks.
    - `cut`: close the connection without a response.
    - `cut_head`: close it inside the response head, after the status line and this many headers;
      -1 means all headers.
    - `truncate`: close it after this many bytes of the body, which is that of the fault or the real
      one.
    - `after`: carry out the request before `status`, `redirect`, `body` or `cut` replaces its
      response, so the response is lost.
    - `delay`: seconds before the request is handled; `late`: seconds before the response is sent.
    - `trickle`: seconds before each byte of the body.
    """

    service: str
    method: str | None = None
    path: str | None = None
    match: str | None = None
    write: bool | None = None
    times: int = 1
    skip: int = 0
    status: int | None = None
    headers: dict[str, str] | None = None
    body: Any = None
    content_type: str | None = None
    delay: float = 0
    late: float = 0
    after: bool = False
    cut: bool = False
    cut_head: int | None = None
    truncate: int | None = None
    redirect: str | None = None
    bomb: int | None = None
    trickle: float = 0

    def __post_init__(self) -> None:
        for pattern in (self.path, self.match):
            if pattern is not None:
                re.compile(pattern)

    @property
    def responds(self) -> bool:
        """Return whether the fault responds instead of the service."""
        return (
            self.cut
            or self.status is not None
            or self.redirect is not None
            or self.body is not None
            or self.bomb is not None
        )

    def hits(self, service: str, method: str, path: str, text: str, write: bool) -> bool:
        return (
            self.service == service
            and self.method in (None, method)
            and self.write in (None, write)
            and (self.path is None or re.search(self.path, path) is not None)
            and (self.match is None or re.search(self.match, text) is not None)
        )


@lru_cache(maxsize=2)
def compressed_blanks(size: int) -> bytes:
    """Return `size` MiB of blanks, compressed with gzip."""
    compressor = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    block = b" " * 1024 * 1024
    chunks = [compressor.compress(block) for _number in range(size)]
    return b"".join([*chunks, compressor.flush()])


def trickling(send: Send, seconds: float) -> Send:
    """Return a `send` that pauses before each byte of the body."""

    async def slow(message: Message) -> None:
        if message["type"] != "http.response.body":
            await send(message)
            return
        for byte in message.get("body", b""):
            await asyncio.sleep(seconds)
            await send({"type": "http.response.body", "body": bytes([byte]), "more_body": True})
        await send({**message, "body": b""})

    return slow


def truncating(send: Send, size: int, transport: Any) -> Send:
    """Return a `send` that closes the connection after `size` bytes of the body."""
    left = size

    async def some(message: Message) -> None:
        nonlocal left
        if message["type"] != "http.response.body":
            await send(message)
            return
        if left < 0:
            return
        chunk = message.get("body", b"")[:left]
        left -= len(chunk)
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
        if left == 0 or not message.get("more_body", False):
            left = -1
            transport.close()

    return some


def cutting_head(send: Send, count: int, transport: Any) -> Send:
    """Return a `send` that closes the connection after `count` headers; -1 means all."""

    async def head(message: Message) -> None:
        if message["type"] == "http.response.start":
            await send(message)
            transport.close_inside_head(None if count < 0 else count)

    return head


class Faults:
    """The pending faults of the sandbox."""

    def __init__(self) -> None:
        self._pending: list[Fault] = []

    def add(self, data: dict[str, Any]) -> Fault:
        """Add a fault. Raises `ValueError` if it is invalid."""
        known = {item.name for item in fields(Fault)}
        unknown = sorted(set(data) - known)
        if unknown:
            raise ValueError(f"unknown fault fields: {', '.join(unknown)}")
        try:
            fault = Fault(**data)
        except (TypeError, re.error) as error:
            raise ValueError(f"the fault is invalid: {error}") from error
        self._pending.append(fault)
        return fault

    def take(
        self, service: str, method: str, path: str, text: str, *, write: bool = False
    ) -> Fault | None:
        """Return the fault for a request, or None, and decrement its counter.

        :param text: body and form lines, for `match`
        """
        for fault in self._pending:
            if fault.hits(service, method, path, text, write):
                if fault.skip > 0:
                    fault.skip -= 1
                    continue
                fault.times -= 1
                if fault.times <= 0:
                    self._pending.remove(fault)
                return fault
        return None

    @property
    def pending(self) -> list[dict[str, Any]]:
        return [asdict(fault) for fault in self._pending]

    def __bool__(self) -> bool:
        return bool(self._pending)

    def clear(self) -> None:
        self._pending.clear()
