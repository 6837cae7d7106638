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

#: Headers that name the exceeded rate limit.
_REASONS = ("RateLimit-Reason", "X-RateLimit-Reason", "X-Beta-Ratelimit-Reason")
RETRIED_READS = frozenset({408, 429, 502, 503, 504})


@dataclass(frozen=True)
class Retries:
    """The retry rules of a connection.

    :param most: maximum number of retries (`retries`)
    :param longest: maximum pause before a retry, in seconds (`retry_max_wait`)
    """

    most: int
    longest: float
    accounting: Accounting
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    @classmethod
    def of(
        cls, settings: Mapping[str, Any], accounting: Accounting, sleep: Callable[[float], None]
    ) -> Retries:
        """Return the retry rules for the settings of a connection."""
        longest = float(settings["retry_max_wait"])
        return cls(int(settings["retries"]), longest, accounting, sleep)

    def pause(self, request: Request, attempt: int, requested: float | None = None) -> float | None:
        """Return the seconds to wait before a retry, or `None` if the request must not be retried.

        :param attempt: number of the attempt that failed, from 0
        :param requested: minimum wait from `Retry-After`, in seconds
        """
        if request.once or attempt >= self.most or (requested or 0.0) > self.longest:
            return None
        pause = max(requested or 0.0, back_off(attempt, self.longest))
        return pause if pause < request.left() else None

    def wait(self, seconds: float, *, counted: bool) -> None:
        """Sleep before the next request.

        :param counted: count that request as a retry
        """
        self.accounting.add(retries=int(counted))
        self.sleep(seconds)

    def too_long(self, response: Response, requested: float, detail: str) -> ToolchainError:
        """Return the error for a server that requests a longer wait than `retry_max_wait`.

        :param requested: the wait in seconds
        :param detail: the server's error message
        """
        message = (
            f"the server returned {response.status} and requests a wait of {requested:.0f} s,"
            f" which is longer than retry_max_wait ({self.longest:g} s)"
        )
        message = f"{message}{limit_of(response)}"
        return response.error("rate_limited", f"{message}: {detail}" if detail else message, detail)


def limit_of(response: Response) -> str:
    """Return the rate limit in the headers as a suffix for a message, or "" [tracker-4]."""
    headers = response.headers
    found = next((headers[name] for name in _REASONS if headers.get(name)), "")
    return f" ({shorten(found)})" if response.status in (429, 503) and found else ""
