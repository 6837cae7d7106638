# SPDX-License-Identifier: GPL-3.0-or-later
"""Distribute release bundles to edge sites, and delete them there."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

from sandbox.context import context
from sandbox.repo import permissions
from sandbox.repo.access.responses import body_of, refusal
from sandbox.repo.lifecycle.responses import (
    TRACKER,
    Bundle,
    created,
    found,
    key_of,
    moment,
    status_of,
)
from sandbox.repo.responses import SERVICE
from sandbox.service import Handler

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from starlette.requests import Request
    from starlette.responses import Response

    from sandbox.context import Context


def handler(kind: str) -> Handler:
    """Return the handler of POST /distribution/distribute/… or /distribution/remote_delete/…"""

    def start(request: Request) -> Awaitable[Response]:
        return _start(request, kind)

    return start


async def _start(request: Request, kind: str) -> Response:
    """Start a distribution or a remote deletion [repo-33] and return the id of its tracker.

    The setting `sites` lists the edge sites of the platform.
    """
    current, body = context(request), await body_of(request)
    bundle = found(request, permissions.DEPLOY)
    rules = body.get("distribution_rules") or []
    names = current.settings(SERVICE)["sites"]
    sites = [
        name
        for name in names
        if any(fnmatchcase(name, rule.get("site_name", "*")) for rule in rules)
    ]
    if not sites:
        raise refusal(400, "BAD_REQUEST", "no site matches the distribution rules")
    prefix = f"{_key(bundle)}/"
    doc = {
        "created": moment(current, TRACKER, prefix),
        "type": kind,
        "rules": rules,
        "sites": sites,
        "status": "COMPLETED",
    }
    if not body.get("dry_run"):
        current.store.put(TRACKER, f"{prefix}{doc['created']:015d}", doc)
    return JSONResponse({"id": doc["created"]}, 202)


def _key(bundle: Bundle) -> str:
    return key_of(bundle["repository_key"], bundle["name"], bundle["version"])


def trackers(request: Request) -> Response:
    """Handle GET /distribution/trackers/{name}/{version} [repo-33]: list all trackers."""
    current, bundle = context(request), found(request)
    rows = current.store.values(TRACKER, f"{_key(bundle)}/")
    return JSONResponse([_shown(current, doc) for doc in rows])


def tracker(request: Request) -> Response:
    """Handle GET /distribution/trackers/{name}/{version}/{id} [repo-33]: return a tracker."""
    current, bundle = context(request), found(request)
    for doc in current.store.values(TRACKER, f"{_key(bundle)}/"):
        if str(doc["created"]) == request.path_params["id"]:
            return JSONResponse(_shown(current, doc))
    raise refusal(404, "NOT_FOUND", "Tracker not found")


def _shown(current: Context, doc: dict[str, Any]) -> dict[str, Any]:
    status = status_of(current, doc)
    return {
        "id": doc["created"],
        "type": doc["type"],
        "status": status,
        "distribution_rules": doc["rules"],
        "sites": [
            {"status": status, "general_error": "", "target_artifactory": {"name": name}}
            for name in doc["sites"]
        ],
        **created(doc),
    }
