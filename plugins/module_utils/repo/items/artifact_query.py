# SPDX-License-Identifier: GPL-3.0-or-later
"""Asking what is in the repositories [C2.3]: in the query
language, by pattern, or as the listing of a folder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ...core.errors import ToolchainError, invalid, shorten
from ...core.http.messages import unreadable
from ...core.module.task import Task
from ...core.plan import Reading
from .. import aql, json_rows
from ..client import RepoClient, item_path, join, repository_key, segments

#: Characters of a query that a message shows.
_SHOWN = 100
_IS_QUERY = re.compile(r"\s*\w[\w.\s]*\.\s*find\s*\(")
#: Options of a listing, as the written interface [W4.1] spells them.
_FLAGS = {
    "deep": "deep",
    "list_folders": "listFolders",
    "md_timestamps": "mdTimestamps",
    "include_root_path": "includeRootPath",
}
Rows = list[dict[str, Any]]


def operation(task: Task) -> Reading:
    """The operation of the module: C(results), C(total), C(complete)."""
    query = Query(task)
    ask = query.asking(task.params)

    def read() -> Mapping[str, Any]:
        rows = ask()
        return {"results": rows, "total": len(rows), "complete": query.complete}

    return Reading(read)


def results(task: Task) -> Rows:
    """The answer of the lookup: its C(term) is a text in the query language, or a pattern."""
    term = task.params["term"]
    query = Query(task)
    return query.by_text(term)() if _IS_QUERY.match(term) else query.by_pattern(term)()


class Query:
    """A question of a task. Its methods check what is asked, and give what asks."""

    def __init__(self, task: Task) -> None:
        self._warn, self._client = task.warn, RepoClient(task)
        #: Whether the server gave all that it found.
        self.complete = True

    def asking(self, params: Mapping[str, Any]) -> Callable[[], Rows]:
        """What asks the one question that the options name."""
        if params["aql"] is not None:
            return self.by_text(params["aql"])
        if params["aql_file"] is not None:
            return self.by_text(_content(params["aql_file"]))
        if params["pattern"] is not None:
            return self.by_pattern(params["pattern"])
        return self.listing(params["list"])

    def by_text(self, text: str) -> Callable[[], Rows]:
        """Rows as the server gives them."""
        if not text.strip():
            raise invalid("the query is empty")
        what = f"querying '{shorten(text, _SHOWN)}'"

        def ask() -> Rows:
            found = aql.ask(self._client, what, text)
            if found.trimmed:
                self.complete = False
                self._warn(f"{what}: these are not all results, says the server: {found.trimmed}")
            return found.rows

        return ask

    def by_pattern(self, pattern: str) -> Callable[[], Rows]:
        """C(path) of each file in the repository, in order: the server has none.

        The shape is not written; server fact [repo-16]: C(files), a list of paths.
        """
        repo, colon, path = pattern.partition(":")
        if colon == "" or path == "":
            raise invalid(f"pattern: '{pattern}' is not written as repository:path/*.jar")
        repository_key("pattern", repo)

        def ask() -> Rows:
            answer = self._client.transport.read(
                f"searching for '{pattern}'",
                self._client.dialect.patterns,
                query={"pattern": pattern},
            )
            decoded = answer.json()
            files = decoded.get("files") if isinstance(decoded, Mapping) else decoded
            if not isinstance(files, list):
                raise unreadable(answer, "a list of files")
            paths = [_path_of(file) for file in files]
            if not all(paths):
                raise unreadable(answer, "a list of files")
            return [{"path": path} for path in sorted(paths)]

        return ask

    def listing(self, option: Mapping[str, Any]) -> Callable[[], Rows]:
        """The entries of a folder, each with its C(name), the first segment of its address."""
        repo, path = repository_key("list: repo", option["repo"]), join(*segments(option["path"]))
        depth = option["depth"]
        if depth is not None and depth < 1:
            raise invalid(f"list: depth is {depth}: give at least 1, or leave it out")
        query = {flag: int(option[name]) for name, flag in _FLAGS.items() if option[name]}
        if depth is not None:
            # servers look at it together with `deep` alone
            query.update(deep=1, depth=depth)

        def ask() -> Rows:
            return [_entry(row) for row in self._list(repo, path, query)]

        return ask

    def _list(self, repo: str, path: str, query: Mapping[str, int]) -> Rows:
        def read(*, slash: bool) -> Rows:
            address = f"api/storage/{item_path(repo, path, slash=slash)}?list"
            what = f"listing '{repo}/{path}'"
            return json_rows.read(self._client, what, address, "files", query=query).rows

        try:
            return read(slash=False)
        except ToolchainError as error:
            # the root of a repository may need its slash
            if error.status != 404 or path != "":
                raise
        return read(slash=True)


def _content(file: str) -> str:
    try:
        with open(file, encoding="utf-8") as text:
            return text.read()
    except OSError as error:
        raise invalid(f"aql_file: {file} cannot be read: {error.strerror}") from None
    except ValueError:
        raise invalid(f"aql_file: {file} is not text in UTF-8") from None


def _path_of(file: Any) -> str:
    """The path of a match; empty where it has none."""
    named = file.get("uri") or file.get("path") if isinstance(file, Mapping) else file
    return join(named) if isinstance(named, str) else ""


def _entry(row: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with numbers and booleans: server fact [repo-6], they may be texts."""
    entry = {**row, "name": join(str(row.get("uri") or "")).partition("/")[0]}
    size = str(row.get("size"))
    if size.removeprefix("-").isdigit():
        entry["size"] = int(size)
    if "folder" in row:
        entry["folder"] = str(row["folder"]).lower() == "true"
    return entry
