# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the state of wanted files, send files and archives, and verify the stored content."""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from ...core.concurrency import bounded, first_alone
from ...core.errors import ToolchainError, shorten
from ...core.http.file_download import RemoteContent, fetch_digests
from ...core.http.messages import Response, json_or_none
from ...core.verification import without_effect
from .. import properties
from ..client import RepoClient, item_path
from ..repositories import deployment_target, refuse_properties
from . import listing
from .layouts import may_be_renamed, stored_paths
from .listing import UNKNOWN_ITEM, StoredItem
from .sources import HeldContent, LocalFile, WantedFile

#: Minimum number of files for which a listing of the repository is cheaper than a request per file.
_WORTH_A_WHOLE_LISTING = 20
_MAY_OVERWRITE = (
    "the server has different content at this path: overwriting it requires the permission to"
    " delete"
)
#: Maximum size of a small file in bytes: sending it is as fast as asking whether the server has its
#: content.
_SMALL = 64 * 1024
#: Number of consecutive small files that the server did not have, after which small files are
#: usually sent without asking.
_TRIES = 10


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
    asked = {state.wanted.path for state in found if state.wanted.properties and state.has_content}
    below = properties.read_below(client, repo, folder) if len(asked) > 1 else None
    if below is None:
        marked = [state for state in found if state.wanted.path in asked]
        read = bounded(
            client.connections, lambda each: _with_properties(client, repo, each), marked
        )
        states = {state.wanted.path: state for state in read}
    else:
        states = {
            state.wanted.path: replace(state, properties=below.get(state.path, {}))
            for state in found
            if state.wanted.path in asked
        }
    return repo, [states.get(state.wanted.path, state) for state in found]


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
        absent = [state.wanted for state in found if state.stored is None]
        missing = [file for file in absent if file.path not in moved]
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
            purpose, address = f"comparing '{repo}/{path}'", item_path(repo, path)
            content = fetch_digests(client.transport, purpose, address, content=RemoteContent())
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
    existing = [(state, state.stored) for state in found if state.stored is not None]
    unclear = [state for state, it in existing if it.holds(state.wanted.digests) is None]

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


@dataclass
class Uploader:
    """Deploy files to a repository.

    :param by_checksum: whether to ask first if the server already has the content, and then not
        send it; `None` means only if that is faster
    """

    client: RepoClient
    repo: str
    by_checksum: bool | None
    #: Paths of files that the server stored under another name, by the path of the request.
    renamed: dict[str, str] = field(default_factory=dict)
    _unknown: int = 0

    def deploy(self, wanted: WantedFile, before: StoredItem | None) -> tuple[str, int]:
        """Deploy a file; return the action and the number of sent bytes.

        Server fact [repo-19]: with checksum headers, the server rejects a corrupted body, and can
        deploy content that it already has without a body.

        :param before: the current item at the path; `None` if it does not exist
        """
        try:
            if self._asks_first(wanted) and self._put(wanted, send_bytes=False):
                self._unknown = 0
                return "checksum_deployed", 0
            self._put(wanted, send_bytes=True)
        except ToolchainError as error:
            if error.status == 403 and before is not None:
                error.with_hint(_MAY_OVERWRITE)
            raise
        return "uploaded", wanted.digests.size

    def _asks_first(self, wanted: WantedFile) -> bool:
        """Return whether to ask first if the server already has the content."""
        if self.by_checksum is not None:
            return self.by_checksum
        if wanted.digests.size >= _SMALL:
            return True
        # count before the response, so that parallel workers do not all ask
        self._unknown += 1
        times, remainder = divmod(self._unknown, _TRIES)
        # after the first tries, double the interval between the questions
        return times == 0 or (remainder == 0 and times & (times - 1) == 0)

    def _put(self, wanted: WantedFile, *, send_bytes: bool) -> bool:
        """Send the file, or only its checksums; return whether it is deployed.

        With checksums only, it is not deployed if the server does not have the content (404) or
        ignores the checksums.
        """
        digests, content = wanted.digests, wanted.content
        headers, expect, parts = dict[str, str](), [200, 201, 202, 204], dict[str, Any]()
        if self.client.dialect.checksum_headers:
            headers = {"X-Checksum-Sha1": digests.sha1, "X-Checksum-Sha256": digests.sha256}
        if not send_bytes:
            headers["X-Checksum-Deploy"] = "true"
            expect.append(404)
        elif isinstance(content, HeldContent):
            parts["body"] = content.data
        else:
            parts = {"open_body": content.open, "size": digests.size}
        try:
            response = self.client.write(
                f"deploying '{self.repo}/{wanted.path}'",
                "PUT",
                item_path(self.repo, wanted.path),
                headers=headers,
                expect=expect,
                verify=lambda: self._arrived(wanted),
                repeatable=True,
                **parts,
            )
        except ToolchainError as error:
            if send_bytes or not error.verified_undone:
                raise
            return False
        if response.status == 404:
            return False
        self._check(wanted, response)
        return True

    def _arrived(self, wanted: WantedFile) -> bool | None:
        """Return whether a file was deployed although the response was lost; `None` if unknown."""
        state = read_state(self.client, self.repo, wanted)
        if state.has_content and state.renamed is not None:
            self.renamed[wanted.path] = state.renamed
        found = state.stored
        if found in (None, UNKNOWN_ITEM) and not self.client.dialect.checksum_headers:
            # a server without HEAD may report an existing file as missing
            found = listing.find(self.client, self.repo, wanted.path)
        return False if found is None else found.holds(wanted.digests)

    def _check(self, wanted: WantedFile, response: Response) -> None:
        """Raise `failed` if the stored content differs from the sent content, or is missing.

        The checksums come from the response, or from a read if the server supports HEAD.
        """
        decoded = json_or_none(response.body)
        path = listing.stored_path(response, decoded, self.repo, wanted.path)
        if path != wanted.path:
            self.renamed[wanted.path] = path
        found = listing.of_checksums(decoded)
        if found is None and self.client.reports_checksums:
            path = self.renamed.get(wanted.path, wanted.path)
            found = listing.head(self.client, self.repo, path)
            if found is None:
                listed = listing.listing(self.client, self.repo, path.rpartition("/")[0])
                if listed == {} and listing.listing(self.client, self.repo, "") is None:
                    listed = None  # the server cannot list even the root of the repository
                if listed is not None and path not in listed:
                    raise without_effect(response.request.purpose, "the item does not exist")
                self.client.reports_checksums = False
        if found is not None and found.holds(wanted.digests) is False:
            raise response.error(
                "failed",
                f"the stored content ({found.size} bytes, SHA-256 {found.sha256}) differs from the"
                f" sent content ({wanted.digests.size} bytes, SHA-256 {wanted.digests.sha256})",
                shorten(response.text),
            )

    def explode(self, archive: LocalFile, folder: str, entries: Sequence[WantedFile]) -> int:
        """Send an archive that the server expands below a folder; return the number of sent bytes.

        The server expands all files or none. Server fact [C1.5, repo-21]: if the path ends with a
        slash, Artifactory only creates a folder. The written interface accepts no tar file without
        compression [repo-0].

        :param entries: the files in the archive
        :raises ToolchainError: `failed` if files are missing afterwards
        """
        by_name, name = self.client.dialect.archive_by_name, os.path.basename(archive.path)
        is_plain = not by_name and name.lower().endswith(".tar")
        with _compressed(archive) if is_plain else nullcontext(archive) as sent:
            self._expand(sent, name, folder, entries)
            return os.path.getsize(sent.path)

    def _expand(
        self, archive: LocalFile, name: str, folder: str, entries: Sequence[WantedFile]
    ) -> None:
        """Send an archive with this name, and verify its entries."""
        by_name, size = self.client.dialect.archive_by_name, os.path.getsize(archive.path)
        path = f"{folder}/{name}" if by_name else folder
        purpose = f"expanding '{name}' below '{self.repo}/{folder}'"

        def are_there() -> bool | None:
            found = self._verdicts(entries).values()
            return False if False in found else None if None in found else True

        response = self.client.write(
            purpose,
            "PUT",
            item_path(self.repo, path, slash=not by_name),
            headers={"X-Explode-Archive-Atomic": "true"},
            open_body=archive.open,
            size=size,
            verify=are_there,
            repeatable=True,
        ).text
        found = self._verdicts(entries)
        missing = [entry.path for entry in entries if found[entry.path] is False]
        if missing:
            named, text = shorten(", ".join(missing), 300), shorten(response)
            error = without_effect(
                purpose,
                f"{len(missing)} of {len(entries)} files are missing or differ from the archive"
                f" (check the option dialect): {named}"
                f"{f'. The server reported: {text}' if text else ''}",
            )
            error.detail = text or None
            raise error

    def _verdicts(self, entries: Sequence[WantedFile]) -> dict[str, bool | None]:
        """Return whether each file is stored with its content, by path; `None` if unknown."""
        paths = [entry.path for entry in entries]
        listed = listing.listing(self.client, self.repo, common_folder(paths), deep=True)
        found: Mapping[str, StoredItem | None] = listed or {}
        if listed is None:
            found = {path: listing.head(self.client, self.repo, path) for path in paths}
        else:
            self.renamed.update(stored_paths(paths, listed))
        verdicts: dict[str, bool | None] = {}
        for entry in entries:
            stored = found.get(self.renamed.get(entry.path, entry.path))
            verdicts[entry.path] = False if stored is None else stored.holds(entry.digests)
        return verdicts


@contextmanager
def _compressed(archive: LocalFile) -> Iterator[LocalFile]:
    """Yield a temporary copy of a file that is compressed with gzip."""
    with tempfile.NamedTemporaryFile() as copy:
        with archive.open() as source, gzip.open(copy, "wb", compresslevel=1) as target:
            shutil.copyfileobj(source, target)
        copy.flush()
        yield LocalFile(copy.name)
