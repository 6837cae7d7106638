# SPDX-License-Identifier: GPL-3.0-or-later
"""Create, list and revoke tokens by name. The server stores the name with each token."""

from __future__ import annotations

import os
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any, ClassVar, Literal

from ..errors import ToolchainError, invalid, protocol
from ..files import atomic_write, require_replaceable
from ..http.messages import Response
from ..http.writes import OUTCOME_UNKNOWN, Verify
from ..module.rules import Rule
from ..module.task import Task
from ..module.typed_options import PathText
from ..plan import Action, Change, Plan, unchanged, without_none
from ..times import age_of, iso, moment_of

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
                raise protocol(
                    f"reading the tokens '{self.name}': the server lists two tokens with the id"
                    f" {token.id}, so neither can be revoked safely"
                )
        return list(found.values())

    def create(self) -> NewToken:
        """Create a token.

        If the response with the secret is lost, the token is revoked and another one is created
        [C1.4].
        """
        for _attempt in range(_ATTEMPTS):
            mark = f"toolchain:{self.name}:{uuid.uuid4()}"

            def is_created(mark: str = mark) -> bool:
                return bool(self._marked(mark))

            try:
                purpose = f"creating the token '{self.name}'"
                response = self.send(purpose, mark, is_created)
            except ToolchainError as error:
                if OUTCOME_UNKNOWN in error.message:
                    error.with_hint(f"if so, the server lists the token as '{mark}': revoke it")
                raise
            new_token = self.created(response, mark)
            if new_token is not None:
                return new_token
            try:
                orphans = self._marked(mark)
            except ToolchainError as error:
                raise error.with_hint(
                    f"the token '{mark}' was created, but its secret was lost: revoke it"
                ) from None
            for orphan in orphans:
                self.discard(orphan, "its secret was lost")
        raise ToolchainError(
            "network",
            f"creating the token '{self.name}': the response with the secret was lost"
            f" {_ATTEMPTS} times. All created tokens that the server lists were revoked:"
            " nothing was changed",
            result={"changed": False},
        )

    def _marked(self, mark: str) -> list[Token]:
        """Return the tokens with a mark: more than one if a proxy has repeated the request."""
        return [token for token in self._named() if token.mark == mark]

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


_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff*]|^\s|\s$")
_LONGEST_NAME = 200
#: Maximum lifetime, so that no expiration is beyond the year 9999.
_LONGEST = timedelta(days=36_500)
_NEVER = re.compile(r"0\s*[wdhm]?")
#: Mode of the file with the secret.
_MODE = 0o600


def token_rules(*identifying: str) -> tuple[Rule, ...]:
    """Return the rules of a token module.

    :param identifying: options besides `name` that name the tokens
    """
    return (
        Rule("state=absent", allows=("name", *identifying)),
        Rule("in_use", requires="revoke_older"),
    )


@dataclass(frozen=True)
class TokenOptions:
    """Options that all token modules share."""

    option_rules: ClassVar[tuple[Rule, ...]] = token_rules()

    name: str
    expires_in: str | None = None
    renew_before: str | None = None
    dest: PathText | None = None
    return_value: bool = False
    revoke_older: bool = False
    in_use: list[str] | None = None
    renew: bool = False
    state: Literal["present", "absent"] = "present"

    def check(self) -> None:
        """Raise `invalid` for contradictory options."""
        if _UNFIT.search(self.name) or len(self.name) > _LONGEST_NAME:
            raise invalid(
                f"name must have at most {_LONGEST_NAME} characters, without '*', control"
                " characters, and spaces at the start or end"
            )
        lifetime, margin = self.lifetime, self.margin
        if lifetime and margin >= lifetime:
            raise invalid(
                f"renew_before is {self.renew_before}, but must be shorter than expires_in"
                f" ({self.expires_in}): otherwise every run would create a token"
            )

    def require_whole_days(self) -> None:
        """Raise `invalid` for a lifetime with hours or minutes, if the server counts whole days."""
        if self.lifetime and self.lifetime % timedelta(days=1):
            raise invalid(
                f"expires_in is {self.expires_in}, but the server only supports whole days, such"
                " as 90d"
            )

    @property
    def lifetime(self) -> timedelta | None:
        """Return `expires_in`. Zero means no expiration, `None` the default of the server."""
        return None if self.expires_in is None else _span("expires_in", self.expires_in)

    @property
    def margin(self) -> timedelta:
        """Return `renew_before`, by default zero."""
        return _span("renew_before", self.renew_before or "0")


def _span(option: str, text: str) -> timedelta:
    span = timedelta() if _NEVER.fullmatch(text.strip()) else age_of(option, text)
    if span > _LONGEST:
        raise invalid(f"{option} is {text}: write at most {_LONGEST.days}d")
    return span


@dataclass(frozen=True)
class TokenSnapshot:
    """The valid tokens with the name, and those that the task revokes."""

    valid: list[Token]
    revoked: list[Token]


class TokenOperation:
    """Manages the tokens of a name: keeps the newest valid token, or creates one."""

    def __init__(self, task: Task, options: TokenOptions, tokens: NamedTokens) -> None:
        self._task, self._options, self._tokens = task, options, tokens

    def plan(self) -> Plan:
        dest = self._options.dest
        if dest is not None:  # before a token is created
            folder = os.path.dirname(os.path.abspath(dest))
            if not os.path.isdir(folder):
                raise invalid(f"dest: the folder {folder} does not exist: create it first")
            if not os.access(folder, os.W_OK | os.X_OK):
                raise invalid(f"dest: the folder {folder} is not writable")
            with suppress(FileNotFoundError):
                require_replaceable(dest, os.lstat(dest))
        valid = self._read()
        before = {"tokens": [token.shown() for token in valid]}
        present = self._options.state == "present"
        # the valid token that is kept; `None` if a new token must be created
        used = self._usable(valid) if present else None
        is_lost = dest is None and not self._options.return_value
        if present and used is None and is_lost:
            # nobody would get the secret of a new token, which is shown once
            raise invalid(
                f"a token '{self._options.name}' would be created: set dest to the file for its"
                " secret, or return_value: true to return it, together with no_log"
            )
        revoked: list[Token] = []
        if not present or self._options.revoke_older:
            in_use = set(self._options.in_use or ())
            older = [token for token in valid if token != used and token.id not in in_use]
            for token in older:
                if self._tokens.logs_in(token):
                    self._task.warn(
                        f"the token {token.id} was not revoked, because the task is logged in with"
                        " it: revoke it with another login"
                    )
            revoked = [token for token in older if not self._tokens.logs_in(token)]
        unknown = {"id": None, "name": self._options.name, "created": None, "expires": None}
        newest = used.shown() if used else unknown if present else None
        stay = [token.shown() for token in valid if token not in revoked]
        after = {"tokens": [newest, *stay] if present and used is None else stay}
        result = {"token": newest, **before}
        if before == after:
            return unchanged(result, before)
        changes = (Change("tokens", before["tokens"], after["tokens"]),)
        action: Action = "update" if used else "create" if present else "delete"
        return Plan(before, after, action, changes, result, data=TokenSnapshot(valid, revoked))

    def _read(self) -> list[Token]:
        """Return the valid tokens with the name, newest first."""
        return self._tokens.valid()

    def _usable(self, valid: list[Token]) -> Token | None:
        """Return the newest token, or `None` if it expires too soon or the file `dest` is missing.

        Older tokens are not used, because their secrets may be lost.
        """
        options = self._options
        if options.renew or (options.dest is not None and not os.path.isfile(options.dest)):
            return None
        newest = next(iter(valid), None)
        if newest is not None and newest.created is None and len(valid) > 1:
            raise protocol(
                f"reading the tokens '{options.name}': the server does not show when the token"
                f" {newest.id} was created, so the newest token is unknown: revoke the token, or"
                " set renew to true"
            )
        return newest if newest and self._is_good(newest) else None

    def _is_good(self, token: Token) -> bool:
        return token.is_good_for(self._options.margin, self._tokens.now())

    # -- apply ------------------------------------------------------------------------------------

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        new_token = self._create() if plan.action == "create" else None
        self._revoke(plan.data.revoked, new_token)
        if new_token is None:
            return {}
        if not self._is_good(new_token.token):
            self._task.warn(
                f"the new token expires at {iso(new_token.token.expires)}, so the next run creates"
                " another token: set a longer expires_in, or a shorter renew_before"
            )
        return {"token": self._returned(new_token)}

    def _create(self) -> NewToken:
        """Create a token and write its secret to `dest`. Revoke the token if that fails."""
        path = self._options.dest
        if path is None:
            return self._tokens.create()
        new_token: NewToken | None = None
        try:
            with atomic_write(path, _MODE) as file:  # opened before the token is created
                new_token = self._tokens.create()
                file.write(new_token.value.encode())
        except BaseException:
            if new_token is not None:
                self._tokens.discard(new_token.token, f"{path} could not be written")
            raise
        return new_token

    def _revoke(self, tokens: list[Token], new_token: NewToken | None) -> None:
        """Revoke tokens.

        If a token was created, failures are warnings, because the result must return its secret.
        """
        for token in tokens:
            if new_token is not None and token.id == new_token.token.id:
                continue
            try:
                self._tokens.revoke(token)
            except ToolchainError as error:
                if new_token is None:
                    raise
                self._task.warn(f"the older token {token.id} is still valid: {error.message}")

    def _returned(self, new_token: NewToken) -> dict[str, Any]:
        secrets = {"value": new_token.value, "refresh_token": new_token.refresh}
        returned = without_none(secrets) if self._options.return_value else {}
        return {**new_token.token.shown(), **returned}
