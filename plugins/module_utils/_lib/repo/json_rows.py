# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse a JSON object with one long list row by row, without holding the body in memory.

Server fact [repo-6, repo-17]: the server streams query results and listings while it computes them.
If it fails midway, the response is a 200 with truncated JSON.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..core.errors import ToolchainError
from ..core.http.messages import Request, Response, unexpected_body
from ..core.json_text import TooDeep, has_surrogates, require_depth, without_surrogates
from .client import RepoClient

if TYPE_CHECKING:
    from ..core.http.bodies import Incoming

#: Maximum number of buffered characters, which limits the length of a single value.
_LONGEST = 16 * 1024 * 1024
_BLANK = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
#: Error kinds of a response that was interrupted.
_BROKEN = frozenset({"network", "timeout"})


@dataclass
class StreamedObject:
    """Parsed response: the rows of its list, its other members, and its headers."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    members: dict[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def take(self, row: dict[str, Any]) -> None:
        """Add a row. Its keys are interned, because separately decoded rows do not share them."""
        self.rows.append({sys.intern(key): value for key, value in row.items()})


class InvalidJson(ValueError):
    """Input is not JSON, or is truncated."""


class _JsonReader:
    """Buffer of a chunked JSON document that holds only the unparsed part."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self._pieces, self._text, self._at = pieces, "", 0

    def _more(self) -> bool:
        chunk = next(self._pieces, None)
        if chunk is None:
            return False
        self._text, self._at = self._text[self._at :] + chunk, 0
        return len(self._text) <= _LONGEST

    def mark(self) -> str:
        """Return the next character that is not whitespace, or "" at the end of the document."""
        while True:
            found = _BLANK.match(self._text, self._at)
            self._at = self._at if found is None else found.end()
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def take(self, mark: str) -> bool:
        """Consume the next character if it is `mark`; return whether it was."""
        if self.mark() != mark:
            return False
        self._at += 1
        return True

    def need(self, mark: str) -> None:
        if not self.take(mark):
            raise InvalidJson(f"'{mark}' is missing")

    def value(self) -> Any:
        """Parse and return the next value.

        A value is complete only when another character follows: `12` may be the start of `123`.
        """
        self.mark()
        while True:
            try:
                found, end = _DECODER.raw_decode(self._text, self._at)
            except RecursionError:
                raise TooDeep from None
            except ValueError:
                end = len(self._text)
            if end < len(self._text):
                opened = (self._text.count(mark, self._at, end) for mark in "[{")
                require_depth(found, sum(opened))
                if has_surrogates(self._text, self._at, end):
                    found = without_surrogates(found)
                self._at = end
                return found
            # double the buffer before the next attempt, to parse a long value in linear time
            wanted = 2 * (len(self._text) - self._at)
            if not self._more():
                raise InvalidJson("it is truncated")
            while len(self._text) < wanted and self._more():
                pass

    def entries(self, closing: str) -> Iterator[None]:
        """Iterate over an opened list or object; the caller parses the entry in each iteration.

        :param closing: `]` or `}`
        """
        if self.take(closing):
            return
        while True:
            yield
            if not self.take(","):
                self.need(closing)
                return


def parse(pieces: Iterable[bytes], member: str, found: StreamedObject) -> None:
    """Parse a JSON object into `found`; the objects in its list `member` become rows.

    Raises :class:`InvalidJson` if the document is not a JSON object with this list.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = _JsonReader(decoder.decode(chunk) for chunk in pieces)
    text.need("{")
    listed = False
    for _entry in text.entries("}"):
        name = text.value()
        text.need(":")
        if name == member and text.take("["):
            listed = True
            for _row in text.entries("]"):
                row = text.value()
                if isinstance(row, dict):
                    found.take(row)
        else:
            found.members[name] = text.value()
    if text.mark():
        raise InvalidJson("data follows its end")
    if not listed:
        raise InvalidJson(f"it has no list '{member}'")


def read(client: RepoClient, purpose: str, path: str, member: str, **parts: Any) -> StreamedObject:
    """Send a read with :meth:`Transport.stream` and parse its response row by row.

    If the response is interrupted, the request is repeated once, unless `retries` is 0.
    """
    retries = client.transport.connection.settings["retries"] > 0
    found = StreamedObject()
    try:
        return _read(client, purpose, path, member, found, **parts)
    except ToolchainError as error:
        broken = error.kind in _BROKEN or (error.kind == "protocol" and found.rows)
        # without headers there was no response, and the transport has already retried
        if not (retries and broken and found.headers):
            raise
    client.transport.accounting.add(retries=1)
    return _read(client, purpose, path, member, StreamedObject(), **parts)


def _read(
    client: RepoClient, purpose: str, path: str, member: str, found: StreamedObject, **parts: Any
) -> StreamedObject:
    head: list[bytes] = []
    with client.transport.stream(purpose, path, **parts) as incoming:
        found.headers = incoming.headers
        try:
            parse(_keep_first_chunk(incoming, head), member, found)
        except (InvalidJson, TooDeep) as error:
            method = parts.get("method", "GET")
            request = Request(purpose, method, client.transport.url(path), reads=True)
            response = Response(
                incoming.status_code, incoming.headers, b"".join(head), request, incoming.url
            )
            if isinstance(error, TooDeep):
                message = f"the server returned JSON that cannot be parsed: {error}"
                raise response.error("protocol", message) from None
            if found.rows:
                raise response.error(
                    "protocol",
                    f"the response ends after {len(found.rows)} rows ({error})",
                ) from None
            raise unexpected_body(response, f"JSON with '{member}'") from None
    return found


def _keep_first_chunk(incoming: Incoming, head: list[bytes]) -> Iterator[bytes]:
    """Yield the chunks of a body, and append the first one to `head` for error messages."""
    for chunk in incoming.iter_content():
        if not head:
            head.append(chunk)
        yield chunk
