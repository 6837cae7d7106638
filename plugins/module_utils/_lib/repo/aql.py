# SPDX-License-Identifier: GPL-3.0-or-later
"""Search for items with AQL, the query language of the repository manager [W4.1].

Lists of rows are parsed without holding the body in memory.

Server facts [repo-17]: queries of non-administrators must include the fields repo, path and name.
`range.notification` reports truncated results. `range.limit` is present if the query or the server
has a limit. `range.total` is not the number of matches.

Server fact [repo-6, repo-17]: the server streams query results and listings while it computes them.
If it fails midway, the response is a 200 with truncated JSON.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from ..core.errors import ToolchainError
from ..core.http.messages import Request, Response, http_date, unexpected_body
from ..core.json_text import (
    TooDeep,
    as_text,
    has_surrogates,
    json_objects,
    require_depth,
    without_surrogates,
)
from .client import RepoClient

_PATH = "api/search/aql"
#: Maximum number of buffered characters, which limits the length of a single value.
_LONGEST = 16 * 1024 * 1024
_BLANK = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
#: Error kinds of a response that was interrupted.
_BROKEN = frozenset({"network", "timeout"})
#: Maximum number of digests in a query: a query with 100 would exceed `_MAX_CHARACTERS`.
DIGESTS_AT_ONCE = 70
#: Maximum length of a query on newer servers [repo-14].
_MAX_CHARACTERS = 6000
_LIMIT = re.compile(r"\.\s*limit\s*\(")
#: Statuses of servers that do not support queries, reject this query, or report a timeout.
_REFUSALS = frozenset({400, 403, 404, 405, 408})
_DAY, _MINUTE = timedelta(days=1), timedelta(minutes=1)


@dataclass(frozen=True)
class QueryResult:
    """Result of a query.

    :param trimmed: the server's notice if the result is truncated, else ""
    :param moment: time of the response by the server's clock; `None` without a `Date` header
    """

    rows: list[dict[str, Any]]
    trimmed: str
    moment: datetime | None


def ask(client: RepoClient, purpose: str, text: str) -> QueryResult:
    """Send a query and return its result.

    Raises `rejected` with the server's error message if the query is malformed.
    """
    parts = {"body": text.encode(), "headers": {"Content-Type": "text/plain"}}
    try:
        response = read_rows(client, purpose, _PATH, "results", method="POST", **parts)
    except ToolchainError as error:
        if error.status == 405:
            # with a wrong base address, the server takes the path for an item and rejects POST
            error.kind = "not_found"
            error.with_hint("there is no repository manager at this address: check url")
        elif error.status == 400 and len(text) > _MAX_CHARACTERS:
            error.with_hint(
                f"the query has {len(text):,} characters, but newer servers accept at most"
                f" {_MAX_CHARACTERS:,}"
            )
        raise
    span = response.members.get("range")
    trimmed = _trimmed(span if isinstance(span, Mapping) else {}, text, len(response.rows))
    return QueryResult(response.rows, trimmed, http_date(response.headers.get("Date")))


def ask_if_supported(
    client: RepoClient, purpose: str, criteria: Mapping[str, Any], fields: Sequence[str]
) -> list[dict[str, Any]] | None:
    """Return the matching items, with the given fields.

    Returns `None` if the server rejects the query or truncates its result.
    """
    try:
        found = ask(client, purpose, items(criteria, fields))
    except ToolchainError as error:
        if error.status in _REFUSALS:
            return None
        raise
    return None if found.trimmed else found.rows


def _trimmed(span: Mapping[str, Any], text: str, rows: int) -> str:
    if span.get("notification"):
        return str(span["notification"])
    limit = str(span.get("limit") or "")
    if limit.isdigit() and rows >= int(limit) and not _LIMIT.search(text):
        return f"the server returns at most {limit} rows"
    return ""


def items(criteria: Mapping[str, Any], fields: Sequence[str]) -> str:
    """Return an item query that includes the given fields, and also repo, path and name."""
    wanted = dict.fromkeys(("repo", "path", "name", *fields))
    return f"items.find({_json(criteria)}).include({', '.join(map(_json, wanted))})"


def below(folder: str) -> dict[str, Any]:
    """Return the criteria of the items below a folder, at any depth; "" means the repository."""
    return {"$or": [{"path": folder}, {"path": {"$match": f"{folder}/*"}}]} if folder else {}


def by_sha1(sha1s: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the criteria of items with these SHA-1, as many as a query may contain."""
    ordered = sorted(sha1s)
    for begin in range(0, len(ordered), DIGESTS_AT_ONCE):
        some = ordered[begin : begin + DIGESTS_AT_ONCE]
        yield {"$or": [{"actual_sha1": sha1} for sha1 in some]}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def path_in(row: Mapping[str, Any]) -> str:
    """Return the path of the item in its repository; `path` of a row is the folder, or `.`."""
    folder = "" if row.get("path") in (".", None) else f"{row['path']}/"
    return f"{folder}{row.get('name')}"


def properties_in(row: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the property values of a row by name; a row has one `key` and `value` per value."""
    found: dict[str, list[str]] = {}
    for entry in json_objects(row.get("properties")):
        found.setdefault(as_text(entry.get("key")), []).append(as_text(entry.get("value")))
    return found


def age(time: timedelta) -> str:
    """Format an age for a query, such as `3w`: AQL has weeks, days and minutes, but no hours."""
    if time % (7 * _DAY) == timedelta():
        return f"{time // (7 * _DAY)}w"
    if time % _DAY == timedelta():
        return f"{time // _DAY}d"
    return f"{time // _MINUTE}minutes"


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


def read_rows(
    client: RepoClient, purpose: str, path: str, member: str, **parts: Any
) -> StreamedObject:
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
    head: list[bytes] = []  # the first chunk, for error messages

    def chunks() -> Iterator[bytes]:
        for chunk in incoming.iter_content():
            head.extend([] if head else [chunk])
            yield chunk

    with client.transport.stream(purpose, path, **parts) as incoming:
        found.headers = incoming.headers
        try:
            parse(chunks(), member, found)
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
                    "protocol", f"the response ends after {len(found.rows)} rows ({error})"
                ) from None
            raise unexpected_body(response, f"JSON with '{member}'") from None
    return found
