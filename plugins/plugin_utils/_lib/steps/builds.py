# SPDX-License-Identifier: GPL-3.0-or-later
"""Name the builds of a release, and what it promotes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....module_utils._lib.core.errors import invalid
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


#: Keys of an entry that identify what it promotes.
_BUILD, _BUNDLE = ("build_name", "build_number"), ("name", "version")
#: Options that tell a later promotion of the same build.
_LATER = (*_BUILD, "project", "status", "target_repo")


def entries(run: Run, name: str) -> list[dict[str, Any]]:
    """Return a list of entries. Options that use a result of a later task are `None`."""
    given = run.variables.get(name)
    listed = given if isinstance(given, list) else run.evaluated(given)
    found = []
    for entry in listed if isinstance(listed, list) else ():
        read = entry if isinstance(entry, Mapping) else run.evaluated(entry)
        read = read if isinstance(read, Mapping) else {}
        found.append({str(key): run.evaluated(value) for key, value in read.items()})
    return found


def soaked(run: Run, of: str) -> Result:
    """Return the entries with `soak` that can be decided before the first write: those that no
    earlier entry promotes to the stage. `copy_files` is the option `copy`, which Jinja hides.

    :param of: prefix of the variables
    """
    builds, images, bundles = (
        entries(run, f"{of}_{kind}") for kind in ("builds", "images", "bundles")
    )
    for place, entry in enumerate(bundles):
        if entry.get("soak") and "environment" not in entry:
            raise invalid(f"{of}_bundles[{place}].soak requires environment: set it")
    return {
        "builds": [
            {**entry, "followed_by": _later(builds[place + 1 :])}
            for place, entry in enumerate(builds)
            if _is_known(entry, _BUILD)
            and not any(_promotes_build(earlier, entry) for earlier in builds[:place])
        ],
        "images": [
            entry
            for entry in images
            if _is_known(entry, ("repo", "target_repo", "image", "tag"))
            and not any(_may_be(build, "status", entry["soak"]) for build in builds)
        ],
        "bundles": [
            entry
            for place, entry in enumerate(bundles)
            if _is_known(entry, (*_BUNDLE, "environment"))
            and not any(_promotes_bundle(earlier, entry) for earlier in bundles[:place])
        ],
    }


def _is_known(entry: dict[str, Any], names: Sequence[str]) -> bool:
    """Return whether an entry has to be decided, and is known. Adds `check_only` and `copy_files`.

    An invalid `soak` is kept: the module rejects it.
    """
    if not entry.get("soak") or any(entry.get(name) in (None, "") for name in names):
        return False
    if isinstance(entry["soak"], Mapping):
        entry["soak"] = {**entry["soak"], "check_only": True}
    if entry.get("copy") is not None:
        entry["copy_files"] = entry["copy"]
    return True


def _may_be(entry: Mapping[str, Any], name: str, wanted: Any) -> bool:
    """Return whether an option may have the wanted value. A result of a later task may be it."""
    value = entry.get(name, "")
    wanted = wanted.get(name) if isinstance(wanted, Mapping) else None
    return value is None or str(value) == str(wanted)


def _promotes_build(earlier: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    """Return whether an earlier entry may promote the build to the stage, also as a part of an
    aggregated build.
    """
    same = all(_may_be(earlier, name, entry) for name in _BUILD)
    follows = earlier.get("aggregated", "") in ("follow", None)
    return _may_be(earlier, "status", entry["soak"]) and (same or follows)


def _promotes_bundle(earlier: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    same = all(_may_be(earlier, name, entry) for name in _BUNDLE)
    return same and _may_be(earlier, "environment", entry["soak"])


def _later(following: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries for the option `followed_by`."""
    return [
        {name: entry[name] for name in _LATER if entry.get(name) is not None}
        for entry in following
        if entry.get("build_name")
    ]
