# SPDX-License-Identifier: GPL-3.0-or-later
"""The module `ci_token`: issue, renew and revoke API tokens of the CI server [C3.24]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from ...core.errors import ToolchainError
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.plan import Plan
from ...core.tokens.named_tokens import Token
from ...core.tokens.token_operation import TokenOperation, TokenOptions
from ..permissions import ADMINISTER
from .api_tokens import ApiTokens


@dataclass(frozen=True)
class CiTokenOptions(TokenOptions):
    """The options of `ci_token`."""

    identifying: ClassVar[frozenset[str]] = TokenOptions.identifying | {"token_username"}
    token_username: Annotated[str | None, Option(secret=False)] = None

    def require_sense(self) -> None:
        super().require_sense()
        self.require_whole_days()


class CiTokenOperation(TokenOperation):
    """The API tokens of a name."""

    descriptor: ClassVar = Descriptor(
        "ci",
        {
            "read": reads(ADMINISTER),
            "create": writes(ADMINISTER),
            "revoke": writes(ADMINISTER),
        },
        kind="token",
        name="{name}",
    )

    def __init__(self, task: Task, options: CiTokenOptions) -> None:
        options.require_sense()
        self._api = ApiTokens(task, options.name, options.token_username, options.lifetime)
        super().__init__(task, options, self._api)

    def plan(self) -> Plan:
        plan = super().plan()
        if plan.action == "create":
            self._require_creation()
        return plan

    def _require_creation(self) -> None:
        """Raise `permission` if the server would reject a new token; warn if tokens never
        expire."""
        name, tokens = self._options.name, self._api
        if not tokens.may_create:
            raise ToolchainError(
                "permission",
                f"creating the token '{name}': only the user '{tokens.user}' may create its own"
                " tokens. Log in as this user, or set the server's system property"
                " jenkins.security.ApiTokenProperty.adminCanGenerateNewTokens",
            )
        if self._options.lifetime and not tokens.stores_ends:
            self._task.warn(
                f"expires_in is {self._options.expires_in}, but the tokens of this server never"
                " expire (Jenkins before 2.548): the task renews the token after this time, and it"
                " stays valid until it is revoked"
            )

    def _usable(self, held: list[Token]) -> Token | None:
        found = super()._usable(held)
        return None if found and self._is_worn(found) else found

    def _is_worn(self, token: Token) -> bool:
        """Return whether a token is older than `expires_in` allows, if the server stores no end."""
        lifetime = self._options.lifetime
        if not lifetime or token.expires or token.created is None:
            return False
        return self._api.now() - token.created >= lifetime - self._options.margin
