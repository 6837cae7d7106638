# SPDX-License-Identifier: GPL-3.0-or-later
"""Search of issues [W4.5, analysis-15]."""

from __future__ import annotations

import re
from typing import Any

from sandbox.analysis import projects
from sandbox.analysis.responses import Call, Record, Refused

_TERM = re.compile(r"""(?:[^\s'"]|'[^']*'|"[^"]*")+""")
_VALUE = re.compile(r"""(?:[^,'"]|'[^']*'|"[^"]*")+""")
_RANGE = re.compile(r"(\d+)-(\d+)")
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
# Keywords that the interface description lacks.
_REAL_ONLY = ("grouping",)
HIDDEN = ("builds", "group", "history")

Conditions = dict[str, list[str]]


def search(call: Call) -> list[Record]:
    """Return matching issues. With `summary=true`, add a record with the total and the limit."""
    project = projects.named(call)
    query = with_view(call, call.text("query") or "")
    wanted, warnings = conditions(query, call.real)
    matching = [
        issue for issue in projects.inside(call, projects.ISSUES) if fits(call, issue, wanted)
    ]
    listed = records(matching, folded=call.real and wanted.get("grouping") != ["off"])
    limit = call.limit() if call.text("limit") is not None else call.settings["search_limit"]
    shown = listed[:limit]
    if call.boolean("summary") and call.settings["search_summary"]:
        summary = {
            "query": query,
            "project": project["name"],
            "view": call.text("view") or "",
            "limit": limit,
            "total": len(listed),
            "warnings": warnings,
        }
        shown.append({"summary": summary})
    return shown


def with_view(call: Call, query: str) -> str:
    """Return the query of the parameter `view`, if there is one, joined with another query."""
    name = call.text("view")
    if name is None:
        return query
    for view in projects.inside(call, projects.VIEWS):
        if view["name"] == name:
            return f"{view['query']} {query}".strip()
    raise call.absent(f"View {name}")


def records(issues: list[dict[str, Any]], *, folded: bool) -> list[Record]:
    """Convert issues to records.

    Server fact [analysis-15]: without `grouping:off`, a group of issues is a single record that
    contains their ids.
    """
    members: dict[Any, list[int]] = {}
    for issue in issues:
        key = issue.get("group") if folded else None
        members.setdefault(("alone", issue["id"]) if key is None else key, []).append(issue["id"])
    by_id = {issue["id"]: issue for issue in issues}
    return [
        {
            **{name: value for name, value in by_id[ids[0]].items() if name not in HIDDEN},
            "issueIds": ids,
        }
        for ids in members.values()
    ]


def conditions(query: str, real: bool = True) -> tuple[Conditions, list[str]]:
    """Parse a query. Return the values per keyword, and a warning for each unknown keyword.

    The keyword "" contains free text. The interface description [W4.5] has a single build per
    search; that the server rejects several builds is an assumption.
    """
    wanted: Conditions = {}
    warnings: list[str] = []
    for term in _TERM.findall(query):
        keyword, colon, value = term.partition(":")
        if not colon or not keyword.isalnum():
            keyword, value = "", term
        keyword = keyword.lower()
        if keyword and (keyword not in KEYWORDS or (keyword in _REAL_ONLY and not real)):
            warnings.append(f"Unknown keyword: {keyword}")
            continue
        wanted.setdefault(keyword, []).extend(_VALUE.findall(value))
    if len(wanted.get("build", [])) > 1:
        raise Refused(400, "Only one build can be searched for")
    return wanted, warnings


def fits(call: Call, issue: dict[str, Any], wanted: Conditions) -> bool:
    """Return whether an issue matches at least one value of every keyword."""
    return all(
        any(_matches(call, issue, keyword, value) for value in values)
        for keyword, values in wanted.items()
    )


def _matches(call: Call, issue: dict[str, Any], keyword: str, value: str) -> bool:
    exact = value.startswith("+")
    plain = value.removeprefix("+").strip("'\"").lower()
    if keyword == "grouping" or (keyword == "build" and plain == "any"):
        return True
    if keyword == "":
        return any(plain in str(issue.get(name, "")).lower() for name in ("message", "title"))
    found = issue.get(KEYWORDS[keyword])
    candidates = [str(entry).lower() for entry in (found if isinstance(found, list) else [found])]
    if keyword == "severity":
        return _of_severity(issue, plain)
    if keyword == "build" and call.settings["build_search"] == "exact":
        exact = True
    if exact or keyword in ("id", "state"):
        return plain in candidates
    # server fact [analysis-16]: `build:` without a plus sign matches a substring of the name
    return any(_within(plain, candidate) for candidate in candidates)


def _of_severity(issue: dict[str, Any], wanted: str) -> bool:
    """Return whether the severity matches a name, a number, or a range such as `1-3`
    [analysis-16].
    """
    limits = _RANGE.fullmatch(wanted)
    if limits:
        return int(limits[1]) <= int(issue["severityCode"]) <= int(limits[2])
    return wanted in (str(issue["severityCode"]), str(issue["severity"]).lower())


def _within(pattern: str, candidate: str) -> bool:
    if "*" in pattern:
        parts = ".*".join(re.escape(part) for part in pattern.split("*"))
        return re.fullmatch(parts, candidate) is not None
    return pattern in candidate
