# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the calls of a task in parallel threads, with a bounded number of workers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

#: Upper bound of workers and connections, in case the user mistypes a number.
MAX_CONCURRENCY = 256

Item = TypeVar("Item")
Done = TypeVar("Done")


class BackgroundThread:
    """A background thread that runs one call at a time.

    The first call starts the thread. The end of the `with` block waits for the last call.
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._last: Future[object] | None = None

    def do(self, work: Callable[[Item], object], item: Item) -> None:
        """Wait for the previous call, raise its error, then start `work`."""
        self.wait()
        if self._pool is None:
            self._pool = ThreadPoolExecutor(max_workers=1)
        self._last = self._pool.submit(work, item)

    def wait(self) -> None:
        last, self._last = self._last, None
        if last is not None:
            last.result()

    def __enter__(self) -> BackgroundThread:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()


def _workers(parallel: int) -> int:
    return min(max(1, parallel), MAX_CONCURRENCY)


def bounded(parallel: int, work: Callable[[Item], Done], items: Iterable[Item]) -> Iterator[Done]:
    """Run at most `parallel` calls of `work` at once, and yield the results in order.

    Items are consumed lazily, at most `2 * parallel` ahead. After the first error, waiting calls
    are cancelled, running calls are awaited, and the error is raised.
    """
    with ThreadPoolExecutor(max_workers=_workers(parallel)) as pool:
        pending: list[Future[Done]] = []
        source = iter(items)
        try:
            for item in source:
                pending.append(pool.submit(work, item))
                if len(pending) >= 2 * _workers(parallel):
                    wait(pending[:1], return_when=FIRST_COMPLETED)
                    yield pending.pop(0).result()
            while pending:
                yield pending.pop(0).result()
        finally:
            for future in pending:
                future.cancel()


def first_alone(
    parallel: int, work: Callable[[Item], Done], items: Sequence[Item]
) -> Iterator[Done]:
    """Like :func:`bounded`, but finish the first call before the others start.

    The other calls then share the session of the first, or do not start if its login was rejected.
    """
    yield from map(work, items[:1])
    yield from bounded(parallel, work, items[1:])


def spread(parallel: int, work: Callable[[Item], Done], items: Sequence[Item]) -> list[Done]:
    """Run at most `parallel` calls of `work` at once, and return the results in order.

    Faster than :func:`bounded` for many short calls: the workers take items from a shared queue,
    without a future for each item. After an error no more calls start. Of several errors, that of
    the first item is raised.
    """
    if not items:
        return []
    waiting = deque(enumerate(items))
    done: dict[int, Done] = {}
    failed: dict[int, BaseException] = {}

    def drain() -> None:
        while waiting:
            try:
                index, item = waiting.popleft()
            except IndexError:  # another worker was faster
                return
            try:
                done[index] = work(item)
            except BaseException as error:  # noqa: BLE001 - raised below
                failed[index] = error
                waiting.clear()

    workers = min(_workers(parallel), len(items))
    with ThreadPoolExecutor(workers) as pool:
        try:
            wait([pool.submit(drain) for _number in range(workers)])
        finally:
            waiting.clear()
    if failed:
        raise failed[min(failed)]
    return [done[index] for index in range(len(items))]
