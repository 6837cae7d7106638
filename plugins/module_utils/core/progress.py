# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines that tell a waiting user what goes on; silent unless somebody who has a display listens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

_listeners: list[Callable[[str], None]] = []


def progress(line: str) -> None:
    """Show one line to whoever listens. A module in a process of its own has no listener: its
    output is its result.
    """
    for listener in _listeners:
        listener(line)


@contextmanager
def shown_by(listener: Callable[[str], None]) -> Iterator[None]:
    """While the block runs, C(listener) gets each line."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
