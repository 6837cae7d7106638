# SPDX-License-Identifier: GPL-3.0-or-later
"""Issue, renew and revoke API tokens of the CI server: `ci_token` [C3.24]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from ...core.errors import ToolchainError
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.plan import Plan
from ...core.tokens.named_tokens import Token
from ...core.tokens.token_operation import TokenOperation, TokenOptions, token_rules
from ..permissions import ADMINISTER
from .api_tokens import ApiTokens


@dataclass(frozen=True)
class CiTokenOptions(TokenOptions):
    """The options of `ci_token`."""

    option_rules: ClassVar = token_rules("token_username")

    token_username: Annotated[str | None, Option(secret=False)] = None

    def check(self) -> None:
        super().check()
        self.require_whole_days()


class CiTokenOperation(TokenOperation):
    """Manages the API tokens that have a name."""

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
        self._api = ApiTokens(task, options.name, options.token_username, options.lifetime)
        super().__init__(task, options, self._api)

    def plan(self) -> Plan:
        plan = super().plan()
        if plan.action == "create":
            self._require_creation()
        return plan

    def _require_creation(self) -> None:
        """Raise `permission` if the user may not create tokens. Warn if tokens never expire."""
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
                f"expires_in is {self._options.expires_in}, but tokens never expire on Jenkins"
                " before 2.548. The task renews the token after this time; the old token is valid"
                " until it is revoked"
            )

    def _usable(self, held: list[Token]) -> Token | None:
        found = super()._usable(held)
        return None if found and self._is_too_old(found) else found

    def _is_too_old(self, token: Token) -> bool:
        """Return whether a token without an expiry date is older than `expires_in`."""
        lifetime = self._options.lifetime
        if not lifetime or token.expires or token.created is None:
            return False
        return self._api.now() - token.created >= lifetime - self._options.margin
