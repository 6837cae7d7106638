# SPDX-License-Identifier: GPL-3.0-or-later
"""Search issues: by offset on servers, by token in the cloud [tracker-9, tracker-11]."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from sandbox.service import ErrorResponse, json_body
from sandbox.tracker.issues import views
from sandbox.tracker.issues.views import Views, comma_list
from sandbox.tracker.search.conditions import Conditions, Issue, has_unique_order
from sandbox.tracker.search.jql import JqlSyntaxError, Query, parse

Json = dict[str, Any]

_LISTS = ("fields", "expand", "properties")
_OFFSET_MEMBERS = ("jql", "startAt", "maxResults", "validateQuery", *_LISTS, "fieldsByKeys")
_TOKEN_MEMBERS = (
    "jql",
    "nextPageToken",
    "maxResults",
    *_LISTS,
    "fieldsByKeys",
    "failFast",
    "reconcileIssues",
)
_STRICT, _WARN, _NONE = "strict", "warn", "none"
_VALIDATION = {_STRICT: _STRICT, "true": _STRICT, _WARN: _WARN, "false": _WARN, _NONE: _NONE}
_DEFAULT_PAGE = 50
#: Server fact [tracker-11]: maximum number of fields in `ORDER BY` in the cloud.
_MAX_TERMS = 7
#: Kind of the documents for new issues that are not in the index yet. `until`: epoch milliseconds,
#: `searches`: number of searches that do not find the issue.
UNINDEXED = "tracker.unindexed"

_WINDOW = (
    "Search limit exceeded: the result window is too large, "
    "startAt + maxResults must be less than or equal to [{limit}]"
)


@dataclass(frozen=True)
class Asked:
    """Parameters of a search. `fields`: None means the default of the endpoint.

    `reconciled`: ids of issues to find although they are not in the index yet.
    """

    jql: str
    start_at: int
    max_results: int
    validation: str
    fields: list[str] | None
    expand: list[str]
    properties: list[str]
    token: str | None
    reconciled: frozenset[str]


@dataclass
class Found:
    """All issues that match, in order, and warnings about the query."""

    issues: list[Issue]
    warnings: list[str] = field(default_factory=list)


def xml_status(status: int, message: str) -> str:
    """Return an error in XML, which some errors are although JSON was requested [tracker-2]."""
    return (
        '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
        f"<status><status-code>{status}</status-code><message>{message}</message></status>"
    )


def refusal(messages: list[str], *, syntax: bool = False) -> Response:
    """Return a 400. Unlike a syntax error, a semantic error has no member `errors` [tracker-10]."""
    if syntax:
        return JSONResponse({"errorMessages": messages, "errors": {}}, 400)
    return JSONResponse({"errorMessages": messages, "warningMessages": []}, 400)


async def read_search(request: Request, *, tokens: bool, unrecognized: list[str]) -> Asked:
    """Parse the query of a GET or the body of a POST. Raises a 400 for unknown members.

    :param tokens: whether the search is by token
    :param unrecognized: members that this server does not know, like old servers [tracker-10]
    """
    known = [
        name for name in (_TOKEN_MEMBERS if tokens else _OFFSET_MEMBERS) if name not in unrecognized
    ]
    if request.method == "POST":
        return _asked(_members(await request.body(), known))
    query = request.query_params
    values: Json = {name: query[name] for name in query if name not in _LISTS}
    values |= {name: comma_list(query.getlist(name)) for name in _LISTS if name in query}
    return _asked(values)


def _members(body: bytes, known: list[str]) -> Json:
    members = json_body(body)
    if not isinstance(members, dict):
        raise ErrorResponse(
            refusal(["Unexpected end-of-input: expected a JSON object"], syntax=True)
        )
    for name in members:
        if name not in known:
            message = f'Unrecognized field "{name}" (Class SearchRequest), not marked as ignorable'
            raise ErrorResponse(refusal([message], syntax=True))
    for name in _LISTS:
        if isinstance(members.get(name), str):
            members[name] = comma_list([members[name]])
    return members


def _asked(values: Json) -> Asked:
    validate = values.get("validateQuery")
    word = _STRICT if validate in (None, "") else str(validate).lower()
    if word not in _VALIDATION:
        raise ErrorResponse(
            refusal([f"The validateQuery value '{validate}' is not valid."], syntax=True)
        )
    return Asked(
        jql=str(values.get("jql") or ""),
        start_at=_integer(values, "startAt", 0),
        max_results=_integer(values, "maxResults", _DEFAULT_PAGE),
        validation=_VALIDATION[word],
        fields=values.get("fields") or None,
        expand=values.get("expand") or [],
        properties=values.get("properties") or [],
        token=values.get("nextPageToken"),
        reconciled=frozenset(map(str, values.get("reconcileIssues") or [])),
    )


def _integer(values: Json, name: str, default: int) -> int:
    value = values.get(name)
    if value is None:
        return default
    try:
        return int(value)
    except (TypeError, ValueError):
        raise ErrorResponse(refusal([f"The value '{value}' of {name} is not a number."])) from None


class Search:
    """Search the issues that an account can see."""

    def __init__(self, shown: Views, settings: Json, shuffle: int | None) -> None:
        self.views = shown
        self.settings = settings
        self.shuffle = shuffle
        self.conditions = Conditions(shown.visible)

    def _query(self, asked: Asked) -> Query:
        try:
            return parse(asked.jql)
        except JqlSyntaxError as error:
            raise ErrorResponse(refusal([str(error)], syntax=True)) from None

    def _find(
        self, query: Query, validation: str, reconciled: frozenset[str] = frozenset()
    ) -> Found:
        problems = self.conditions.problems(query)
        if problems and validation == _STRICT:
            raise ErrorResponse(refusal(problems))
        fresh = self._unindexed() - reconciled
        matching = [
            issue
            for issue in self.conditions.visible.issues.values()
            if issue["id"] not in fresh and self.conditions.matches(query.where, issue)
        ]
        unstable = self.settings["unstable_order"] and not has_unique_order(query)
        ordered = self.conditions.ordered(query, matching, self.shuffle if unstable else None)
        return Found(ordered, problems if validation == _WARN else [])

    def _unindexed(self) -> set[str]:
        """Return the ids of new issues that are not in the index yet [tracker-20]."""
        store, found = self.views.visible.store, set()
        for number, lag in store.items(UNINDEXED):
            waits = self.views.visible.now_ms < lag["until"] or lag["searches"] > 0
            if waits:
                found.add(number)
                store.put(UNINDEXED, number, {**lag, "searches": lag["searches"] - 1})
            else:
                store.delete(UNINDEXED, number)
        return found

    def _page_size(self, asked: Asked) -> int:
        cap = int(self.settings["max_page"])
        return cap if asked.max_results < 0 else min(asked.max_results, cap)

    def by_offset(self, asked: Asked, *, written: bool) -> Response:
        """Return a page of a search by offset [tracker-9].

        :param written: whether to return the members of the written interface only [W2.2]
        """
        size = self._page_size(asked)
        query = self._query(asked)
        limit = self.settings["window_limit"]
        if not written and limit is not None and asked.start_at + size > limit:
            text = xml_status(500, _WINDOW.format(limit=limit))
            return Response(text, 500, media_type="application/xml")
        found = self._find(query, asked.validation)
        start = max(asked.start_at, 0)
        page = found.issues[start : start + size]
        if written:
            shown = [self.views.written_issue(issue, asked.fields) for issue in page]
            return JSONResponse({"issues": shown})
        fields = asked.fields or [views.NAVIGABLE]
        response: Json = {
            "expand": "schema,names",
            "startAt": start,
            "maxResults": size,
            "total": len(found.issues),
            "issues": [self._shown(issue, fields, asked) for issue in page],
        }
        if found.warnings:
            response["warningMessages"] = found.warnings
        return JSONResponse(response | self._expansions(asked))

    def _shown(self, issue: Issue, fields: list[str], asked: Asked) -> Json:
        shown = self.views.issue(issue, fields, asked.properties)
        return {**shown, **self.views.expanded(issue, asked.expand)}

    def by_token(self, asked: Asked) -> Response:
        """Return a page of a search by token, as in the cloud [tracker-11].

        It contains no total, and by default only the ids of issues.
        """
        query = self._query(asked)
        if query.where is None:
            message = (
                "Unbounded JQL queries are not allowed here. "
                "Please add a search restriction to your query."
            )
            return refusal([message], syntax=True)
        if len(query.order) > _MAX_TERMS:
            return refusal([f"ORDER BY has more than {_MAX_TERMS} fields."], syntax=True)
        found = self._find(query, _STRICT, asked.reconciled)
        start = _offset(asked)
        end = start + min(self._page_size(asked), int(self.settings["cloud_max_page"]))
        is_last = end >= len(found.issues)
        page = found.issues[start:end]
        response: Json = {"issues": [self._by_token(issue, asked) for issue in page]}
        if not is_last:
            response["nextPageToken"] = _token(asked.jql, end)
        if not self.settings["omit_is_last"]:
            response["isLast"] = is_last
        return JSONResponse(response | self._expansions(asked))

    def _by_token(self, issue: Issue, asked: Asked) -> Json:
        if asked.fields is None or asked.fields == ["id"]:
            return {"id": issue["id"]}
        return self._shown(issue, asked.fields, asked)

    def _expansions(self, asked: Asked) -> Json:
        members: Json = {}
        if "names" in asked.expand:
            members["names"] = self.views.catalogue.names()
        if "schema" in asked.expand:
            members["schema"] = self.views.catalogue.schema()
        return members


def _token(jql: str, offset: int) -> str:
    mark = hashlib.sha256(jql.encode()).hexdigest()[:8]
    return base64.urlsafe_b64encode(json.dumps([offset, mark]).encode()).decode()


def _offset(asked: Asked) -> int:
    """Return the start of the page that the token names. Raises a 400 for an invalid token.

    A token is only valid for the query that returned it.
    """
    if not asked.token:
        return 0
    try:
        offset = int(json.loads(base64.urlsafe_b64decode(asked.token))[0])
    except (binascii.Error, ValueError, TypeError, LookupError):
        offset = -1
    if offset < 0 or _token(asked.jql, offset) != asked.token:
        raise ErrorResponse(refusal(["The provided next page token is invalid."], syntax=True))
    return offset
