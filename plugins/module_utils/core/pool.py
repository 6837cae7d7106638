# SPDX-License-Identifier: GPL-3.0-or-later
"""Bounded concurrency: many requests of one task run side by side, each worker on a kept-alive
connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

Item = TypeVar("Item")
Done = TypeVar("Done")


def bounded(parallel: int, work: Callable[[Item], Done], items: Iterable[Item]) -> Iterator[Done]:
    """Results of C(work) for each item, in the order of the items, at most C(parallel) at once.

    Items are taken lazily (at most twice C(parallel) ahead). The first error ends it: what runs is
    waited for,
    what has not begun is not begun, and the error is raised where the caller stands.
    """
    with ThreadPoolExecutor(max_workers=max(1, parallel)) as pool:
        pending: list[Future[Done]] = []
        source = iter(items)
        try:
            for item in source:
                pending.append(pool.submit(work, item))
                if len(pending) >= 2 * max(1, parallel):
                    wait(pending[:1], return_when=FIRST_COMPLETED)
                    yield pending.pop(0).result()
            while pending:
                yield pending.pop(0).result()
        finally:
            for future in pending:
                future.cancel()
