# SPDX-License-Identifier: GPL-3.0-or-later
"""Report the progress of a long transfer."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from ..core.module.task import Task

_SECONDS_BETWEEN_LINES = 2.0


class TransferProgress:
    """Print the number of finished files and of transferred bytes every few seconds.

    :param doing: what the task does, such as `deploying`
    :param moved: past participle for the bytes, such as `sent`
    :param total: number of files
    """

    def __init__(self, task: Task, doing: str, moved: str, total: int) -> None:
        self._task, self._doing, self._moved, self._total = task, doing, moved, total
        self._next = time.monotonic() + _SECONDS_BETWEEN_LINES

    def show(self, sizes: Callable[[], Collection[int]]) -> None:
        """Print a line if the interval has passed.

        :param sizes: returns the sizes of the finished files, in bytes
        """
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _SECONDS_BETWEEN_LINES
        finished = sizes()
        share = 100 * len(finished) // max(1, self._total)
        self._task.progress(
            f"{self._doing}: {len(finished)} of {self._total} files ({share} %), "
            f"{sum(finished) / 1e6:.1f} MB {self._moved}"
        )
