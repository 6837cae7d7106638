# SPDX-License-Identifier: GPL-3.0-or-later
"""Common helpers of Release Lifecycle: the requested bundle, its status, and pages of lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandbox.context import context
from sandbox.repo import permissions
from sandbox.repo.access.responses import refusal
from sandbox.repo.responses import SERVICE, error, iso

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from starlette.requests import Request
    from starlette.responses import Response

    from sandbox.context import Context
    from sandbox.service import Handler

PREFIX = "/lifecycle/api/v2"
KIND, PROMOTION, TRACKER = "repo.bundle", "repo.bundle-promotion", "repo.bundle-tracker"

# A version of a release bundle with the keys `name`, `version`, `repository_key`, `created` (epoch
# milliseconds), `created_by`, `artifacts`, `status` and `messages`.
Bundle = dict[str, Any]


def guarded(handler: Handler) -> Handler:
    """Return a handler that responds with 404 if the setting `lifecycle` is false.

    Server fact [repo-31]: a server without Release Lifecycle responds with the repository manager's
    404.
    """

    def only(request: Request) -> Response | Awaitable[Response]:
        current = context(request)
        if not (current.real(SERVICE) and current.settings(SERVICE)["lifecycle"]):
            raise error(404, "Not Found")
        return handler(request)

    only.__doc__ = handler.__doc__
    return only


def repository_of(request: Request) -> str:
    """Return the key of the repository that stores the requested bundles [repo-33]."""
    query = request.query_params
    return query.get("repository_key") or repository_of_project(query.get("project"))


def repository_of_project(project: str | None) -> str:
    is_default = project in (None, "default")
    return "release-bundles-v2" if is_default else f"{project}-release-bundles-v2"


def key_of(repository: str, name: str, version: str) -> str:
    return f"{repository}/{name}/{version}"


def asked(request: Request, permission: str = permissions.READ) -> str:
    """Return the key under which the requested bundle is stored.

    Raise a 403 without the permission.
    """
    repository, params = repository_of(request), request.path_params
    require(request, permission, repository)
    return key_of(repository, params["name"], params["version"])


def require(request: Request, permission: str, repository: str) -> None:
    if not permissions.may(request, permission, repository):
        raise refusal(403, "FORBIDDEN", f"Forbidden: needs {permission.upper()} on {repository}")


def found(request: Request, permission: str = permissions.READ) -> Bundle:
    """Return the requested bundle; raise a 404 if it does not exist."""
    bundle = context(request).store.get(KIND, asked(request, permission))
    if bundle is None:
        params = request.path_params
        name = f"{params['name']}/{params['version']}"
        raise refusal(404, "NOT_FOUND", f"Release Bundle {name} not found")
    return bundle


def status_of(current: Context, doc: dict[str, Any]) -> str:
    """Return the status of a bundle, promotion or tracker.

    It is `PROCESSING` until the time in the setting `lifecycle_seconds` has passed.
    """
    seconds = current.settings(SERVICE)["lifecycle_seconds"]
    running = current.now_ms() < doc["created"] + 1000 * seconds
    return "PROCESSING" if running else str(doc["status"])


def created(doc: dict[str, Any]) -> dict[str, Any]:
    return {"created": iso(doc["created"]), "created_millis": doc["created"]}


def identity(bundle: Bundle) -> dict[str, Any]:
    return {
        "repository_key": bundle["repository_key"],
        "release_bundle_name": bundle["name"],
        "release_bundle_version": bundle["version"],
    }


def page_of(request: Request, rows: list[Any]) -> tuple[list[Any], dict[str, int]]:
    """Return the requested page of rows, and the members `total`, `limit` and `offset`."""
    query = request.query_params
    offset, limit = int(query.get("offset") or 0), int(query.get("limit") or 25)
    return rows[offset : offset + limit], {"total": len(rows), "limit": limit, "offset": offset}


def moment(current: Context, kind: str, prefix: str) -> int:
    """Return the current time in epoch milliseconds, or the next one that is not in use.

    The creation time identifies a promotion or tracker of a bundle.

    :param prefix: prefix of the keys of the bundle's documents
    """
    taken = {doc["created"] for doc in current.store.values(kind, prefix)}
    now = current.now_ms()
    while now in taken:
        now += 1
    return now
