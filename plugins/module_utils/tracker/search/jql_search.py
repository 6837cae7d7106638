# SPDX-License-Identifier: GPL-3.0-or-later
"""Module and lookup `jql_search`: search issues with a query [W4.2, C4.1]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ...core.connection.cloud import is_cloud
from ...core.errors import ToolchainError, shorten
from ...core.http.messages import Response
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.module.typed_options import NotNegative, PathText, Positive
from ...core.plan import Plan, unchanged, without_none
from ...core.progress import ProgressCounter
from ..client import TrackerClient
from ..jql import require_no_offsets, with_unique_order
from ..pagination import FoundIssues, Issue, OffsetPages, SearchRange, TokenPages, entries_of
from .issue_file import IssueFile
from .seen_fields import MissingParts

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

    descriptor: ClassVar = Descriptor("tracker", {"search": reads(), "pages": reads()})

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
        if self._file is not None:
            return self._plan_of(self._file)
        found = self.search()
        keys = [issue["key"] for issue in found.issues if "key" in issue]
        return unchanged(
            {
                "issues": found.issues,
                "issue_keys": keys,
                "total": found.total,
                "complete": found.complete,
            }
        )

    def _plan_of(self, file: IssueFile) -> Plan:
        """Write the issues to a temporary file while reading, and compare it with `dest`."""
        found = self.search(file.add)
        counts = {"count": found.count, "total": found.total, "complete": found.complete}
        return file.plan().with_result(dest=file.path, **counts)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        if self._file is not None:
            self._file.save()
        return {}

    def search(self, take: Callable[[Issue], None] | None = None) -> FoundIssues:
        """Return the requested issues. Warnings of the server become warnings of the task.

        :param take: receives each issue; otherwise they are collected in a list
        """
        try:
            found = self._by_dialect(self._missing.through(take))
        except ToolchainError as error:
            if error.kind != "rejected" or not self._names_predicted_version():
                raise
            found = FoundIssues([], 0, 0, complete=True, warnings=[])
        more = self._missing.warnings(found.count, found.issues)
        for warning in dict.fromkeys([*found.warnings, *more]):
            self._task.warn(f"{self._purpose}: {warning}")
        return found

    def _names_predicted_version(self) -> bool:
        """Return whether the query names a version that an earlier task in check mode would create.

        The tracker rejects such a query. No issue has that version.
        """
        return any(
            name in self._options.jql for name in self._task.predictions.all("new version", "")
        )

    def _by_dialect(self, take: Callable[[Issue], None] | None) -> FoundIssues:
        dialect = self._task.connection.settings["dialect"]
        known = _CLOUD in self._client.memory or is_cloud(self._task.connection)
        if dialect == "cloud" or (dialect == "auto" and known):
            return self._by_token(take)
        try:
            parallel = self._options.parallel
            return OffsetPages(self._page_at, self._range, parallel, self._purpose, take).read()
        except ToolchainError as error:
            if error.status != 410:
                raise
            removed = error
        if dialect == "server":
            raise removed.with_hint(
                f"{_TOKEN[0]} has replaced this search: set dialect to auto or cloud"
            )
        try:
            return self._by_token(take)
        except ToolchainError as error:
            if error.status not in _UNKNOWN:
                raise
        raise removed.with_hint(f"{_TOKEN[0]}, which replaces it, does not exist either")

    def _page_at(self, start: int, size: int) -> Mapping[str, Any]:
        """Return a page by offset [W4.2]."""
        members = {**self._members(), "startAt": start, "maxResults": size}
        validate = self._options.validate_query
        if validate is not None:
            members["validateQuery"] = validate
        return self._send(_OFFSET, members)

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
        for candidate in candidates:
            try:
                pages = self._pages_of(candidate)
                found = TokenPages(pages, self._range, self._purpose, take).read()
            except ToolchainError as error:
                if error.status not in _UNKNOWN or candidate == candidates[-1]:
                    raise
                continue
            self._client.memory[_CLOUD] = candidate
            return found
        raise AssertionError("the last candidate returns or raises")

    def _pages_of(self, path: str) -> Callable[[str | None, int], Mapping[str, Any]]:
        def page(token: str | None, size: int) -> Mapping[str, Any]:
            # By default the cloud returns only ids; a server returns the navigable fields.
            members = {"fields": ["*navigable"], **self._members(), "maxResults": size}
            members["jql"] = self._jql_of_cloud
            if self._client.written:
                members["reconcileIssues"] = self._client.written
            if token is not None:
                members["nextPageToken"] = token
            if "expand" in members:
                members["expand"] = ",".join(members["expand"])
            return self._send(path, members)

        return page

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
        if by_post and _GET_ONLY not in self._client.memory:
            response = self._post(path, members)
            if response is not None:
                return self._decoded(response)
        return self._decoded(self._client.read(self._purpose, path, query=query))

    def _post(self, path: str, members: Mapping[str, Any]) -> Response | None:
        """Send the search with POST. Return None if the server only supports GET.

        The written interface has no POST.
        """
        logical = {"true": True, "false": False}
        body = dict(members)
        if body.get("validateQuery") in logical:
            body["validateQuery"] = logical[body["validateQuery"]]
        response = self._client.read(
            self._purpose, path, method="POST", json=body, expect=(200, 404, 405, 501)
        )
        if response.status == 200:
            return response
        self._client.memory[_GET_ONLY] = True
        return None

    def _decoded(self, response: Response) -> Mapping[str, Any]:
        page = entries_of(response, "issues")
        self._count.add(len(page["issues"]))
        return page
