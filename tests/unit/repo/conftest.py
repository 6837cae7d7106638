# SPDX-License-Identifier: GPL-3.0-or-later
"""Run operations on a simulated server that responds from a table and records its requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, get_type_hints
from urllib.parse import unquote

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.input_check import (
    check_options,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.predictions import (
    Predictions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.typed_options import (
    argument_spec,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.plan import (
    Operation,
    Plan,
    Preflight,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.client import RepoClient
from tests.helpers.options import build
from tests.unit.stub import Reply, Seen, Stub, connection_to

Made = TypeVar("Made", bound=Operation)
Answers = Reply | list[Reply] | Callable[[Seen], Reply]


@dataclass
class Server:
    """A simulated server. `on["PUT /repo/a.txt"]` is a reply, several successive replies (the last
    repeats), or a function; else 404.

    The key is method, a blank, and the target below the base address, percent-decoded.
    """

    stub: Stub
    on: dict[str, Answers] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    dialect: str = "jfrog"
    retries: int = 0

    def response(self, seen: Seen) -> Reply:
        found = self.on.get(self.name(seen), Reply(404, "Not Found"))
        if callable(found):
            return found(seen)
        if isinstance(found, list):
            return found.pop(0) if len(found) > 1 else found[0]
        return found

    def name(self, seen: Seen) -> str:
        return f"{seen.method} {unquote(seen.target).removeprefix('/base')}"

    @property
    def asked(self) -> list[str]:
        return [self.name(seen) for seen in self.stub.seen]

    def bodies(self, name: str) -> list[Any]:
        """Return the decoded JSON bodies of all requests of this name."""
        return [json.loads(seen.body) for seen in self.stub.seen if self.name(seen) == name]

    def task(self, *, check: bool = False) -> Task:
        settings = {"dialect": self.dialect, "vendor": "Acme", "retries": self.retries}
        settings["retry_max_wait"] = 0
        connection = connection_to(self.stub.url, settings=settings)
        predictions = Predictions(connection.url, check_mode=check)
        return Task(connection, self.warnings.append, check, predictions=predictions)

    def client(self) -> RepoClient:
        return RepoClient(self.task())

    def operation(
        self, operation: Callable[..., Made], given: Mapping[str, Any], *, check: bool = False
    ) -> Made:
        """Return the operation of a module for the given options."""
        options: type = get_type_hints(operation.__init__)["options"]
        return operation(
            self.task(check=check), build(options, **check_options(argument_spec(options), given))
        )

    def run(
        self, operation: Callable[..., Operation], given: Mapping[str, Any], *, check: bool = False
    ) -> tuple[Plan, dict[str, Any]]:
        """Run a module with these options; return its plan and its return values."""
        made = self.operation(operation, given, check=check)
        plan = made.plan()
        values = dict(plan.result)
        if plan.changed and not check:
            values.update(made.apply(plan))
        elif plan.changed and isinstance(made, Preflight):
            made.preflight(plan)
        return plan, values

    def fails(
        self, operation: Callable[..., Operation], given: Mapping[str, Any]
    ) -> ToolchainError:
        with pytest.raises(ToolchainError) as caught:
            self.run(operation, given)
        return caught.value


@pytest.fixture
def server() -> Iterator[Server]:
    with Stub() as stub:
        made = Server(stub)
        stub.response = made.response
        yield made
