# SPDX-License-Identifier: GPL-3.0-or-later
"""The module `repo_token`: FILL_IN."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.task import Task
from ...core.plan import Plan, plan


@dataclass(frozen=True)
class RepoTokenOptions:
    """The options of `repo_token`."""

    name: str


class RepoTokenOperation:
    """FILL_IN"""

    # FILL_IN: every operation, and the permissions that it needs
    descriptor: ClassVar = Descriptor(
        "repo",
        {"read": reads(), "create": writes()},
        kind="token",
        name="{name}",
    )

    def __init__(self, task: Task, options: RepoTokenOptions) -> None:
        self._transport, self._options = task.transport(), options

    def plan(self) -> Plan:
        name = self._options.name
        # FILL_IN: the address, and what the server returns
        current = self._transport.read(f"reading the token '{name}'", "FILL_IN").json()
        wanted = {"name": name}
        return plan(current, wanted).with_result(token=wanted)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        # FILL_IN: the request that writes, and with `verify` the read after a lost response
        what = f"creating the token '{self._options.name}'"
        self._transport.write(what, "POST", "FILL_IN", json=plan.after)
        return {}
