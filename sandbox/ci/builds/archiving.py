# SPDX-License-Identifier: GPL-3.0-or-later
"""Artifacts of builds and their fingerprints, which are MD5 digests [ci-24]."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sandbox.ci.builds.variables import filled, variables
from sandbox.ci.formats.exports import Exported, constants
from sandbox.context import Context

Artifact = dict[str, Any]


def kept(context: Context, job: dict[str, Any] | None, build: dict[str, Any]) -> list[Artifact]:
    """Store the artifacts that the job of a build defines, and return their records."""
    names = variables(build)
    found: list[Artifact] = []
    for entry in [] if job is None else job["artifacts"]:
        content = _content(context, build, entry, names)
        if content is not None:
            blob = context.store.blobs.put(content)
            path = filled(str(entry["path"]), names)
            found.append(
                {
                    "path": path,
                    "recorded_as": entry.get("recorded_as", path),
                    "sha256": blob.sha256,
                    "md5": blob.md5,
                    "size": blob.size,
                }
            )
    return found


def _content(
    context: Context, build: dict[str, Any], entry: dict[str, Any], names: dict[str, str]
) -> bytes | None:
    """Return the `content` of an artifact, or the uploaded file of its `parameter`."""
    wanted = entry.get("parameter")
    if wanted is None:
        return filled(str(entry.get("content", "")), names).encode()
    for value in build["parameters"]:
        if value["name"] == wanted and value["type"] == "file":
            return context.store.blobs.read(value["value"])
    return None


def exported(build: dict[str, Any]) -> list[Exported]:
    """Return the artifacts of a build. Server fact [ci-24]: they have neither size nor digest."""
    return [
        Exported(
            None,
            constants(
                displayPath=artifact["path"].rpartition("/")[2],
                fileName=artifact["path"].rpartition("/")[2],
                relativePath=artifact["path"],
            ),
            ("displayPath", "fileName", "relativePath"),
        )
        for artifact in build.get("artifacts", [])
    ]


def fingerprints(job: dict[str, Any], build: dict[str, Any]) -> list[Exported]:
    """Return the fingerprints of a build's artifacts if the job records them."""
    if not job["fingerprint"]:
        return []
    return [_fingerprint(build, artifact, []) for artifact in build.get("artifacts", [])]


def _fingerprint(
    build: dict[str, Any], artifact: Artifact, usage: list[dict[str, Any]]
) -> Exported:
    fields = constants(
        fileName=artifact["recorded_as"],
        hash=artifact["md5"],
        original={"name": build["job"], "number": build["number"]},
        timestamp=build["end_ms"],
        usage=usage,
    )
    return Exported("hudson.model.Fingerprint", fields, tuple(fields))


def fingerprint_view(builds: Iterable[dict[str, Any]], md5: str) -> Exported | None:
    """Handle GET /fingerprint/{md5}/api/json: the builds that contain a file with this digest."""
    origin: tuple[dict[str, Any], Artifact] | None = None
    usage: dict[str, list[dict[str, int]]] = {}
    for build in builds:
        for artifact in build.get("artifacts", []):
            if artifact["md5"] == md5.lower():
                origin = origin or (build, artifact)
                number = build["number"]
                usage.setdefault(build["job"], []).append({"start": number, "end": number + 1})
    if origin is None:
        return None
    shown = [{"name": name, "ranges": {"ranges": ranges}} for name, ranges in usage.items()]
    return _fingerprint(*origin, shown)
