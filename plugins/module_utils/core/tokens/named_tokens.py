# SPDX-License-Identifier: GPL-3.0-or-later
"""Create, list and revoke tokens by name. The server stores the name with each token."""

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

#: Mark of a token that the collection created: its name, and a UUID of the creation.
_MARK = re.compile(r"toolchain:(.+):([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_ATTEMPTS = 3
_FAR = datetime.max.replace(tzinfo=timezone.utc)


@dataclass(frozen=True)
class Token:
    """A token on the server.

    :param mark: description of the token on the server, which contains `name`
    :param expires: `None` if the token never expires
    :param user: "" if the server does not show the user
    :param logs_in: the server shows that the task is logged in with this token
    """

    id: str
    mark: str
    created: datetime | None
    expires: datetime | None
    user: str = ""
    logs_in: bool = False

    @property
    def name(self) -> str | None:
        """Return the name, or `None` if the collection did not create the token."""
        found = _MARK.fullmatch(self.mark)
        return found[1] if found else None

    def is_good_for(self, span: timedelta, now: datetime) -> bool:
        """Return whether the token is still valid for more than `span`."""
        return (self.expires or _FAR) - now > span

    def shown(self) -> dict[str, Any]:
        """Return the token as a return value."""
        times = {"created": iso(self.created), "expires": iso(self.expires)}
        return {"id": self.id, "name": self.name, **times}


@dataclass(frozen=True)
class NewToken:
    """A created token with its secrets, which the server returns only once.

    :param value: the secret that is sent in requests
    :param refresh: refresh token
    """

    token: Token
    value: str
    refresh: str | None = None


@dataclass(frozen=True)
class TokenReader:
    """A strict parser for lists of tokens, which raises `protocol` for all unexpected values.

    Otherwise a skipped token would count as missing, and a token with an unreadable expiration as
    valid without limit.

    :param error: creates the error for a message
    """

    error: Callable[[str], ToolchainError]

    @classmethod
    def of(cls, response: Response) -> TokenReader:
        """Return a reader whose errors contain the request and the status of the response."""
        return cls(partial(response.error, "protocol"))

    def rows(self, value: Any) -> list[Mapping[str, Any]]:
        """Return a value that must be a list of mappings."""
        if not isinstance(value, list) or not all(isinstance(row, Mapping) for row in value):
            raise self.error("the server returned no list of tokens")
        return value

    def require_whole(self, page: Mapping[str, Any], rows: list[Any]) -> None:
        """Raise `protocol` if there are more tokens than in `rows`.

        :param page: JSON object that contains the list
        """
        total = page.get("total")
        more = any(page.get(name) for name in ("cursor", "next", "nextPage"))
        if more or page.get("isLast") is False or (isinstance(total, int) and total > len(rows)):
            raise self.error("the server returned only some of the tokens")

    def id(self, value: Any) -> str:
        """Return the id of a token as a string."""
        if isinstance(value, bool) or not isinstance(value, (int, str)) or value == "":
            raise self.error("the server lists a token without an id")
        return str(value)

    def time(
        self, value: Any, parse: Callable[[Any], datetime | None] = moment_of
    ) -> datetime | None:
        """Parse the time of a token. Return `None` if the value is `None`."""
        found = None if value is None else parse(value)
        if value is not None and found is None:
            raise self.error(f"the server lists a token with an unreadable time: {value}")
        return found


class NamedTokens(ABC):
    """The tokens with the same name. Subclasses implement the requests of a service."""

    #: The server's clock minus the local clock. Tokens expire by the server's clock.
    _ahead = timedelta()

    def __init__(self, name: str) -> None:
        self.name = name

    def now(self) -> datetime:
        """Return the time of the server's clock, or of the local clock if it is unknown."""
        return datetime.now(timezone.utc) + self._ahead

    def set_clock(self, now: datetime | None) -> None:
        """Set the server's clock.

        :param now: value of the header `Date` of a response, `None` if it is missing
        """
        if now is not None:
            self._ahead = now - datetime.now(timezone.utc)

    @abstractmethod
    def listed(self) -> list[Token]:
        """Return the tokens on the server: at least those with this name."""

    @abstractmethod
    def send(self, purpose: str, mark: str, verify: Verify) -> Response:
        """Send the request that creates a token with this mark."""

    @abstractmethod
    def created(self, response: Response, mark: str) -> NewToken | None:
        """Parse the response to the creation. Return `None` if it does not contain the secret."""

    @abstractmethod
    def send_revocation(self, purpose: str, token: Token, verify: Verify) -> Response:
        """Send the request that revokes a token. Status 404 is returned, not raised."""

    def logs_in(self, token: Token) -> bool:
        """Return whether the server shows that the task is logged in with this token."""
        return token.logs_in

    def revoke(self, token: Token) -> None:
        """Revoke a token. A token that does not exist counts as revoked."""
        purpose = f"revoking the token '{self.name}' with the id {token.id}"
        response = self.send_revocation(purpose, token, lambda: not self._is_listed(token))
        if response.status == 404 and self._is_listed(token):  # a proxy returned 404
            raise response.error(
                "not_found",
                "the server returned 404, but lists the token: check whether a proxy allows this"
                " request",
            )

    def valid(self) -> list[Token]:
        """Return the tokens with this name that have not expired, newest first."""
        named = self._named()  # also sets the clock for `now`
        found = [token for token in named if token.is_good_for(timedelta(), self.now())]
        return sorted(found, key=lambda token: (token.created or _FAR, token.id), reverse=True)

    def _named(self) -> list[Token]:
        return [token for token in self._listed() if token.name == self.name]

    def _is_listed(self, token: Token) -> bool:
        return any(listed.id == token.id for listed in self._listed())

    def _listed(self) -> list[Token]:
        """Return the tokens on the server. Raises `protocol` if two of them have the same id."""
        found: dict[str, Token] = {}
        for token in self.listed():
            if found.setdefault(token.id, token) != token:
                raise ToolchainError(
                    "protocol",
                    f"reading the tokens '{self.name}': the server lists two tokens with the id"
                    f" {token.id}, so neither can be revoked safely",
                )
        return list(found.values())

    def create(self) -> NewToken:
        """Create a token.

        If the response with the secret is lost, the token is revoked and another one is created
        [C1.4].
        """
        for _attempt in range(_ATTEMPTS):
            mark = f"toolchain:{self.name}:{uuid.uuid4()}"
            new_token = self.created(self._send_creation(mark), mark)
            if new_token is not None:
                return new_token
            self._revoke_orphans(mark)
        raise ToolchainError(
            "network",
            f"creating the token '{self.name}': the response with the secret was lost"
            f" {_ATTEMPTS} times. All created tokens that the server lists were revoked:"
            " nothing was changed",
            result={"changed": False},
        )

    def _send_creation(self, mark: str) -> Response:
        try:
            purpose = f"creating the token '{self.name}'"
            return self.send(purpose, mark, lambda: bool(self._marked(mark)))
        except ToolchainError as error:
            if OUTCOME_UNKNOWN in error.message:
                error.with_hint(f"if so, the server lists the token as '{mark}': revoke it")
            raise

    def _marked(self, mark: str) -> list[Token]:
        """Return the tokens with a mark: more than one if a proxy has repeated the request."""
        return [token for token in self._named() if token.mark == mark]

    def _revoke_orphans(self, mark: str) -> None:
        """Revoke the tokens with a mark, because the response with the secret was lost."""
        try:
            orphans = self._marked(mark)
        except ToolchainError as error:
            raise error.with_hint(
                f"the token '{mark}' was created, but its secret was lost: revoke it"
            ) from None
        for orphan in orphans:
            self.discard(orphan, "its secret was lost")

    def discard(self, token: Token, reason: str) -> None:
        """Revoke a new token whose secret is unusable.

        :param reason: why the secret is unusable, for the message if the revocation fails
        """
        try:
            self.revoke(token)
        except ToolchainError as error:
            raise error.with_hint(
                f"the token {token.id} was created, but {reason}: revoke it"
            ) from None
