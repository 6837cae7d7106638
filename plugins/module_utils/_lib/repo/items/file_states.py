# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the current state of wanted files in a repository with few requests."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...core.concurrency import bounded, first_alone
from ...core.errors import ToolchainError
from ...core.http.file_download import RemoteContent, fetch_digests
from .. import properties
from ..client import RepoClient, item_path
from ..repositories import deployment_target, refuse_properties
from . import listing
from .listing import StoredItem
from .snapshots import may_be_renamed, stored_paths
from .sources import WantedFile

#: Minimum number of files for which a listing of the repository is cheaper than a request per file.
_WORTH_A_WHOLE_LISTING = 20


@dataclass(frozen=True, slots=True)
class FileState:
    """A wanted file, and the current item at its path.

    :param stored: the current item; `None` if it does not exist
    :param properties: its properties; `None` if they were not requested or are unknown
    :param renamed: path of the current item if the server renamed it [repo-36]
    """

    wanted: WantedFile
    stored: StoredItem | None
    properties: properties.Properties | None = None
    renamed: str | None = None

    @property
    def path(self) -> str:
        """Return the path of the current item."""
        return self.renamed or self.wanted.path

    @property
    def has_content(self) -> bool:
        """Return whether the item is known to have the wanted content."""
        return self.stored is not None and self.stored.holds(self.wanted.digests) is True

    @property
    def has_properties(self) -> bool:
        """Return whether the item is known to have all wanted properties."""
        wanted = self.wanted.properties
        return not wanted or properties.are_set(self.properties, wanted) is True


def read_states(
    client: RepoClient, key: str, wanted: Sequence[WantedFile]
) -> tuple[str, list[FileState]]:
    """Return the repository that stores files deployed to `key`, and the states of the files there.

    Files in other members of a virtual repository do not count [C2.1]. All items of a loop resolve
    the repository only once.
    """
    if not wanted:
        return key, []
    known: dict[str, str] = client.transport.memory.setdefault("deploys to", {})
    repo = known.get(key) or deployment_target(client, key)
    known[key] = repo
    if any(file.properties for file in wanted):
        refuse_properties(client)
    if len(wanted) == 1:
        return repo, [_with_properties(client, repo, read_state(client, repo, wanted[0]))]
    return repo, _many(client, repo, wanted)


def read_state(client: RepoClient, repo: str, wanted: WantedFile) -> FileState:
    """Return the state of a file, or of the newest snapshot that was deployed to its path."""
    state = FileState(wanted, None)
    if may_be_renamed(wanted.path):
        listed = listing.listing(client, repo, wanted.path.rpartition("/")[0])
        if listed is not None:
            (state,) = _listed_states([wanted], listed)
            if state.stored is None or state.stored.has_digest:
                return state
    return replace(state, stored=listing.head(client, repo, state.path))


def _listed_states(
    wanted: Sequence[WantedFile], listed: Mapping[str, StoredItem]
) -> list[FileState]:
    renamed = stored_paths((file.path for file in wanted), listed)
    return [
        FileState(
            file, listed.get(renamed.get(file.path, file.path)), renamed=renamed.get(file.path)
        )
        for file in wanted
    ]


def read_moved(
    client: RepoClient, repo: str, keys: Sequence[str], found: Sequence[FileState]
) -> dict[str, tuple[FileState, str]]:
    """Find missing files that a promotion has moved to another repository.

    Server fact [repo-15]: a promotion keeps the path of an item.

    :param keys: repositories to search
    :returns: state and repository of the moved files, by path
    """
    moved: dict[str, tuple[FileState, str]] = {}
    for key in keys:
        missing = [
            state.wanted
            for state in found
            if state.stored is None and state.wanted.path not in moved
        ]
        if not missing:
            break
        try:
            target, states = read_states(client, key, missing)
        except ToolchainError as error:
            if error.kind not in ("not_found", "permission"):
                raise
            client.warn(f"moved_to: cannot check whether files were moved to '{key}': {error}")
            continue
        if target != repo:
            moved.update(
                {state.wanted.path: (state, target) for state in states if state.has_content}
            )
    return moved


def with_known_content(
    client: RepoClient, repo: str, found: Sequence[FileState]
) -> list[FileState]:
    """Compute missing digests by downloading the files, so that they can be compared."""

    def known(state: FileState) -> FileState:
        if state.stored is None or state.stored.holds(state.wanted.digests) is not None:
            return state
        path = state.path
        try:
            content = fetch_digests(
                client.transport,
                f"comparing '{repo}/{path}'",
                item_path(repo, path),
                content=RemoteContent(),
            )
        except ToolchainError as error:
            if error.kind != "not_found":
                raise
            return FileState(state.wanted, None)
        stored = StoredItem(content.size, content.sha256)
        return _with_properties(client, repo, replace(state, stored=stored))

    return list(first_alone(client.connections, known, found))


def _with_properties(client: RepoClient, repo: str, found: FileState) -> FileState:
    if not found.wanted.properties or not found.has_content:
        return found
    return replace(found, properties=properties.read(client, repo, found.path))


def _many(client: RepoClient, repo: str, wanted: Sequence[WantedFile]) -> list[FileState]:
    folder = common_folder([file.path for file in wanted])
    deep = any("/" in file.path[len(folder) :].strip("/") for file in wanted)
    listed, lists = None, bool(folder or not deep or len(wanted) >= _WORTH_A_WHOLE_LISTING)
    if lists:
        listed = listing.listing(client, repo, folder, deep=deep)
    if listed is not None:
        found = _listed_states(wanted, listed)
    else:
        found = [
            read_state(client, repo, file)
            if may_be_renamed(file.path) and not lists
            else FileState(file, StoredItem())
            for file in wanted
        ]
    found = _with_digests(client, repo, found, listed=listed is not None)
    return _with_all_properties(client, repo, folder, found)


def common_folder(paths: Sequence[str]) -> str:
    """Return the deepest common folder; "" for the root of the repository."""
    return os.path.commonpath([os.path.dirname(path) for path in paths])


def _with_digests(
    client: RepoClient, repo: str, found: Sequence[FileState], *, listed: bool
) -> list[FileState]:
    """Send a HEAD request for each file whose digests are unknown, until a response has none.

    A 404 for a listed file means that the server does not support HEAD.

    :param listed: whether the files come from a listing
    """
    unclear = [
        state
        for state in found
        if state.stored is not None and state.stored.holds(state.wanted.digests) is None
    ]

    def read(state: FileState) -> FileState:
        if not client.reports_checksums:
            return state
        stored = listing.head(client, repo, state.path)
        if stored is None and listed:
            client.reports_checksums = False
            return state
        return replace(state, stored=stored)

    states = first_alone(client.connections, read, unclear)
    by_path = {state.wanted.path: state for state in states}
    return [by_path.get(state.wanted.path, state) for state in found]


def _with_all_properties(
    client: RepoClient, repo: str, folder: str, found: Sequence[FileState]
) -> list[FileState]:
    asked = {state.wanted.path for state in found if state.wanted.properties and state.has_content}
    if not asked:
        return list(found)
    below = properties.read_below(client, repo, folder) if len(asked) > 1 else None
    if below is not None:
        return [
            replace(state, properties=below.get(state.path, {}))
            if state.wanted.path in asked
            else state
            for state in found
        ]
    return list(
        bounded(client.connections, lambda state: _with_properties(client, repo, state), found)
    )
