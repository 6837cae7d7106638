# SPDX-License-Identifier: GPL-3.0-or-later
"""The module `repo_token`: issue, renew and revoke access tokens [C2.20]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar

from ...core import address
from ...core.errors import ToolchainError, conflict, invalid
from ...core.http.messages import Response, json_or_none
from ...core.http.writes import Verify
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.operations.named_tokens import (
    NamedTokens,
    NewToken,
    Token,
    TokenOperation,
    TokenOptions,
    TokenReader,
    token_rules,
)
from ...core.plan import Plan, without_none
from ..client import ACCESS, InterfaceMissing, PlatformClient, object_of
from ..service import SERVICE

_LONGEST_SCOPES, _LONGEST_USER = 500, 255
#: Minimum lifetime: some servers do not store tokens with a shorter lifetime [repo-40].
_THRESHOLD = timedelta(hours=3)


_PATH = "api/v1/tokens"


class AccessTokens(NamedTokens):
    """The access tokens with a given name.

    :param members: members of the request body that creates a token, in addition to the description
    """

    def __init__(self, client: PlatformClient, name: str, members: Mapping[str, Any]) -> None:
        super().__init__(name)
        self._client, self._members = client, members

    def listed(self) -> list[Token]:
        purpose = f"reading the tokens '{self.name}'"
        query = {"description": f"toolchain:{self.name}:*"}
        response = self._client.read(purpose, _PATH, query=query)
        self.set_clock(response.date)
        shown, reader = object_of(response, "a list of tokens"), TokenReader.of(response)
        tokens = shown.get("tokens", "")
        rows = reader.rows([] if tokens is None else tokens)
        reader.require_whole(shown, rows)
        found = []
        for row in rows:
            ends = (_seconds(row, key) for key in ("issued_at", "expiry"))
            issued, expires = (reader.time(seconds, _moment) for seconds in ends)
            mark = str(row.get("description") or "")
            found.append(Token(reader.id(row.get("token_id")), mark, issued, expires, _user(row)))
        return found

    @cached_property
    def own(self) -> Token | None:
        """Return the token with which the task logs in.

        Returns `None` if the task does not log in with a token, or if the server does not return
        its token [repo-40].
        """
        if self._client.lacks_token():
            return None
        purpose, expect = "reading the token of the login", (200, 400, 401, 403, 404, 405)
        try:
            response = self._client.read(purpose, f"{_PATH}/me", expect=expect)
        except InterfaceMissing:  # an older server returns an HTML page for the path `me`
            return None
        if response.status != 200:
            return None
        row = object_of(response, "a token")
        return Token(str(row.get("token_id") or ""), "", None, None, _user(row))

    def logs_in(self, token: Token) -> bool:
        return self.own is not None and token.id == self.own.id

    def send(self, purpose: str, mark: str, verify: Verify) -> Response:
        body = {"grant_type": "client_credentials", "description": mark, **self._members}
        return self._client.write(purpose, "POST", _PATH, json=body, verify=verify)

    def created(self, response: Response, mark: str) -> NewToken | None:
        row = json_or_none(response.body)
        if not isinstance(row, Mapping):
            return None
        value, refresh = row.get("access_token"), row.get("refresh_token")
        if not (isinstance(value, str) and value):
            return None
        reader = TokenReader.of(response)
        start = self.now().timestamp()
        try:
            number = reader.id(row.get("token_id"))
            expires = reader.time(_seconds(row, "expires_in"), partial(_moment, start=start))
        except ToolchainError:  # without its id, nobody can revoke it later
            return None
        token = Token(number, mark, self.now(), expires)
        return NewToken(token, value, refresh if isinstance(refresh, str) else None)

    def send_revocation(self, purpose: str, token: Token, verify: Verify) -> Response:
        return self._client.write(
            purpose,
            "DELETE",
            f"{_PATH}/{address.path(token.id)}",
            expect=(200, 202, 204, 404),
            verify=verify,
            repeatable=True,
        )


def _user(row: Mapping[str, Any]) -> str:
    return str(row.get("subject") or "").rpartition("/users/")[2].lower()


def _seconds(row: Mapping[str, Any], member: str) -> Any:
    """Return a member of a token; `None` for 0, which stands for "never"."""
    return None if row.get(member) == 0 else row.get(member)


def _moment(seconds: Any, start: float = 0) -> datetime | None:
    """Return the time `seconds` after `start`; `None` if that is not a valid time.

    A value in milliseconds, for example, is out of range.

    :param start: epoch time in seconds
    """
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or seconds < 0:
        return None
    try:
        return datetime.fromtimestamp(start + seconds, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return None


@dataclass(frozen=True)
class RepoTokenOptions(TokenOptions):
    """The options of `repo_token`."""

    option_rules: ClassVar = token_rules("token_username")

    token_username: Annotated[str | None, Option(secret=False)] = None
    scopes: Annotated[list[str] | None, Option(empty=False)] = None
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
        SERVICE,
        {"read": reads(), "create": writes(unforeseen=("admin",)), "revoke": writes()},
        kind="token",
        key=("token_username", "name"),
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
        raise conflict(
            f"the tokens '{self._options.name}' belong to {shown}"
            + (f", not to '{user}'" if user else "")
            + (f": {other}" if self._user else ": set token_username")
        )
