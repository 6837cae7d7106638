# SPDX-License-Identifier: GPL-3.0-or-later
"""Read single items and folder listings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ...core.http.messages import Response, json_or_none
from ...core.json_text import TooDeep
from ..client import RepoClient, item_path, listed_objects, object_of
from ..digests import Digests
from ..json_rows import InvalidJson, StreamedObject, parse

_LISTING = "a folder listing"
_CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True)
class StoredItem:
    """State of an existing item; `None` for unknown parts."""

    size: int | None = None
    sha256: str | None = None
    sha1: str | None = None
    folder: bool = False

    def holds(self, content: Digests) -> bool | None:
        """Return whether the item has this content; `None` if it is unknown."""
        if self.folder or (self.size is not None and self.size != content.size):
            return False
        # server fact [repo-20]: old files have no SHA-256
        if self.sha256 is not None:
            return self.sha256 == content.sha256
        return None if self.sha1 is None else self.sha1 == content.sha1

    def equals(self, other: StoredItem) -> bool:
        """Return whether both items certainly have the same content."""
        for one, two in ((self.sha256, other.sha256), (self.sha1, other.sha1)):
            if one is not None and two is not None:
                return one == two
        return False

    def as_dict(self) -> dict[str, Any]:
        """Return the item for a diff."""
        if self.folder:
            return {"type": "folder"}
        return {"size": self.size, "sha256": self.sha256}


#: Placeholder for an item whose existence is unknown; compare by identity.
UNKNOWN_ITEM = StoredItem()


def predicted(client: RepoClient, repo: str, path: str) -> StoredItem | None:
    """Return the item that an earlier task in check mode would deploy; `None` if none would."""
    known = client.predictions.get("item", repo, path)
    return None if known is None else StoredItem(**known)


def is_predicted_folder(client: RepoClient, repo: str, path: str) -> bool:
    """Return whether an earlier task in check mode would deploy an item below a path."""
    return any(each.startswith(f"{path}/") for each in client.predictions.all("item", repo))


def predict(client: RepoClient, repo: str, path: str, item: StoredItem) -> None:
    """In check mode, remember an item that the task would deploy."""
    client.predictions.add("item", repo, path, value=asdict(item))


def head(client: RepoClient, repo: str, path: str) -> StoredItem | None:
    """Return the state of an item by HEAD; `None` if it does not exist.

    Server fact [repo-20]: `X-Checksum-*`. The written interface does not list this read: a server
    without it leaves the state unknown.
    """
    response = client.transport.read(
        f"reading '{repo}/{path}'",
        item_path(repo, path),
        method="HEAD",
        # [repo-26]: 409 for a folder
        expect=(200, 400, 404, 405, 409, 501),
        # a compressed response would have another length
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
    client.reports_checksums = found.sha256 is not None or found.sha1 is not None
    return found


def expected(client: RepoClient, repo: str, path: str) -> StoredItem | None:
    """Return the item that an earlier task in check mode would deploy, or else the item of the
    server.
    """
    return predicted(client, repo, path) or head(client, repo, path)


def find(client: RepoClient, repo: str, path: str) -> StoredItem | None:
    """Find a file or folder in the listing of its parent, which both dialects support.

    `None` if it does not exist, :data:`UNKNOWN_ITEM` if that is unknown.
    """
    listed = listing(client, repo, path.rpartition("/")[0], folders=True)
    if listed is None:
        found = head(client, repo, path)
        return UNKNOWN_ITEM if found == UNKNOWN_ITEM else found
    if path == "":
        return StoredItem(folder=True) if listed else None
    # the written interface: an entry may have several segments, of which the first is its name
    below = any(one.startswith(f"{path}/") for one in listed)
    return listed.get(path) or (StoredItem(folder=True) if below else None)


def is_gone(client: RepoClient, repo: str, path: str) -> bool | None:
    """Return whether an item does not exist; `None` if it is unknown."""
    found = find(client, repo, path)
    return None if found is UNKNOWN_ITEM else found is None


def listing(
    client: RepoClient, repo: str, folder: str, *, deep: bool = False, folders: bool = False
) -> dict[str, StoredItem] | None:
    """List the items below a folder by their path in the repository; empty if the folder does not
    exist.

    `None` if the server cannot list it, or does not find the root, which every repository has.
    [W2.1, W4.1, repo-6]: digests are `sha1` and `sha2`, numbers and booleans may be strings; 400
    without a licence, and for a file.
    """
    query = {"deep": 1 if deep else None, "listFolders": 1 if folders else None}
    response = _listing(client, repo, folder, query)
    if response.status == 404 and folder == "":
        response = _listing(client, repo, folder, query, slash=True)
        if response.status == 404:
            return None
    if response.status == 404:
        return {}
    if response.status != 200:
        return None
    prefix = f"{folder}/" if folder else ""
    listed = _Listed(prefix)
    try:
        parse(_pieces(response.body), "files", listed)
    except (InvalidJson, TooDeep):
        return _taken_whole(response, _Listed(prefix))
    return listed.items


class _Listed(StreamedObject):
    """Items of a listing, converted row by row: the entries of a large folder would need several
    times the memory.
    """

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix, self.items = prefix, dict[str, StoredItem]()

    def take(self, row: dict[str, Any]) -> None:
        name = str(row.get("uri") or "").strip("/")
        if name:
            self.items[self._prefix + name] = _of_entry(row)


def _pieces(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), _CHUNK):
        yield body[start : start + _CHUNK]


def _taken_whole(response: Response, listed: _Listed) -> dict[str, StoredItem] | None:
    """Return the items of an unusual listing: `null` is an empty list, and without `files` the
    server cannot list. Raises for a body that is not JSON.
    """
    found = object_of(response, _LISTING)
    if "files" not in found:
        return None
    for row in listed_objects(response, found["files"], _LISTING):
        listed.take(dict(row))
    return listed.items


def _listing(
    client: RepoClient, repo: str, folder: str, query: Mapping[str, Any], *, slash: bool = False
) -> Response:
    return client.transport.read(
        f"listing '{repo}/{folder}'",
        f"api/storage/{item_path(repo, folder, slash=slash)}?list",
        query=query,
        expect=(200, 400, 404, 405),
    )


def _of_entry(entry: Mapping[str, Any]) -> StoredItem:
    folder = str(entry.get("folder", "")).lower() == "true"
    return StoredItem(
        None if folder else _number(entry.get("size")),
        _digest(entry.get("sha2")),
        _digest(entry.get("sha1")),
        folder,
    )


def of_checksums(response: Response) -> StoredItem | None:
    """Return the checksums in the response to a deployment ([repo-19]: JSON); `None`
    without them.
    """
    decoded = json_or_none(response.body)
    if not isinstance(decoded, Mapping) or not isinstance(decoded.get("checksums"), Mapping):
        return None
    sums = decoded["checksums"]
    found = StoredItem(
        _number(decoded.get("size")), _digest(sums.get("sha256")), _digest(sums.get("sha1"))
    )
    return None if found.sha256 is None and found.sha1 is None else found


def _number(value: Any) -> int | None:
    text = str(value)
    return int(text) if text.isdigit() else None


def _digest(value: Any) -> str | None:
    return str(value).lower() if value else None
