# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the files under which a server stores deployed snapshots [repo-36]."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timezone

from ...core.times import moment_of
from ..layouts import snapshot_of
from .listing import StoredItem


def may_be_renamed(path: str) -> bool:
    """Return whether a server may store a file that is deployed to a path under another name."""
    found = snapshot_of(path) if "SNAPSHOT" in path else None
    return found is not None and not found.time and found.release is not None


def stored_paths(paths: Iterable[str], listed: Mapping[str, StoredItem]) -> dict[str, str]:
    """Return the paths of renamed files, by the path to which they were deployed.

    Of several snapshots, the newest counts, also if it has kept its name.

    :param listed: the items in the folders of the paths
    """
    wanted = {path for path in paths if may_be_renamed(path)}
    newest: dict[str, tuple[str, int, str]] = {}
    for path in listed if wanted else ():
        found = snapshot_of(path)
        if found is not None and found.time and found.deployed_as in wanted:
            known = newest.get(found.deployed_as, ("", 0, ""))
            newest[found.deployed_as] = max(known, (found.time, found.number, path))
    return {
        path: stored
        for path, (time, _number, stored) in newest.items()
        if path not in listed or _is_older(listed[path], time)
    }


def _is_older(item: StoredItem, time: str) -> bool:
    """Return whether an item is known to be older than the timestamp of a snapshot."""
    modified = moment_of(item.modified)
    try:
        unique = datetime.strptime(time, "%Y%m%d.%H%M%S").replace(tzinfo=timezone.utc)
    except ValueError:
        return False
    return modified is not None and modified < unique
