# SPDX-License-Identifier: GPL-3.0-or-later
"""Bounded concurrency: many requests of one task run side by side, each worker on a kept-alive
connection.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TypeVar

#: More workers, or connections, than any server answers side by side: what comes of a number that
#: was mistyped.
MOST_AT_ONCE = 256

Item = TypeVar("Item")
Done = TypeVar("Done")

#: Most seconds that a worker waits for its turn; then it goes on without, so that a worker which
#: keeps its turn, or waits for what another one holds, stops nobody.
_LONGEST_WAIT = 0.005


class _Here(threading.local):
    """What a worker shares with the others, C(None) while it is aside, and whether it has it."""

    turn: threading.Lock | None = None
    has_turn = False


_here = _Here()


def aside(wait_for: Callable[..., Done], *arguments: object) -> Done:
    """What a call gives that waits for a server: meanwhile another worker has the turn."""
    turn = _here.turn
    if turn is None:
        return wait_for(*arguments)
    _here.turn = None
    if _here.has_turn:
        turn.release()
    try:
        return wait_for(*arguments)
    finally:
        _here.has_turn, _here.turn = turn.acquire(timeout=_LONGEST_WAIT), turn


@contextmanager
def _taking_turns(turn: threading.Lock | None) -> Iterator[None]:
    """While the block runs this worker computes only in its turn."""
    if turn is not None:
        _here.has_turn, _here.turn = turn.acquire(timeout=_LONGEST_WAIT), turn
    try:
        yield
    finally:
        if turn is not None:
            if _here.has_turn:
                turn.release()
            _here.turn, _here.has_turn = None, False


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
    return min(max(1, parallel), MOST_AT_ONCE)


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


def spread(
    parallel: int, work: Callable[[Item], Done], items: Sequence[Item], *, in_turns: bool = False
) -> list[Done]:
    """Results of C(work) for all items, in their order, at most C(parallel) at once.

    For many items that take next to no time each: workers take the next item themselves, where
    :func:`bounded` hands every result over. The first error, in the order of the items, ends it in
    the same way.

    :param in_turns: one worker computes at a time, while the others wait for a server
        (:func:`aside`). The interpreter lets only one compute anyway; left to itself it turns to
        another one at each call of the system, which costs more than a small exchange.
    """
    turn = threading.Lock() if in_turns else None
    waiting = deque(enumerate(items))
    done: dict[int, Done] = {}
    failed: dict[int, BaseException] = {}

    def run() -> None:
        with _taking_turns(turn):
            while waiting:
                try:
                    index, item = waiting.popleft()
                except IndexError:  # another one was faster
                    return
                try:
                    done[index] = work(item)
                except BaseException as error:  # noqa: BLE001 - raised where the caller stands
                    failed[index] = error
                    waiting.clear()

    workers = min(_workers(parallel), max(1, len(items)))
    with ThreadPoolExecutor(max_workers=workers) as pool:
        try:
            wait([pool.submit(run) for _number in range(workers)])
        finally:
            waiting.clear()
    if failed:
        raise failed[min(failed)]
    return [done[index] for index in range(len(items))]
