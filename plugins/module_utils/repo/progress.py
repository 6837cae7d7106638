# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user sees of a long transfer."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from ..core.module.task import Task

_SECONDS_BETWEEN_LINES = 2.0


class TransferProgress:
    """A line every few seconds: files done and bytes that went over the line.

    :param doing: as C(deploying)
    :param moved: as C(sent)
    """

    def __init__(self, task: Task, doing: str, moved: str, total: int) -> None:
        self._task, self._doing, self._moved, self._total = task, doing, moved, total
        self._next = time.monotonic() + _SECONDS_BETWEEN_LINES

    def show(self, sizes: Callable[[], Collection[int]]) -> None:
        """Show the line where it is time: C(sizes) are those of the files that are done."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _SECONDS_BETWEEN_LINES
        finished = sizes()
        share = 100 * len(finished) // max(1, self._total)
        self._task.progress(
            f"{self._doing}: {len(finished)} of {self._total} files ({share} %), "
            f"{sum(finished) / 1e6:.1f} MB {self._moved}"
        )
