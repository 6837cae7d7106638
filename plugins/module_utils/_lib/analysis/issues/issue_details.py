# SPDX-License-Identifier: GPL-3.0-or-later
"""Read issues by id, with their history ([W4.5]: `issue_details`)."""

from __future__ import annotations

from collections.abc import Iterable

from ...core.concurrency import bounded
from ...core.errors import ToolchainError, not_found, protocol, shorten
from ...core.json_text import as_text
from ..client import AnalysisClient, Call
from ..responses import Record, entries

# Server fact [analysis-12]: the documented statuses. No action of the server returns them.
STATUSES = (
    "Analyze",
    "Ignore",
    "Not a Problem",
    "Fix",
    "Fix in Next Release",
    "Fix in Later Release",
    "Defer",
    "Filter",
)


def read(
    client: AnalysisClient, project: str, ids: Iterable[int], parallel: int = 1
) -> dict[int, Record]:
    """Return the issues by id. Raises `not_found` with the ids that do not exist.

    Server facts [analysis-12]: the id in a record is a string, and the response for an unknown id
    may be empty.

    :param parallel: maximum number of concurrent requests
    """

    def read_issue(number: int) -> tuple[int, Record | None]:
        purpose = f"reading the issue {number} of the project '{project}'"
        try:
            found = client.ask(purpose, Call("issue_details", {"project": project, "id": number}))
        except ToolchainError as error:
            is_about_project = (error.detail or "").lower().startswith("project")
            if error.kind != "not_found" or is_about_project:
                raise
            return number, None
        if found and as_text(found[0].get("id")) != str(number):
            raise protocol(f"{purpose}: the response is about another issue")
        return number, {**found[0], "id": number} if found else None

    issues: dict[int, Record] = {}
    missing: list[str] = []
    for number, record in bounded(parallel, read_issue, ids):
        if record is None:
            missing.append(str(number))
        else:
            issues[number] = record
    if missing:
        raise not_found(shorten(f"the project '{project}' has no issue {', '.join(missing)}"))
    return issues


def newest_comment(record: Record) -> str | None:
    """Return the newest comment of an issue, or "" without comments.

    Returns `None` if the record has neither a history nor a comment. Server fact [analysis-12]: an
    entry of the history has `date` (epoch milliseconds), `userid`, `status` and `comment`, which
    may be empty. The order of entries is not documented; it only decides between equal dates.
    """
    if "history" not in record:
        shown = record.get("comment")
        return None if shown is None else str(shown)
    commented = [entry for entry in entries(record, "history") if entry.get("comment")]
    oldest_first = commented == sorted(commented, key=_date)
    newest = max(reversed(commented) if oldest_first else commented, key=_date, default=None)
    return "" if newest is None else str(newest["comment"])


def _date(entry: Record) -> int:
    text = str(entry.get("date"))
    return int(text) if text.isdecimal() else 0
