# SPDX-License-Identifier: GPL-3.0-or-later
"""Read, create, update and delete repositories, individually and in batches."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, PlainTextResponse, Response

from sandbox.context import Context, context
from sandbox.repo import permissions, repositories
from sandbox.repo.access import responses as access
from sandbox.repo.items.tree import Tree
from sandbox.repo.repository_fields import OTHER_FIELDS, OWN_FIELDS, defaults
from sandbox.repo.responses import SERVICE, account, error, require_admin
from sandbox.service import json_body

if TYPE_CHECKING:
    from starlette.requests import Request

_CLASSES = ("local", "remote", "virtual", "federated")
_MAX_REPOSITORIES = 100
_BAD_KEY = re.compile(r"[\s/\\:|?*\"<>]")
_CONFLICTS, _BEFORE = "repo.descriptor conflicts", "repo.repository before"


def read(request: Request) -> Response:
    """Return the configuration of a repository (GET /api/repositories/{key}).

    Server fact [repo-60]: accounts that are not administrators get only a part of it.
    """
    current, key = context(request), request.path_params["key"]
    doc = _readable(current, key)
    if doc is None:
        raise error(400, "Bad Request")
    if not permissions.may_read(request, key):
        raise permissions.refused(request, permissions.READ, key)
    shown = configuration(doc)
    if not account(request).get("admin", False):
        names = ("key", "rclass", "packageType", "description", "url", "repositories")
        shown = {name: shown[name] for name in names if name in shown}
        if shown["rclass"] == "virtual":
            shown["defaultDeploymentRepo"] = doc.get("defaultDeploymentRepo", "")
    return JSONResponse(shown)


def configuration(doc: dict[str, Any], *, whole: bool = True) -> dict[str, Any]:
    """Return a repository in the format of a response [repo-60].

    :param whole: whether to include the fields of the package type
    """
    rclass = doc["type"].lower()
    found = {"key": doc["key"], "rclass": rclass, "packageType": doc["packageType"]}
    for name, default in defaults(rclass, doc["packageType"]).items():
        if whole or name in OWN_FIELDS[rclass]:
            found[name] = doc.get(name, default)
    if whole:
        found |= {name: doc[name] for name in sorted(OTHER_FIELDS & doc.keys())}
    if found.get("password"):
        found["password"] = "AM.encrypted-by-the-server"
    return found


def configurations(request: Request) -> Response:
    """Handle GET /api/repositories/configurations: list all configurations by class.

    Server fact [repo-61]: the list does not contain the fields of the package type.
    """
    current = context(request)
    if not current.settings(SERVICE)["repository_configurations"]:
        raise error(400, "Bad Request")
    require_admin(request)
    rclass = request.query_params.get("repoType")
    package = request.query_params.get("packageType")
    found: dict[str, list[dict[str, Any]]] = {}
    for doc in current.store.values(repositories.KIND):
        wanted = rclass is None or rclass.upper() == doc["type"]
        if wanted and package in (None, doc["packageType"]):
            found.setdefault(doc["type"], []).append(configuration(doc, whole=False))
    return JSONResponse(found)


async def create(request: Request) -> Response:
    """Handle PUT /api/repositories/{key} [repo-60]: create a repository; 400 if it exists."""
    require_admin(request)
    key, current = request.path_params["key"], context(request)
    given = json_body(await request.body())
    _refuse_conflict(current)
    _create(current, key, given)
    return PlainTextResponse(f"Successfully created repository '{key}' \n")


async def update(request: Request) -> Response:
    """Handle POST /api/repositories/{key} [repo-60]: change the given fields of a repository."""
    require_admin(request)
    key, current = request.path_params["key"], context(request)
    given = json_body(await request.body())
    _refuse_conflict(current)
    _update(current, key, given)
    return PlainTextResponse(f"Repository {key} update successfully.\n")


def delete(request: Request) -> Response:
    """Handle DELETE /api/repositories/{key} [repo-60]: delete a repository with its content."""
    require_admin(request)
    key, current = request.path_params["key"], context(request)
    if repositories.find(current, key) is None:
        raise error(400, "Bad Request")
    _refuse_conflict(current)
    tree = Tree(current)
    if tree.get(key, "") is not None:
        tree.remove(key, "")
    current.store.delete(repositories.KIND, key)
    for other in current.store.values(repositories.KIND):
        if key in other.get("repositories", []):
            other["repositories"] = [
                repository for repository in other["repositories"] if repository != key
            ]
            current.store.put(repositories.KIND, other["key"], other)
    return PlainTextResponse(
        f"Repository {key} and all its content have been removed successfully.\n"
    )


def batch_read(request: Request) -> Response:
    """Handle GET /api/v2/repositories/batch [repo-61]: return the repositories that exist."""
    current = _batch(request)
    names = request.query_params.getlist("names")
    if not names:
        raise error(400, "Repository keys are missing.")
    if len(names) > _MAX_REPOSITORIES:
        raise error(
            400, f"Repository item limit exceeded: {len(names)}. Limit: {_MAX_REPOSITORIES}"
        )
    found = {name: _readable(current, name) for name in names}
    return JSONResponse({name: configuration(doc) for name, doc in found.items() if doc})


async def batch_write(request: Request) -> Response:
    """Handle PUT and POST /api/v2/repositories/batch: create or update repositories.

    Server fact [repo-61]: an invalid repository rejects the whole batch.
    """
    current = _batch(request)
    given = json_body(await request.body())
    if not isinstance(given, list) or len(given) > _MAX_REPOSITORIES:
        raise error(400, "Bad Request")
    _refuse_conflict(current)
    creates = request.method == "PUT"
    write = _create if creates else _update
    with current.store.transaction():
        for settings in given:
            write(current, str(settings.get("key")), settings)
    done = "created" if creates else "updated"
    text = "".join(f"Successfully {done} repository '{entry['key']}' \n" for entry in given)
    return PlainTextResponse(text, 201 if creates else 200)


def attach(request: Request) -> Response:
    """Handle PUT and DELETE …/attach/repositories/{repo}/{project} [repo-60].

    Assign a repository to a project, or remove it from its project.
    """
    access.require_admin(request)
    current, key = context(request), request.path_params["repo"]
    doc = repositories.find(current, key)
    if doc is None:
        raise access.absent(f"Repository '{key}'")
    project = request.path_params.get("project", "")
    if project and doc.get("projectKey") and request.query_params.get("force") != "true":
        raise access.refusal(409, "CONFLICT", f"Repository '{key}' belongs to a project")
    current.store.put(repositories.KIND, key, {**doc, "projectKey": project})
    return Response(status_code=204)


def _batch(request: Request) -> Context:
    current = context(request)
    if not current.settings(SERVICE)["repository_batch"]:
        raise error(404, "Not Found")
    require_admin(request)
    return current


def _readable(current: Context, key: str) -> dict[str, Any] | None:
    """Return a repository as a read returns it.

    Server fact [repo-60]: reads may return the previous state for a while. The setting
    `repository_lag` is the number of such reads.
    """
    before = current.store.get(_BEFORE, key)
    if before is None or before["reads"] >= current.settings(SERVICE)["repository_lag"]:
        return repositories.find(current, key)
    current.store.put(_BEFORE, key, {**before, "reads": before["reads"] + 1})
    found: dict[str, Any] | None = before["doc"]
    return found


def _refuse_conflict(current: Context) -> None:
    """Raise a 400 for a collision with another change of the configuration [repo-60].

    The setting `descriptor_conflicts` is the number of changes that fail.
    """
    seen = (current.store.get(_CONFLICTS, "") or {"count": 0})["count"]
    if seen < current.settings(SERVICE)["descriptor_conflicts"]:
        current.store.put(_CONFLICTS, "", {"count": seen + 1})
        raise error(400, "Could not merge and save new descriptor [400]")


def _create(current: Context, key: str, given: Any) -> None:
    rclass = given.get("rclass") if isinstance(given, dict) else None
    if rclass not in _CLASSES:
        raise error(400, "rclass is missing or unknown")
    if not key or len(key) > 64 or _BAD_KEY.search(key):
        raise error(400, f"Invalid repository key '{key}'")
    if any(key.lower() == other.lower() for other in current.store.keys(repositories.KIND)):
        raise error(400, f"Case insensitive repository key {key} already exists")
    if rclass == "remote" and not given.get("url"):
        raise error(400, "URL cannot be empty or null")
    package = str(given.get("packageType") or "generic").lower()
    doc = {"key": key, "type": rclass.upper(), "packageType": package}
    _store(current, doc, given)
    if rclass in ("local", "federated"):
        Tree(current).make_folder(key, "", "admin")


def _update(current: Context, key: str, given: Any) -> None:
    doc = repositories.find(current, key)
    if doc is None or not isinstance(given, dict):
        raise error(400, "Bad Request")
    if given.get("rclass", doc["type"].lower()) != doc["type"].lower():
        raise error(400, "rclass cannot be changed")
    _store(current, doc, given)


def _store(current: Context, doc: dict[str, Any], given: dict[str, Any]) -> None:
    """Store the known fields of a request; unknown fields are dropped [repo-60]."""
    rclass, key = doc["type"].lower(), doc["key"]
    known = {*defaults(rclass, doc["packageType"]), *OTHER_FIELDS}
    for member in given.get("repositories") or []:
        if repositories.find(current, member) is None:
            raise error(400, f"Repository '{member}' does not exist")
    changes = {name: value for name, value in given.items() if name in known and value is not None}
    target = changes.get("defaultDeploymentRepo")
    if target and repositories.find(current, target) is None:
        changes["defaultDeploymentRepo"] = ""
    elif target == "" and not current.settings(SERVICE)["empties_deployment_repo"]:
        del changes["defaultDeploymentRepo"]
    if not (changes.get("projectKey") or doc.get("projectKey")):
        changes.pop("environments", None)
    before = {"doc": repositories.find(current, key), "reads": 0}
    current.store.put(_BEFORE, key, before)
    current.store.put(repositories.KIND, key, {**doc, **changes})
