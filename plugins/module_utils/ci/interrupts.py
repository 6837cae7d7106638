# SPDX-License-Identifier: GPL-3.0-or-later
"""Handle Ctrl-C and SIGTERM while a task waits for work on a server."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from ..core.progress import show_last_line

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interruptible() -> Iterator[Callable[[str], None]]:
    """Turn the first SIGINT or SIGTERM during the block into KeyboardInterrupt.

    Further signals are ignored, so that the block can report and clean up; it must end soon.
    Yields a function that shows a line even after Ctrl-C. A worker of Ansible gets the signal again
    after the block, and exits: it must not continue with the next item of a loop.
    """
    if threading.current_thread() is not threading.main_thread():
        yield show_last_line
        return
    caught: list[int] = []
    before = {signal_: signal.getsignal(signal_) for signal_ in _SIGNALS}
    ours = [each for each, handler in before.items() if handler not in (None, signal.SIG_IGN)]

    def interrupt(number: int, frame: FrameType | None) -> None:
        for signal_ in ours:
            signal.signal(signal_, signal.SIG_IGN)
        caught.append(number)
        raise KeyboardInterrupt

    try:
        for each in ours:
            signal.signal(each, interrupt)
        yield show_last_line
    finally:
        for each in ours:
            signal.signal(each, before[each])
        if caught and _is_managed(before[signal.Signals(caught[0])]):
            os.kill(os.getpid(), caught[0])


def _is_managed(handler: Any) -> bool:
    """Return whether the handler is neither the default of the system nor of Python."""
    return callable(handler) and handler is not signal.default_int_handler
