# SPDX-License-Identifier: GPL-3.0-or-later
"""Access tokens of the repository manager, identified by their description [repo-40]."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from ...core import address
from ...core.errors import ToolchainError
from ...core.http.messages import Response, json_or_none
from ...core.http.writes import Verify
from ...core.tokens.named_tokens import NamedTokens, NewToken, Token, TokenReader
from ..client import object_of
from ..platform.interface import InterfaceMissing, PlatformClient

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
        return [_token(row, reader) for row in rows]

    @functools.cached_property
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
        try:
            number = reader.id(row.get("token_id"))
            expires = reader.time(_seconds(row, "expires_in"), self._end)
        except ToolchainError:  # without its id, nobody can revoke it later
            return None
        token = Token(number, mark, self.now(), expires)
        return NewToken(token, value, refresh if isinstance(refresh, str) else None)

    def _end(self, seconds: Any) -> datetime | None:
        """Return the expiry time of a lifetime in seconds that begins now."""
        return _moment(seconds, self.now().timestamp())

    def send_revocation(self, purpose: str, token: Token, verify: Verify) -> Response:
        return self._client.write(
            purpose,
            "DELETE",
            f"{_PATH}/{address.path(token.id)}",
            expect=(200, 202, 204, 404),
            verify=verify,
            repeatable=True,
        )


def _token(row: Mapping[str, Any], reader: TokenReader) -> Token:
    issued, expires = (reader.time(_seconds(row, key), _moment) for key in ("issued_at", "expiry"))
    mark = str(row.get("description") or "")
    return Token(reader.id(row.get("token_id")), mark, issued, expires, _user(row))


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
