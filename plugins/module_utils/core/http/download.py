# SPDX-License-Identifier: GPL-3.0-or-later
"""Read bodies that are too large for memory in chunks, and retry until they are complete."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from ..errors import ToolchainError
from .messages import Request, Response, back_off
from .transport import Transport

if TYPE_CHECKING:
    from .bodies import Incoming

Taken = TypeVar("Taken")

_BROKEN = ("network", "timeout")
#: Requests the stored bytes: the size of a compressed body would differ from the server's metadata.
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
    """Return the result of `take` for the body at an address. The address may be on another host,
    or redirect to another host; credentials are not sent there.

    If the connection breaks midway, `take` starts again, as often as a request may be repeated
    [C1.4].

    :param validate: is called with every response before it counts; a response of status 200 has no
        body then
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
    """Return the response with `body`, the part of its body that was read."""
    request = Request(purpose, "GET", incoming.url, True)
    return Response(incoming.status_code, incoming.headers, body, request, incoming.url)
