# SPDX-License-Identifier: GPL-3.0-or-later
"""Select the newest files [C8.1]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from functools import partial
from posixpath import commonpath
from typing import Any, Literal, TypeAlias

from ...core.concurrency import bounded
from ...core.errors import ToolchainError
from ...core.times import moment_of
from .. import aql
from ..client import RepoClient, item_path, object_of
from .remote_files import RemoteFile

SortKey: TypeAlias = Literal["created", "modified", "name"]
#: Maximum number of files that are read without a query.
_FEW = 2
#: Sort keys, and the members of the item information with their times.
_INFO = {"created": "created", "modified": "lastModified"}


def newest_files(
    client: RepoClient, files: Sequence[RemoteFile], count: int, key: SortKey
) -> list[RemoteFile]:
    """Return the `count` newest files, in the order of `files`.

    :param key: time by which files are compared; with `name`, the last file names are the newest
    """
    if len(files) <= count:
        return list(files)
    if key == "name":
        ranked = sorted(files, key=lambda file: (file.path.rpartition("/")[2], file.path))
    else:
        times = _times(client, files, key)
        ranked = sorted(files, key=lambda file: (times[file.name], file.path))
    chosen = {file.name for file in ranked[-count:]}
    return [file for file in files if file.name in chosen]


def _times(client: RepoClient, files: Sequence[RemoteFile], key: str) -> dict[str, datetime]:
    """Return the time of each file, by `repo/path`.

    Files that a query does not find are read individually.
    """
    found = _queried(client, files, key) if len(files) > _FEW else {}
    missing = [file for file in files if file.name not in found]
    read = bounded(client.connections, partial(_time, client, key), missing)
    return {**found, **{file.name: time for file, time in zip(missing, read, strict=True)}}


def _queried(client: RepoClient, files: Sequence[RemoteFile], key: str) -> dict[str, datetime]:
    found: dict[str, datetime] = {}
    for repo in sorted({file.repo for file in files}):
        folder = commonpath([f.path.rpartition("/")[0] for f in files if f.repo == repo])
        criteria = {"repo": repo, "type": "file", **aql.below(folder)}
        purpose = f"reading the times of files below '{repo}/{folder}'"
        for row in aql.ask(client, purpose, aql.items(criteria, [key])).rows:
            time = moment_of(row.get(key))
            if time is not None:
                found[f"{repo}/{aql.path_in(row)}"] = _aware(time)
    return found


def _time(client: RepoClient, key: str, file: RemoteFile) -> datetime:
    response = client.transport.read(
        f"reading the time of '{file.name}'", f"api/storage/{item_path(file.repo, file.path)}"
    )
    info: Mapping[str, Any] = object_of(response, "information about an item")
    time = moment_of(info.get(_INFO[key]))
    if time is None:
        raise ToolchainError(
            "rejected",
            f"cannot sort by {key}: the server does not return that time of '{file.name}'",
        )
    return _aware(time)


def _aware(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)
