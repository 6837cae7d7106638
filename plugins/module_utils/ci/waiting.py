# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of modules that wait, and the check of numbers, for all rooms of the service."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..core.errors import invalid
from ..core.polling import PollInterval

#: Makes the pauses between polls, given the longest time and the longest pause, in seconds.
PaceFactory = Callable[[float, float], PollInterval]


@dataclass(frozen=True, kw_only=True)
class WaitOptions:
    """Whether to wait, how long, and how long a pause between two polls may be."""

    wait: bool = True
    wait_timeout: float
    poll_interval: float

    def check(self) -> None:
        """Raise C(invalid) for times that make no sense."""
        require_at_least("wait_timeout", self.wait_timeout, 0)
        if self.wait and self.wait_timeout == 0:
            raise invalid("wait_timeout is 0: give more than 0 seconds, or wait: false")
        if self.poll_interval <= 0:
            raise invalid("poll_interval is the time between two polls: give more than 0 seconds")


def require_at_least(name: str, value: float | None, lowest: int) -> None:
    """Raise C(invalid) for an option that is lower than it may be."""
    if value is not None and value < lowest:
        raise invalid(f"{name} is {value:g}: give {lowest} or more")
