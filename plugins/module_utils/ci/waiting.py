# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of modules that wait for the CI server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from ..core.errors import invalid
from ..core.module.typed_options import Option, Seconds
from ..core.polling import PollInterval

#: Creates a `PollInterval` from a timeout and a maximum pause, both in seconds.
PollingFactory = Callable[[float, float], PollInterval]
#: Option type for seconds from 0.
Timeout = Annotated[float, Option(least=0)]
#: Minimum timeout of a poll in seconds, even if less time is left.
_SHORTEST_POLL = 0.5


@dataclass(frozen=True, kw_only=True)
class WaitOptions:
    """Whether to wait, the timeout, and the maximum pause between two polls, both in seconds."""

    wait: bool = True
    wait_timeout: Timeout
    poll_interval: Seconds

    def check(self) -> None:
        """Raise `invalid` for a timeout that leaves no time to wait."""
        if self.wait and self.wait_timeout == 0:
            raise invalid("wait_timeout is 0: set it to more than 0 seconds, or set wait=false")


def patience(polling: PollInterval) -> float:
    """Return the timeout in seconds of a poll with its retries: the time left, at least 0.5."""
    return max(_SHORTEST_POLL, polling.left)
