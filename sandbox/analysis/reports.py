# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports: numbers of issues, metrics, and changed files per build [W4.5, analysis-14]."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sandbox.analysis import projects, search
from sandbox.analysis.responses import Call, Record, Refused
from sandbox.context import Context

METRICS = "analysis.metric"
# Server fact [analysis-14] (reference page): the dimensions of a report.
_AXES = {
    "module": "module",
    "category": "title",
    "severity": "severity",
    "state": "state",
    "status": "status",
    "owner": "owner",
    "error code": "code",
    "component": "file",
}
_DEFAULT_AXES = ("Category", "State")


def seed_metrics(context: Context, project: dict[str, Any]) -> None:
    """Store the `metrics` of a project: `filePath, entity, entity_id, tag, metricValue`."""
    project_id = project.get("id", project["name"])
    for number, metric in enumerate(project.get("metrics") or []):
        context.store.put(METRICS, f"{project_id}/{number:06d}", metric)


def report(call: Call) -> list[Record]:
    """Return a table with the number of issues by two dimensions. The id -1 means that the server
    offers no drill-down.
    """
    build = call.text("build")
    if build is not None:
        _require_build(call, build)
    wanted, warnings = search.conditions(search.with_view(call, call.text("filterQuery") or ""))
    found = [
        issue
        for issue in projects.inside(call, projects.ISSUES)
        if search.fits(call, issue, wanted) and (build is None or build in issue.get("builds", []))
    ]
    if call.boolean("group_issues"):
        found = search.records(found, folded=True)
    for name in ("xDrilldown", "yDrilldown"):
        if call.text(name) is not None:
            warnings.append(f"{name}: there is no lower level")
    x, y = (
        _axis(call.text(name) or default) for name, default in zip("xy", _DEFAULT_AXES, strict=True)
    )
    rows, columns = (_items(str(issue.get(member, "")) for issue in found) for member in (y, x))
    data = [
        [
            sum(
                1
                for issue in found
                if str(issue.get(y, "")) == row["name"] and str(issue.get(x, "")) == column["name"]
            )
            for column in columns
        ]
        for row in rows
    ]
    return [{"rows": rows, "columns": columns, "data": data, "warnings": warnings}]


def _axis(name: str) -> str:
    if name.lower() not in _AXES:
        raise Refused(400, f"Unknown dimension: {name}")
    return _AXES[name.lower()]


def _items(names: Iterable[str]) -> list[dict[str, Any]]:
    return [{"id": -1, "name": name} for name in sorted(set(names))]


def _require_build(call: Call, name: str) -> None:
    if all(build["name"] != name for build in projects.inside(call, projects.BUILDS)):
        raise call.absent(f"Build {name}")


def metrics(call: Call) -> list[Record]:
    """Return metrics of the files that match the keyword `file` of the query. Other keywords are
    ignored. With `aggregate`, return sum, minimum and maximum per metric.
    """
    wanted, _warnings = search.conditions(search.with_view(call, call.text("query") or ""))
    files = {keyword: values for keyword, values in wanted.items() if keyword == "file"}
    found = [
        metric
        for metric in projects.inside(call, METRICS)
        if search.fits(call, {"file": metric["filePath"]}, files)
    ][: call.limit()]
    if call.boolean("aggregate"):
        return [_aggregated(tag, found) for tag in dict.fromkeys(record["tag"] for record in found)]
    return found


def _aggregated(tag: str, found: list[dict[str, Any]]) -> Record:
    values = [record["metricValue"] for record in found if record["tag"] == tag]
    return {
        "tag": tag,
        "sum": sum(values),
        "min": min(values),
        "max": max(values),
        "entries": len(values),
    }


def fchurns(call: Call) -> list[Record]:
    """Return the number of changed files per build.

    Server fact [analysis-14]: real servers require `project`. The interface description has only
    `component`, so all projects are counted there.
    """
    component = call.text("component") or ""
    store = call.context.store
    found = [projects.named(call)] if call.real else store.values(projects.PROJECTS)
    builds = [
        build for project in found for build in store.values(projects.BUILDS, f"{project['id']}/")
    ]
    latest = call.text("latestBuilds")
    if latest is not None:
        builds = sorted(builds, key=lambda build: build["date"])[-int(latest) :]
    counts = [
        sum(
            count
            for name, count in (build.get("churns") or {}).items()
            if component.lower() in name.lower()
        )
        for build in builds
    ]
    columns = [{"id": -1, "name": build["name"]} for build in builds]
    return [
        {"rows": [{"id": -1, "name": component or "System"}], "columns": columns, "data": [counts]}
    ]
