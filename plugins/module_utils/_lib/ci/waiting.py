# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of modules that wait for the CI server."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Annotated

from ..core.errors import ToolchainError, invalid
from ..core.http.transport import Transport
from ..core.module.typed_options import Option, Seconds
from ..core.progress import PollInterval, show_last_line

#: Ansible sends SIGALRM to a worker when the keyword `timeout` of its task ends.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)


@contextmanager
def interruptible() -> Iterator[Callable[[str], None]]:
    """Turn the first SIGINT, SIGTERM or SIGALRM during the block into `KeyboardInterrupt`.

    Further signals are ignored while the block reports and cleans up, which must be quick. In an
    Ansible worker the signal is raised again after the block, because the worker must exit instead
    of continuing with the next item of a loop.

    Yields a function that prints a line even after Ctrl-C.
    """
    if threading.current_thread() is not threading.main_thread():
        yield show_last_line
        return
    caught: list[int] = []
    before = {signal_: signal.getsignal(signal_) for signal_ in _SIGNALS}
    handled = [signal_ for signal_ in before if before[signal_] not in (None, signal.SIG_IGN)]

    def interrupt(number: int, frame: FrameType | None) -> None:
        for signal_ in handled:
            signal.signal(signal_, signal.SIG_IGN)
        caught.append(number)
        raise KeyboardInterrupt

    try:
        for signal_ in handled:
            signal.signal(signal_, interrupt)
        yield show_last_line
    finally:
        for signal_ in handled:
            signal.signal(signal_, before[signal_])
        handler = before[signal.Signals(caught[0])] if caught else None
        # a program has installed the handler, and not the system or Python
        if callable(handler) and handler is not signal.default_int_handler:
            os.kill(os.getpid(), caught[0])


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


_UNAVAILABLE = (502, 503, 504)


#: Seconds for which a server that shuts down may reject logins.
_SHUTDOWN = 15.0


class Outage:
    """Tells a temporary outage of the server, for instance a restart, from other errors of polls.

    Server fact [ci-19]: the server rejects every login while it starts, and before that for a
    moment while it shuts down.

    :param now: clock in seconds
    """

    def __init__(self, server: Transport, now: Callable[[], float]) -> None:
        self._server, self._now = server, now
        self._rejected_since: float | None = None
        #: Whether a poll has failed.
        self.seen = False

    def passes(self, error: ToolchainError) -> bool:
        """Return whether the next poll may succeed."""
        is_temporary = _is_unavailable(error)
        if error.status == 401 and not is_temporary:
            try:  # until the server has loaded its users, the login page returns 503
                purpose = "checking whether the CI server is up"
                self._server.read(purpose, "login", anonymous=True, once=True)
            except ToolchainError as response:
                is_temporary = _is_unavailable(response)
        if is_temporary:
            self._rejected_since = None
        elif error.status == 401:
            now = self._now()
            self._rejected_since = now if self._rejected_since is None else self._rejected_since
            if now - self._rejected_since >= _SHUTDOWN:
                return False
        else:
            return False
        self.seen = True
        return True

    def is_over(self) -> None:
        """Note that the server has responded."""
        self._rejected_since = None


def _is_unavailable(error: ToolchainError) -> bool:
    return error.kind in ("network", "timeout", "rate_limited") or error.status in _UNAVAILABLE


def patience(polling: PollInterval) -> float:
    """Return the timeout in seconds of a poll with its retries: the time left, at least 0.5."""
    return max(_SHORTEST_POLL, polling.left)
