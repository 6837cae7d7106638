# SPDX-License-Identifier: GPL-3.0-or-later
"""The module `repo_token`: issue, renew and revoke access tokens [C2.20]."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, ClassVar

from ...core.errors import ToolchainError, invalid
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.plan import Plan, without_none
from ...core.tokens.named_tokens import Token
from ...core.tokens.token_operation import TokenOperation, TokenOptions, token_rules
from ..platform.interface import ACCESS, PlatformClient
from .tokens import AccessTokens

_LONGEST_SCOPES, _LONGEST_USER = 500, 255
#: Minimum lifetime: some servers do not store tokens with a shorter lifetime [repo-40].
_THRESHOLD = timedelta(hours=3)


@dataclass(frozen=True)
class RepoTokenOptions(TokenOptions):
    """The options of `repo_token`."""

    option_rules: ClassVar = token_rules("token_username")

    token_username: Annotated[str | None, Option(secret=False)] = None
    scopes: list[str] | None = None
    refreshable: bool | None = None
    project: str | None = None

    def check(self) -> None:
        super().check()
        for scope in self.scopes or ():
            if re.search(r"\s", scope):
                raise invalid(
                    f"scopes: '{scope}' contains a blank: write each scope as a separate entry"
                )
        if len(" ".join(self.scopes or ())) > _LONGEST_SCOPES:
            raise invalid(f"scopes have more than {_LONGEST_SCOPES} characters in total")
        if len(self.token_username or "") > _LONGEST_USER:
            raise invalid(f"token_username has more than {_LONGEST_USER} characters")

    def members(self) -> dict[str, Any]:
        """Return the members of the request body that creates a token."""
        lifetime = self.lifetime
        return without_none(
            {
                "username": self.token_username,
                "scope": " ".join(self.scopes) if self.scopes else None,
                "expires_in": None if lifetime is None else int(lifetime.total_seconds()),
                "refreshable": self.refreshable,
                "project_key": self.project,
            }
        )


class RepoTokenOperation(TokenOperation):
    """Issue, renew or revoke the access tokens with a name."""

    descriptor: ClassVar = Descriptor(
        "repo",
        {
            "read": reads(),
            "create": writes(unforeseen=("admin",)),
            "revoke": writes(),
        },
        kind="token",
        name="{name}",
    )

    def __init__(self, task: Task, options: RepoTokenOptions) -> None:
        client = PlatformClient(task, ACCESS)
        self._api = AccessTokens(client, options.name, options.members())
        super().__init__(task, options, self._api)
        self._user = (options.token_username or "").lower()
        self._login = (task.connection.username or "").lower()

    def plan(self) -> Plan:
        options = self._options
        if options.lifetime and options.lifetime < _THRESHOLD:
            self._task.warn(
                f"expires_in is {options.expires_in}: some servers do not store tokens that are"
                " valid for less than three hours; such a token cannot be found or revoked later"
            )
        plan = super().plan()
        if plan.action == "create" and plan.data.valid and not self._user:
            own = self._api.own
            self._require_owner(plan.data.valid, own.user if own else self._login)
        return plan

    def _read(self) -> list[Token]:
        """Return the tokens with the name of the task.

        Server fact [repo-40]: an administrator also sees the tokens of other users. The state
        `absent` only considers those of `token_username`; otherwise, tokens of another user are a
        `conflict`.
        """
        found = super()._read()
        if self._user and self._options.state == "absent":
            return [token for token in found if token.user in ("", self._user)]
        self._require_owner(found, self._user)
        return found

    def _require_owner(self, tokens: list[Token], user: str) -> None:
        """Raise `conflict` if a token belongs to another user than `user`.

        If `user` is empty, all tokens must belong to the same user.
        """
        owners = sorted({token.user for token in tokens if token.user} - {user})
        if len(owners) < (1 if user else 2):
            return
        shown = " and ".join(f"'{owner}'" for owner in owners)
        other = "use another name, or revoke them with state=absent and token_username first"
        raise ToolchainError(
            "conflict",
            f"the tokens '{self._options.name}' belong to {shown}"
            + (f", not to '{user}'" if user else "")
            + (f": {other}" if self._user else ": set token_username"),
        )
