# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines that tell a waiting user what goes on; silent unless somebody who has a display listens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Listener: TypeAlias = Callable[[str], None]

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
def shown_by(listener: Listener, last: Listener | None = None) -> Iterator[None]:
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
