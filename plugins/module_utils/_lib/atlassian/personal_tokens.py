# SPDX-License-Identifier: GPL-3.0-or-later
"""Personal access tokens of the tracker and the wiki, which have the same API [tracker-41]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..core.address import path
from ..core.errors import ToolchainError, invalid
from ..core.http.messages import Response, json_or_none, unexpected_body
from ..core.http.writes import Verify
from ..core.module.task import Task
from ..core.operations.named_tokens import NamedTokens, NewToken, Token, TokenOptions, TokenReader
from .service import is_cloud

_PATH = "rest/pat/latest/tokens"
_LISTS = ("values", "tokens")
#: All 2xx statuses, because the error for an unexpected status would contain the secret.
_CREATED = tuple(range(200, 300))


@dataclass(frozen=True)
class PersonalTokenOptions(TokenOptions):
    """The options of `tracker_token` and `wiki_token`."""

    def check(self) -> None:
        super().check()
        self.require_whole_days()


class PersonalTokens(NamedTokens):
    """The personal access tokens of the logged-in account with the same name.

    :param needs: required product and version of the server, for messages
    :param read: sends a GET request, with its purpose and address
    :param write: sends a write, with its purpose, method, address and the parts of
        `Transport.write`
    """

    def __init__(
        self,
        task: Task,
        options: PersonalTokenOptions,
        needs: str,
        read: Callable[[str, str], Response],
        write: Callable[..., Response],
    ) -> None:
        super().__init__(options.name)
        if is_cloud(task.connection):
            raise invalid(
                "url: a cloud site has no API for personal access tokens, which require"
                f" {needs}: create an API token in the account's settings instead"
            )
        self._lifetime, self._needs = options.lifetime, needs
        self._read, self._write = read, write

    def listed(self) -> list[Token]:
        purpose = f"reading the tokens '{self.name}'"
        try:
            response = self._read(purpose, _PATH)
        except ToolchainError as error:
            if error.kind == "not_found" or error.status == 405:
                error.with_hint(f"personal access tokens require {self._needs}")
            raise
        self.set_clock(response.date)
        body, reader = response.json(), TokenReader.of(response)
        rows = body
        if isinstance(body, Mapping):
            rows = next((body[name] for name in _LISTS if name in body), None)
        if not isinstance(rows, list):
            raise unexpected_body(response, "a list of tokens")
        if isinstance(body, Mapping):
            reader.require_whole(body, rows)
        return [_token(row, reader) for row in reader.rows(rows)]

    def send(self, purpose: str, mark: str, verify: Verify) -> Response:
        body: dict[str, Any] = {"name": mark}
        if self._lifetime:
            body["expirationDuration"] = self._lifetime.days
        return self._write(purpose, "POST", _PATH, json=body, verify=verify, expect=_CREATED)

    def created(self, response: Response, mark: str) -> NewToken | None:
        row = json_or_none(response.body)
        value = row.get("rawToken") if isinstance(row, Mapping) else None
        if not (isinstance(row, Mapping) and isinstance(value, str) and value):
            return None
        try:
            return NewToken(_token({**row, "name": mark}, TokenReader.of(response)), value)
        except ToolchainError:  # a token without id could not be revoked later
            return None

    def send_revocation(self, purpose: str, token: Token, verify: Verify) -> Response:
        return self._write(
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
