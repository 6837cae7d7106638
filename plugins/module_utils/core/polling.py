# SPDX-License-Identifier: GPL-3.0-or-later
"""Polling with growing pauses and a timeout."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from .errors import ToolchainError

_FIRST_PAUSE = 0.5  # seconds
_GROWTH = 1.5


class PollTimeout(ToolchainError):
    """Raised if the operation is still running after the timeout."""


@dataclass
class PollInterval:
    """Pauses between polls, which grow up to `interval` seconds.

    :param timeout: maximum seconds of all pauses and polls
    """

    timeout: float
    interval: float
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _next: float = field(init=False)
    _started: float = field(init=False)

    def __post_init__(self) -> None:
        self._next = min(_FIRST_PAUSE, self.interval)
        self._started = self.now()

    @property
    def passed(self) -> float:
        """Return the seconds since the start."""
        return self.now() - self._started

    @property
    def left(self) -> float:
        """Return the seconds until the timeout."""
        return max(0.0, self.timeout - self.passed)

    def pause(self, running: str, expected: float | None = None) -> None:
        """Sleep before the next poll. Raises `PollTimeout` if the timeout has expired.

        :param running: sentence about the running operation, for the message
        :param expected: expected seconds until the operation ends, which limit the pause
        """
        left = self.left
        if left <= 0:
            raise PollTimeout("timeout", f"{running}; wait_timeout ({self.timeout:g} s) expired")
        soon = left if expected is None or expected <= 0 else max(expected, _FIRST_PAUSE)
        self.sleep(min(self._next, left, soon))
        self._next = min(self._next * _GROWTH, self.interval)
