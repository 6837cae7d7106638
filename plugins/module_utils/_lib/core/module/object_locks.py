# SPDX-License-Identifier: GPL-3.0-or-later
"""Let the tasks of a run write an object one after the other [C1.8].

Each object has a slot in a file that all tasks of the run share. The task that writes the object
locks the slot. The slot has a number that grows with each write and is odd until the write ends, so
that a task knows whether another has written the object since it was read. The system drops the
locks of a process that is killed; its numbers stay odd, and the next task reads again.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterable

from ..errors import ToolchainError
from ..progress import progress
from .run_folder import RunFolder, digest

#: Number of slots, and bytes of each. Objects that share a slot by chance only wait for each other.
_SLOTS, _SIZE = 1 << 20, 8
#: A write has bounds of its own, such as `wait_timeout`. This one is for a task that was suspended.
_LONGEST_WAIT = 6 * 3600.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.2
_SECONDS_UNTIL_SHOWN = 5.0
_CLOSED, _FLAGS = -1, os.O_RDWR | os.O_CREAT
_BUSY = frozenset({errno.EACCES, errno.EAGAIN})


class ObjectLocks:
    """The locks of the objects that a task writes.

    :param server: address of the server; without one, or without a folder of the run, nothing is
        locked
    """

    def __init__(self, server: str = "") -> None:
        self._folder = RunFolder("locks", server)
        self._file = _CLOSED
        self._slots: list[int] = []
        self._seen: list[int] = []
        self._held = False

    def watch(self, names: Iterable[str]) -> None:
        """Choose the objects, before they are read.

        Raises an OSError if the file of the locks cannot be opened.
        """
        if self._folder.path is None:
            return
        # in order, so that two tasks never wait for each other
        slots = {int(digest(name.strip().casefold())[:12], 16) % _SLOTS for name in names}
        self._slots = sorted(slot * _SIZE for slot in slots)
        file = f"{self._folder.path}/objects"
        try:
            self._file = os.open(file, _FLAGS, 0o600)
        except FileNotFoundError:  # the first task of the run
            self._folder.create()
            self._file = os.open(file, _FLAGS, 0o600)
        self._seen = self._numbers()

    def is_stale(self) -> bool:
        """Return whether another task has written, or writes, an object since `watch`."""
        return self._numbers() != self._seen or any(number % 2 for number in self._seen)

    def acquire(self) -> bool:
        """Lock the objects, and return whether they must be read again.

        Raises `timeout` if another task does not release them within six hours.
        """
        if self._file == _CLOSED:
            return False
        started, pause, shown = time.monotonic(), _FIRST_PAUSE, False
        for slot in self._slots:
            while not self._lock(slot):
                waited = time.monotonic() - started
                if waited > _LONGEST_WAIT:
                    message = "another task of this run has been writing the same object for"
                    raise ToolchainError("timeout", f"{message} {_LONGEST_WAIT:.0f} s")
                if waited > _SECONDS_UNTIL_SHOWN and not shown:
                    shown = True
                    progress("waiting for another task of this run that writes the same object")
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
        stale, self._held = self.is_stale(), True
        self._write([(number + 1) | 1 for number in self._numbers()])
        return stale

    def release(self) -> None:
        """Release the objects, which have been written or need no write."""
        if self._file == _CLOSED:
            return
        if self._held:
            self._write([number + 1 for number in self._numbers()])
        # closing the file drops its locks
        os.close(self._file)
        self._file, self._held = _CLOSED, False

    def _lock(self, slot: int) -> bool:
        """Lock a slot unless another process has locked it."""
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, _SIZE, slot)
        except OSError as error:
            if error.errno in _BUSY:
                return False
            raise
        return True

    def _numbers(self) -> list[int]:
        if self._file == _CLOSED:
            return []
        read = (os.pread(self._file, _SIZE, slot) for slot in self._slots)
        return [int.from_bytes(data, "big") for data in read]

    def _write(self, numbers: list[int]) -> None:
        for slot, number in zip(self._slots, numbers, strict=True):
            os.pwrite(self._file, number.to_bytes(_SIZE, "big"), slot)
