# SPDX-License-Identifier: GPL-3.0-or-later
"""The module `wiki_token`: issue, renew and revoke personal access tokens [tracker-41]."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from ..atlassian.personal_tokens import PersonalTokenOptions, PersonalTokens
from ..core.module.descriptor import Descriptor, reads, writes
from ..core.module.task import Task
from ..core.operations.named_tokens import TokenOperation
from .exchange import WikiExchange
from .service import SERVICE

_NEEDS = "Confluence Data Center 7.9 or newer"


@dataclass(frozen=True)
class WikiTokenOptions(PersonalTokenOptions):
    """The options of `wiki_token`."""


class WikiTokenOperation(TokenOperation):
    """Manage the personal access tokens that share a name."""

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {"read": reads(), "create": writes(), "revoke": writes()},
        kind="token",
        name="{name}",
    )

    def __init__(self, task: Task, options: WikiTokenOptions) -> None:
        exchange = WikiExchange(task, connections=1)
        read = partial(exchange.ask, query={}, expect=(200,))
        tokens = PersonalTokens(task, options, _NEEDS, read, exchange.send)
        super().__init__(task, options, tokens)
