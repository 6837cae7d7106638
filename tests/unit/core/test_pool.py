# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils.core import concurrency
from ansible_collections.delivery.toolchain.plugins.module_utils.core.concurrency import (
    aside,
    bounded,
    first_alone,
    spread,
)
from ansible_collections.delivery.toolchain.plugins.module_utils.core.http.connections import Pools


def test_results_come_in_the_order_of_the_items() -> None:
    first = threading.Event()

    def work(item: int) -> int:
        if item == 0:
            assert first.wait(10)
        elif item == 3:
            first.set()
        return item * item

    assert list(bounded(4, work, range(20))) == [item * item for item in range(20)]


def test_no_more_run_at_once_than_allowed_and_so_many_do() -> None:
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


def test_items_are_taken_as_they_are_needed() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for item in range(1000):
            taken.append(item)
            yield item

    results = bounded(2, lambda item: item, items())
    assert next(results) == 0
    assert len(taken) <= 4
    assert list(results) == list(range(1, 1000))


def test_nothing_is_begun_beside_the_first_item() -> None:
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


def test_the_first_error_ends_it() -> None:
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


def test_what_nobody_waits_for_any_more_is_not_begun() -> None:
    begun: list[int] = []
    results = bounded(1, begun.append, range(1000))
    next(results)
    results.close()  # type: ignore[attr-defined] # it is a generator
    assert len(begun) < 10


@pytest.mark.parametrize("parallel", [0, -1, 1])
def test_at_least_one_runs(parallel: int) -> None:
    assert list(bounded(parallel, str, [1, 2])) == ["1", "2"]


def test_nothing_to_do_is_done() -> None:
    assert list(bounded(4, str, [])) == []


# --- workers that take the next item themselves


def test_spread_gives_results_in_the_order_of_the_items() -> None:
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


def test_so_many_are_spread_at_once_and_no_more() -> None:
    meeting = threading.Barrier(3)
    threads: set[int] = set()

    def work(item: int) -> int:
        threads.add(threading.get_ident())
        meeting.wait(10)
        return item

    assert spread(3, work, range(9)) == list(range(9))
    assert len(threads) == 3


def test_spread_ends_with_the_first_error() -> None:
    begun: list[int] = []
    both = threading.Barrier(2)

    def work(item: int) -> None:
        begun.append(item)
        both.wait(10)
        raise ValueError(f"broken {item}")

    with pytest.raises(ValueError, match="broken 0"):
        spread(2, work, range(1000))
    assert sorted(begun) == [0, 1]


# --- workers of which one computes while the others wait


def test_one_computes_at_a_time_while_others_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "_LONGEST_WAIT", 60.0)
    waiting = threading.Barrier(3)
    computing: list[int] = []
    most: list[int] = []

    def work(item: int) -> int:
        computing.append(item)
        most.append(len(computing))
        computing.remove(item)
        number = aside(waiting.wait, 10)
        computing.append(item)
        most.append(len(computing))
        computing.remove(item)
        return number

    found = spread(3, work, range(9), in_turns=True)

    assert sorted(found) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert max(most) == 1


def test_a_worker_that_keeps_its_turn_stops_nobody() -> None:
    both = threading.Barrier(2)

    def work(item: int) -> bool:
        both.wait(10)
        return bool(aside(aside, str, item) == str(item))

    assert spread(2, work, range(4), in_turns=True) == [True] * 4


def test_a_turn_is_given_back_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "_LONGEST_WAIT", 60.0)
    others = threading.Event()

    def broken() -> None:
        others.wait(10)
        raise ValueError("broken aside")

    def work(item: int) -> None:
        if item == 0:
            aside(broken)
        others.set()

    with pytest.raises(ValueError, match="broken aside"):
        spread(2, work, range(2), in_turns=True)
    assert others.is_set()


def test_without_turns_aside_is_just_the_call() -> None:
    assert aside(max, 1, 2) == 2
    assert spread(2, lambda item: aside(str, item), range(3)) == ["0", "1", "2"]


def test_a_mistyped_number_of_workers_is_as_many_as_servers_answer() -> None:
    """Before, memory was taken for each of them, without an end."""
    assert list(bounded(10**18, abs, range(3))) == [0, 1, 2]
    assert spread(10**18, abs, range(3)) == [0, 1, 2]
    assert Pools(10**18).of("http://127.0.0.1:1", None).pool.maxsize == 256
