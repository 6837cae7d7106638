# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of modules that wait for the CI server, and validation of numeric options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..core.errors import invalid
from ..core.polling import PollInterval

#: Creates a `PollInterval` from a timeout and a maximum pause, both in seconds.
PollingFactory = Callable[[float, float], PollInterval]
#: Minimum timeout of a poll in seconds, even if less time is left.
_SHORTEST_POLL = 0.5


@dataclass(frozen=True, kw_only=True)
class WaitOptions:
    """Whether to wait, the timeout, and the maximum pause between two polls, both in seconds."""

    wait: bool = True
    wait_timeout: float
    poll_interval: float

    def check(self) -> None:
        """Raise `invalid` for a timeout or an interval that is out of range."""
        require_at_least("wait_timeout", self.wait_timeout, 0)
        if self.wait and self.wait_timeout == 0:
            raise invalid("wait_timeout is 0: set it to more than 0 seconds, or set wait: false")
        if self.poll_interval <= 0:
            raise invalid(f"poll_interval is {self.poll_interval:g}: set it to more than 0 seconds")


def require_at_least(name: str, value: float | None, lowest: int) -> None:
    """Raise `invalid` for an option below its minimum."""
    if value is not None and value < lowest:
        raise invalid(f"{name} is {value:g}: set it to {lowest} or more")


def patience(polling: PollInterval) -> float:
    """Return the timeout in seconds of a poll with its retries: the time left, at least 0.5."""
    return max(_SHORTEST_POLL, polling.left)
