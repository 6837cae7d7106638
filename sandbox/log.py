# SPDX-License-Identifier: GPL-3.0-or-later
"""Log of all requests to the five services, without credentials."""

from __future__ import annotations

import re
import time
from collections import deque
from dataclasses import asdict, dataclass, field
from typing import Any

BODY_LIMIT = 64 * 1024
# So many requests are kept; a sandbox that runs for weeks must not grow.
KEPT = 10_000

_SECRETS = "password|ltoken|sourcePassword"
_FORM_SECRET = re.compile(rf"(?i)(^|[&?])({_SECRETS})=[^&]*")
_JSON_SECRET = re.compile(rf'(?i)"({_SECRETS})"(\s*:\s*)"(?:[^"\\]|\\.)*"')
_XML_SECRET = re.compile(r"(?i)(<(?:password|passphrase|api_?token|secret\w*)>)[^<]+")
_PASSWORD_PARAMETER = re.compile(
    r"(<(\w+\.)*PasswordParameterDefinition>)(.*?)(?=</(\w+\.)*PasswordParameterDefinition>)",
    re.DOTALL,
)
_DEFAULT = re.compile(r"(<defaultValue>)[^<]+")
_SECRET_HEADER = re.compile(r"(?i)^(x-.*-art-api|cookie|proxy-authorization|.*crumb)$")


def mask(text: str) -> str:
    """The text of a form, query, JSON or XML body with `***` in place of the known secrets."""
    text = _FORM_SECRET.sub(r"\1\2=***", text)
    text = _PASSWORD_PARAMETER.sub(lambda found: _DEFAULT.sub(r"\1***", found[0]), text)
    text = _XML_SECRET.sub(r"\1***", text)
    return _JSON_SECRET.sub(r'"\1"\2"***"', text)


def mask_headers(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by lower-case name; of a credential only its kind is kept (`Basic ***`)."""
    shown: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        if name == "authorization":
            value = value.partition(" ")[0] + " ***"
        elif _SECRET_HEADER.match(name):
            value = "***"
        shown[name] = f"{shown[name]}, {value}" if name in shown else value
    return shown


@dataclass
class Entry:
    """One request. `path` and `query` are as sent (percent-encoded), without the service's prefix.

    `time` is epoch milliseconds, `status` None until the answer starts (and stays so when the
    connection was cut), `connection` the client's port. `served` is the status that the service
    itself gave, None where it was not asked: what the client saw may be that of a fault. `routed`:
    whether the sandbox knows the address, or the action that the form names.
    """

    service: str
    method: str
    path: str
    query: str
    headers: dict[str, str]
    connection: int
    body: str | None = None
    body_bytes: int = 0
    status: int | None = None
    served: int | None = None
    write: bool = False
    routed: bool = True
    seq: int = 0
    time: int = field(default_factory=lambda: time.time_ns() // 1_000_000)


class Log:
    """The newest requests, `KEPT` of them, in the order of their arrival.

    `last` is the `seq` of the newest one, `forgotten` that of the newest one which had to make room
    (0: none): what was asked since an earlier request is no longer complete.
    """

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque(maxlen=KEPT)
        self.last = 0
        self.forgotten = 0

    def add(self, entry: Entry) -> Entry:
        if len(self._entries) == KEPT:
            self.forgotten = self._entries[0].seq
        self.last += 1
        entry.seq = self.last
        self._entries.append(entry)
        return entry

    def select(
        self, service: str | None = None, since: int = 0, writes: bool = False
    ) -> list[dict[str, Any]]:
        """Entries with `seq` above `since`, of one service or all, all or only the writes."""
        return [
            asdict(entry)
            for entry in self._entries
            if entry.seq > since
            and service in (None, entry.service)
            and (entry.write or not writes)
        ]

    def clear(self) -> None:
        """Forget the entries; `seq` goes on counting."""
        self._entries.clear()
        self.forgotten = 0
