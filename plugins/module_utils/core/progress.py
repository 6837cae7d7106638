# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines that tell a waiting user what goes on; silent unless somebody who has a display listens."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Listener: TypeAlias = Callable[[str], None]

_SECONDS_BETWEEN_LINES = 5.0
_listeners: list[Listener] = []
_last_listeners: list[Listener] = []


def progress(line: str) -> None:
    """Show one line to whoever listens. A module in a process of its own has no listener: its
    output is its result.
    """
    for listener in _listeners:
        listener(line)


def last_words(line: str) -> None:
    """Show one line after Ctrl-C, when the display shows nothing any more."""
    for listener in _last_listeners:
        listener(line)


@contextmanager
def progress_to(listener: Listener, last: Listener | None = None) -> Iterator[None]:
    """While the block runs, C(listener) gets each line, and C(last) the last words."""
    last_listeners = [] if last is None else [last]
    _listeners.append(listener)
    _last_listeners.extend(last_listeners)
    try:
        yield
    finally:
        _listeners.remove(listener)
        for each in last_listeners:
            _last_listeners.remove(each)


class ProgressCounter:
    """A line every few seconds: how many of many objects are done. Nothing of a short work.

    :param say: shows a line
    :param doing: as C(reading the pages)
    :param whole: how many there are; C(None) where that is not known before
    """

    def __init__(
        self,
        say: Listener,
        doing: str,
        whole: int | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say, self._doing, self._whole, self._clock = say, doing, whole, clock
        self._lock = threading.Lock()
        self._done = 0
        self._next = clock() + _SECONDS_BETWEEN_LINES

    def add(self, more: int = 1) -> None:
        """So many more are done."""
        with self._lock:
            self._done += more
            if self._clock() < self._next:
                return
            self._next = self._clock() + _SECONDS_BETWEEN_LINES
            of = "" if self._whole is None else f" of {self._whole:,}"
            line = f"{self._doing}: {self._done:,}{of}"
        self._say(line)
