# SPDX-License-Identifier: GPL-3.0-or-later
"""Personal access tokens of issue tracker and wiki: the interface of both [tracker-41]."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..address import path
from ..connection.cloud import is_cloud
from ..errors import ToolchainError, invalid
from ..http.messages import Response, json_or_none, unexpected_body
from ..http.writes import Verify
from ..module.task import Task
from ..times import moment_of
from .named_tokens import NamedTokens, NewToken, Token
from .token_operation import TokenOptions

_PATH = "rest/pat/latest/tokens"
_LISTS = ("values", "tokens")


@dataclass(frozen=True)
class PersonalTokenOptions(TokenOptions):
    """The options of `tracker_token` and `wiki_token`."""

    def require_sense(self) -> None:
        super().require_sense()
        self.require_whole_days()


class PersonalTokens(NamedTokens):
    """The personal access tokens of one name that the logged-in account owns.

    :param needs: what the server must be to have the interface, for messages
    """

    def __init__(self, task: Task, options: PersonalTokenOptions, needs: str) -> None:
        super().__init__(options.name)
        if is_cloud(task.connection):
            raise invalid(
                "url: a site in the cloud has no interface for personal access tokens: create an"
                f" API token in the account's settings; this module needs {needs}"
            )
        self._lifetime, self._needs = options.lifetime, needs

    @abstractmethod
    def read(self, what: str, address: str) -> Response:
        """Send a read."""

    @abstractmethod
    def write(self, what: str, method: str, address: str, **parts: Any) -> Response:
        """Send a write; `parts` are those of `Transport.write`."""

    def listed(self) -> list[Token]:
        what = f"reading the tokens '{self.name}'"
        try:
            response = self.read(what, _PATH)
        except ToolchainError as error:
            if error.kind == "not_found" or error.status == 405:
                error.with_hint(f"personal access tokens need {self._needs}")
            raise
        rows = response.json()
        if isinstance(rows, Mapping):
            rows = next((rows[name] for name in _LISTS if name in rows), None)
        if not isinstance(rows, list):
            raise unexpected_body(response, "a list of tokens")
        return [_token(row, response) for row in rows]

    def send(self, what: str, mark: str, verify: Verify) -> Response:
        body: dict[str, Any] = {"name": mark}
        if self._lifetime:
            body["expirationDuration"] = self._lifetime.days
        return self.write(what, "POST", _PATH, json=body, verify=verify, expect=(200, 201, 204))

    def created(self, response: Response, mark: str) -> NewToken | None:
        row = json_or_none(response.body)
        value = row.get("rawToken") if isinstance(row, Mapping) else None
        if not (isinstance(value, str) and value):
            return None
        return NewToken(_token(row, response), value)

    def revoke(self, token: Token) -> None:
        self.write(
            f"revoking the token {token.id} of the name '{self.name}'",
            "DELETE",
            f"{_PATH}/{path(token.id)}",
            expect=(200, 202, 204, 404),
            verify=lambda: all(one.id != token.id for one in self.listed()),
            repeatable=True,
        )


def _token(row: Any, response: Response) -> Token:
    number = row.get("id") if isinstance(row, Mapping) else None
    if not isinstance(number, (int, str)):
        raise unexpected_body(response, "a token with an id")
    created, expires = (_time(row.get(name), response) for name in ("createdAt", "expiringAt"))
    return Token(str(number), str(row.get("name") or ""), created, expires)


def _time(value: Any, response: Response) -> datetime | None:
    """Parse a time. Raises `protocol`: a token whose end cannot be read must not count as valid."""
    found = moment_of(value)
    if value is not None and found is None:
        raise unexpected_body(response, "a token with times")
    return found
