# SPDX-License-Identifier: GPL-3.0-or-later
"""A task for any operation of the CI server, run as a module runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.server_values import (
    ServerValues,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.plan import Operation
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.progress import (
    PollInterval,
    progress_to,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.secret import Secret
from tests.unit.stub import connection_to

TOKEN = "api-token-1234567890"


class Clock:
    """A clock that advances only during a sleep."""

    def __init__(self) -> None:
        self.time = 0.0

    def sleep(self, seconds: float) -> None:
        self.time += seconds

    def polling(self, timeout: float, interval: float) -> PollInterval:
        return PollInterval(timeout, interval, now=lambda: self.time, sleep=self.sleep)


@dataclass
class Run:
    """A task, and its messages."""

    url: str
    read_only: bool = False
    settings: Mapping[str, Any] = field(default_factory=lambda: {"retries": 0})
    warnings: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    token: str = TOKEN
    username: str = "builder"

    @property
    def task(self) -> Task:
        connection = connection_to(
            self.url,
            "ci",
            username=self.username,
            password=Secret(self.token),
            settings=dict(self.settings),
        )
        values = ServerValues(self.url)
        return Task(connection, self.warnings.append, self.read_only, server_values=values)

    def play(self, operation: Callable[[Task], Operation]) -> dict[str, Any]:
        """Plan, and apply changes unless it is check mode; return the values of the task."""
        with progress_to(self.lines.append):
            made = operation(self.task)
            plan = made.plan()
            values = {"changed": plan.changed, **plan.result}
            values["diff"] = (plan.before, plan.after)
            if plan.needs_apply and not self.read_only:
                values.update(made.apply(plan))
            elif plan.failure is not None:
                raise plan.failure
        return values
