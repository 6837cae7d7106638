# SPDX-License-Identifier: GPL-3.0-or-later
"""The query language: texts, answers row by row, and what the server says of their completeness.

Written interface [W4.1]. Server facts [repo-17]: non-administrators must ask for repo, path and
name; what the server trims it says in C(range.notification); C(range.limit) is there where the
query has a limit, or the server one of its own; C(range.total) is no number of matches.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ..core.errors import ToolchainError
from ..core.http.messages import http_date
from . import json_rows
from .client import RepoClient, objects

_PATH = "api/search/aql"
_LIMIT = re.compile(r"\.\s*limit\s*\(")
#: How a server says that it does not answer a query, or not this one, or not in time.
_REFUSALS = frozenset({400, 403, 404, 405, 408})
_DAY, _MINUTE = timedelta(days=1), timedelta(minutes=1)


@dataclass(frozen=True)
class QueryResult:
    """What a query found.

    :param trimmed: the server's words where it did not give all of it, else empty
    :param moment: the server's clock when it answered, C(None) where it does not tell
    """

    rows: list[dict[str, Any]]
    trimmed: str
    moment: datetime | None


def ask(client: RepoClient, what: str, text: str) -> QueryResult:
    """Send a query; C(rejected) with the server's words where it does not understand it."""
    parts = {"body": text.encode(), "headers": {"Content-Type": "text/plain"}}
    try:
        response = json_rows.read(client, what, _PATH, "results", method="POST", **parts)
    except ToolchainError as error:
        if error.status == 405:
            # below another address it is the path of an item, to which nothing is posted
            error.kind = "not_found"
            error.with_hint("there is no repository manager at this address: check url")
        raise
    span = response.members.get("range")
    trimmed = _trimmed(span if isinstance(span, Mapping) else {}, text, len(response.rows))
    return QueryResult(response.rows, trimmed, http_date(response.headers.get("Date")))


def ask_if_told(
    client: RepoClient, what: str, criteria: Mapping[str, Any], fields: Sequence[str]
) -> list[dict[str, Any]] | None:
    """All items that meet the criteria; C(None) where the server refuses to tell, or does not give
    all of them.
    """
    try:
        found = ask(client, what, items(criteria, fields))
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
        return f"the server gives {limit} rows at most"
    return ""


def items(criteria: Mapping[str, Any], fields: Sequence[str]) -> str:
    """The text of an item query for these fields, besides those that it always must have."""
    wanted = dict.fromkeys(("repo", "path", "name", *fields))
    return f"items.find({_json(criteria)}).include({', '.join(map(_json, wanted))})"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def properties_in(row: Mapping[str, Any]) -> dict[str, list[str]]:
    """The properties in a row: a list of C(key) and C(value), a key for each of its values."""
    found: dict[str, list[str]] = {}
    for entry in objects(row.get("properties")):
        found.setdefault(str(entry.get("key")), []).append(str(entry.get("value", "")))
    return found


def age(time: timedelta) -> str:
    """A time as the query language takes it: it has weeks, days and minutes, but no hours."""
    if time % (7 * _DAY) == timedelta():
        return f"{time // (7 * _DAY)}w"
    if time % _DAY == timedelta():
        return f"{time // _DAY}d"
    return f"{time // _MINUTE}minutes"
