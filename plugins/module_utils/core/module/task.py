# SPDX-License-Identifier: GPL-3.0-or-later
"""What an operation may know of the task that it runs for: the same for modules and for lookups."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..accounting import Accounting
from ..connection.auth import hide, login_of
from ..connection.options import Connection
from ..errors import ToolchainError, printable, single_line
from ..http.messages import Response
from ..http.sessions import Proxies
from ..http.transport import Transport
from ..progress import progress
from ..secret import hidden
from .advice import advised


@functools.lru_cache(maxsize=1)
def _proxies(_environment: frozenset[tuple[bytes, bytes]]) -> Proxies:
    return Proxies()


def _known_proxies() -> Proxies:
    """Those of the task before in this process, where its environment was the same: to search it
    takes longer than to compare it.
    """
    return _proxies(frozenset(os.environb.items()))


@dataclass(frozen=True)
class Task:
    """The connection, and the ways to speak to the user.

    C(read_only) is for the transport, and for clients that then ask a read for more: no operation
    asks whether it runs in check mode.
    C(diff): whether both sides of what differs are wanted.
    """

    connection: Connection
    warn: Callable[[str], None]
    read_only: bool
    diff: bool = False
    accounting: Accounting = field(default_factory=Accounting)
    proxies: Proxies = field(default_factory=_known_proxies)
    #: Keeps a secret that only the server tells (a password parameter) out of all output.
    hide: Callable[[str], None] = hidden.add

    def __post_init__(self) -> None:
        hide(self.connection)
        unchecked = self.connection.settings.get("validate_certs") is False
        if unchecked and self.connection.url.startswith("https:"):
            self.warn(
                f"validate_certs is false: nobody checks that {self.connection.url} is the server"
                " that it seems to be, and others may read what is sent"
            )

    def transport(
        self,
        *,
        describe: Callable[[Response], str] | None = None,
        notice: Callable[[Mapping[str, str]], None] | None = None,
        api_key_headers: Collection[str] = (),
        connections: int = 10,
        crumbs: bool = False,
    ) -> Transport:
        """The way to the service of this task; see :class:`Transport`."""
        return Transport(
            self.connection,
            login_of(self.connection, *api_key_headers),
            read_only=self.read_only,
            accounting=self.accounting,
            proxies=self.proxies,
            describe=describe,
            notice=notice,
            connections=connections,
            crumbs=crumbs,
        )

    def progress(self, line: str) -> None:
        """Tell a waiting user what goes on."""
        progress(printable(line))

    def failure(self, error: ToolchainError) -> dict[str, Any]:
        """The return values of a failed task [C1.3]."""
        described = {
            name: printable(value) if isinstance(value, str) else value
            for name, value in error.as_dict().items()
        }
        values = {
            "changed": self.accounting.acknowledged > 0,
            "http": self.accounting.as_dict(),
            **error.result,
        }
        return {**values, "msg": single_line(advised(error, self.connection)), "error": described}
