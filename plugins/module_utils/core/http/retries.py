# SPDX-License-Identifier: GPL-3.0-or-later
"""Number of retries, and the pauses before them [C1.4]."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..accounting import Accounting
from ..errors import ToolchainError, shorten
from .messages import Request, Response, back_off

#: Headers with the limit that a client has exceeded.
_REASONS = ("RateLimit-Reason", "X-RateLimit-Reason", "X-Beta-Ratelimit-Reason")
RETRIED_READS = frozenset({408, 429, 502, 503, 504})


@dataclass(frozen=True)
class Retries:
    """The options `retries` and `retry_max_wait`: at most `most` retries, with pauses of at most
    `longest` seconds.

    :param sleep: makes the pauses; tests replace it
    """

    most: int
    longest: float
    accounting: Accounting
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    @classmethod
    def of(
        cls, settings: Mapping[str, Any], accounting: Accounting, sleep: Callable[[float], None]
    ) -> Retries:
        """Return the retries that a connection allows."""
        longest = float(settings["retry_max_wait"])
        return cls(int(settings["retries"]), longest, accounting, sleep)

    def pause(self, request: Request, attempt: int, asked: float | None = None) -> float | None:
        """Return the seconds before the next attempt, `None` if there is none.

        :param attempt: number of the attempt that ended, from 0
        :param asked: seconds of `Retry-After`
        """
        if request.once or attempt >= self.most or (asked or 0.0) > self.longest:
            return None
        pause = max(asked or 0.0, back_off(attempt, self.longest))
        return pause if pause < request.left() else None

    def rest(self, seconds: float, *, counted: bool) -> None:
        """Pause before the next request; `counted`: it repeats the same request."""
        self.accounting.add(retries=int(counted))
        self.sleep(seconds)

    def too_long(self, response: Response, asked: float, detail: str) -> ToolchainError:
        """Return the error for a server that asks for a longer pause than `retry_max_wait`.

        :param detail: the server's error message
        """
        message = (
            f"the server returned {response.status} and requests a wait of {asked:.0f} s before"
            f" the next request, which is longer than retry_max_wait ({self.longest:g} s)"
        )
        message = f"{message}{limit_of(response)}"
        return response.error("rate_limited", f"{message}: {detail}" if detail else message, detail)


def limit_of(response: Response) -> str:
    """Return the limit that the server names for a message; "" without one [tracker-4]."""
    headers = response.headers
    found = next((headers[name] for name in _REASONS if headers.get(name)), "")
    return f" ({shorten(found)})" if response.status in (429, 503) and found else ""
