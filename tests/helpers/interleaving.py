# SPDX-License-Identifier: GPL-3.0-or-later
"""Run tasks concurrently, response by response, in an order that the test chooses."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection.options import (
    resolve,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.messages import (
    Accounting,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.services import SERVICES
from tests.helpers import connections
from tests.helpers.options import build

_UTILS = Path(__file__).parents[2] / "plugins" / "module_utils" / "_lib"
_PACKAGE = "ansible_collections.delivery.toolchain.plugins.module_utils._lib"
_TIMEOUT = 60  # seconds

#: Takes the number of responses of each task and the unfinished tasks. Returns the task that
#: continues.
Schedule = Callable[[Sequence[int], Sequence[int]], int]


class Turns:
    """Lets a single task continue, until its next response."""

    def __init__(self, count: int, schedule: Schedule) -> None:
        self._schedule = schedule
        self._responses = [0] * count
        self._running = set(range(count))
        self._changed = threading.Condition()
        self._current = schedule(self._responses, sorted(self._running))

    def wait(self, number: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._current == number, _TIMEOUT)

    def responded(self, number: int) -> None:
        self._responses[number] += 1
        self._pass_on()
        self.wait(number)

    def finished(self, number: int) -> None:
        self._running.discard(number)
        if self._running:
            self._pass_on()

    def _pass_on(self) -> None:
        with self._changed:
            self._current = self._schedule(self._responses, sorted(self._running))
            self._changed.notify_all()


@dataclass
class _Paused(Accounting):
    """Accounting of a task that waits for its turn after every response."""

    pause: Callable[[], None] = field(default=lambda: None, repr=False)

    def add(self, **counts: float) -> None:
        super().add(**counts)
        if "seconds" in counts:
            self.pause()


@dataclass
class Outcome:
    """Result of a task."""

    changed: bool = False
    error: Exception | None = None
    responses: int = 0


@dataclass(frozen=True)
class Work:
    """A module, its options, and the server."""

    service: str
    url: str
    module: str
    options: Mapping[str, Any]

    def run(self, accounting: Accounting, outcome: Outcome) -> None:
        settings = {"vendor": "Vendor", "retries": 2, "retry_max_wait": 0.0, "timeout": 30.0}
        given = {"url": self.url, **settings, **connections.LOGINS[self.service]}
        connection = resolve(SERVICES[self.service], given.get, environ={})
        task = Task(connection, lambda _warning: None, read_only=False, accounting=accounting)
        operation_class, options_class = operation_of(self.module)
        operation = operation_class(task, build(options_class, **self.options))
        plan = operation.plan()
        outcome.changed = plan.changed
        if plan.changed:
            operation.apply(plan)
        if plan.failure is not None:
            raise plan.failure


def run(work: Work, schedule: Schedule, count: int = 2) -> list[Outcome]:
    """Run `count` tasks that do the same work. `schedule` decides which task continues."""
    turns = Turns(count, schedule)
    outcomes = [Outcome() for _number in range(count)]

    def one(number: int) -> None:
        turns.wait(number)
        accounting = _Paused(pause=lambda: turns.responded(number))
        try:
            work.run(accounting, outcomes[number])
        except Exception as error:  # noqa: BLE001 - the test compares it
            outcomes[number].error = error
        finally:
            outcomes[number].responses = accounting.requests
            turns.finished(number)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def operation_of(module: str) -> tuple[Any, Any]:
    """Return the operation class and the options class of a module."""
    (file,) = _UTILS.glob(f"*/**/{module}.py")
    path = file.relative_to(_UTILS).with_suffix("")
    found = importlib.import_module(".".join((_PACKAGE, *path.parts)))
    name = "".join(part.capitalize() for part in module.split("_"))
    return getattr(found, f"{name}Operation"), getattr(found, f"{name}Options")


def paused_after(first: int, second: int) -> Schedule:
    """Return a schedule: task 0 up to response `first`, task 1 up to response `second`, the rest of
    task 0, the rest of task 1.
    """

    def choose(responses: Sequence[int], running: Sequence[int]) -> int:
        if len(running) == 1:
            return running[0]
        return 0 if responses[0] < first or responses[1] >= second else 1

    return choose
