# SPDX-License-Identifier: GPL-3.0-or-later
"""Tokens that a server issues, known by a name that the collection stores with each of them."""

from __future__ import annotations

import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any

from ..errors import ToolchainError
from ..http.messages import Response
from ..http.writes import OUTCOME_UNKNOWN, Verify
from ..times import iso, moment_of

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

    def is_good_for(self, span: timedelta, now: datetime) -> bool:
        """Return whether the token is valid for longer than `span`."""
        return (self.expires or _FAR) - now > span

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


@dataclass(frozen=True)
class TokenReader:
    """Parse a list of tokens strictly. A skipped token would count as missing, and a token with an
    unreadable expiration as valid for ever.

    :param error: returns the error `protocol` with a message
    """

    error: Callable[[str], ToolchainError]

    @classmethod
    def of(cls, response: Response) -> TokenReader:
        """Return the reader for a response, which its errors describe."""
        return cls(partial(response.error, "protocol"))

    def rows(self, value: Any) -> list[Mapping[str, Any]]:
        """Return the entries of a list."""
        if not isinstance(value, list) or not all(isinstance(row, Mapping) for row in value):
            raise self.error("the server returned no list of tokens")
        return value

    def require_whole(self, page: Mapping[str, Any], rows: list[Any]) -> None:
        """Raise if the object around a list says that there are more tokens."""
        total = page.get("total")
        more = any(page.get(name) for name in ("cursor", "next", "nextPage"))
        if more or page.get("isLast") is False or (isinstance(total, int) and total > len(rows)):
            raise self.error("the server returned only a part of the tokens")

    def id(self, value: Any) -> str:
        """Return the id of a token."""
        if isinstance(value, bool) or not isinstance(value, (int, str)) or value == "":
            raise self.error("the server lists a token without an id")
        return str(value)

    def time(
        self, value: Any, parse: Callable[[Any], datetime | None] = moment_of
    ) -> datetime | None:
        """Return a time; `None` if the server shows none."""
        found = None if value is None else parse(value)
        if value is not None and found is None:
            raise self.error(f"the server lists a token with an unreadable time: {value}")
        return found


class NamedTokens(ABC):
    """The tokens of one name. A subclass sends the requests of a service."""

    #: The server's clock minus ours: the server decides when a token expires.
    _ahead = timedelta()

    def __init__(self, name: str) -> None:
        self.name = name

    def now(self) -> datetime:
        """Return the time of the server's clock, as far as it is known."""
        return datetime.now(timezone.utc) + self._ahead

    def set_clock(self, now: datetime | None) -> None:
        """Set the server's clock; `None` if a response does not show it."""
        if now is not None:
            self._ahead = now - datetime.now(timezone.utc)

    @abstractmethod
    def listed(self) -> list[Token]:
        """Return tokens of the server, at least all of this name."""

    @abstractmethod
    def send(self, purpose: str, mark: str, verify: Verify) -> Response:
        """Send the request that creates a token with a mark."""

    @abstractmethod
    def created(self, response: Response, mark: str) -> NewToken | None:
        """Parse the response to a creation; `None` if it has no secret."""

    @abstractmethod
    def send_revocation(self, purpose: str, token: Token, verify: Verify) -> Response:
        """Send the request that revokes a token; 404 if the token is missing."""

    def logs_in(self, token: Token) -> bool:
        """Return whether the task is logged in with a token, as far as the server shows it."""
        return token.logs_in

    def revoke(self, token: Token) -> None:
        """Revoke a token; a missing token counts as revoked."""
        purpose = f"revoking the token {token.id} of the name '{self.name}'"
        response = self.send_revocation(purpose, token, lambda: not self._is_listed(token))
        if response.status == 404 and self._is_listed(token):  # the 404 of a proxy
            raise response.error(
                "not_found",
                "the server returned 404, but lists the token: check whether a proxy allows this"
                " request",
            )

    def valid(self) -> list[Token]:
        """Return the tokens of this name that have not expired, newest first."""
        named = self._named()  # sets the clock
        found = [token for token in named if token.is_good_for(timedelta(), self.now())]
        return sorted(found, key=lambda token: (token.created or _FAR, token.id), reverse=True)

    def _named(self) -> list[Token]:
        return [token for token in self._listed() if token.name == self.name]

    def _is_listed(self, token: Token) -> bool:
        return any(one.id == token.id for one in self._listed())

    def _listed(self) -> list[Token]:
        """Return the tokens of the server. Raise `protocol` if two of them share an id."""
        found: dict[str, Token] = {}
        for token in self.listed():
            if found.setdefault(token.id, token) != token:
                raise ToolchainError(
                    "protocol",
                    f"reading the tokens '{self.name}': the server lists two tokens with the id"
                    f" {token.id}: a revocation would hit either of them",
                )
        return list(found.values())

    def create(self) -> NewToken:
        """Create a token. If the response with the secret was lost, revoke the token that was made
        and create another one [C1.4].
        """
        for _attempt in range(_ATTEMPTS):
            mark = f"toolchain:{self.name}:{uuid.uuid4()}"
            made = self.created(self._sent(mark), mark)
            if made is not None:
                return made
            self._revoke_orphans(mark)
        raise ToolchainError(
            "network",
            f"creating the token '{self.name}': the response with the secret was lost"
            f" {_ATTEMPTS} times; the tokens that were made are revoked, as far as the server lists"
            " them: nothing was changed",
            result={"changed": False},
        )

    def _sent(self, mark: str) -> Response:
        try:
            purpose = f"creating the token '{self.name}'"
            return self.send(purpose, mark, lambda: bool(self._marked(mark)))
        except ToolchainError as error:
            if OUTCOME_UNKNOWN in error.message:
                error.with_hint(f"if it was, the server lists it as '{mark}': revoke it")
            raise

    def _marked(self, mark: str) -> list[Token]:
        """Return the tokens of a creation; several if a proxy has repeated the request."""
        return [token for token in self._named() if token.mark == mark]

    def _revoke_orphans(self, mark: str) -> None:
        """Revoke the tokens of a creation whose secret nobody has."""
        try:
            orphans = self._marked(mark)
        except ToolchainError as error:
            raise error.with_hint(
                f"the token '{mark}' was created, but its secret was lost: revoke it"
            ) from None
        for orphan in orphans:
            self.discard(orphan, "its secret was lost")

    def discard(self, token: Token, reason: str) -> None:
        """Revoke a new token that nobody can use."""
        try:
            self.revoke(token)
        except ToolchainError as error:
            raise error.with_hint(
                f"the token {token.id} was created, but {reason}: revoke it"
            ) from None
