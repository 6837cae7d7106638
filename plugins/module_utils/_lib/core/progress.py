# SPDX-License-Identifier: GPL-3.0-or-later
"""Show progress to a waiting user, if a listener is registered."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from .errors import ToolchainError

Found = TypeVar("Found")

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

    def until_found(self, running: str, read: Callable[[], Found]) -> Found:
        """Return the result of `read`, which raises `not_found` while the server does not show a
        new object yet. After the timeout that error is raised.

        :param running: sentence about the wait
        """
        while True:
            try:
                return read()
            except ToolchainError as error:
                if error.kind != "not_found" or not self.left:
                    raise
            self.pause(running)


Listener: TypeAlias = Callable[[str], None]

_SECONDS_BETWEEN_LINES = 5.0
_listeners: list[Listener] = []
_last_listeners: list[Listener] = []


def progress(line: str) -> None:
    """Show a line to the user.

    A module in a separate process has no listener, because its output must be its result only.
    """
    for listener in _listeners:
        listener(line)


def show_last_line(line: str) -> None:
    """Show a line after Ctrl-C, when Ansible's display is silent."""
    for listener in _last_listeners:
        listener(line)


@contextmanager
def progress_to(listener: Listener, last: Listener | None = None) -> Iterator[None]:
    """Pass progress lines to `listener` during the block.

    :param last: receives the lines that are shown after Ctrl-C
    """
    last_listeners = [] if last is None else [last]
    _listeners.append(listener)
    _last_listeners.extend(last_listeners)
    try:
        yield
    finally:
        _listeners.remove(listener)
        for last_listener in last_listeners:
            _last_listeners.remove(last_listener)


class ProgressCounter:
    """Show every five seconds how many objects are done.

    :param say: shows a line
    :param doing: description of the work, such as "reading the pages"
    :param total: number of all objects, `None` if unknown
    """

    def __init__(
        self,
        say: Listener,
        doing: str,
        total: int | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say, self._doing, self._total, self._clock = say, doing, total, clock
        self._lock = threading.Lock()
        self._done = 0
        self._next = clock() + _SECONDS_BETWEEN_LINES

    def add(self, more: int = 1) -> None:
        """Count objects as done, and show the number if five seconds have passed."""
        with self._lock:
            self._done += more
            if self._clock() < self._next:
                return
            self._next = self._clock() + _SECONDS_BETWEEN_LINES
            of = "" if self._total is None else f" of {self._total:,}"
            line = f"{self._doing}: {self._done:,}{of}"
        self._say(line)
