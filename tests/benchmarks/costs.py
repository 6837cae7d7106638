# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure wall and processor seconds, and judge the promises by both."""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tests.benchmarks.promises import PROMISES
from tests.helpers import playbook


@dataclass(frozen=True)
class Cost:
    """Wall seconds, and processor seconds (user and system) of all processes that did the work. A
    quotient of two costs has the ratio of each.
    """

    wall: float
    processor: float

    def __str__(self) -> str:
        return f"{self.wall:>9.2f}{self.processor:>11.2f}"

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.wall + other.wall, self.processor + other.processor)

    def __truediv__(self, other: Cost) -> Cost:
        # plays of a play server, at the smallest size, are no children of this process
        return Cost(self.wall / other.wall, self.processor / (other.processor or 1e-6))

    def per(self, items: float) -> Cost:
        return Cost(self.wall / items, self.processor / items)


#: Head of the columns that `str(Cost)` prints.
HEAD = f"{'seconds':>9}{'processor':>11}"


def of_task(event: playbook.Event) -> Cost:
    return Cost(event.seconds, event.processor)


def of_work(work: Callable[[], object]) -> Cost:
    """Do `work` in this process, and return its cost."""
    wall, processor = time.monotonic(), time.process_time()
    work()
    return Cost(time.monotonic() - wall, time.process_time() - processor)


def of_processes(work: Callable[[], object]) -> Cost:
    """Return the cost of processes that `work` starts and waits for."""
    wall, processor = time.monotonic(), _of_children()
    work()
    return Cost(time.monotonic() - wall, _of_children() - processor)


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def median(costs: Iterable[Cost]) -> Cost:
    rounds = list(costs)
    return Cost(
        statistics.median(one.wall for one in rounds),
        statistics.median(one.processor for one in rounds),
    )


def judge(name: str, found: Cost) -> bool:
    """Print the verdict on a promise. Return whether each of its limits is kept."""
    one = PROMISES[name]
    pairs = {"wall": (found.wall, one.wall), "processor": (found.processor, one.processor)}
    kept = [
        verdict(f"{name}, {kind} {one.unit}", value, limit, at_least=one.at_least)
        for kind, (value, limit) in pairs.items()
        if limit is not None
    ]
    return all(kept)


def verdict(text: str, value: float, limit: float, *, at_least: bool = False) -> bool:
    """Print whether a value is within its limit, and return it."""
    kept = value >= limit if at_least else value <= limit
    bound = "at least" if at_least else "at most"
    print(f"{text}: {value:.2f}, promised {bound} {limit:g}: {'yes' if kept else 'NO'}")
    return kept
