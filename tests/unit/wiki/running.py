# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a task of `wiki_page` on a simulated wiki."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.plan import Plan
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.secret import Secret
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.pages.wiki_page import (
    WikiPageOperation,
    WikiPageOptions,
)
from tests.helpers.options import build
from tests.unit.stub import Stub, connection_to


class Run:
    """A task on a wiki: `plan`, then `apply` if something changes, then the diff."""

    def __init__(
        self,
        stub: Stub,
        *,
        read_only: bool = False,
        retries: int = 0,
        dialect: str = "auto",
        **params: Any,
    ) -> None:
        self.warnings: list[str] = []
        login = {"username": "reporter", "password": Secret("reporter-password")}
        settings = {"retries": retries, "retry_max_wait": 0, "dialect": dialect}
        connection = connection_to(stub.url, "wiki", settings=settings, **login)
        self.options = build(WikiPageOptions, **params)
        self.task = Task(connection, self.warnings.append, read_only)

    def __call__(self) -> tuple[Plan, dict[str, Any]]:
        operation = WikiPageOperation(self.task, self.options)
        plan = operation.plan()
        result = dict(plan.result)
        if plan.changed and not self.task.read_only:
            result |= operation.apply(plan)
        elif plan.failure is not None:
            raise plan.failure
        elif plan.changed:
            operation.preflight(plan)
        before, after = plan.diff()
        return replace(plan, before=before, after=after), result

    def fails(self) -> ToolchainError:
        with pytest.raises(ToolchainError) as caught:
            self()
        return caught.value


def methods(stub: Stub) -> list[str]:
    return [seen.method for seen in stub.seen]
