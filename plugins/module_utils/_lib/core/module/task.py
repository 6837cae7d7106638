# SPDX-License-Identifier: GPL-3.0-or-later
"""The context of an operation, the same in modules and lookups."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..connection.auth import Anonymous, hide
from ..connection.connection import Connection, Exchange
from ..errors import (
    ToolchainError,
    append_clause,
    error_text,
    looks_like_html,
    printable,
    single_line,
)
from ..free_text import mask_free_text
from ..http.messages import Accounting, Response, unexpected_body
from ..http.transport import Transport, WriteGuard
from ..http.writes import longest_request
from ..progress import progress
from ..secret import hidden
from .object_locks import ObjectLocks
from .predictions import Predictions
from .run_folder import RunFolder
from .server_values import ServerValues

_CHECK = "check url"


def message_with_hint(error: ToolchainError, connection: Connection) -> str:
    """Return the message of an error, with a hint that helps to correct the connection.

    The hint for a rejected login describes the login and its source. The hint for a 404 names the
    program that responded instead of the service, if any.
    """
    if error.kind == "auth" and error.status is not None:
        login = connection.login
        missing = "set one in the task, the group defaults, a variable or the environment"
        hint = f"the task sent {login}" if login else f"the task sent no login: {missing}"
        return append_clause(str(error), hint)
    if error.status == 404 and error.kind == "not_found" and _CHECK not in str(error):
        hint = f"if it exists, {_CHECK} ({connection.url})"
        if error.other_server is not None:
            responder = f" ({error.other_server} responded)" if error.other_server else ""
            service = f"{connection.url} is the {connection.service.name} service"
            hint = f"it is uncertain whether {service}{responder}: {_CHECK}"
        return append_clause(str(error), hint)
    return str(error)


@dataclass(frozen=True)
class Task:
    """The context of an operation: connection, check mode, accounting and warnings.

    :param read_only: send no writes (check mode). Operations must not read this value
    :param diff: return a diff
    """

    connection: Connection
    warn: Callable[[str], None]
    read_only: bool
    diff: bool = False
    accounting: Accounting = field(default_factory=Accounting)
    #: Masks a secret that only the server knows, such as the value of a password parameter.
    hide: Callable[[str], None] = hidden.add
    #: Objects that earlier tasks of a run in check mode would create on this server.
    predictions: Predictions = field(default_factory=Predictions)
    #: Values that this server keeps, whatever is sent.
    server_values: ServerValues = field(default_factory=ServerValues)
    #: Locks of the objects that the task writes.
    locks: ObjectLocks = field(default_factory=ObjectLocks)

    def __post_init__(self) -> None:
        hide(self.connection)
        unchecked = self.connection.settings.get("validate_certs") is False
        if unchecked and self.connection.url.startswith("https:"):
            self.warn(
                f"validate_certs is false: the certificate of {self.connection.url} is not"
                " verified, so an attacker could read the requests"
            )

    @functools.cached_property
    def created(self) -> RunFolder:
        """Return what the run has written on this server, and reads may not show yet."""
        return RunFolder("created", self.connection.url)

    @functools.cached_property
    def server(self) -> Connection:
        """Return the connection for requests, which may lead to another address than the options.

        The first access may send a request for that address.
        """
        return self.connection.service.server(self.connection, self.accounting)

    def transport(
        self,
        *,
        describe: Callable[[Response], str] | None = None,
        notice: Callable[[Mapping[str, str]], None] | None = None,
        api_key_headers: Collection[str] = (),
        connections: int = 10,
        guard: Callable[[Transport], WriteGuard] | None = None,
        base: str | None = None,
    ) -> Transport:
        """Return a transport to the service of this task; see :class:`Transport`.

        :param api_key_headers: names of the headers for an API key
        :param base: base address of another API of the service with the same login
        """
        connection = self.server if base is None else replace(self.connection, url=base)
        login = connection.service.login(connection, *api_key_headers)
        if connection.exchange is not None:
            from ..connection.short_lived import ShortLived  # few logins are exchanged

            patience = longest_request(connection.settings)
            login = ShortLived(connection.exchange, self._exchange, patience)
        return Transport(
            connection,
            login,
            read_only=self.read_only,
            accounting=self.accounting,
            describe=describe,
            notice=notice,
            connections=connections,
            guard=guard,
        )

    def _exchange(
        self, exchange: Exchange, purpose: str, body: Mapping[str, str]
    ) -> tuple[bytes, Callable[[str], ToolchainError]]:
        """Send the request of a short-lived login, without other credentials."""
        service = replace(self.connection.without_login, url=exchange.url)
        describe: Callable[[Response], str] = lambda found: mask_free_text(error_text(found.text))  # noqa: E731
        transport = Transport(
            service, Anonymous(), read_only=True, accounting=self.accounting, describe=describe
        )
        response = transport.read(purpose, exchange.path, method="POST", json=dict(body))
        if looks_like_html(response.text):
            raise unexpected_body(response, "an access token")
        return response.body, lambda problem: response.error(
            "protocol", f"the server returned {response.status} {problem}"
        )

    def progress(self, line: str) -> None:
        """Show progress to a waiting user."""
        progress(printable(line))

    def unlock(self) -> None:
        """Let other tasks of the run write the object: they find what this task has started.

        Call it before a wait for the server.
        """
        self.locks.release()

    def failure(self, error: ToolchainError) -> dict[str, Any]:
        """Return the return values of a failed task [C1.3]."""
        described = {
            name: printable(value) if isinstance(value, str) else value
            for name, value in error.as_dict().items()
        }
        values = {
            "changed": self.accounting.acknowledged > 0,
            "http": self.accounting.as_dict(),
            **error.result,
        }
        return {
            **values,
            "msg": single_line(message_with_hint(error, self.connection)),
            "error": described,
        }
