# SPDX-License-Identifier: GPL-3.0-or-later
"""Rename Maven snapshots when they are deployed, and find the newest one [repo-36]."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from sandbox.repo import repositories
from sandbox.repo.items.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.context import Context

_DEPLOYED = re.compile(
    r"(?P<start>(?:.+/)?(?P<artifact>[^/]+)/(?P<base>[^/]+)-SNAPSHOT/(?P=artifact)-(?P=base)-)"
    r"SNAPSHOT(?P<rest>[-.][^/]+)"
)
_UNIQUE = re.compile(r"(?P<time>\d{8}\.\d{6})-(?P<number>\d+)(?P<rest>[-.].+)")


def stored_path(current: Context, repo: str, path: str) -> str:
    """Return the path under which a repository stores a file that is deployed to `path`.

    A file shares the time and number of the newest version that does not have such a file yet.
    """
    found, deployed = repositories.find(current, repo) or {}, _DEPLOYED.fullmatch(path)
    is_maven = found.get("packageType") in ("maven", "gradle")
    if (
        deployed is None
        or not is_maven
        or found.get("snapshotVersionBehavior", "unique") != "unique"
    ):
        return path
    stored = sorted(_versions(current, repo, deployed["start"]))
    version = stored[-1][:2] if stored else None
    if version is None or (*version, deployed["rest"]) in stored:
        time = datetime.fromtimestamp(current.now_ms() / 1000, timezone.utc)
        number = max((number for _time, number, _rest in stored), default=0) + 1
        version = f"{time:%Y%m%d.%H%M%S}", number
    return f"{deployed['start']}{version[0]}-{version[1]}{deployed['rest']}"


def newest(current: Context, repo: str, path: str) -> str:
    """Return the path of the newest snapshot that was deployed to `path`, or `path` itself."""
    deployed = _DEPLOYED.fullmatch(path)
    if deployed is None or Tree(current).get(repo, path) is not None:
        return path
    start, rest = deployed["start"], deployed["rest"]
    found = [version for version in _versions(current, repo, start) if version[2] == rest]
    return f"{start}{max(found)[0]}-{max(found)[1]}{rest}" if found else path


def _versions(current: Context, repo: str, start: str) -> Iterator[tuple[str, int, str]]:
    """Yield time, number, and classifier with extension of the unique snapshots in a folder."""
    for node in Tree(current).children(repo, start.rpartition("/")[0]):
        found = _UNIQUE.fullmatch(node["path"].removeprefix(start))
        if found is not None and node["path"].startswith(start):
            yield found["time"], int(found["number"]), found["rest"]
