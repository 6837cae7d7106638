# SPDX-License-Identifier: GPL-3.0-or-later
"""Request log of the five services, without credentials."""

from __future__ import annotations

import re
import time
from collections import deque
from dataclasses import asdict, dataclass, field
from typing import Any

BODY_LIMIT = 64 * 1024
# Maximum number of entries, so that a sandbox that runs for weeks does not grow.
KEPT = 10_000

_SECRETS = "password|ltoken|sourcePassword|access_token|refresh_token|subject_token|client_secret"
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
    """Replace known secrets in a form, query, JSON or XML body with `***`."""
    text = _FORM_SECRET.sub(r"\1\2=***", text)
    text = _PASSWORD_PARAMETER.sub(lambda found: _DEFAULT.sub(r"\1***", found[0]), text)
    text = _XML_SECRET.sub(r"\1***", text)
    return _JSON_SECRET.sub(r'"\1"\2"***"', text)


def mask_headers(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return headers by lower-case name, with masked credentials such as `Basic ***`."""
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
    """A request.

    `path`, `query`: percent-encoded as sent, without the prefix of the service.
    `connection`: port of the client.
    `status`: None until the response starts, and if the connection is closed without a response.
    `served`: status of the service itself, which a fault may have replaced; None if the service was
    not called.
    `response`: JSON of the response, with the setting `log_responses`.
    `routed`: whether the sandbox knows the route, or the action in the form.
    `time`: epoch milliseconds.
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
    response: str | None = None
    routed: bool = True
    seq: int = 0
    time: int = field(default_factory=lambda: time.time_ns() // 1_000_000)


class Log:
    """The newest `KEPT` requests, in order of arrival.

    `last`: `seq` of the newest request. `forgotten`: `seq` of the newest discarded request, or 0.
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
        """Return entries as dicts.

        :param service: name of a service; None means all
        :param since: return only entries with a higher `seq`
        :param writes: return only writes
        """
        return [
            asdict(entry)
            for entry in self._entries
            if entry.seq > since
            and service in (None, entry.service)
            and (entry.write or not writes)
        ]

    def clear(self) -> None:
        """Remove all entries. `seq` continues to count."""
        self._entries.clear()
        self.forgotten = 0
