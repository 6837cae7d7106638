# SPDX-License-Identifier: GPL-3.0-or-later
"""Issue search [W4.2, C4.1]: the module and the lookup C(jql_search)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...core.errors import ToolchainError, invalid, shorten
from ...core.http.messages import Answer, unreadable
from ...core.module.task import Task
from ...core.plan import Reading
from ..client import Tracker
from ..jql import with_unique_order
from ..pagination import Found, OffsetWalk, Range, TokenWalk

#: Proxies and servers refuse addresses from about 2,000 characters on; longer queries go by POST.
_LONGEST_URL = 2000
#: Characters of the query that a message shows.
_SHOWN = 200
_OFFSET = "rest/api/2/search"
_TOKEN = ("rest/api/2/search/jql", "rest/api/3/search/jql")
_CLOUD = "tracker.search by token"
#: How a server says that it has no such search.
_UNKNOWN = (404, 410)
_LISTS = ("fields", "expand", "properties")


def operation(task: Task) -> Reading:
    """The operation of the module: C(issues), C(issue_keys), C(total), C(complete)."""
    search = Search(task)

    def read() -> Mapping[str, Any]:
        found = search.read()
        keys = [issue["key"] for issue in found.issues if "key" in issue]
        return {
            "issues": found.issues,
            "issue_keys": keys,
            "total": found.total,
            "complete": found.complete,
        }

    return Reading(read)


def issues(task: Task) -> list[dict[str, Any]]:
    """The answer of the lookup."""
    return Search(task).read().issues


class Search:
    """One search of a task, on whichever kind of server; C(invalid) for impossible numbers."""

    def __init__(self, task: Task) -> None:
        params = task.params
        for name, least in (("start_at", 0), ("max_results", 0), ("page_size", 1), ("parallel", 1)):
            if params[name] is not None and params[name] < least:
                raise invalid(f"{name} is {params[name]}, but must be at least {least}")
        self._task, self._params = task, params
        self._parallel = int(params["parallel"])
        self._tracker = Tracker(task, connections=self._parallel)
        self._jql = with_unique_order(params["jql"])
        self._what = f"searching for issues with the query '{shorten(params['jql'], _SHOWN)}'"
        self._range = Range(params["start_at"], params["max_results"], params["page_size"])
        self._by_get_only = False

    def read(self) -> Found:
        """All issues that were asked for; warnings of the server become warnings of the task."""
        found = self._by_dialect()
        for warning in dict.fromkeys(found.warnings):
            self._task.warn(f"{self._what}: {warning}")
        return found

    def _by_dialect(self) -> Found:
        dialect = self._task.connection.settings["dialect"]
        if dialect == "cloud" or (dialect == "auto" and _CLOUD in self._tracker.memory):
            return self._by_token()
        try:
            return OffsetWalk(self._page_at, self._range, self._parallel, self._what).read()
        except ToolchainError as error:
            if error.status != 410:
                raise
            removed = error
        if dialect == "server":
            raise removed.with_words(f"its successor is {_TOKEN[0]}: set dialect to auto or cloud")
        try:
            return self._by_token()
        except ToolchainError as error:
            if error.status not in _UNKNOWN:
                raise
        raise removed.with_words(f"its successor {_TOKEN[0]} is not there either")

    def _page_at(self, start: int, size: int) -> Mapping[str, Any]:
        """A page by offset [W4.2]."""
        members = {**self._members(), "startAt": start, "maxResults": size}
        validate = self._params["validate_query"]
        if validate is not None:
            members["validateQuery"] = validate
        return self._send(_OFFSET, members)

    def _by_token(self) -> Found:
        """The cloud's own search: pages by token, no offset, no total, no C(validateQuery)."""
        if self._params["validate_query"] not in (None, "strict", "true"):
            self._task.warn(
                f"{self._what}: this server always validates queries strictly, so that"
                f" validate_query '{self._params['validate_query']}' has no effect"
            )
        path = self._tracker.memory.get(_CLOUD)
        for candidate in _TOKEN if path is None else (path,):
            try:
                found = TokenWalk(self._pages_of(candidate), self._range, self._what).read()
            except ToolchainError as error:
                if error.status not in _UNKNOWN or candidate == _TOKEN[-1]:
                    raise
                continue
            self._tracker.memory[_CLOUD] = candidate
            return found
        raise AssertionError("the last candidate answers or raises")

    def _pages_of(self, path: str) -> Callable[[str | None, int], Mapping[str, Any]]:
        def page(token: str | None, size: int) -> Mapping[str, Any]:
            # Its own default would be bare ids: both kinds of servers shall answer alike.
            members = {"fields": ["*navigable"], **self._members(), "maxResults": size}
            if token is not None:
                members["nextPageToken"] = token
            if "expand" in members:
                members["expand"] = ",".join(members["expand"])
            return self._send(path, members)

        return page

    def _members(self) -> dict[str, Any]:
        """What the user set and no more: old servers refuse members that they do not know."""
        members: dict[str, Any] = {"jql": self._jql}
        for name in _LISTS:
            if self._params[name] is not None:
                members[name] = list(self._params[name])
        if members.get("fields") == []:
            # An empty list would mean the default fields; the key is not a field and comes anyway.
            members["fields"] = ["key"]
        if self._params["fields_by_keys"] is not None:
            members["fieldsByKeys"] = self._params["fields_by_keys"]
        return members

    def _send(self, path: str, members: Mapping[str, Any]) -> Mapping[str, Any]:
        query = {
            name: ",".join(value) if isinstance(value, list) else value
            for name, value in members.items()
            if value != []
        }
        if self._tracker.length(path, query) > _LONGEST_URL and not self._by_get_only:
            answer = self._post(path, members)
            if answer is not None:
                return self._decoded(answer)
        return self._decoded(self._tracker.read(self._what, path, query=query))

    def _post(self, path: str, members: Mapping[str, Any]) -> Answer | None:
        """C(None) where the server knows the search by GET alone (as the written interface)."""
        logical = {"true": True, "false": False}
        body = dict(members)
        if body.get("validateQuery") in logical:
            body["validateQuery"] = logical[body["validateQuery"]]
        answer = self._tracker.read(
            self._what, path, method="POST", json=body, expect=(200, 404, 405, 501)
        )
        if answer.status == 200:
            return answer
        self._by_get_only = True
        return None

    def _decoded(self, answer: Answer) -> Mapping[str, Any]:
        page = answer.json()
        found = page.get("issues") if isinstance(page, Mapping) else None
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise unreadable(answer, "a list of issues")
        decoded: Mapping[str, Any] = page
        return decoded
