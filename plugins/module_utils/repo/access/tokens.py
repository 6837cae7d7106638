# SPDX-License-Identifier: GPL-3.0-or-later
"""Access tokens of the repository manager, known by a name in their description [repo-40]."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from ...core import address
from ...core.errors import ToolchainError
from ...core.http.messages import Response, json_or_none
from ...core.http.writes import OUTCOME_UNKNOWN
from ...core.module.task import Task
from ..client import objects_of
from ..platform.interface import ACCESS, PlatformClient
from ..times import iso

_PATH = "api/v1/tokens"
#: Description of every token that the collection creates: its name, and a mark of the creation.
_DESCRIPTION = re.compile(r"toolchain:(.+):([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_ATTEMPTS = 3
_FAR = datetime.max.replace(tzinfo=timezone.utc)


@dataclass(frozen=True)
class Token:
    """A token of the server; `expires` is `None` if it never does."""

    id: str
    name: str
    created: datetime | None
    expires: datetime | None
    user: str
    description: str

    def is_good_for(self, span: timedelta) -> bool:
        """Return whether the token is valid for longer than `span`."""
        left = _FAR if self.expires is None else self.expires
        return left - datetime.now(timezone.utc) > span

    def shown(self) -> dict[str, Any]:
        """Return the token as a return value."""
        return {
            "id": self.id,
            "name": self.name,
            "created": iso(self.created),
            "expires": iso(self.expires),
        }


@dataclass(frozen=True)
class NewToken:
    """A created token with its secrets, which no other response contains."""

    token: Token
    value: str
    refresh: str | None


class Tokens:
    """The tokens of one name, newest first."""

    def __init__(self, client: PlatformClient, name: str) -> None:
        self._client, self._name = client, name

    def valid(self) -> list[Token]:
        """Return the tokens of this name that have not expired."""
        found = self._listed(f"toolchain:{self._name}:*")
        return [token for token in found if token.is_good_for(timedelta())]

    def _listed(self, description: str) -> list[Token]:
        """Return the tokens whose description the server finds. A server may find more of them, so
        that the whole name is compared here.
        """
        what = f"reading the tokens '{self._name}'"
        response = self._client.read(what, _PATH, query={"description": description})
        rows = objects_of(response, "tokens", "a list of tokens")
        found = [token for token in map(_token, rows) if token and token.name == self._name]
        return sorted(found, key=lambda token: (token.created or _FAR, token.id), reverse=True)

    def create(self, given: Mapping[str, Any]) -> NewToken:
        """Create a token. If the response with the secret was lost, revoke the token that was made
        and create another one [C1.4].
        """
        for _attempt in range(_ATTEMPTS):
            description = f"toolchain:{self._name}:{uuid.uuid4()}"
            response = self._send(description, given)
            made = _created(response, self._name, description)
            if made is not None:
                return made
            self._revoke_orphan(description)
        raise ToolchainError(
            "network",
            f"creating the token '{self._name}': the response with the secret was lost"
            f" {_ATTEMPTS} times; the tokens that were made are revoked: nothing was changed",
            result={"changed": False},
        )

    def _send(self, description: str, given: Mapping[str, Any]) -> Response:
        body = {"grant_type": "client_credentials", "description": description, **given}
        try:
            return self._client.write(
                f"creating the token '{self._name}'",
                "POST",
                _PATH,
                json=body,
                verify=lambda: self._made(description) is not None,
            )
        except ToolchainError as error:
            if OUTCOME_UNKNOWN in error.message:
                error.with_hint(f"if it was, its description is '{description}': revoke it")
            raise

    def _made(self, description: str) -> Token | None:
        found = self._listed(description)
        return next((token for token in found if token.description == description), None)

    def _revoke_orphan(self, description: str) -> None:
        """Revoke a token whose secret nobody has."""
        orphan = self._made(description)
        if orphan is None:  # not stored: it is too short-lived to be revoked
            return
        try:
            self.revoke(orphan)
        except ToolchainError as error:
            raise error.with_hint(
                f"the token {orphan.id} was created, but its secret was lost: revoke it"
            ) from None

    def revoke(self, token: Token) -> None:
        """Revoke a token; a missing token counts as revoked."""
        path = f"{_PATH}/{address.path(token.id)}"
        self._client.write(
            f"revoking the token {token.id} of the name '{self._name}'",
            "DELETE",
            path,
            expect=(200, 202, 204, 404),
            verify=lambda: self._is_gone(path),
            repeatable=True,
        )

    def _is_gone(self, path: str) -> bool:
        what = f"reading a token of the name '{self._name}'"
        return self._client.read(what, path, expect=(200, 404)).status == 404


def client_of(task: Task) -> PlatformClient:
    """Return the client of the interface for tokens."""
    return PlatformClient(task, ACCESS)


def _token(row: Mapping[str, Any]) -> Token | None:
    """Return a token of a list; `None` if the collection did not create it."""
    description, number = str(row.get("description") or ""), row.get("token_id")
    known = _DESCRIPTION.fullmatch(description)
    if known is None or not isinstance(number, str):
        return None
    user = str(row.get("subject") or "").rpartition("/users/")[2]
    times = (_moment(row.get("issued_at")), _moment(row.get("expiry")))
    return Token(number, known[1], *times, user, description)


def _moment(seconds: Any) -> datetime | None:
    """Return a time in seconds; `None` for 0, which stands for "never"."""
    if not isinstance(seconds, (int, float)) or not seconds:
        return None
    try:
        return datetime.fromtimestamp(seconds, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return None


def _created(response: Response, name: str, description: str) -> NewToken | None:
    """Return the token of the response to a creation; `None` if the response is lost."""
    row = json_or_none(response.body)
    if not isinstance(row, Mapping):
        return None
    number, value, refresh = (row.get(key) for key in ("token_id", "access_token", "refresh_token"))
    if not (isinstance(number, str) and isinstance(value, str) and value):
        return None
    now = int(time.time())
    lifetime = row.get("expires_in")
    lasting = now + lifetime if isinstance(lifetime, int) and lifetime else None
    token = Token(number, name, _moment(now), _moment(lasting), "", description)
    return NewToken(token, value, refresh if isinstance(refresh, str) else None)
