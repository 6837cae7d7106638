# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the permissions of users on repositories.

The `permissions` of an account are a list that applies to all repositories, or a dict of lists by
globs for repository keys. The permissions for build records are those of the repository that stores
them. Administrators have all permissions.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from sandbox.context import context
from sandbox.repo import repositories
from sandbox.repo.items.tree import Tree
from sandbox.repo.responses import SERVICE, account, error, user_name

if TYPE_CHECKING:
    from starlette.requests import Request

    from sandbox.context import Context
    from sandbox.repo.items.tree import Node
    from sandbox.service import ErrorResponse

READ, DEPLOY, DELETE, ANNOTATE = "read", "deploy", "delete", "annotate"


def may(request: Request, permission: str, repo: str) -> bool:
    """Return whether the user has a permission in a local repository."""
    user = account(request)
    if user.get("admin", False):
        return True
    given: Any = user.get("permissions", [])
    if not isinstance(given, dict):
        return permission in given
    return any(permission in names for glob, names in given.items() if fnmatchcase(repo, glob))


def may_read(request: Request, repo: str) -> bool:
    """Return whether the user may read a repository or any of its members."""
    if may(request, READ, repo):
        return True
    return any(may(request, READ, key) for key in repositories.members(context(request), repo))


def refused(request: Request, permission: str, place: str) -> ErrorResponse:
    """Return the error for a missing permission, which the caller raises.

    Server fact [repo-3]: the status is 403. For reads it is 404 if the server hides unauthorized
    resources, which the setting `hide_unauthorized` simulates.

    :param place: resource for the message
    """
    if permission == READ and context(request).settings(SERVICE)["hide_unauthorized"]:
        return error(404, "Unable to find item")
    return error(
        403,
        f"Not enough permissions for '{place}'"
        f" (user: '{user_name(request)}' needs {permission.upper()} permission)",
    )


def require(request: Request, permission: str, repo: str, path: str = "") -> None:
    """Raise an error if the user does not have a permission in a repository."""
    if not may(request, permission, repo):
        raise refused(request, permission, f"{repo}:{path}")


def readable(request: Request, repo: str) -> list[str]:
    """Return the members of a repository that the user may read; raise an error without any."""
    members = repositories.members(context(request), repo)
    found = [key for key in members if may(request, READ, key)]
    if members and not found:
        raise refused(request, READ, repo)
    return found


def refused_relocation(
    request: Request, node: Node, target: tuple[str, str], copy: bool
) -> str | None:
    """Return the server's error message if the user may not copy or move a file, else None.

    Server fact [repo-28]: overwriting requires DELETE in the target repository, and a move requires
    DELETE in the source repository.

    :param target: repository and path
    """
    repo, path = target
    place = f"'{repo}:{path}'"
    if not may(request, DEPLOY, repo):
        return f"User doesn't have permissions to create {place}. Needs write permissions."
    if Tree(context(request)).get(repo, path) is not None and not may(request, DELETE, repo):
        return f"User doesn't have permissions to override {place}. Needs delete permissions."
    if not copy and not may(request, DELETE, node["repo"]):
        source = f"'{node['repo']}:{node['path']}'"
        return f"User doesn't have permissions to move {source}. Needs delete permissions."
    return None


def project_of(request: Request) -> str:
    """Return the project in a request for build records, or "" without one.

    Server fact [repo-32]: the project `default` means none.
    """
    named = request.query_params.get("project", "")
    return named if named != "default" else ""


def builds_key(current: Context, project: str = "") -> str:
    """Return the key of the repository that stores build records.

    It is `<vendor>-build-info` [W4.1], or `<project>-build-info` for a project [repo-32].
    """
    if project:
        return f"{project}-build-info"
    vendor: str = "artifactory" if current.real(SERVICE) else current.settings(SERVICE)["vendor"]
    return f"{vendor.lower()}-build-info"


def require_for_builds(
    request: Request, permission: str, name: str, number: str = "", *, project: str | None = None
) -> None:
    """Raise an error if the user does not have a permission for build records [repo-29].

    :param project: key of the project; None means that of the request
    """
    key = builds_key(context(request), project_of(request) if project is None else project)
    if may(request, permission, key):
        return
    if permission == READ:
        raise refused(request, READ, f"{key}:{name}/{number}")
    raise error(
        403,
        f"User {user_name(request)} is not permitted to {permission} '{name}/{number}'"
        f" into '{key}:{name}/{number}'",
    )
