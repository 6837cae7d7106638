# SPDX-License-Identifier: GPL-3.0-or-later
"""Ctrl-C and SIGTERM while a task waits for something that goes on without it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from .progress import last_words

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interruptible() -> Iterator[Callable[[str], None]]:
    """While the block runs, the first signal that ends a process raises KeyboardInterrupt instead;
    further ones are passed over, so that the block can say what goes on, and tidy up. It must not
    take long then.

    Gives a function that shows a line even after Ctrl-C. A process that others manage (a worker of
    Ansible) gets the signal again when the block has ended, and ends: it must not go on with the
    next item of a loop.
    """
    if threading.current_thread() is not threading.main_thread():
        yield last_words
        return
    caught: list[int] = []
    before = {each: signal.getsignal(each) for each in _SIGNALS}
    ours = [each for each, handler in before.items() if handler not in (None, signal.SIG_IGN)]

    def interrupt(number: int, frame: FrameType | None) -> None:
        for each in ours:
            signal.signal(each, signal.SIG_IGN)
        caught.append(number)
        raise KeyboardInterrupt

    try:
        for each in ours:
            signal.signal(each, interrupt)
        yield last_words
    finally:
        for each in ours:
            signal.signal(each, before[each])
        if caught and _is_managed(before[signal.Signals(caught[0])]):
            os.kill(os.getpid(), caught[0])


def _is_managed(handler: Any) -> bool:
    """Whether somebody else's handler stands there, not that of the system or of Python."""
    return callable(handler) and handler is not signal.default_int_handler
