# SPDX-License-Identifier: GPL-3.0-or-later
"""Publish build records and append modules to them [repo-29]."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from sandbox.context import Context, context
from sandbox.repo import permissions
from sandbox.repo.builds.builds import Build, of_number, save
from sandbox.repo.items.tree import BY_SHA1, CONTENT
from sandbox.repo.responses import error, user_name
from sandbox.service import json_body

if TYPE_CHECKING:
    from starlette.requests import Request

_TYPES = (
    "application/json",
    "application/vnd.org.jfrog.build.BuildInfo+json",
    "application/vnd.org.jfrog.artifactory+json",
    "application/vnd.org.jfrog.build.BuildInfoModule+json",
)
# the server only accepts times with milliseconds and an offset without a colon
_STARTED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d{4}")
_FIELDS = (
    "version",
    "name",
    "number",
    "type",
    "buildAgent",
    "agent",
    "started",
    "durationMillis",
    "principal",
    "url",
    "vcs",
    "vcsRevision",
    "vcsUrl",
    "licenseControl",
    "buildRetention",
    "properties",
    "modules",
    "statuses",
    "issues",
    "governance",
)
_ITEM_FIELDS = {
    "artifacts": ("type", "sha1", "sha256", "md5", "name", "path", "originalDeploymentRepo"),
    "dependencies": ("type", "sha1", "sha256", "md5", "id", "scopes", "requestedBy"),
}


async def upload(request: Request) -> Response:
    """Handle PUT /api/build: store a build record, whether or not its artifacts exist.

    A record with the same number and start time is overwritten; with another start time, the number
    gets an additional record. Unknown fields are dropped, and missing digests are added.
    """
    current = context(request)
    info = await _sent(request)
    if not isinstance(info, dict):
        raise error(400, "Bad Request")
    if not all(info.get(name) for name in ("name", "number", "started")):
        raise error(400, "Build model must contain build name, number and started timestamp")
    if not _STARTED.fullmatch(str(info["started"])):
        raise error(400, f"Invalid format: {info['started']}")
    moment = datetime.strptime(info["started"], "%Y-%m-%dT%H:%M:%S.%f%z")
    build: Build = {
        "name": str(info["name"]),
        "number": str(info["number"]),
        "started": int(moment.timestamp() * 1000),
        "project": permissions.project_of(request),
    }
    _require(request, build)
    kept = {field: info[field] for field in _FIELDS if info.get(field) not in (None, [], {})}
    modules = _modules(current, info.get("modules"))
    kept |= {"number": build["number"], "modules": modules}
    kept["artifactoryPrincipal"] = user_name(request)
    save(current, {**build, "info": kept})
    return Response(status_code=204)


async def _sent(request: Request) -> Any:
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind not in _TYPES:
        raise error(415, "Unsupported Media Type")
    return json_body(await request.body())


def _require(request: Request, build: Build) -> None:
    """Raise a 403 if the user may not publish a record.

    Server fact [repo-29]: this requires DEPLOY, and also DELETE if a record is overwritten.
    """
    current, name, number = context(request), build["name"], build["number"]
    key, started = permissions.builds_key(current, build["project"]), build["started"]
    wanted = [permissions.DEPLOY]
    runs = of_number(current, name, number, build["project"])
    if any(run["started"] == started for run in runs):
        wanted.append(permissions.DELETE)
    if all(permissions.may(request, permission, key) for permission in wanted):
        return
    place = f"'{name}/{number}-{started}.json' into '{key}:{name}/{number}-{started}.json'"
    raise error(403, f"User {user_name(request)} is not permitted to deploy {place}")


def _modules(current: Context, sent: Any) -> list[dict[str, Any]]:
    return [_module(current, module) for module in sent or []]


def _module(current: Context, sent: dict[str, Any]) -> dict[str, Any]:
    found = {name: sent[name] for name in ("id", "type", "properties") if sent.get(name)}
    for part, fields in _ITEM_FIELDS.items():
        items = [
            _with_digests(current, {name: item[name] for name in fields if item.get(name)})
            for item in sent.get(part) or []
        ]
        if items:
            found[part] = items
    return found


def _with_digests(current: Context, item: dict[str, Any]) -> dict[str, Any]:
    """Return the item with the digests that are missing, if the server has stored its content."""
    by_sha1 = current.store.get(BY_SHA1, str(item.get("sha1", ""))) or {}
    sha256 = item.get("sha256") or by_sha1.get("sha256", "")
    known = current.store.get(CONTENT, sha256)
    if known is None:
        return item
    return {"sha1": known["sha1"], "md5": known["md5"], "sha256": sha256, **item}


async def append(request: Request) -> Response:
    """Handle POST /api/build/append/{name}/{number}: append modules to a build record.

    A module is appended even if the record already has a module with the same id.
    """
    current = context(request)
    name, number = request.path_params["name"], request.path_params["number"]
    permissions.require_for_builds(request, permissions.DEPLOY, name, number)
    sent = await _sent(request)
    if not isinstance(sent, list):
        raise error(400, "Bad Request")
    found = of_number(current, name, number, permissions.project_of(request))
    if not found:
        raise error(404, "No builds were found")
    build: Build = found[-1]
    build["info"].setdefault("modules", []).extend(_modules(current, sent))
    save(current, build)
    return Response(status_code=204)
