# SPDX-License-Identifier: GPL-3.0-or-later
"""The module `tracker_token`: issue, renew and revoke personal access tokens [tracker-41]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..atlassian.personal_tokens import PersonalTokenOptions, PersonalTokens
from ..core.module.descriptor import Descriptor, reads, writes
from ..core.module.task import Task
from ..core.operations.named_tokens import TokenOperation
from .client import TrackerClient
from .service import SERVICE

_NEEDS = "Jira Data Center 8.14 or newer"


@dataclass(frozen=True)
class TrackerTokenOptions(PersonalTokenOptions):
    """The options of `tracker_token`."""


class TrackerTokenOperation(TokenOperation):
    """Manage the personal access tokens that share a name."""

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {"read": reads(), "create": writes(), "revoke": writes()},
        kind="token",
        name="{name}",
    )

    def __init__(self, task: Task, options: TrackerTokenOptions) -> None:
        client = TrackerClient(task)
        tokens = PersonalTokens(task, options, _NEEDS, client.read, client.write)
        super().__init__(task, options, tokens)
