# SPDX-License-Identifier: GPL-3.0-or-later
"""Run operations of the tracker against the sandbox, inside the test process: like the runner, but
without a playbook.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import (
    typed_options,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection.options import (
    argument_spec,
    resolve,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.input_check import (
    check_options,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.plan import Operation
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.client import (
    TrackerClient,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.services import SERVICES
from sandbox.client import Sandbox
from tests.helpers.connections import LOGINS
from tests.helpers.options import build

#: Accounts of the seeds with limited permissions.
DEVELOPER = {"token": "developer-tracker-token-1234567890"}
READER = {"token": "reader-tracker-token-1234567890"}


@dataclass
class Done:
    """Result, warnings and requests of a task."""

    values: dict[str, Any]
    changed: bool
    diff: tuple[Any, Any]
    warnings: list[str]
    requests: list[dict[str, Any]] = field(repr=False)

    @property
    def writes(self) -> list[str]:
        return [
            f"{request['method']} {request['path']}"
            for request in self.requests
            if request["write"]
        ]


@dataclass
class Tracker:
    """The tracker of a sandbox, and an operation of a module on it.

    :param make: creates the operation from the task and its options
    """

    sandbox: Sandbox
    make: Callable[[Task, Any], Operation]
    options: type

    def __call__(self, *, check: bool = False, login: Any = None, **given: Any) -> Done:
        """Run a task like the runner does. `given` may contain connection options."""
        names = argument_spec(SERVICES["tracker"])
        own = {name: given.pop(name) for name in names if name in given}
        said = {"url": self.sandbox.urls["tracker"], **(login or LOGINS["tracker"]), **own}
        defaults = {name: option.get("default") for name, option in names.items()}
        connection = resolve(SERVICES["tracker"], {**defaults, **said}.get)
        warnings: list[str] = []
        task = Task(connection, warnings.append, read_only=check)
        options: Any = build(
            self.options, **check_options(typed_options.argument_spec(self.options), given)
        )
        TrackerClient(task).memory.clear()  # the sandbox may simulate another kind of server by now
        before = self.sandbox.mark()
        operation = self.make(task, options)
        plan = operation.plan()
        if plan.failure is not None and (check or not plan.changed):
            raise plan.failure
        values = dict(plan.result)
        if plan.changed and not check:
            values |= operation.apply(plan)
        asked = self.sandbox.requests("tracker", since=before)
        return Done(values, values.get("changed", plan.changed), plan.diff(), warnings, asked)

    def refused(self, kind: str, *words: str, **given: Any) -> ToolchainError:
        """Return the error that a task fails with. Verify its kind, and that its message contains
        `words`.
        """
        with pytest.raises(ToolchainError) as raised:
            self(**given)
        error = raised.value
        assert error.kind == kind, error.message
        for word in words:
            assert word in error.message
        return error

    def get(self, path: str, **query: str) -> Any:
        """Read from the server without our client."""
        return self._ask("GET", path, params=query)

    def send(self, method: str, path: str, body: Any) -> Any:
        """Change the server without our client."""
        return self._ask(method, path, json=body)

    def _ask(self, method: str, path: str, **parts: Any) -> Any:
        token = LOGINS["tracker"]["token"]
        headers = {"Authorization": f"Bearer {token}", "X-Atlassian-Token": "no-check"}
        address = f"{self.sandbox.urls['tracker']}/rest/api/2/{path}"
        response = requests.request(method, address, headers=headers, timeout=30, **parts)
        assert response.status_code < 400, response.text
        return response.json() if response.content else None
