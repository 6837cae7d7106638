# SPDX-License-Identifier: GPL-3.0-or-later
"""Repositories: what there is, and which one receives deployments."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandbox.context import Context

KIND = "repo.repository"


def find(current: Context, key: str) -> dict[str, Any] | None:
    """The repository, or None.

    `key`, `type` (LOCAL, REMOTE, VIRTUAL), `packageType`, `description`; of a virtual one also
    `repositories` (keys) and `defaultDeploymentRepo` (absent: none).
    """
    return current.store.get(KIND, key)


def members(current: Context, key: str) -> list[str]:
    """The repositories that hold the items of this one; itself unless it is virtual or remote."""
    found = find(current, key)
    if found is None:
        return []
    if found["type"] == "REMOTE":
        # server fact [repo-7]: a remote key is resolved to its cache
        return [key + "-cache"]
    if found["type"] != "VIRTUAL":
        return [key]
    return [name for member in found.get("repositories", []) for name in members(current, member)]


def deployment_target(current: Context, key: str) -> str | None:
    """The local repository that receives deployments to this key; None where there is none."""
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
    """Whether the patterns of a repository let this path in (`includesPattern`,
    `excludesPattern`: globs, separated by commas).
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
    """`*` and `?` stay within a folder, `**` does not."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", glob)
    words = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(words.get(part, re.escape(part)) for part in parts)
