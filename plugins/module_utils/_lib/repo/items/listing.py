# SPDX-License-Identifier: GPL-3.0-or-later
"""Read single items and folder listings."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import IO, Any

from ...core.concurrency import BackgroundThread
from ...core.errors import ToolchainError
from ...core.http.messages import Response
from ...core.json_text import TooDeep
from ..aql import InvalidJson, StreamedObject, parse
from ..client import RepoClient, item_path, listed_objects, object_of, segments

_BLOCK = 2 * 1024 * 1024
#: Size of the first read: allocating 2 MiB would take longer than reading a typical file.
_FIRST_BLOCK = 64 * 1024


@dataclass(frozen=True, slots=True)
class Digests:
    """Size in bytes, and digests as lower-case hexadecimal strings."""

    size: int
    sha256: str
    sha1: str


def digests_of_bytes(content: bytes) -> Digests:
    """Return size and digests of a byte string."""
    sha1 = hashlib.sha1(content, usedforsecurity=False)
    return Digests(len(content), hashlib.sha256(content).hexdigest(), sha1.hexdigest())


def digests_of(stream: IO[bytes]) -> Digests:
    """Read a stream to its end and return its size and digests, in constant memory.

    For a large file, both digests and the next read run in parallel, because all three release the
    GIL.
    """
    sha256, size = hashlib.sha256(), 0
    sha1 = hashlib.sha1(usedforsecurity=False)
    block = stream.read(_FIRST_BLOCK)
    while block and size < _BLOCK:
        sha256.update(block)
        sha1.update(block)
        size += len(block)
        block = stream.read(_BLOCK)
    with BackgroundThread() as first, BackgroundThread() as second:
        while block:
            first.do(sha256.update, block)
            second.do(sha1.update, block)
            size += len(block)
            block = stream.read(_BLOCK)
    return Digests(size, sha256.hexdigest(), sha1.hexdigest())


_LISTING = "a folder listing"
_CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True)
class StoredItem:
    """State of an existing item; unknown values are `None`.

    :param modified: time of the last change as returned by the server; only of snapshots
    """

    size: int | None = None
    sha256: str | None = None
    sha1: str | None = None
    folder: bool = False
    modified: str | None = None

    @property
    def has_digest(self) -> bool:
        return bool(self.sha256 or self.sha1)

    def holds(self, content: Digests) -> bool | None:
        """Return whether the item has this content; `None` if that is unknown."""
        if self.folder or (self.size is not None and self.size != content.size):
            return False
        # server fact [repo-20]: files from older releases have no SHA-256
        if self.sha256 is not None:
            return self.sha256 == content.sha256
        return None if self.sha1 is None else self.sha1 == content.sha1

    def equals(self, other: StoredItem) -> bool:
        """Return whether both items are known to have the same content."""
        for digest, other_digest in ((self.sha256, other.sha256), (self.sha1, other.sha1)):
            if digest is not None and other_digest is not None:
                return digest == other_digest
        return False

    def as_dict(self) -> dict[str, Any]:
        """Return the values of the item that a diff shows."""
        if self.folder:
            return {"type": "folder"}
        return {"size": self.size, "sha256": self.sha256}


#: Result for an item that may not exist; compare with `is`.
UNKNOWN_ITEM = StoredItem()


def predicted(client: RepoClient, repo: str, path: str) -> StoredItem | None:
    """Return the item that an earlier task would deploy in check mode; `None` without one."""
    known = client.predictions.get("item", repo, path)
    return None if known is None else StoredItem(**known)


def is_predicted_folder(client: RepoClient, repo: str, path: str) -> bool:
    """Return whether an earlier task in check mode would deploy an item below a path."""
    return any(item.startswith(f"{path}/") for item in client.predictions.all("item", repo))


def predict(client: RepoClient, repo: str, path: str, item: StoredItem) -> None:
    """Store an item that the task would deploy, for later tasks in check mode."""
    client.predictions.add("item", repo, path, value=asdict(item))


def head(client: RepoClient, repo: str, path: str) -> StoredItem | None:
    """Read the state of an item with a HEAD request; return `None` if it does not exist.

    Server fact [repo-20]: the headers `X-Checksum-*` have the digests. The written interface does
    not specify HEAD: if the server does not support it, all values are `None`.
    """
    response = client.transport.read(
        f"reading '{repo}/{path}'",
        item_path(repo, path),
        method="HEAD",
        # server fact [repo-26]: the status for a folder is 409
        expect=(200, 400, 404, 405, 409, 501),
        # the length of a compressed response is not the size of the file
        headers={"Accept-Encoding": "identity"},
    )
    if response.status == 404:
        return None
    headers = response.headers if response.status == 200 else {}
    found = StoredItem(
        _number(headers.get("Content-Length")),
        _digest(headers.get("X-Checksum-Sha256")),
        _digest(headers.get("X-Checksum-Sha1")),
    )
    client.reports_checksums = found.has_digest
    return found


def expected(client: RepoClient, repo: str, path: str) -> StoredItem | None:
    """Return the predicted item of check mode if there is one, otherwise read the item."""
    return predicted(client, repo, path) or head(client, repo, path)


def existing_form(client: RepoClient, repo: str, path: str) -> str:
    """Return the path of an item as the server has it: as given, or in another Unicode form.

    Some file systems decompose names, so that `ü` in the options may be two characters (NFD) on the
    server. Sends no request for a path that has only one form.
    """
    forms = dict.fromkeys(unicodedata.normalize(form, path) for form in ("NFC", "NFD"))
    others = [form for form in forms if form != path]
    if not others or expected(client, repo, path) is not None:
        return path
    return next((form for form in others if expected(client, repo, form) is not None), path)


def find(client: RepoClient, repo: str, path: str) -> StoredItem | None:
    """Find a file or folder in the listing of its parent folder, which both dialects support.

    Returns `None` if it does not exist, and :data:`UNKNOWN_ITEM` if that is unknown.
    """
    listed = listing(client, repo, path.rpartition("/")[0], folders=True)
    if listed is None:
        found = head(client, repo, path)
        return UNKNOWN_ITEM if found == UNKNOWN_ITEM else found
    if path == "":
        return StoredItem(folder=True) if listed else None
    # in the written interface, a listing may contain paths below the folder, but not the folder
    below = any(other.startswith(f"{path}/") for other in listed)
    return listed.get(path) or (StoredItem(folder=True) if below else None)


def is_gone(client: RepoClient, repo: str, path: str) -> bool | None:
    """Return whether an item does not exist; `None` if that is unknown."""
    found = find(client, repo, path)
    return None if found is UNKNOWN_ITEM else found is None


def delete(
    client: RepoClient,
    repo: str,
    path: str,
    purpose: str = "",
    expect: Collection[int] = (200, 201, 202, 204),
) -> None:
    """Delete an item; an empty path means the whole content of the repository."""
    client.write(
        purpose or f"deleting '{repo}/{path}'",
        "DELETE",
        item_path(repo, path, slash=path == ""),
        expect=expect,
        verify=lambda: is_gone(client, repo, path),
        repeatable=True,
    )


def listing(
    client: RepoClient, repo: str, folder: str, *, deep: bool = False, folders: bool = False
) -> dict[str, StoredItem] | None:
    """List the items below a folder, by path in the repository [W2.1, W4.1].

    Returns an empty dict if the folder does not exist. Returns `None` if the server cannot list the
    folder or does not find the root of the repository. Server fact [repo-6]: the status is 400
    without a licence, and if the path is a file.

    :param deep: whether to list subfolders recursively
    :param folders: whether to include folders
    """
    query = {"deep": 1 if deep else None, "listFolders": 1 if folders else None}
    # some servers only find the root of a repository with a trailing slash
    for slash in (False, True) if folder == "" else (False,):
        response = client.transport.read(
            f"listing '{repo}/{folder}'",
            f"api/storage/{item_path(repo, folder, slash=slash)}?list",
            query=query,
            expect=(200, 400, 404, 405),
        )
        if response.status != 404:
            break
    if response.status != 200:
        return {} if response.status == 404 and folder else None
    body, prefix = response.body, f"{folder}/" if folder else ""
    listed = _Listed(prefix)
    try:
        parse((body[at : at + _CHUNK] for at in range(0, len(body), _CHUNK)), "files", listed)
    except (InvalidJson, TooDeep):
        found = object_of(response, _LISTING)
        if found.get("files") is None:  # there may be some
            return None
        listed = _Listed(prefix)
        for row in listed_objects(response, found["files"], _LISTING):
            listed.take(dict(row))
    return listed.items


class _Listed(StreamedObject):
    """Items of a listing, converted row by row, because the rows of a large folder need several
    times the memory of the items.
    """

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix, self.items = prefix, dict[str, StoredItem]()

    def take(self, row: dict[str, Any]) -> None:
        name = str(row.get("uri") or "").strip("/")
        if not name:
            return
        folder = str(row.get("folder", "")).lower() == "true"
        # the times of all files would take much memory
        modified = row.get("lastModified") if "SNAPSHOT" in name else None
        self.items[self._prefix + name] = StoredItem(
            None if folder else _number(row.get("size")),
            _digest(row.get("sha2")),
            _digest(row.get("sha1")),
            folder,
            None if modified is None else str(modified),
        )


def stored_path(response: Response, decoded: Any, repo: str, path: str) -> str:
    """Return the path under which the server stored a file, which may differ from that of the
    request [repo-36].

    :param decoded: the JSON of the response; `None` if it is none
    """
    found = decoded.get("path") if isinstance(decoded, Mapping) else None
    if not isinstance(found, str) or not found.strip("/"):
        return path
    try:
        return "/".join(segments(found))
    except ToolchainError:
        raise response.error(
            "protocol", f"the server stored '{repo}/{path}' at the invalid path {found!r}"
        ) from None


def of_checksums(decoded: Any) -> StoredItem | None:
    """Return size and checksums in the response to a deployment [repo-19]; `None` without them.

    :param decoded: see :func:`stored_path`
    """
    if not isinstance(decoded, Mapping) or not isinstance(decoded.get("checksums"), Mapping):
        return None
    sums = decoded["checksums"]
    found = StoredItem(
        _number(decoded.get("size")), _digest(sums.get("sha256")), _digest(sums.get("sha1"))
    )
    return found if found.has_digest else None


def _number(value: Any) -> int | None:
    text = str(value)
    return int(text) if text.isdigit() else None


def _digest(value: Any) -> str | None:
    return str(value).lower() if value else None
