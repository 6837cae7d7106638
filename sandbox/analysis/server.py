# SPDX-License-Identifier: GPL-3.0-or-later
"""Licenses, tasks, taxonomies and project configurations [W4.5, analysis-4, analysis-6]."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from sandbox.analysis import projects
from sandbox.analysis.responses import Call, Record
from sandbox.context import Context

LICENSES, TASKS, TAXONOMIES = "analysis.license", "analysis.task", "analysis.taxonomy"


def seed_license(context: Context, data: dict[str, Any]) -> None:
    """Store a license of the seed.

    Keys: `feature, version, count, permanent, days_to_expiry, servers`.
    """
    filled = {"version": "24.2", "permanent": True, "days_to_expiry": -1, "servers": [], **data}
    context.store.put(LICENSES, data["feature"], filled)


def license_count(call: Call) -> list[Record]:
    """Return the licenses. Server fact [analysis-4]: `feature` is optional."""
    feature = call.text("feature")
    found = call.context.store.values(LICENSES)
    return [record for record in found if feature is None or record["feature"] == feature]


def task_status(call: Call) -> list[Record]:
    """Return the tasks of the seed. The members of real records are not documented."""
    return call.context.store.values(TASKS)


def taxonomies(call: Call) -> list[Record]:
    issues = projects.inside(call, projects.ISSUES)
    named = dict.fromkeys([*(issue["taxonomyName"] for issue in issues), "C and C++"])
    return [{"name": name, "is_custom": False} for name in named]


def project_configuration(call: Call) -> list[Record]:
    """Return the configuration of a build. Server fact [analysis-6]: all values are strings."""
    builds = {build["name"]: build for build in projects.builds(call)}
    name = call.text("build") or next(iter(builds), "")
    if name not in builds:
        raise call.absent(f"Build {name}")
    created = datetime.fromtimestamp(builds[name]["date"] / 1000, timezone.utc)
    issues = projects.inside(call, projects.ISSUES)
    numbers = {
        "numberOfFiles": len({issue["file"] for issue in issues}),
        "cFilesAnalyzed": len({issue["file"] for issue in issues}),
        "systemFilesAnalyzed": 0,
        "linesOfCode": 1000 * len(issues),
        "linesOfComments": 100 * len(issues),
        "numberOfEntities": 10 * len(issues),
        "numberOfFunctions": 5 * len(issues),
        "numberOfClasses": 0,
    }
    return [
        {
            "build": name,
            "creationDate": created.strftime("%a %b %d %H:%M:%S UTC %Y"),
            "version": str(call.settings["version"]),
            **{member: str(number) for member, number in numbers.items()},
            "taxonomies": ", ".join(taxonomy["name"] for taxonomy in taxonomies(call)),
        }
    ]
