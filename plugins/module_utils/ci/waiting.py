# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of modules that wait, and validation of numbers, for all packages of the service."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..core.errors import invalid
from ..core.polling import PollInterval

#: Makes the polling interval from the timeout and the longest pause, in seconds.
PollingFactory = Callable[[float, float], PollInterval]


@dataclass(frozen=True, kw_only=True)
class WaitOptions:
    """Whether to wait, the timeout, and the longest pause between two polls."""

    wait: bool = True
    wait_timeout: float
    poll_interval: float

    def check(self) -> None:
        """Raise `invalid` for impossible times."""
        require_at_least("wait_timeout", self.wait_timeout, 0)
        if self.wait and self.wait_timeout == 0:
            raise invalid("wait_timeout is 0: set it to more than 0 seconds, or set wait: false")
        if self.poll_interval <= 0:
            raise invalid("poll_interval must be more than 0 seconds")


def require_at_least(name: str, value: float | None, lowest: int) -> None:
    """Raise `invalid` for an option below its minimum."""
    if value is not None and value < lowest:
        raise invalid(f"{name} is {value:g}, but must be {lowest} or more")
