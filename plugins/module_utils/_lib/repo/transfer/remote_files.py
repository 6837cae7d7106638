# SPDX-License-Identifier: GPL-3.0-or-later
"""Find files in a repository by path, with their digests [C8.1]."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ...core.concurrency import bounded
from ...core.errors import ToolchainError, invalid
from ...core.globs import Patterns, fixed_part, has_wildcards, hint, matcher
from ...core.json_text import as_text
from .. import aql, properties, repositories
from ..client import RepoClient, join, refuse_matrix, segments
from ..items import listing
from ..items.listing import UNKNOWN_ITEM, StoredItem
from ..properties import Properties

_DIGESTS = ("size", "sha256", "actual_sha1")


@dataclass(frozen=True)
class RemoteFile:
    """A file in a repository.

    :param below: path relative to the requested folder
    """

    repo: str
    path: str
    below: str
    stored: StoredItem

    @property
    def name(self) -> str:
        return f"{self.repo}/{self.path}"


@dataclass
class Filter:
    """Conditions for files: properties that they must have, and patterns that exclude them.

    :param option: name of the option with the properties
    :param hints: suggested corrections for paths that match nothing, by path
    """

    properties: Properties = field(default_factory=dict)
    exclude: Patterns = field(default_factory=lambda: Patterns("exclude", ()))
    option: str = "properties"
    hints: dict[str, str] = field(default_factory=dict)

    @property
    def narrows(self) -> bool:
        """Return whether the filter has a condition."""
        return bool(self.properties) or bool(self.exclude)

    def keeps(self, file: RemoteFile) -> bool:
        return not self.exclude.fits(file.below, file.path)


def names_many(path: str) -> bool:
    """Return whether a path is a folder (trailing slash) or a pattern."""
    return path.endswith("/") or has_wildcards(path)


def find_files(client: RepoClient, repo: str, path: str, wanted: Filter) -> list[RemoteFile]:
    """Return the files that a path selects: a file, the files in a folder, or those of a pattern.

    In check mode, the result includes the changes that earlier tasks of the run would make. Raises
    `not_found` if the repository does not exist.
    """
    found = _find_stored(client, repo, path, wanted)
    return _as_predicted(client, repo, path, wanted, found) if client.predictions.active else found


def _as_predicted(
    client: RepoClient, repo: str, path: str, wanted: Filter, stored: list[RemoteFile]
) -> list[RemoteFile]:
    folder, is_match = _matcher_of(path) if names_many(path) else ("", join(*segments(path)).__eq__)
    found = {file.path: file for file in stored}
    items: dict[str, StoredItem | None] = {
        item_path: StoredItem(**value)
        for item_path, value in client.predictions.all("item", repo).items()
        if is_match(item_path)
    }
    if wanted.properties:
        marked = client.predictions.all("properties", repo)
        found = {file_path: file for file_path, file in found.items() if file_path not in marked}
        items = {
            item_path: items.get(item_path) or listing.head(client, repo, item_path)
            for item_path, has in marked.items()
            if is_match(item_path) and _has_all(has, wanted.properties)
        }
    added = [
        _remote(repo, item_path, item_path[len(folder) :].strip("/"), item or UNKNOWN_ITEM)
        for item_path, item in items.items()
    ]
    found |= {file.path: file for file in added if wanted.keeps(file)}
    return [found[file_path] for file_path in sorted(found)]


def _find_stored(client: RepoClient, repo: str, path: str, wanted: Filter) -> list[RemoteFile]:
    if not names_many(path):
        found = _single(client, repo, join(*segments(path)))
    elif wanted.properties and client.dialect.query_by_property:
        found = _many_by_query(client, repo, path, wanted)
        if found or not _is_virtual(client, repo):
            return list(filter(wanted.keeps, found))
        # queries do not find items of virtual repositories
        found = _many(client, repo, path, wanted)
    else:
        found = _many(client, repo, path, wanted)
    matching = list(filter(wanted.keeps, found))
    if not matching:
        repositories.require(client, [repo])
    return _with_properties(client, matching, wanted.properties)


def _single(client: RepoClient, repo: str, wanted: str) -> list[RemoteFile]:
    path = listing.existing_form(client, repo, wanted)
    stored = listing.head(client, repo, path)
    if stored is not None and stored.sha256 is None and stored.sha1 is None:
        # server fact [repo-26]: a HEAD request for a folder also succeeds, but returns no digests
        listed = listing.find(client, repo, path)
        if listed is None and stored == UNKNOWN_ITEM:
            stored = None
        elif listed is not None and (listed.folder or listed.sha1 is not None):
            stored = listed
    if stored is None:
        return []
    if stored.folder:
        raise ToolchainError(
            "not_found", f"'{repo}/{path}' is a folder: end path with a slash to select its files"
        )
    return [_remote(repo, path, wanted.rpartition("/")[2], stored)]


def _many(client: RepoClient, repo: str, path: str, wanted: Filter) -> list[RemoteFile]:
    folder = _matcher_of(path)[0]
    listed = listing.listing(client, repo, folder, deep=True)
    if listed is None:
        if not client.dialect.query_by_property:
            raise ToolchainError("rejected", f"the server cannot list '{repo}/{folder}'")
        # server fact [repo-6]: listing requires a licence, queries do not
        return _many_by_query(client, repo, path, replace(wanted, properties={}))
    files = {file: stored for file, stored in sorted(listed.items()) if not stored.folder}
    return _matching(repo, path, files, wanted)


def _matching(
    repo: str, path: str, files: Mapping[str, StoredItem], wanted: Filter
) -> list[RemoteFile]:
    """Return the files that a path selects, or add a hint to `wanted` if it selects none.

    :param files: all files of the folder that :func:`_matcher_of` returns
    """
    folder, is_match = _matcher_of(path)
    found = [
        _remote(repo, file, file[len(folder) :].strip("/"), stored)
        for file, stored in files.items()
        if is_match(file)
    ]
    if not found:
        wanted.hints[path] = hint(path.strip("/"), files)
    return found


def _matcher_of(path: str) -> tuple[str, Callable[[str], bool]]:
    """Return the folder that contains all files of a path, and a function that tests a file."""
    if not has_wildcards(path):
        folder = join(*segments(path))
        inside = f"{folder}/" if folder else ""
        return folder, lambda file: file.startswith(inside)
    pattern = f"{path}**" if path.endswith("/") else path
    segments(pattern)
    is_match = matcher(unicodedata.normalize("NFC", pattern.lstrip("/")))
    return fixed_part(pattern), lambda file: is_match(unicodedata.normalize("NFC", file))


def _many_by_query(client: RepoClient, repo: str, path: str, wanted: Filter) -> list[RemoteFile]:
    folder = _matcher_of(path)[0]
    criteria = {"repo": repo, "type": "file", **aql.below(folder), **having(wanted.properties)}
    rows = query(client, f"searching for files below '{repo}/{folder}'", criteria)
    found = sorted(map(of_row, rows), key=lambda file: file.path)
    inside = f"{folder}/" if folder else ""
    files = {file.path: file.stored for file in found if file.path.startswith(inside)}
    return _matching(repo, path, files, wanted)


def having(wanted: Properties) -> dict[str, Any]:
    """Return AQL criteria for items that have all wanted property values."""
    if not wanted:
        return {}
    return {"$and": [{f"@{name}": value} for name, values in wanted.items() for value in values]}


def query(client: RepoClient, purpose: str, criteria: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Query items with their sizes and digests. Raises `failed` if the result is truncated."""
    found = aql.ask(client, purpose, aql.items(criteria, _DIGESTS))
    if found.trimmed:
        raise ToolchainError(
            "failed", f"{purpose}: the server truncated the result ({found.trimmed})"
        )
    return found.rows


def of_row(row: Mapping[str, Any]) -> RemoteFile:
    """Return the file of a query row; its relative path is the whole path."""
    path = aql.path_in(row)
    size = str(row.get("size"))
    stored = StoredItem(
        int(size) if size.isdecimal() else None,
        str(row["sha256"]).lower() if row.get("sha256") else None,
        str(row["actual_sha1"]).lower() if row.get("actual_sha1") else None,
    )
    return _remote(str(row.get("repo")), path, path, stored)


def _remote(repo: str, path: str, below: str, stored: StoredItem) -> RemoteFile:
    """Return a file. Raises `rejected` for a path that could escape from a destination folder."""
    parts = path.split("/")
    is_path = not any(part in ("", ".", "..") for part in parts) and "\0" not in path
    try:
        path.encode()
    except UnicodeEncodeError:
        is_path = False
    if not is_path:
        raise ToolchainError(
            "rejected",
            f"the server returned the item {path!r} in '{repo}', which is not a valid path",
        )
    return RemoteFile(repo, path, below, stored)


def _is_virtual(client: RepoClient, repo: str) -> bool:
    _response, known = repositories.listed(client)
    kinds = {as_text(entry.get("key")): repositories.kind_of(entry) for entry in known}
    if repo not in kinds:
        repositories.require(client, [repo])
    return kinds.get(repo) == "VIRTUAL"


def _with_properties(
    client: RepoClient, found: list[RemoteFile], wanted: Properties
) -> list[RemoteFile]:
    """Return the files that have the wanted properties; send a request for each file."""
    if not wanted or not found:
        return found
    has = list(bounded(client.connections, partial(_has, client, wanted), found))
    return [file for file, matches in zip(found, has, strict=True) if matches]


def _has(client: RepoClient, wanted: Properties, file: RemoteFile) -> bool:
    there = properties.read(client, file.repo, file.path)
    if there is None:
        raise ToolchainError(
            "rejected",
            f"cannot select '{file.name}' by its properties: the server does not return properties",
        )
    return _has_all(there, wanted)


def _has_all(there: Properties, wanted: Properties) -> bool:
    return all(set(values) <= set(there.get(name, [])) for name, values in wanted.items())


def refuse_path(place: str, path: str) -> None:
    """Raise `invalid` for a path that no item can have.

    :param place: location in the options, for the message
    """
    refuse_matrix(place, path)
    try:
        segments(path)
    except ToolchainError as error:
        raise invalid(f"{place}: {error.message}") from None


def wanted_properties(values: Mapping[str, Any] | None, option: str = "properties") -> Properties:
    """Return the properties that files must have.

    Raises `invalid` for a property without a value, because it would not restrict the selection.
    """
    for name, value in (values or {}).items():
        if value is None:
            raise invalid(f"{option}.{name} is null: set a value, or remove the property")
    return properties.properties_of(values)
