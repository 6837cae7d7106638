# SPDX-License-Identifier: GPL-3.0-or-later
"""Promote release bundles to environments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

from sandbox.context import context
from sandbox.repo import permissions, repositories
from sandbox.repo.access.responses import body_of, refusal
from sandbox.repo.items.tree import Tree
from sandbox.repo.lifecycle.responses import (
    PROMOTION,
    Bundle,
    created,
    found,
    identity,
    key_of,
    moment,
    page_of,
    repository_of_project,
    status_of,
)
from sandbox.repo.responses import user_name

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from sandbox.context import Context


async def promote(request: Request) -> Response:
    """Handle POST /promotion/records/{name}/{version} [repo-33].

    Copy or move the artifacts of the bundle to the included repositories.
    """
    current, bundle = context(request), found(request, permissions.DEPLOY)
    body = await body_of(request)
    if not body.get("environment"):
        raise refusal(400, "BAD_REQUEST", "environment is required")
    included = body.get("included_repository_keys") or []
    for key in included:
        if not repositories.is_local(current, key):
            raise refusal(400, "BAD_REQUEST", f"Repository {key} is not a local repository")
    prefix = f"{_key(bundle)}/"
    doc = {
        "created": moment(current, PROMOTION, prefix),
        "created_by": user_name(request),
        "environment": body["environment"],
        "included_repository_keys": included,
        "excluded_repository_keys": body.get("excluded_repository_keys") or [],
        "status": "COMPLETED",
        "messages": [],
    }
    with current.store.transaction():
        for target in included:
            _relocate(request, current, bundle, target)
        current.store.put(PROMOTION, f"{prefix}{doc['created']:015d}", doc)
    background = request.query_params.get("async", "true") == "true"
    shown = {name: doc[name] for name in ("environment", "included_repository_keys")}
    status = 202 if background else 201
    return JSONResponse({**identity(bundle), **shown, **created(doc)}, status)


def _relocate(request: Request, current: Context, bundle: Bundle, target: str) -> None:
    tree, user = Tree(current), user_name(request)
    for item in bundle["artifacts"]:
        node = tree.get(item["source_repository_key"], item["path"])
        if node is None or node["repo"] == target:
            continue
        relocate = tree.move if request.query_params.get("operation") == "move" else tree.copy
        relocate(node, target, node["path"], user)


def store(current: Context, seed: dict[str, Any]) -> None:
    """Store the promotions of a bundle in the seed, whose keys `RepoService` describes."""
    key = key_of(repository_of_project(seed.get("project")), seed["name"], seed["version"])
    for given in seed.get("promotions", []):
        doc = {
            "created_by": "admin",
            "included_repository_keys": [],
            "excluded_repository_keys": [],
            "status": "COMPLETED",
            "messages": [],
            **given,
        }
        current.store.put(PROMOTION, f"{key}/{doc['created']:015d}", doc)


def _key(bundle: Bundle) -> str:
    return key_of(bundle["repository_key"], bundle["name"], bundle["version"])


def _all(current: Context, bundle: Bundle) -> list[dict[str, Any]]:
    """Return the promotions of a bundle, newest first."""
    return current.store.values(PROMOTION, f"{_key(bundle)}/")[::-1]


def records(request: Request) -> Response:
    """Handle GET /promotion/records/{name}/{version} [repo-33]: list promotions, newest first."""
    current, bundle = context(request), found(request)
    page, counts = page_of(request, _all(current, bundle))
    names = ("environment", "created_by")
    rows = [
        {
            "status": status_of(current, doc),
            **identity(bundle),
            **{name: doc[name] for name in names},
            **created(doc),
            **(
                {"messages": doc["messages"]}
                if "MSG" in request.query_params.get("include", "")
                else {}
            ),
        }
        for doc in page
    ]
    return JSONResponse({"promotions": rows, **counts})


def _promotion(request: Request, bundle: Bundle) -> dict[str, Any]:
    millis = request.path_params["millis"]
    for doc in _all(context(request), bundle):
        if str(doc["created"]) == millis:
            return doc
    raise refusal(404, "NOT_FOUND", f"Promotion {millis} not found")


def status(request: Request) -> Response:
    """Handle GET /promotion/statuses/{name}/{version}/{millis} [repo-33]: return the status."""
    doc = _promotion(request, found(request))
    shown = status_of(context(request), doc)
    return JSONResponse({"status": shown, "messages": doc["messages"]})


def details(request: Request) -> Response:
    """Handle GET /promotion/records/{name}/{version}/{millis} [repo-33]: return a promotion."""
    bundle = found(request)
    doc = _promotion(request, bundle)
    names = (
        "environment",
        "created_by",
        "included_repository_keys",
        "excluded_repository_keys",
    )
    shown = {name: doc[name] for name in names}
    return JSONResponse({**shown, **created(doc), "artifacts": bundle["artifacts"]})
