# SPDX-License-Identifier: GPL-3.0-or-later
"""Query items [C2.3]: by query string, by pattern, or by folder listing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

from ...core.errors import ToolchainError, invalid, shorten
from ...core.files import open_regular
from ...core.http.messages import unexpected_body
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.module.typed_options import Option, PathText, Positive
from ...core.plan import Plan, ReadOnly, unchanged
from .. import aql, repositories
from ..client import RepoClient, item_path, join, refuse_matrix, repository_key, segments
from ..service import SERVICE

#: Maximum number of characters of a query in an error message.
_SHOWN = 100
_IS_QUERY = re.compile(r"\s*\w[\w.\s]*\.\s*find\s*\(")
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class ListingOptions:
    """The suboptions of `list`."""

    repo: str
    path: str = ""
    deep: bool = False
    depth: Positive | None = None
    list_folders: bool = False
    md_timestamps: bool = False
    include_root_path: bool = False

    @property
    def query(self) -> dict[str, int]:
        """Return the query parameters of the request [W4.1]."""
        flags = {
            "deep": self.deep,
            "listFolders": self.list_folders,
            "mdTimestamps": self.md_timestamps,
            "includeRootPath": self.include_root_path,
        }
        query = {name: 1 for name, wanted in flags.items() if wanted}
        # servers ignore `depth` without `deep`
        return query if self.depth is None else {**query, "deep": 1, "depth": self.depth}


_QUERY_OPTIONS = ("aql", "aql_file", "pattern", "list")


@dataclass(frozen=True)
class ArtifactInfoOptions:
    """The options of `artifact_info`."""

    constraints: ClassVar[dict[str, Any]] = {
        "mutually_exclusive": [_QUERY_OPTIONS],
        "required_one_of": [_QUERY_OPTIONS],
    }

    aql: str | None = None
    aql_file: PathText | None = None
    pattern: str | None = None
    list_: Annotated[ListingOptions | None, Option(name="list")] = None


def option_of(term: str) -> str:
    """Return the option to which a term of the lookup belongs: `aql` or `pattern`."""
    return "aql" if _IS_QUERY.match(term) else "pattern"


class ArtifactInfoOperation(ReadOnly):
    """Find items with a query string, a pattern, or a folder listing."""

    descriptor: ClassVar = Descriptor(
        SERVICE, dict.fromkeys(("query", "pattern", "list"), reads("read"))
    )

    def __init__(self, task: Task, options: ArtifactInfoOptions) -> None:
        self._warn, self._client = task.warn, RepoClient(task)
        #: Sends the query; the options are valid.
        self._send: Callable[[], aql.QueryResult | Rows]
        if options.list_ is not None:
            self._send = self._listing(options.list_)
        elif options.pattern is not None:
            self._send = self._by_pattern(options.pattern)
        else:
            text = options.aql
            self._send = partial(self._by_text, _content(options) if text is None else text)

    def plan(self) -> Plan:
        found = self._send()
        rows, trimmed = (found, "") if isinstance(found, list) else (found.rows, found.trimmed)
        return unchanged({"results": rows, "total": len(rows), "complete": not trimmed})

    def rows(self) -> Rows:
        """Return the rows of the result."""
        found = self._send()
        return found if isinstance(found, list) else found.rows

    def _by_text(self, text: str) -> aql.QueryResult:
        """Send a query string; return its rows with numeric sizes."""
        purpose = f"querying '{shorten(text, _SHOWN)}'"
        found = aql.ask(self._client, purpose, text)
        if found.trimmed:
            self._warn(f"{purpose}: the result is incomplete: {found.trimmed}")
        for row in found.rows:
            _count_size(row)
        return found

    def _by_pattern(self, pattern: str) -> Callable[[], Rows]:
        """Return a function that searches for a pattern; its rows have a `path` and are sorted.

        The written interface does not specify the response. Server fact [repo-16]: it is an object
        with the list `files`, in no particular order.
        """
        repo, colon, path = pattern.partition(":")
        if colon == "" or path == "":
            raise invalid(f"pattern: '{pattern}' must have the form repository:path/*.jar")
        repository_key("pattern", repo)
        refuse_matrix("pattern", path)

        def ask() -> Rows:
            response = self._client.transport.read(
                f"searching for '{pattern}'",
                self._client.dialect.patterns,
                query={"pattern": pattern},
                expect=(200, 400),
            )
            if response.status == 400:
                # server fact [repo-16]: the response does not say that the repository is virtual
                repositories.refuse_virtual(self._client, repo, "cannot be searched by pattern")
                raise self._client.transport.failure(response)
            decoded = response.json()
            files = decoded.get("files") if isinstance(decoded, Mapping) else decoded
            if not isinstance(files, list):
                raise unexpected_body(response, "a list of files")
            paths = [_path_of(file) for file in files]
            if not all(paths):
                raise unexpected_body(response, "a list of files")
            return [{"path": path} for path in sorted(paths)]

        return ask

    def _listing(self, options: ListingOptions) -> Callable[[], Rows]:
        """Return a function that lists a folder.

        The `name` of a row is the first segment of the path below the folder.
        """
        refuse_matrix("list: path", options.path)
        repo = repository_key("list: repo", options.repo)
        path = join(*segments(options.path, "list: path"))

        def read(*, slash: bool) -> Rows:
            address = f"api/storage/{item_path(repo, path, slash=slash)}?list"
            purpose = f"listing '{repo}/{path}'"
            return aql.read_rows(self._client, purpose, address, "files", query=options.query).rows

        def ask() -> Rows:
            try:
                rows = read(slash=False)
            except ToolchainError as error:
                # some servers only find the root of a repository with a trailing slash
                if error.status != 404 or path != "":
                    raise
                rows = read(slash=True)
            return [_entry(row) for row in rows]

        return ask


def _content(options: ArtifactInfoOptions) -> str:
    file = options.aql_file or ""
    try:
        with open(file, encoding="utf-8", opener=open_regular) as text:
            query = text.read()
    except OSError as error:
        raise invalid(f"aql_file: cannot read {file}: {error.strerror}") from None
    except ValueError:
        raise invalid(f"aql_file: {file} is not UTF-8 text") from None
    if not query.strip():
        raise invalid(f"aql_file: {file} contains no query")
    return query


def _path_of(file: Any) -> str:
    """Return the path of a matching file; "" if the response has another format."""
    named = file.get("uri") or file.get("path") if isinstance(file, Mapping) else file
    return join(named) if isinstance(named, str) else ""


def _entry(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of a listing with `name`.

    Server fact [repo-6]: numbers and booleans may be strings, which are converted.
    """
    entry = {**row, "name": join(str(row.get("uri") or "")).partition("/")[0]}
    _count_size(entry)
    if "folder" in row:
        entry["folder"] = str(row["folder"]).lower() == "true"
    return entry


def _count_size(row: dict[str, Any]) -> None:
    """Convert `size` to a number if it is a decimal string [repo-6]."""
    size = row.get("size")
    if isinstance(size, str) and size.removeprefix("-").isdecimal():
        row["size"] = int(size)
