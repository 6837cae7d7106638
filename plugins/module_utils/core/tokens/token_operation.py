# SPDX-License-Identifier: GPL-3.0-or-later
"""Issue, renew and revoke the tokens of a name, for all services that issue tokens."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any, ClassVar, Literal

from ..errors import ToolchainError, invalid
from ..files import atomic_write, require_replaceable
from ..module.task import Task
from ..module.typed_options import PathText
from ..plan import Action, Change, Plan, unchanged, without_none
from ..times import age_of, iso
from .named_tokens import NamedTokens, NewToken, Token

_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff*]|^\s|\s$")
_LONGEST_NAME = 200
#: Longest lifetime: the calendar ends after it.
_LONGEST = timedelta(days=36_500)
_NEVER = re.compile(r"0\s*[wdhm]?")
#: Mode of the file with the secret.
_MODE = 0o600


@dataclass(frozen=True)
class TokenOptions:
    """The options of all modules for tokens; `identifying` are those that go with any state."""

    identifying: ClassVar[frozenset[str]] = frozenset({"name", "state"})
    name: str
    expires_in: str | None = None
    renew_before: str | None = None
    dest: PathText | None = None
    revoke_older: bool = False
    in_use: list[str] | None = None
    renew: bool = False
    state: Literal["present", "absent"] = "present"

    def require_sense(self) -> None:
        """Raise `invalid` for contradictory options."""
        if _UNFIT.search(self.name) or len(self.name) > _LONGEST_NAME:
            raise invalid(
                f"name: write at most {_LONGEST_NAME} characters, without '*', line breaks, and"
                " blanks at the ends"
            )
        if self.state == "absent":
            for option in sorted({field.name for field in fields(self)} - self.identifying):
                if getattr(self, option) not in (None, False):
                    raise invalid(f"{option} cannot be combined with state 'absent': leave it out")
        if self.in_use is not None and not self.revoke_older:
            raise invalid("in_use requires revoke_older: omit it, or set revoke_older")
        lifetime, margin = self.lifetime, self.margin
        if lifetime and margin >= lifetime:
            raise invalid(
                f"renew_before is {self.renew_before}, but must be shorter than expires_in"
                f" ({self.expires_in}): otherwise every run would create a token"
            )

    def require_whole_days(self) -> None:
        """Raise `invalid` for a lifetime in hours or minutes, for servers that count days."""
        if self.lifetime and self.lifetime % timedelta(days=1):
            raise invalid(
                f"expires_in is {self.expires_in}, but the server only supports whole days, such"
                " as 90d"
            )

    @property
    def lifetime(self) -> timedelta | None:
        """Return `expires_in`, 0 for "never", `None` for the default of the server."""
        return None if self.expires_in is None else _span("expires_in", self.expires_in)

    @property
    def margin(self) -> timedelta:
        """Return `renew_before`."""
        return _span("renew_before", self.renew_before or "0")


def _span(option: str, text: str) -> timedelta:
    span = timedelta() if _NEVER.fullmatch(text.strip()) else age_of(option, text)
    if span > _LONGEST:
        raise invalid(f"{option} is {text}: write at most {_LONGEST.days}d")
    return span


@dataclass(frozen=True)
class TokenSnapshot:
    """The valid tokens, and those of them that the task revokes."""

    held: list[Token]
    revoked: list[Token]


class TokenOperation:
    """The tokens of a name: the newest valid one is used."""

    def __init__(self, task: Task, options: TokenOptions, tokens: NamedTokens) -> None:
        self._task, self._options, self._tokens = task, options, tokens

    def plan(self) -> Plan:
        self._check_dest()
        held = self._read()
        before = {"tokens": [token.shown() for token in held]}
        present = self._options.state == "present"
        # the valid token that stays; `None` if a new one is needed
        used = self._usable(held) if present else None
        revoked = self._revoked(held, used)
        blank = {"id": None, "name": self._options.name, "created": None, "expires": None}
        newest = used.shown() if used else blank if present else None
        stay = [token.shown() for token in held if token not in revoked]
        # the times of a new token are not known yet
        after = {"tokens": [newest, *stay] if present and used is None else stay}
        result = {"token": newest, **before}
        if before == after:
            return unchanged(result, before)
        changes = (Change("tokens", before["tokens"], after["tokens"]),)
        action: Action = "update" if used else "create" if present else "delete"
        return Plan(before, after, action, changes, result, data=TokenSnapshot(held, revoked))

    def _read(self) -> list[Token]:
        """Return the valid tokens that the task is about, newest first."""
        return self._tokens.valid()

    def _check_dest(self) -> None:
        """Raise `invalid` if `dest` cannot be written: no token may be created unnecessarily."""
        path = self._options.dest
        if path is None:
            return
        folder = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(folder):
            raise invalid(f"dest: the folder {folder} does not exist: create it first")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise invalid(f"dest: the folder {folder} is not writable")
        with suppress(FileNotFoundError):
            require_replaceable(path, os.lstat(path))

    def _usable(self, held: list[Token]) -> Token | None:
        """Return the newest token if it is valid long enough, unless its secret is missing. An
        older one is no substitute: nobody may have its secret.
        """
        options = self._options
        if options.renew or (options.dest is not None and not os.path.isfile(options.dest)):
            return None
        newest = next(iter(held), None)
        if newest is not None and newest.created is None and len(held) > 1:
            raise ToolchainError(
                "protocol",
                f"reading the tokens '{options.name}': the server does not show when the token"
                f" {newest.id} was created, so that the newest one is not known: revoke it, or set"
                " renew",
            )
        return newest if newest and self._is_good(newest) else None

    def _is_good(self, token: Token) -> bool:
        return token.is_good_for(self._options.margin, self._tokens.now())

    def _revoked(self, held: list[Token], newest: Token | None) -> list[Token]:
        """Return the tokens that the task revokes: never the one that it is logged in with."""
        if self._options.state == "present" and not self._options.revoke_older:
            return []
        used = set(self._options.in_use or ())
        older = [token for token in held if token != newest and token.id not in used]
        for token in older:
            if self._tokens.logs_in(token):
                self._task.warn(
                    f"the token {token.id} was not revoked, because the task is logged in with it:"
                    " revoke it with another login"
                )
        return [token for token in older if not self._tokens.logs_in(token)]

    # -- apply ------------------------------------------------------------------------------------

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        made = self._made() if plan.action == "create" else None
        self._revoke(plan.data.revoked, made)
        if made is None:
            return {}
        if not self._is_good(made.token):
            self._task.warn(
                f"the new token expires at {iso(made.token.expires)}, so that the next run creates"
                " another one: set a longer expires_in, or a shorter renew_before"
            )
        return {"token": self._returned(made)}

    def _made(self) -> NewToken:
        """Create a token and write its secret into `dest`, or revoke it if that fails."""
        path = self._options.dest
        if path is None:
            return self._tokens.create()
        made: NewToken | None = None
        try:
            with atomic_write(path, _MODE) as file:  # opened first, so that it can be written
                made = self._tokens.create()
                file.write(made.value.encode())
        except BaseException:
            if made is not None:
                self._tokens.discard(made.token, f"{path} could not be written")
            raise
        return made

    def _revoke(self, tokens: list[Token], made: NewToken | None) -> None:
        """Revoke tokens. After a creation a failure is a warning, so that the result with the new
        secret is not lost.
        """
        for token in tokens:
            if made is not None and token.id == made.token.id:
                continue
            try:
                self._tokens.revoke(token)
            except ToolchainError as error:
                if made is None:
                    raise
                self._task.warn(f"the older token {token.id} is still valid: {error.message}")

    def _returned(self, made: NewToken) -> dict[str, Any]:
        shown = made.token.shown()
        if self._options.dest is not None:
            return shown
        return {**shown, **without_none({"value": made.value, "refresh_token": made.refresh})}
