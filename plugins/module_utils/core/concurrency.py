# SPDX-License-Identifier: GPL-3.0-or-later
"""Bounded concurrency: run many requests of a task in parallel, with a keep-alive connection for
every worker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Generic, TypeVar

#: Limit for a mistyped number of workers or connections: no server handles more at the same time.
MAX_CONCURRENCY = 256

Item = TypeVar("Item")
Done = TypeVar("Done")


class BackgroundThread:
    """A background thread that runs one call at a time. The first call starts the thread; leaving
    the context manager waits for the last call.
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
    """Yield the results of `work` for the items, in the order of the items, at most `parallel` at
    once.

    Items are taken lazily (at most twice `parallel` ahead). The first error ends the iteration:
    running calls are awaited, waiting calls are cancelled, and the error is raised to the caller.
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
    """Like :func:`bounded`, but finish the first item before the others start. The others can use
    its result: a session, or a rejected login.
    """
    yield from map(work, items[:1])
    yield from bounded(parallel, work, items[1:])


def spread(parallel: int, work: Callable[[Item], Done], items: Sequence[Item]) -> list[Done]:
    """Return the results of `work` for all items, in their order, at most `parallel` at once.

    For many items that take almost no time: workers take the next item directly, while
    :func:`bounded` passes every result through a future. The first error, in the order of the
    items, ends the run in the same way.
    """
    if not items:
        return []
    queue = _Queue(work, items)
    workers = min(_workers(parallel), len(items))
    with ThreadPoolExecutor(workers) as pool:
        try:
            wait([pool.submit(queue.empty) for _number in range(workers)])
        finally:
            queue.waiting.clear()
    return queue.results()


class _Queue(Generic[Item, Done]):
    """Items that the workers take directly, and their results."""

    def __init__(self, work: Callable[[Item], Done], items: Sequence[Item]) -> None:
        self._work, self._count = work, len(items)
        self.waiting = deque(enumerate(items))
        self._done: dict[int, Done] = {}
        self._failed: dict[int, BaseException] = {}

    def empty(self) -> None:
        """Work until no item is left, or a call has failed."""
        while self.waiting:
            try:
                index, item = self.waiting.popleft()
            except IndexError:  # another worker was faster
                return
            try:
                self._done[index] = self._work(item)
            except BaseException as error:  # noqa: BLE001 - raised where the caller stands
                self._failed[index] = error
                self.waiting.clear()

    def results(self) -> list[Done]:
        """Return the results in the order of the items; raise the first error in that order."""
        if self._failed:
            raise self._failed[min(self._failed)]
        return [self._done[index] for index in range(self._count)]
