# SPDX-License-Identifier: GPL-3.0-or-later
"""Search of issues (written interface 4.5; server facts, analysis 4.4)."""

from __future__ import annotations

import re
from typing import Any

from sandbox.analysis import projects
from sandbox.analysis.answers import Call, Record

TERM = re.compile(r"(?:(\w+):)?((?:\+?'[^']*'|\+?\"[^\"]*\"|[^\s,]+)(?:,(?:'[^']*'|[^\s,]+))*)")
KEYWORDS = {
    "file": "file",
    "state": "state",
    "status": "status",
    "code": "code",
    "owner": "owner",
    "id": "id",
    "severity": "severityCode",
    "build": "builds",
    "grouping": "",
}
HIDDEN = ("builds",)


def search(call: Call) -> list[Record]:
    """Matching issues, with `summary=true` a last record that tells what was cut off."""
    project = projects.named(call)
    query = call.text("query") or ""
    view = call.text("view")
    if view is not None:
        query = f"{_view_query(call, view)} {query}".strip()
    wanted, warnings = _conditions(query)
    matching = [issue for issue in projects.inside(call, projects.ISSUES) if _fits(issue, wanted)]
    limit = call.limit()
    shown: list[Record] = [_record(issue) for issue in matching[:limit]]
    if call.boolean("summary"):
        summary = {
            "query": query,
            "project": project["name"],
            "view": view or "",
            "limit": limit,
            "total": len(matching),
            "warnings": warnings,
        }
        shown.append({"summary": summary})
    return shown


def _view_query(call: Call, name: str) -> str:
    for view in projects.inside(call, projects.VIEWS):
        if view["name"] == name:
            return str(view["query"])
    raise call.absent(f"View {name}")


def _record(issue: dict[str, Any]) -> Record:
    return {
        **{key: value for key, value in issue.items() if key not in HIDDEN},
        "issueIds": issue.get("issueIds") or [issue["id"]],
    }


def _conditions(query: str) -> tuple[dict[str, list[str]], list[str]]:
    """Values per keyword ("" is plain text), and a warning for each unknown keyword."""
    wanted: dict[str, list[str]] = {}
    warnings: list[str] = []
    for keyword, value in TERM.findall(query):
        if keyword and keyword.lower() not in KEYWORDS:
            warnings.append(f"Unknown keyword: {keyword}")
            continue
        quoted = value[:1] in "'\"" or value[:2] in ("+'", '+"')
        values = [value] if quoted else value.split(",")
        wanted.setdefault(keyword.lower(), []).extend(values)
    return wanted, warnings


def _fits(issue: dict[str, Any], wanted: dict[str, list[str]]) -> bool:
    """Values of one keyword are alternatives, different keywords must all hold."""
    return all(
        any(_matches(issue, keyword, value) for value in values)
        for keyword, values in wanted.items()
    )


def _matches(issue: dict[str, Any], keyword: str, value: str) -> bool:
    exact = value.startswith("+")
    plain = value.removeprefix("+").strip("'\"").lower()
    if keyword == "grouping":
        return True
    if keyword == "":
        return any(plain in str(issue.get(name, "")).lower() for name in ("message", "title"))
    found = issue.get(KEYWORDS[keyword])
    candidates = [str(entry).lower() for entry in (found if isinstance(found, list) else [found])]
    if keyword == "severity":
        candidates.append(str(issue.get("severity")).lower())
    if exact or keyword in ("id", "severity", "state"):
        return plain in candidates
    # server fact (analysis 4.4): `build:` without a plus sign is a part of the name
    return any(_within(plain, candidate) for candidate in candidates)


def _within(pattern: str, candidate: str) -> bool:
    if "*" in pattern:
        parts = ".*".join(re.escape(part) for part in pattern.split("*"))
        return re.fullmatch(parts, candidate) is not None
    return pattern in candidate
