# SPDX-License-Identifier: GPL-3.0-or-later
"""Issue, renew and revoke API tokens of the CI server: `ci_token` [C3.24]."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, ClassVar

from ...core import address
from ...core.errors import ToolchainError, not_found, protocol
from ...core.http.messages import Response, json_or_none
from ...core.http.writes import Verify
from ...core.json_text import as_text
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.operations.named_tokens import (
    NamedTokens,
    NewToken,
    Token,
    TokenOperation,
    TokenOptions,
    TokenReader,
    token_rules,
)
from ...core.plan import Plan
from ...core.times import moment_of
from ..client import ADMINISTER, part, refuse_page, server_of
from ..script_run import http_console, run_script
from ..service import SERVICE

#: Script that lists the tokens, which no other interface of the server does.
LISTING = """\
import java.time.LocalDate
import java.time.ZoneId
import jenkins.security.ApiTokenProperty

def user = args.user ? User.getById(args.user, false) : User.current()
if (user == null) {
    return [user: null]
}
def property = user.getProperty(ApiTokenProperty)
def store = property.tokenStore
def storesEnds = !store.metaClass.respondsTo(store, 'generateNewToken', String, LocalDate).empty
def digest = args.digest?.decodeHex()
def end = { date -> date?.plusDays(1)?.atStartOfDay(ZoneId.systemDefault())?.toInstant() }
return [
    user: user.id,
    may_create: property.descriptor.hasCurrentUserRightToGenerateNewToken(user),
    stores_ends: storesEnds,
    now: System.currentTimeMillis(),
    new_end: args.days ? end(LocalDate.now().plusDays(args.days))?.toEpochMilli() : null,
    tokens: store.tokenListSortedByName.findAll { it.name?.startsWith(args.prefix) }.collect {
        [
            id: it.uuid,
            name: it.name,
            created: it.creationDate?.time,
            expires: storesEnds ? end(it.expirationDate)?.toEpochMilli() : null,
            logs_in: digest != null && it.match(digest)
        ]
    }
]
"""
_SECRET = re.compile(r"11([0-9a-f]{32})")


class ApiTokens(NamedTokens):
    """The API tokens of a user that were issued under the name `name`.

    :param user: name of the user; `None` means the user that is logged in
    :param lifetime: lifetime of new tokens in whole days; 0 or `None` means that they never expire
    """

    def __init__(self, task: Task, name: str, user: str | None, lifetime: timedelta | None) -> None:
        super().__init__(name)
        self._server, self._lifetime = server_of(task), lifetime
        # the digest that the server stores for the token of the login; a password is no token
        password = task.connection.password
        secret = _SECRET.fullmatch(password.reveal()) if password else None
        digest = hashlib.sha256(secret[1].encode()).hexdigest() if secret else None
        self._arguments = {
            "user": user,
            "prefix": f"toolchain:{name}:",
            "digest": digest,
            "days": lifetime.days if lifetime else None,
        }
        #: Name of the user, as reported by the latest listing.
        self.user = user or ""
        #: Whether the login may create tokens of the user, and whether the server stores when they
        #: expire, as reported by the latest listing.
        self.may_create = self.stores_ends = False
        self._new_end: datetime | None = None

    def listed(self) -> list[Token]:
        purpose = f"reading the tokens '{self.name}'"
        try:
            console = http_console(self._server)
            end = run_script(console, purpose, LISTING, self._arguments, only_reads=True)
        except ToolchainError as error:
            if error.kind == "permission":
                error.with_hint("tokens can only be listed in the script console")
            elif error.kind == "failed":
                error.with_hint("API tokens require Jenkins 2.129 or newer")
            raise
        reader = TokenReader(lambda message: protocol(f"{purpose}: {message}"))
        found = part(end.result)
        if "user" not in found:
            raise reader.error("the response does not contain the user")
        if found["user"] is None and self._arguments["user"] is None:
            login = "set username, because a login is required"
            raise ToolchainError("auth", f"{purpose}: {login}")
        if found["user"] is None:
            reason = f"token_username: the user '{self.user}' does not exist"
            raise not_found(f"{purpose}: {reason}")
        self.user = str(found["user"])
        self.may_create = found.get("may_create") is True
        self.stores_ends = found.get("stores_ends") is True
        self.set_clock(moment_of(found.get("now")))
        self._new_end = reader.time(found.get("new_end"))
        tokens = []
        for row in reader.rows(found.get("tokens")):
            created, expires = (reader.time(row.get(name)) for name in ("created", "expires"))
            id_, name, logs_in = (
                reader.id(row.get("id")),
                as_text(row.get("name")),
                row.get("logs_in"),
            )
            tokens.append(Token(id_, name, created, expires, logs_in=logs_in is True))
        return tokens

    def send(self, purpose: str, mark: str, verify: Verify) -> Response:
        form = {"newTokenName": mark}
        if self._lifetime:
            form["expirationDuration"] = str(self._lifetime.days)
        return self._write(purpose, "generateNewToken", form, verify, repeatable=False)

    def created(self, response: Response, mark: str) -> NewToken | None:
        data = part(part(json_or_none(response.body)).get("data"))
        token_id, value = data.get("tokenUuid"), data.get("tokenValue")
        if not (isinstance(token_id, str) and token_id and isinstance(value, str) and value):
            return None
        # the response contains only a localized date: the listing has the end of that day
        expires = self._new_end if self.stores_ends else None
        return NewToken(Token(token_id, mark, self.now(), expires), value)

    def send_revocation(self, purpose: str, token: Token, verify: Verify) -> Response:
        return self._write(purpose, "revoke", {"tokenUuid": token.id}, verify, repeatable=True)

    def _write(
        self,
        purpose: str,
        action: str,
        form: Mapping[str, str],
        verify: Verify,
        *,
        repeatable: bool,
    ) -> Response:
        return self._server.write(
            purpose,
            "POST",
            f"user/{address.path(self.user)}/descriptorByName/"
            f"jenkins.security.ApiTokenProperty/{action}",
            form=form,
            # accept every success: an error message would contain the secret in the response
            expect=range(200, 300),
            validate=_require_success,
            verify=verify,
            repeatable=repeatable,
        )


def _require_success(response: Response) -> None:
    """Raise `rejected` for an error that the server reports with status 200 [ci-44]."""
    refuse_page(response)
    row = part(json_or_none(response.body))
    if row.get("status") == "error":
        raise response.error("rejected", str(row.get("message") or "the server returned an error"))


@dataclass(frozen=True)
class CiTokenOptions(TokenOptions):
    """The options of `ci_token`."""

    option_rules: ClassVar = token_rules("token_username")

    token_username: Annotated[str | None, Option(secret=False)] = None

    def check(self) -> None:
        super().check()
        self.require_whole_days()


class CiTokenOperation(TokenOperation):
    """Manages the API tokens that have a name."""

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {"read": reads(ADMINISTER), "create": writes(ADMINISTER), "revoke": writes(ADMINISTER)},
        kind="token",
        key=("token_username", "name"),
    )

    def __init__(self, task: Task, options: CiTokenOptions) -> None:
        self._api = ApiTokens(task, options.name, options.token_username, options.lifetime)
        super().__init__(task, options, self._api)

    def plan(self) -> Plan:
        """Plan the change. Raises `permission` if the user may not create a new token."""
        plan, name, tokens = super().plan(), self._options.name, self._api
        if plan.action != "create":
            return plan
        if not tokens.may_create:
            raise ToolchainError(
                "permission",
                f"creating the token '{name}': only the user '{tokens.user}' may create its own"
                " tokens. Log in as this user, or set the server's system property"
                " jenkins.security.ApiTokenProperty.adminCanGenerateNewTokens",
            )
        if self._options.lifetime and not tokens.stores_ends:
            self._task.warn(
                f"expires_in is {self._options.expires_in}, but tokens never expire on Jenkins"
                " before 2.548. The task renews the token after this time; the old token is valid"
                " until it is revoked"
            )
        return plan

    def _usable(self, held: list[Token]) -> Token | None:
        """Return a token to keep. One without an expiry date is renewed after `expires_in`."""
        found, lifetime = super()._usable(held), self._options.lifetime
        if not found or not lifetime or found.expires or found.created is None:
            return found
        too_old = self._api.now() - found.created >= lifetime - self._options.margin
        return None if too_old else found
