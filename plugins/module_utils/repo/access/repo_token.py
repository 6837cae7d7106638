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
from ...core.tokens.token_operation import TokenOperation, TokenOptions
from ..platform.interface import ACCESS, PlatformClient
from .tokens import AccessTokens

_LONGEST_SCOPES, _LONGEST_USER = 500, 255
#: A server may not store a token that lives shorter [repo-40].
_THRESHOLD = timedelta(hours=3)


@dataclass(frozen=True)
class RepoTokenOptions(TokenOptions):
    """The options of `repo_token`."""

    token_username: Annotated[str | None, Option(secret=False)] = None
    scopes: list[str] | None = None
    refreshable: bool | None = None
    project: str | None = None

    def require_sense(self) -> None:
        super().require_sense()
        for scope in self.scopes or ():
            if re.search(r"\s", scope):
                raise invalid(f"scopes: '{scope}' has a blank: write each scope as an entry")
        if len(" ".join(self.scopes or ())) > _LONGEST_SCOPES:
            raise invalid(f"scopes have more than {_LONGEST_SCOPES} characters together")
        if len(self.token_username or "") > _LONGEST_USER:
            raise invalid(f"token_username has more than {_LONGEST_USER} characters")

    def members(self) -> dict[str, Any]:
        """Return the members of the request that creates a token."""
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
    """The access tokens of a name."""

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
        options.require_sense()
        client = PlatformClient(task, ACCESS)
        super().__init__(task, options, AccessTokens(client, options.name, options.members()))
        self._user = (options.token_username or "").lower()

    def plan(self) -> Plan:
        options = self._options
        if options.lifetime and options.lifetime < _THRESHOLD:
            self._task.warn(
                f"expires_in is {options.expires_in}: a server may not store a token that"
                " lives shorter than three hours; it is then not found again and cannot be revoked"
            )
        return super().plan()

    def _usable(self) -> Token | None:
        found = super()._usable()
        if found and self._user and found.user and found.user.lower() != self._user:
            raise ToolchainError(
                "conflict",
                f"the token '{found.name}' belongs to the user '{found.user}', not to"
                f" '{self._user}': use another name, or revoke it first",
            )
        return found
