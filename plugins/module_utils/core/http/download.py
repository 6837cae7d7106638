# SPDX-License-Identifier: GPL-3.0-or-later
"""Read response bodies that are too large for memory, and retry after interruptions."""

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
