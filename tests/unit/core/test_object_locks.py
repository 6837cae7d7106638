# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that the tasks of a run write an object one after the other [C1.8]."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import (
    object_locks,
    run_folder,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.object_locks import (
    ObjectLocks,
)

URL = "https://tracker.example.org"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(run_folder.VARIABLE, str(tmp_path))
    return tmp_path


def watching(*names: str, url: str = URL) -> ObjectLocks:
    locks = ObjectLocks(url)
    locks.watch(names)
    return locks


class Worker:
    """A forked process that locks objects, and waits for a signal or a byte."""

    def __init__(self, work: Callable[[], object]) -> None:
        ready, self._ready = os.pipe()
        self._go, go = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                work()
                os.write(self._ready, b"x")
                os.read(self._go, 1)
            finally:
                os._exit(0)
        self._go_on = go
        assert os.read(ready, 1)

    def end(self) -> None:
        os.write(self._go_on, b"x")
        os.waitpid(self.pid, 0)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def test_undisturbed_task_need_not_read_again() -> None:
    for _task in range(2):
        locks = watching("issue A", "issue B")
        assert not locks.is_stale()
        assert not locks.acquire()
        locks.release()
        locks.release()


def test_task_reads_again_after_a_write_of_the_same_object() -> None:
    other, third = watching(" issue a", "issue C"), watching("issue D")
    locks = watching("issue A")
    assert locks.acquire() is False
    locks.release()
    assert other.is_stale()
    assert other.acquire() is True
    other.release()
    assert third.acquire() is False
    third.release()


def test_task_that_began_during_a_write_reads_again() -> None:
    writing = watching("issue A")
    writing.acquire()
    # in another process, because a process shares its locks
    worker = Worker(lambda: os.write(2, b"") if watching("issue A").is_stale() else os._exit(1))
    worker.end()
    writing.release()


def test_other_server_is_not_locked() -> None:
    worker = Worker(lambda: watching("issue A").acquire())
    locks = watching("issue A", url="https://other.example.org")
    assert not locks.acquire()
    locks.release()
    worker.end()


def test_locks_of_a_killed_task_are_released_and_its_object_is_read_again() -> None:
    before = watching("issue A")
    worker = Worker(lambda: watching("issue A").acquire())
    after = watching("issue A")
    worker.kill()
    assert before.acquire() is True
    before.release()
    assert after.acquire() is True
    after.release()
    assert watching("issue A").acquire() is False


def test_wait_for_a_suspended_task_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_locks, "_LONGEST_WAIT", 0.1)
    monkeypatch.setattr(object_locks, "_SECONDS_UNTIL_SHOWN", 0.0)
    said: list[str] = []
    monkeypatch.setattr(object_locks, "progress", said.append)
    worker = Worker(lambda: watching("issue A").acquire())
    locks = watching("issue A", "issue B")
    with pytest.raises(ToolchainError, match="another task of this run") as caught:
        locks.acquire()
    assert caught.value.kind == "timeout"
    assert said == ["waiting for another task of this run that writes the same object"]
    locks.release()
    worker.end()


def test_tasks_that_lock_several_objects_do_not_block_each_other() -> None:
    names = [f"issue {number}" for number in range(20)]

    def work(order: list[str]) -> None:
        for _time in range(20):
            locks = watching(*order)
            locks.acquire()
            locks.release()

    workers = []
    for order in (names, names[::-1], names[5:] + names[:5]):
        pid = os.fork()
        if pid == 0:
            signal.alarm(30)
            try:
                work(order)
            finally:
                os._exit(0)
        workers.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in workers] == [0, 0, 0]


def test_nothing_is_locked_without_a_folder(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.delenv(run_folder.VARIABLE)
    locks = watching("issue A")
    assert not locks.is_stale()
    assert not locks.acquire()
    locks.release()
    assert list(folder.iterdir()) == []


def test_unusable_folder_is_an_error(folder: Path) -> None:
    (folder / "locks").write_text("no folder", encoding="utf-8")
    with pytest.raises(OSError, match=os.strerror(errno.ENOTDIR)):
        watching("issue A")
