# SPDX-License-Identifier: GPL-3.0-or-later
"""Search for items with AQL, the query language of the repository manager [W4.1].

Server facts [repo-17]: queries of non-administrators must include the fields repo, path and name.
`range.notification` reports truncated results. `range.limit` is present if the query or the server
has a limit. `range.total` is not the number of matches.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ..core.errors import ToolchainError
from ..core.http.messages import http_date
from ..core.json_text import as_text
from . import json_rows
from .client import RepoClient, objects

_PATH = "api/search/aql"
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
        response = json_rows.read(client, purpose, _PATH, "results", method="POST", **parts)
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
    for entry in objects(row.get("properties")):
        found.setdefault(as_text(entry.get("key")), []).append(as_text(entry.get("value")))
    return found


def age(time: timedelta) -> str:
    """Format an age for a query, such as `3w`: AQL has weeks, days and minutes, but no hours."""
    if time % (7 * _DAY) == timedelta():
        return f"{time // (7 * _DAY)}w"
    if time % _DAY == timedelta():
        return f"{time // _DAY}d"
    return f"{time // _MINUTE}minutes"
