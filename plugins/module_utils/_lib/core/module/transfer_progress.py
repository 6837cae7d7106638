# SPDX-License-Identifier: GPL-3.0-or-later
"""Show the progress of a transfer while it runs."""

from __future__ import annotations

import threading
from collections.abc import Sized
from typing import Any, Literal

from .task import Task

_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 30.0  # seconds
_GROWTH = 1.5


class TransferProgress:
    """Show the number of finished files and of transferred bytes during the `with` block.

    A thread reads the counters of the task, so the transfer of a block costs nothing. The lines
    become rarer the longer the transfer takes.

    :param doing: what the task does, such as `downloading`
    :param moved: direction of the bytes
    :param done: contains the finished files
    :param files: number of files to transfer
    :param size: bytes to transfer, as far as known
    """

    def __init__(
        self,
        task: Task,
        doing: str,
        moved: Literal["sent", "received"],
        *,
        done: Sized,
        files: int,
        size: int = 0,
        pause: float = _FIRST_PAUSE,
    ) -> None:
        self._task, self._doing, self._moved = task, doing, moved
        self._done, self._files, self._size, self._pause = done, files, size, pause
        self._begin = self._counted()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> TransferProgress:
        self._thread.start()
        return self

    def __exit__(self, *_error: Any) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(self._pause):
            self._task.progress(self._line())
            self._pause = min(self._pause * _GROWTH, _LONGEST_PAUSE)

    def _line(self) -> str:
        files = f"{len(self._done):,} of {self._files:,} files, " if self._files != 1 else ""
        transferred = self._counted() - self._begin
        # more than the size if a file is transferred again or if its size is unknown
        of = f" of {_megabytes(self._size)}" if transferred <= self._size else ""
        return f"{self._doing}: {files}{_megabytes(transferred)}{of} MB {self._moved}"

    def _counted(self) -> int:
        accounting = self._task.accounting
        return accounting.bytes_sent if self._moved == "sent" else accounting.bytes_received


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f}"
