# SPDX-License-Identifier: GPL-3.0-or-later
"""The module `tracker_token`: issue, renew and revoke personal access tokens [tracker-41]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ...core.http.messages import Response
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.task import Task
from ...core.tokens.personal_tokens import PersonalTokenOptions, PersonalTokens
from ...core.tokens.token_operation import TokenOperation
from ..client import TrackerClient

_NEEDS = "Jira Data Center 8.14 or newer"


@dataclass(frozen=True)
class TrackerTokenOptions(PersonalTokenOptions):
    """The options of `tracker_token`."""


class TrackerTokenOperation(TokenOperation):
    """Manage the personal access tokens that share a name."""

    descriptor: ClassVar = Descriptor(
        "tracker",
        {"read": reads(), "create": writes(), "revoke": writes()},
        kind="token",
        name="{name}",
    )

    def __init__(self, task: Task, options: TrackerTokenOptions) -> None:
        options.require_sense()
        super().__init__(task, options, _TrackerTokens(task, options))


class _TrackerTokens(PersonalTokens):
    def __init__(self, task: Task, options: TrackerTokenOptions) -> None:
        super().__init__(task, options, _NEEDS)
        self._client = TrackerClient(task)

    def read(self, purpose: str, address: str) -> Response:
        return self._client.read(purpose, address)

    def write(self, purpose: str, method: str, address: str, **parts: Any) -> Response:
        return self._client.write(purpose, method, address, **parts)
