# SPDX-License-Identifier: GPL-3.0-or-later
"""Module and lookup `jql_search`: search issues with a query [W4.2, C4.1]."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any, ClassVar, Literal

from ...core.errors import ToolchainError, invalid, shorten
from ...core.files import atomic_write, make_folders
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.module.typed_options import NotNegative, PathText, Positive
from ...core.plan import Plan, unchanged, without_none
from ...core.plan import plan as compared
from ...core.progress import ProgressCounter
from ..client import TrackerClient
from ..jql import require_no_offsets, with_unique_order
from ..pagination import FoundIssues, Issue, OffsetPages, SearchRange, entries_of, read_by_token
from ..service import SERVICE
from .field_text import field_text
from .tracker_issue_info import MissingParts

_JSON, _CSV = (".jsonl", ".ndjson"), (".csv",)
_BLOCK = 1024 * 1024
#: Maximum size in bytes of a temporary file in memory; larger ones are on disk.
_IN_MEMORY = 8 * 1024 * 1024
#: First characters that make a spreadsheet run a cell as a formula; the last four are full-width.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", *"\uff1d\uff0b\uff0d\uff20")


class IssueFile:
    """A file of issues, which is replaced as a whole. Raises `invalid` for an unsuitable path.

    :param columns: names of the fields in a CSV file, which follow the key
    """

    def __init__(self, path: str, columns: list[str] | None) -> None:
        self.path = path
        self._ending = os.path.splitext(path)[1].lower()
        if self._ending not in (*_JSON, *_CSV):
            raise invalid(f"dest is '{path}': its name must end with .jsonl, .ndjson or .csv")
        are_columns = columns and not any(name.startswith(("*", "-")) for name in columns)
        if self._ending in _CSV and not are_columns:
            raise invalid("fields must list each column of a CSV file by name")
        if os.path.lexists(path) and not os.path.isfile(path):
            raise invalid(f"dest is '{path}', which is not a file")
        self._columns = [name for name in columns or [] if name != "key"]
        # The temporary file has no name, so an interrupted task leaves nothing behind.
        self._spool: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
        self._digest = hashlib.sha256()
        if self._ending in _CSV:
            self._write_row(["key", *self._columns])

    def add(self, issue: Issue) -> None:
        """Add a line for an issue."""
        if self._ending in _CSV:
            fields = issue.get("fields")
            fields = fields if isinstance(fields, Mapping) else {}
            cells = [_cell(fields.get(name)) for name in self._columns]
            self._write_row([_cell(issue.get("key")), *cells])
        else:
            self._write(json.dumps(issue, ensure_ascii=False) + "\n")

    def _write_row(self, cells: list[str]) -> None:
        row = io.StringIO()
        # Only characters of the line terminator are quoted: a bare CR would begin a new row.
        csv.writer(row, lineterminator="\r\n").writerow(cells)
        self._write(row.getvalue().removesuffix("\r\n") + "\n")

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        self._digest.update(data)
        self._spool.write(data)

    def plan(self) -> Plan:
        wanted = {self.path: {"size": self._spool.tell(), "sha256": self._digest.hexdigest()}}
        there = _described(self.path)
        found = compared(None if there is None else {self.path: there}, wanted)
        if not found.changed:
            self._spool.close()
        return found

    def save(self) -> None:
        """Replace the file with the collected content."""
        make_folders(os.path.dirname(self.path) or ".")
        self._spool.seek(0)
        with atomic_write(self.path) as file:
            shutil.copyfileobj(self._spool, file, _BLOCK)
        self._spool.close()


def _described(path: str) -> dict[str, Any] | None:
    """Return size and digest of a file, or None if it does not exist."""
    try:
        with open(path, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            digest, size = hashlib.sha256(), 0
            for block in iter(lambda: file.read(_BLOCK), b""):
                digest.update(block)
                size += len(block)
            return {"size": size, "sha256": digest.hexdigest()}
    except FileNotFoundError:
        return None
    except OSError as error:
        raise invalid(f"dest is '{path}', but cannot be read: {error.strerror}") from None


def _cell(value: Any) -> str:
    """Return a value as a CSV cell, which a spreadsheet does not run as a formula."""
    text = field_text(value)
    if text is None:
        return json.dumps(value, ensure_ascii=False)
    return f"'{text}" if text.startswith(_FORMULA) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


#: Some proxies and servers reject longer URLs, so longer queries are sent with POST.
_LONGEST_URL = 2000
#: Maximum number of characters of the query in a message.
_SHOWN = 200
_OFFSET = "rest/api/2/search"
_TOKEN = ("rest/api/2/search/jql", "rest/api/3/search/jql")
#: Key in `memory` for the route of the search by token.
_CLOUD = "tracker.search by token"
#: Key in `memory`: the server has no search with POST.
_GET_ONLY = "tracker.search with GET only"
#: Maximum number of terms of an order in the cloud [tracker-11].
_MAX_TERMS = 7
#: Statuses of a server that does not support a search.
_UNKNOWN = (404, 410)


@dataclass(frozen=True)
class JqlSearchOptions:
    """The options of `jql_search`."""

    jql: str
    fields: list[str] | None = None
    expand: list[str] | None = None
    properties: list[str] | None = None
    fields_by_keys: bool | None = None
    validate_query: Literal["strict", "warn", "none", "true", "false"] | None = None
    max_results: NotNegative | None = None
    start_at: NotNegative = 0
    page_size: Positive = 100
    parallel: Positive = 4
    dest: PathText | None = None


class JqlSearchOperation:
    """Search issues, on a server or in the cloud. Write them to a file if `dest` is set."""

    descriptor: ClassVar = Descriptor(SERVICE, dict.fromkeys(("search", "pages"), reads("browse")))

    def __init__(self, task: Task, options: JqlSearchOptions) -> None:
        require_no_offsets(options.jql)
        self._task, self._options = task, options
        self._client = TrackerClient(task, connections=options.parallel)
        self._jql = with_unique_order(options.jql)
        self._jql_of_cloud = with_unique_order(options.jql, _MAX_TERMS)
        self._purpose = f"searching for issues with the query '{shorten(options.jql, _SHOWN)}'"
        self._range = SearchRange(options.start_at, options.max_results, options.page_size)
        self._count = ProgressCounter(task.progress, "reading the issues")
        self._missing = MissingParts(options.fields, by_keys=bool(options.fields_by_keys))
        self._file = None if options.dest is None else IssueFile(options.dest, options.fields)

    def plan(self) -> Plan:
        """Return the issues. With `dest`, they are written to a temporary file and compared."""
        file = self._file
        found = self.search(None if file is None else file.add)
        counts = {"total": found.total, "complete": found.complete}
        if file is not None:
            return file.plan().with_result(dest=file.path, count=found.count, **counts)
        keys = [issue["key"] for issue in found.issues if "key" in issue]
        return unchanged({"issues": found.issues, "issue_keys": keys, **counts})

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        if self._file is not None:
            self._file.save()
        return {}

    def search(self, take: Callable[[Issue], None] | None = None) -> FoundIssues:
        """Return the requested issues. Warnings of the server become warnings of the task.

        :param take: receives each issue; otherwise they are collected in a list
        """
        checked = self._missing.through(take)
        try:
            if _CLOUD in self._client.memory or self._client.known_cloud:
                found = self._by_token(checked)
            else:
                found = self._by_offset(checked)
        except ToolchainError as error:
            names = map(re.escape, self._task.predictions.all("new version", ""))
            is_named = (
                re.search(rf"(?<![\w.-]){name}(?![\w.-])", self._options.jql) for name in names
            )
            if error.kind != "rejected" or not any(is_named):
                raise
            # An earlier task in check mode would create this version: no issue has it.
            found = FoundIssues(total=0, complete=True)
        more = self._missing.warnings(found.count, found.issues)
        for warning in dict.fromkeys([*found.warnings, *more]):
            self._task.warn(f"{self._purpose}: {warning}")
        return found

    def _by_offset(self, take: Callable[[Issue], None] | None) -> FoundIssues:
        """Search with the interface of servers [W4.2], and if it is removed, with the other."""
        more = without_none({"validateQuery": self._options.validate_query})

        def page(start: int, size: int) -> Mapping[str, Any]:
            members = {**self._members(), "startAt": start, "maxResults": size, **more}
            return self._send(_OFFSET, members)

        try:
            parallel = self._options.parallel
            return OffsetPages(page, self._range, parallel, self._purpose, take).read()
        except ToolchainError as error:
            if error.status != 410:
                raise
            removed = error
        if self._task.connection.settings["dialect"] == "server":
            raise removed.with_hint(
                f"{_TOKEN[0]} has replaced this search: set dialect to auto or cloud"
            )
        try:
            return self._by_token(take)
        except ToolchainError as error:
            if error.status not in _UNKNOWN:
                raise
        raise removed.with_hint(f"{_TOKEN[0]}, which replaces it, does not exist either")

    def _by_token(self, take: Callable[[Issue], None] | None) -> FoundIssues:
        """Search with the cloud's interface, which has no offset, total or `validateQuery`."""
        validate = self._options.validate_query
        if validate not in (None, "strict", "true"):
            self._task.warn(
                f"{self._purpose}: this server always validates queries strictly, so validate_query"
                f" '{validate}' has no effect"
            )
        path = self._client.memory.get(_CLOUD)
        candidates = _TOKEN if path is None else (path,)
        written = self._client.written
        for candidate in candidates:

            def page(token: str | None, size: int, route: str = candidate) -> Mapping[str, Any]:
                # By default the cloud returns only ids; a server returns the navigable fields.
                members = {"fields": ["*navigable"], **self._members(), "maxResults": size}
                members["jql"] = self._jql_of_cloud
                if written:
                    members["reconcileIssues"] = written
                if token is not None:
                    members["nextPageToken"] = token
                if "expand" in members:
                    members["expand"] = ",".join(members["expand"])
                return self._send(route, members)

            try:
                found = read_by_token(page, self._range, self._purpose, take)
            except ToolchainError as error:
                if error.status not in _UNKNOWN or candidate == candidates[-1]:
                    raise
                continue
            self._client.memory[_CLOUD] = candidate
            return found
        raise AssertionError("the last candidate returns or raises")

    def _members(self) -> dict[str, Any]:
        """Return the members for the options that are set. Old servers reject unknown members."""
        options = self._options
        # An empty list would select the default fields. The key is always returned.
        fields = ["key"] if options.fields == [] else options.fields
        members = {
            "jql": self._jql,
            "fields": fields,
            "expand": options.expand,
            "properties": options.properties,
            "fieldsByKeys": options.fields_by_keys,
        }
        return without_none(members)

    def _send(self, path: str, members: Mapping[str, Any]) -> Mapping[str, Any]:
        query = {
            name: ",".join(map(str, value)) if isinstance(value, list) else value
            for name, value in members.items()
            if value != []
        }
        by_post = self._client.length(path, query) > _LONGEST_URL or "reconcileIssues" in members
        response = None
        if by_post and _GET_ONLY not in self._client.memory:
            logical = {"true": True, "false": False}
            body = dict(members)
            if body.get("validateQuery") in logical:
                body["validateQuery"] = logical[body["validateQuery"]]
            # the written interface has no POST
            response = self._client.read(
                self._purpose, path, method="POST", json=body, expect=(200, 404, 405, 501)
            )
            if response.status != 200:
                self._client.memory[_GET_ONLY] = True
                response = None
        if response is None:
            response = self._client.read(self._purpose, path, query=query)
        page = entries_of(response, "issues")
        self._count.add(len(page["issues"]))
        return page
