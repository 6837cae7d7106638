# SPDX-License-Identifier: GPL-3.0-or-later
"""Tokens that a server issues, known by a name that the collection stores with each of them."""

from __future__ import annotations

import re
import uuid
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from ..errors import ToolchainError
from ..http.messages import Response
from ..http.writes import OUTCOME_UNKNOWN, Verify
from ..times import iso

#: Mark of every token that the collection creates: its name, and an id of the creation.
_MARK = re.compile(r"toolchain:(.+):([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_ATTEMPTS = 3
_FAR = datetime.max.replace(tzinfo=timezone.utc)


@dataclass(frozen=True)
class Token:
    """A token of the server.

    :param mark: the description or name that the server stores, which contains `name`
    :param expires: `None` if the token never expires
    :param user: `""` if the server does not show it
    :param logs_in: the task itself is logged in with this token, as far as the server shows it
    """

    id: str
    mark: str
    created: datetime | None
    expires: datetime | None
    user: str = ""
    logs_in: bool = False

    @property
    def name(self) -> str | None:
        """Return the name; `None` if the collection did not create the token."""
        found = _MARK.fullmatch(self.mark)
        return found[1] if found else None

    def is_good_for(self, span: timedelta) -> bool:
        """Return whether the token is valid for longer than `span`."""
        left = _FAR if self.expires is None else self.expires
        return left - datetime.now(timezone.utc) > span

    def shown(self) -> dict[str, Any]:
        """Return the token as a return value."""
        times = {"created": iso(self.created), "expires": iso(self.expires)}
        return {"id": self.id, "name": self.name, **times}


@dataclass(frozen=True)
class NewToken:
    """A created token with its secrets, which no other response contains."""

    token: Token
    value: str
    refresh: str | None = None


class NamedTokens(ABC):
    """The tokens of one name. A subclass sends the requests of a service."""

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def listed(self) -> list[Token]:
        """Return tokens of the server, at least all of this name."""

    @abstractmethod
    def send(self, what: str, mark: str, verify: Verify) -> Response:
        """Send the request that creates a token with a mark."""

    @abstractmethod
    def created(self, response: Response, mark: str) -> NewToken | None:
        """Parse the response to a creation; `None` if it has no secret."""

    @abstractmethod
    def revoke(self, token: Token) -> None:
        """Revoke a token; a missing token counts as revoked."""

    def valid(self) -> list[Token]:
        """Return the tokens of this name that have not expired, newest first."""
        found = [token for token in self._named() if token.is_good_for(timedelta())]
        return sorted(found, key=lambda token: (token.created or _FAR, token.id), reverse=True)

    def _named(self) -> list[Token]:
        return [token for token in self.listed() if token.name == self.name]

    def create(self) -> NewToken:
        """Create a token. If the response with the secret was lost, revoke the token that was made
        and create another one [C1.4].
        """
        for _attempt in range(_ATTEMPTS):
            mark = f"toolchain:{self.name}:{uuid.uuid4()}"
            made = self.created(self._sent(mark), mark)
            if made is not None:
                return made
            self._revoke_orphan(mark)
        raise ToolchainError(
            "network",
            f"creating the token '{self.name}': the response with the secret was lost"
            f" {_ATTEMPTS} times; the tokens that were made are revoked: nothing was changed",
            result={"changed": False},
        )

    def _sent(self, mark: str) -> Response:
        try:
            what = f"creating the token '{self.name}'"
            return self.send(what, mark, lambda: self._marked(mark) is not None)
        except ToolchainError as error:
            if OUTCOME_UNKNOWN in error.message:
                error.with_hint(f"if it was, the server lists it as '{mark}': revoke it")
            raise

    def _marked(self, mark: str) -> Token | None:
        return next((token for token in self._named() if token.mark == mark), None)

    def _revoke_orphan(self, mark: str) -> None:
        """Revoke a token whose secret nobody has."""
        orphan = self._marked(mark)
        if orphan is None:  # not stored: it is too short-lived to be revoked
            return
        try:
            self.revoke(orphan)
        except ToolchainError as error:
            raise error.with_hint(
                f"the token {orphan.id} was created, but its secret was lost: revoke it"
            ) from None
