# SPDX-License-Identifier: GPL-3.0-or-later
"""The query language: texts, answers row by row, and what the server says of their completeness.

Written interface 4.1. Server facts (repo 1.7): non-administrators must ask for repo, path and name;
what the server trims it says in C(range.notification); C(range.limit) is there where the query has
a limit, or the server one of its own; C(range.total) is no number of matches.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from typing import Any

from ..core.errors import ToolchainError
from . import streamed
from .client import Client, json_text

_PATH = "api/search/aql"
_LIMIT = re.compile(r"\.\s*limit\s*\(")
_DAY, _MINUTE = timedelta(days=1), timedelta(minutes=1)


@dataclass(frozen=True)
class Found:
    """What a query found.

    :param trimmed: the server's words where it did not give all of it, else empty
    :param moment: the server's clock when it answered, C(None) where it does not tell
    """

    rows: list[dict[str, Any]]
    trimmed: str
    moment: datetime | None


def ask(client: Client, what: str, text: str) -> Found:
    """Send a query; C(rejected) with the server's words where it does not understand it."""
    parts = {"body": text.encode(), "headers": {"Content-Type": "text/plain"}}
    try:
        answer = streamed.read(client, what, _PATH, "results", method="POST", **parts)
    except ToolchainError as error:
        if error.status == 405:
            # below another address it is the path of an item, to which nothing is posted
            error.kind = "not_found"
            error.with_words("there is no repository manager at this address: check url")
        raise
    span = answer.members.get("range")
    trimmed = _trimmed(span if isinstance(span, Mapping) else {}, text, len(answer.rows))
    return Found(answer.rows, trimmed, _moment(answer.headers.get("Date")))


def _trimmed(span: Mapping[str, Any], text: str, rows: int) -> str:
    if span.get("notification"):
        return str(span["notification"])
    limit = str(span.get("limit") or "")
    if limit.isdigit() and rows >= int(limit) and not _LIMIT.search(text):
        return f"the server gives {limit} rows at most"
    return ""


def _moment(date: str | None) -> datetime | None:
    try:
        moment = parsedate_to_datetime(date or "")
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)


def items(criteria: Mapping[str, Any], fields: Sequence[str]) -> str:
    """The text of an item query for these fields, besides those that it always must have."""
    wanted = dict.fromkeys(("repo", "path", "name", *fields))
    return f"items.find({json_text(criteria)}).include({', '.join(map(json_text, wanted))})"


def age(time: timedelta) -> str:
    """A time as the query language takes it: it has weeks, days and minutes, but no hours."""
    if time % (7 * _DAY) == timedelta():
        return f"{time // (7 * _DAY)}w"
    if time % _DAY == timedelta():
        return f"{time // _DAY}d"
    return f"{time // _MINUTE}minutes"
