# SPDX-License-Identifier: GPL-3.0-or-later
"""Run an operation of the tracker against the stub, as a module does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.plan import (
    Operation,
    Plan,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.secret import Secret
from tests.unit.stub import Stub, connection_to

BASIC: Mapping[str, Any] = MappingProxyType(
    {"username": "reporter", "password": Secret("reporter-password")}
)
TOKEN: dict[str, Any] = {"token": Secret("tracker-token")}


class Run:
    """A task with its `warnings` and its `plan`.

    :param make: returns the operation for the task and its options
    :param read_only: whether writes are rejected, as in check mode
    """

    def __init__(
        self,
        server: Stub | str,
        make: Callable[[Task, Any], Operation],
        options: Any,
        login: Mapping[str, Any] = BASIC,
        *,
        read_only: bool = True,
        **settings: Any,
    ) -> None:
        self.warnings: list[str] = []
        kind = {"dialect": "auto", "accept_language": None, "retries": 0, **settings}
        url = server if isinstance(server, str) else server.url
        connection = connection_to(url, "tracker", settings=kind, **login)
        self.task = Task(connection, self.warnings.append, read_only=read_only)
        self._make, self._options = make, options
        self.plan: Plan | None = None

    def __call__(self, *, check: bool = False) -> dict[str, Any]:
        """Plan, and apply changes unless `check` is set; return the return values."""
        operation = self._make(self.task, self._options)
        self.plan = operation.plan()
        values = dict(self.plan.result)
        if self.plan.changed and not check:
            values |= operation.apply(self.plan)
        return {**values, "changed": self.plan.changed}
