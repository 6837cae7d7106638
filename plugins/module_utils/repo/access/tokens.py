# SPDX-License-Identifier: GPL-3.0-or-later
"""Access tokens of the repository manager, known by their description [repo-40]."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from ...core import address
from ...core.http.messages import Response, json_or_none
from ...core.http.writes import Verify
from ...core.tokens.named_tokens import NamedTokens, NewToken, Token
from ..client import objects_of
from ..platform.interface import PlatformClient

_PATH = "api/v1/tokens"


class AccessTokens(NamedTokens):
    """The access tokens of one name.

    :param members: members of the request that creates a token, besides its description
    """

    def __init__(self, client: PlatformClient, name: str, members: Mapping[str, Any]) -> None:
        super().__init__(name)
        self._client, self._members = client, members

    def listed(self) -> list[Token]:
        what = f"reading the tokens '{self.name}'"
        query = {"description": f"toolchain:{self.name}:*"}
        response = self._client.read(what, _PATH, query=query)
        rows = objects_of(response, "tokens", "a list of tokens")
        return [_token(row) for row in rows if isinstance(row.get("token_id"), str)]

    def send(self, what: str, mark: str, verify: Verify) -> Response:
        body = {"grant_type": "client_credentials", "description": mark, **self._members}
        return self._client.write(what, "POST", _PATH, json=body, verify=verify)

    def created(self, response: Response, mark: str) -> NewToken | None:
        row = json_or_none(response.body)
        if not isinstance(row, Mapping):
            return None
        names = ("token_id", "access_token", "refresh_token")
        number, value, refresh = (row.get(key) for key in names)
        if not (isinstance(number, str) and isinstance(value, str) and value):
            return None
        now = int(time.time())
        lifetime = row.get("expires_in")
        lasting = now + lifetime if isinstance(lifetime, int) and lifetime else None
        token = Token(number, mark, _moment(now), _moment(lasting))
        return NewToken(token, value, refresh if isinstance(refresh, str) else None)

    def revoke(self, token: Token) -> None:
        path = f"{_PATH}/{address.path(token.id)}"
        self._client.write(
            f"revoking the token {token.id} of the name '{self.name}'",
            "DELETE",
            path,
            expect=(200, 202, 204, 404),
            verify=lambda: self._is_gone(path),
            repeatable=True,
        )

    def _is_gone(self, path: str) -> bool:
        what = f"reading a token of the name '{self.name}'"
        return self._client.read(what, path, expect=(200, 404)).status == 404


def _token(row: Mapping[str, Any]) -> Token:
    user = str(row.get("subject") or "").rpartition("/users/")[2]
    times = (_moment(row.get("issued_at")), _moment(row.get("expiry")))
    return Token(row["token_id"], str(row.get("description") or ""), *times, user)


def _moment(seconds: Any) -> datetime | None:
    """Return a time in seconds; `None` for 0, which stands for "never"."""
    if not isinstance(seconds, (int, float)) or not seconds:
        return None
    try:
        return datetime.fromtimestamp(seconds, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return None
