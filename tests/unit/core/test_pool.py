# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.concurrency import (
    bounded,
    first_alone,
    spread,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.connections import (
    PooledSession,
)


def test_results_have_the_order_of_items() -> None:
    first = threading.Event()

    def work(item: int) -> int:
        if item == 0:
            assert first.wait(10)
        elif item == 3:
            first.set()
        return item * item

    assert list(bounded(4, work, range(20))) == [item * item for item in range(20)]


def test_concurrency_reaches_and_keeps_its_limit() -> None:
    meeting = threading.Barrier(3)
    running, most, lock = 0, 0, threading.Lock()

    def work(item: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        meeting.wait(10)
        with lock:
            running -= 1
        return item

    assert list(bounded(3, work, range(9))) == list(range(9))
    assert most == 3


def test_items_are_consumed_on_demand() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for item in range(1000):
            taken.append(item)
            yield item

    results = bounded(2, lambda item: item, items())
    assert next(results) == 0
    assert len(taken) <= 4
    assert list(results) == list(range(1, 1000))


def test_first_item_runs_alone() -> None:
    begun: list[int] = []

    def work(item: int) -> int:
        begun.append(item)
        if item == 0:
            raise ValueError("broken")
        return item

    with pytest.raises(ValueError, match="broken"):
        list(first_alone(4, work, range(8)))
    assert begun == [0]
    assert list(first_alone(4, work, range(1, 8))) == list(range(1, 8))
    assert list(first_alone(4, work, [])) == []


def test_first_error_stops_the_pool() -> None:
    begun: list[int] = []

    def work(item: int) -> int:
        begun.append(item)
        if item == 1:
            raise ValueError("broken")
        return item

    results = bounded(1, work, range(1000))
    assert next(results) == 0
    with pytest.raises(ValueError, match="broken"):
        list(results)
    assert len(begun) < 10


def test_closed_pool_starts_no_items() -> None:
    begun: list[int] = []
    results = bounded(1, begun.append, range(1000))
    next(results)
    results.close()  # type: ignore[attr-defined] # it is a generator
    assert len(begun) < 10


@pytest.mark.parametrize("parallel", [0, -1, 1])
def test_at_least_one_worker_runs(parallel: int) -> None:
    assert list(bounded(parallel, str, [1, 2])) == ["1", "2"]


def test_empty_input_gives_empty_result() -> None:
    assert list(bounded(4, str, [])) == []


# --- workers that take the next item themselves


def test_spread_keeps_the_order_of_items() -> None:
    first = threading.Event()

    def work(item: int) -> int:
        if item == 0:
            assert first.wait(10)
        elif item == 3:
            first.set()
        return item * item

    assert spread(2, work, range(20)) == [item * item for item in range(20)]
    assert spread(4, str, []) == []
    assert spread(0, str, [1]) == ["1"]


def test_spread_reaches_and_keeps_its_limit() -> None:
    meeting = threading.Barrier(3)
    threads: set[int] = set()

    def work(item: int) -> int:
        threads.add(threading.get_ident())
        meeting.wait(10)
        return item

    assert spread(3, work, range(9)) == list(range(9))
    assert len(threads) == 3


def test_spread_stops_at_first_error() -> None:
    begun: list[int] = []
    both = threading.Barrier(2)

    def work(item: int) -> None:
        begun.append(item)
        both.wait(10)
        raise ValueError(f"broken {item}")

    with pytest.raises(ValueError, match="broken 0"):
        spread(2, work, range(1000))
    assert sorted(begun) == [0, 1]


def test_huge_number_of_workers_is_limited() -> None:
    """Verify the limit: without it, memory was allocated for every requested worker."""
    assert list(bounded(10**18, abs, range(3))) == [0, 1, 2]
    assert spread(10**18, abs, range(3)) == [0, 1, 2]
    adapter: Any = PooledSession(10**18, None).get_adapter("http://127.0.0.1:1")
    assert adapter.poolmanager.connection_from_url("http://127.0.0.1:1").pool.maxsize == 256
