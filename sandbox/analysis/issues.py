# SPDX-License-Identifier: GPL-3.0-or-later
"""Single issues: details, history, status [W4.5, analysis-12]."""

from __future__ import annotations

from typing import Any

from sandbox.analysis import permissions, projects
from sandbox.analysis.responses import Call, Record, Refused

# Server fact [analysis-12]: the predefined statuses of a server.
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
_COPIED = ("code", "severity", "owner", "state", "status")


def _key(call: Call, number: str) -> str:
    if not number.isdigit():
        raise Refused(400, f"Invalid value for integer parameter id: {number}")
    return f"{projects.named(call)['id']}/{int(number):09d}"


def issue_details(call: Call) -> list[Record]:
    """Return a record for the issue, with the id as a string.

    Servers differ for an unknown id, so the setting `unknown_issue` selects an empty response or an
    error.
    """
    number = call.required("id")
    issue = call.context.store.get(projects.ISSUES, _key(call, number))
    if issue is None:
        response = call.settings["unknown_issue"]
        if response == "empty" or (response is None and call.real):
            return []
        raise call.absent(f"Issue {number}")
    record = {
        "id": str(issue["id"]),
        "name": issue["title"],
        "location": issue["file"],
        "build": (issue.get("builds") or [""])[-1],
        **{name: issue[name] for name in _COPIED},
        "history": issue.get("history") or [],
    }
    if call.boolean("include_xsync"):
        record["xsync"] = []
    return [record]


def update_status(call: Call) -> None:
    """Change all issues of `ids`, or none if an id is invalid. Add entries to their histories."""
    ids = call.required("ids").split(",")
    status = _known_status(call)
    owner, comment = call.text("owner"), call.text("comment")
    found: dict[str, dict[str, Any]] = {}
    for number in ids:
        key = _key(call, number.strip())
        issue = call.context.store.get(projects.ISSUES, key)
        if issue is None:
            raise call.absent(f"Issue {number}")
        found[key] = issue
    for issue in found.values():
        permissions.require_transition(call, issue["status"], status or issue["status"])
    for key, issue in found.items():
        issue["status"] = status or issue["status"]
        issue["owner"] = owner or issue["owner"]
        if call.text("bug_tracker_id"):
            issue["bugTrackerId"] = call.text("bug_tracker_id")
        history = issue.get("history") or []
        entry = {
            # each entry has a different timestamp, so the newest entry is unambiguous
            "date": max(call.context.now_ms(), *(change["date"] + 1 for change in history), 0),
            "userid": call.form.get("user", ""),
            "status": issue["status"],
            "comment": comment or "",
        }
        issue["history"] = [*history, entry]
        call.context.store.put(projects.ISSUES, key, issue)


def _known_status(call: Call) -> str | None:
    given = call.text("status")
    if not given:
        return None
    for status in STATUSES:
        if status.lower() == given.lower():
            return status
    raise Refused(400, f"Invalid status: {given}")
