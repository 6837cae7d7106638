# SPDX-License-Identifier: GPL-3.0-or-later
"""Handle Ctrl-C, SIGTERM and the time limit of a task while it waits for work on a server."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from ..core.progress import show_last_line

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
        if caught and _is_managed(before[signal.Signals(caught[0])]):
            os.kill(os.getpid(), caught[0])


def _is_managed(handler: Any) -> bool:
    """Return whether a program has installed the handler, and not the system or Python."""
    return callable(handler) and handler is not signal.default_int_handler
