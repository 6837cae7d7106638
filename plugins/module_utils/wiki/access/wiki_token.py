# SPDX-License-Identifier: GPL-3.0-or-later
"""The module `wiki_token`: issue, renew and revoke personal access tokens [tracker-41]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ...core.http.messages import Response
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.task import Task
from ...core.tokens.personal_tokens import PersonalTokenOptions, PersonalTokens
from ...core.tokens.token_operation import TokenOperation
from ..exchange import WikiExchange

_NEEDS = "Confluence Data Center 7.9 or newer"


@dataclass(frozen=True)
class WikiTokenOptions(PersonalTokenOptions):
    """The options of `wiki_token`."""


class WikiTokenOperation(TokenOperation):
    """Manage the personal access tokens that share a name."""

    descriptor: ClassVar = Descriptor(
        "wiki",
        {"read": reads(), "create": writes(), "revoke": writes()},
        kind="token",
        name="{name}",
    )

    def __init__(self, task: Task, options: WikiTokenOptions) -> None:
        options.require_sense()
        super().__init__(task, options, _WikiTokens(task, options))


class _WikiTokens(PersonalTokens):
    def __init__(self, task: Task, options: WikiTokenOptions) -> None:
        super().__init__(task, options, _NEEDS)
        self._exchange = WikiExchange(task, connections=1)

    def read(self, purpose: str, address: str) -> Response:
        return self._exchange.ask(purpose, address, {}, (200,))

    def write(self, purpose: str, method: str, address: str, **parts: Any) -> Response:
        return self._exchange.send(purpose, method, address, **parts)
