# SPDX-License-Identifier: GPL-3.0-or-later
"""Personal access tokens of issue tracker and wiki: the interface of both [tracker-41]."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..address import path
from ..connection.cloud import is_cloud
from ..errors import ToolchainError, invalid
from ..http.messages import Response, json_or_none, unexpected_body
from ..http.writes import Verify
from ..module.task import Task
from .named_tokens import NamedTokens, NewToken, Token, TokenReader
from .token_operation import TokenOptions

_PATH = "rest/pat/latest/tokens"
_LISTS = ("values", "tokens")
#: Every success: an error message would repeat the secret in the response.
_CREATED = tuple(range(200, 300))


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
    def read(self, purpose: str, address: str) -> Response:
        """Send a read."""

    @abstractmethod
    def write(self, purpose: str, method: str, address: str, **parts: Any) -> Response:
        """Send a write; `parts` are those of `Transport.write`."""

    def listed(self) -> list[Token]:
        purpose = f"reading the tokens '{self.name}'"
        try:
            response = self.read(purpose, _PATH)
        except ToolchainError as error:
            if error.kind == "not_found" or error.status == 405:
                error.with_hint(f"personal access tokens need {self._needs}")
            raise
        self.set_clock(response.date)
        shown, reader = response.json(), TokenReader.of(response)
        rows = shown
        if isinstance(shown, Mapping):
            rows = next((shown[name] for name in _LISTS if name in shown), None)
        if not isinstance(rows, list):
            raise unexpected_body(response, "a list of tokens")
        if isinstance(shown, Mapping):
            reader.require_whole(shown, rows)
        return [_token(row, reader) for row in reader.rows(rows)]

    def send(self, purpose: str, mark: str, verify: Verify) -> Response:
        body: dict[str, Any] = {"name": mark}
        if self._lifetime:
            body["expirationDuration"] = self._lifetime.days
        return self.write(purpose, "POST", _PATH, json=body, verify=verify, expect=_CREATED)

    def created(self, response: Response, mark: str) -> NewToken | None:
        row = json_or_none(response.body)
        value = row.get("rawToken") if isinstance(row, Mapping) else None
        if not (isinstance(row, Mapping) and isinstance(value, str) and value):
            return None
        try:
            return NewToken(_token({**row, "name": mark}, TokenReader.of(response)), value)
        except ToolchainError:  # without its id, nobody can revoke it later
            return None

    def send_revocation(self, purpose: str, token: Token, verify: Verify) -> Response:
        return self.write(
            purpose,
            "DELETE",
            f"{_PATH}/{path(token.id)}",
            expect=(200, 202, 204, 404),
            verify=verify,
            repeatable=True,
        )


def _token(row: Mapping[str, Any], reader: TokenReader) -> Token:
    created, expires = (reader.time(row.get(name)) for name in ("createdAt", "expiringAt"))
    return Token(reader.id(row.get("id")), str(row.get("name") or ""), created, expires)
