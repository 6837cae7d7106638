# SPDX-License-Identifier: GPL-3.0-or-later
"""Bounded concurrency: many requests of one task run side by side, each worker on a kept-alive
connection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Generic, TypeVar

#: Limit for a mistyped number of workers or connections: no server responds to more side by side.
MAX_CONCURRENCY = 256

Item = TypeVar("Item")
Done = TypeVar("Done")


class Beside:
    """A thread that works while its owner goes on, at one thing at a time. It begins with the first
    one; a context manager, which waits for the last.
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._last: Future[object] | None = None

    def do(self, work: Callable[[Item], object], item: Item) -> None:
        """Begin with C(work) when what was begun is done; raises what that has raised."""
        self.wait()
        if self._pool is None:
            self._pool = ThreadPoolExecutor(max_workers=1)
        self._last = self._pool.submit(work, item)

    def wait(self) -> None:
        last, self._last = self._last, None
        if last is not None:
            last.result()

    def __enter__(self) -> Beside:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()


def _workers(parallel: int) -> int:
    return min(max(1, parallel), MAX_CONCURRENCY)


def bounded(parallel: int, work: Callable[[Item], Done], items: Iterable[Item]) -> Iterator[Done]:
    """Results of C(work) for each item, in the order of the items, at most C(parallel) at once.

    Items are taken lazily (at most twice C(parallel) ahead). The first error ends it: what runs is
    waited for,
    what has not begun is not begun, and the error is raised where the caller stands.
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
    """As :func:`bounded`, but nothing else is begun before the first item is done: what it finds
    (a session, a login that is refused) is there for the others.
    """
    yield from map(work, items[:1])
    yield from bounded(parallel, work, items[1:])


def spread(parallel: int, work: Callable[[Item], Done], items: Sequence[Item]) -> list[Done]:
    """Results of C(work) for all items, in their order, at most C(parallel) at once.

    For many items that take next to no time each: workers take the next item themselves, where
    :func:`bounded` hands every result over. The first error, in the order of the items, ends it in
    the same way.

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
    """Items from which workers take the next one themselves, and what came of them."""

    def __init__(self, work: Callable[[Item], Done], items: Sequence[Item]) -> None:
        self._work, self._count = work, len(items)
        self.waiting = deque(enumerate(items))
        self._done: dict[int, Done] = {}
        self._failed: dict[int, BaseException] = {}

    def empty(self) -> None:
        """Work until nothing waits, or something has failed."""
        while self.waiting:
            try:
                index, item = self.waiting.popleft()
            except IndexError:  # another one was faster
                return
            try:
                self._done[index] = self._work(item)
            except BaseException as error:  # noqa: BLE001 - raised where the caller stands
                self._failed[index] = error
                self.waiting.clear()

    def results(self) -> list[Done]:
        """In the order of the items; raises the first error in that order."""
        if self._failed:
            raise self._failed[min(self._failed)]
        return [self._done[index] for index in range(self._count)]
