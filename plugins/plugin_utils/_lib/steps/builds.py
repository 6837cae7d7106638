# SPDX-License-Identifier: GPL-3.0-or-later
"""Name the builds of a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .run import Result, Run


def list_builds(
    run: Run, jobs: Sequence[Mapping[str, Any]], results: Sequence[Mapping[str, Any]]
) -> Result:
    """Return the builds of a loop over `ci_job_build`. Jobs after a failed job are skipped."""
    return {
        "builds": [
            {
                "job": job["job"],
                "build": result.get("build"),
                "queue_id": result.get("queue_id"),
                "joined": result.get("joined", False),
            }
            for job, result in zip(jobs, results, strict=False)
            if not result.get("skipped")
        ]
    }


def known_builds(run: Run) -> Result:
    """Return the entries of `release_builds` whose build is known before the release begins.

    Without its later promotions a build could look withdrawn, so all entries of a name are known,
    or none.

    :return: `builds`, and `by_results`: whether the result of a CI build may make others known
    """
    given = run.variables.get("release_builds")
    entries = given if isinstance(given, list) else run.evaluated(given)
    entries = entries if isinstance(entries, list) else []
    known, unknown = [], []
    for entry in entries:
        build = run.evaluated(entry)
        if isinstance(build, Mapping) and build.get("build_number") not in (None, ""):
            known.append(build)
        else:
            named = entry.get("build_name") if isinstance(entry, Mapping) else None
            unknown.append(run.evaluated(named))
    return {
        "builds": [
            build
            for build in known
            if None not in unknown and build.get("build_name") not in unknown
        ],
        "by_results": bool(unknown) or "ci_build_results" in str(given),
    }
