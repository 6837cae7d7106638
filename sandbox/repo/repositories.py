# SPDX-License-Identifier: GPL-3.0-or-later
"""Look up repositories, their members, their deployment target and their path patterns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandbox.context import Context

KIND = "repo.repository"


def find(current: Context, key: str) -> dict[str, Any] | None:
    """Return a repository, or None if the key is unknown.

    The dict has `key`, `type` (LOCAL, REMOTE, VIRTUAL or FEDERATED), `packageType`, and fields of
    its configuration such as `description`. A virtual repository also has `repositories` (keys of
    its members), and `defaultDeploymentRepo` if it accepts deployments.
    """
    return current.store.get(KIND, key)


def members(current: Context, key: str) -> list[str]:
    """Return the keys of the repositories that store the items of a repository.

    A local repository is its own only member.
    """
    found = find(current, key)
    if found is None:
        return []
    if found["type"] == "REMOTE":
        # server fact [repo-7]: the items of a remote repository are in its cache
        return [key + "-cache"]
    if found["type"] != "VIRTUAL":
        return [key]
    return [name for member in found.get("repositories", []) for name in members(current, member)]


def deployment_target(current: Context, key: str) -> str | None:
    """Return the local repository that stores deployments to a key, or None without one."""
    found = find(current, key)
    if found is None or found["type"] == "REMOTE":
        return None
    if found["type"] == "VIRTUAL":
        default = found.get("defaultDeploymentRepo")
        return deployment_target(current, default) if default else None
    return key


def is_local(current: Context, key: str) -> bool:
    found = find(current, key)
    return found is not None and found["type"] == "LOCAL"


def accepts(current: Context, key: str, path: str) -> bool:
    """Return whether `includesPattern` and `excludesPattern` of a repository accept the path.

    Both patterns are comma-separated globs.
    """
    found = find(current, key) or {}
    included = _globs(found.get("includesPattern") or "**/*")
    excluded = _globs(found.get("excludesPattern") or "")
    return any(glob.fullmatch(path) for glob in included) and not any(
        glob.fullmatch(path) for glob in excluded
    )


def _globs(text: str) -> list[re.Pattern[str]]:
    globs = [part.strip() for part in text.split(",")]
    return [re.compile(glob_expression(glob), re.DOTALL) for glob in globs if glob]


def glob_expression(glob: str) -> str:
    """Convert a glob to a regular expression. `*` and `?` do not match slashes, `**` does."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", glob)
    expressions = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(expressions.get(part, re.escape(part)) for part in parts)
