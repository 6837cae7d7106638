# SPDX-License-Identifier: GPL-3.0-or-later
"""Bodies that are too large to be held, taken piece by piece until they are whole."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from ..errors import ToolchainError
from .messages import Answer, Request, back_off
from .transport import Transport

if TYPE_CHECKING:
    from .connections import Incoming

Taken = TypeVar("Taken")

_BROKEN = ("network", "timeout")
#: As the bytes are: a compressed body would have another size than the one that the server told.
AS_STORED = {"Accept-Encoding": "identity"}


def download(
    transport: Transport,
    what: str,
    address: str,
    take: Callable[[Incoming], Taken],
    *,
    judge: Callable[[Answer], None],
    headers: Mapping[str, str] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Taken:
    """What C(take) makes of the body at an address, which may be on, or lead to, another host
    (without credentials).

    Where the connection breaks midway, C(take) begins anew, as often as a request may be repeated
    [C1.4].

    :param judge: is shown every answer (one of status 200 without its body) before it counts
    """
    settings = transport.connection.settings
    for attempt in itertools.count():
        begun = False
        try:
            with transport.stream(
                what,
                address,
                headers={**AS_STORED, **(headers or {})},
                foreign_hosts=True,
                judge=judge,
            ) as response:
                judge(head_of(what, response))
                begun = True
                return take(response)
        except ToolchainError as error:
            if not begun or error.kind not in _BROKEN or attempt >= settings["retries"]:
                raise
        transport.accounting.add(retries=1)
        sleep(back_off(attempt, settings["retry_max_wait"]))
    raise AssertionError("the numbers of attempts do not end")


def head_of(what: str, response: Incoming, body: bytes = b"") -> Answer:
    """The answer, of whose body only C(body) is known."""
    request = Request(what, "GET", response.url, True)
    return Answer(response.status_code, response.headers, body, request, response.url)
