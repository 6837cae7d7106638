# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse and evaluate AQL, the query language for items and builds."""

from __future__ import annotations

import fnmatch
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starlette.responses import PlainTextResponse, Response

from sandbox.context import Context, context
from sandbox.repo import permissions, repositories
from sandbox.repo.builds import builds
from sandbox.repo.builds.builds import digests
from sandbox.repo.items import trash
from sandbox.repo.items.tree import Tree
from sandbox.repo.responses import SERVICE, account, iso
from sandbox.service import ErrorResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from starlette.requests import Request

    from sandbox.repo.items.tree import Node

Row = dict[str, Any]

_ITEM_FIELDS = (
    "repo",
    "path",
    "name",
    "type",
    "size",
    "created",
    "created_by",
    "modified",
    "modified_by",
    "updated",
)
_BUILD_FIELDS = ("name", "number", "created")
# server fact [repo-17]: AQL has no unit for hours
_UNIT_MS = {
    "millis": 1, "ms": 1, "s": 1000, "seconds": 1000, "minutes": 60_000,
    "d": 86_400_000, "days": 86_400_000, "w": 604_800_000, "weeks": 604_800_000,
    "mo": 2_592_000_000, "months": 2_592_000_000, "y": 31_536_000_000, "years": 31_536_000_000,
}  # fmt: skip
_AGE = re.compile(rf"(\d+)\s*({'|'.join(_UNIT_MS)})")
_TRIMMED = "AQL query reached the search hard limit, results are trimmed."


def _wrong(message: str) -> ErrorResponse:
    """Return a 400 with a plain-text body [repo-2, repo-17], which the caller raises."""
    return ErrorResponse(PlainTextResponse(f"Failed to parse query: {message}", 400))


@dataclass
class Query:
    """A parsed query, such as `items.find({"repo": "r"}).include("name").offset(1).limit(2)`.

    :param domain: `items` or `builds`
    :param criteria: arguments of `find`
    :param calls: arguments of the other calls, by name
    """

    domain: str
    criteria: list[Any]
    calls: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def limit(self) -> int | None:
        return int(self.calls["limit"][0]) if self.calls.get("limit") else None

    @property
    def offset(self) -> int:
        return int(self.calls["offset"][0]) if self.calls.get("offset") else 0


def parse(text: str) -> Query:
    """Parse a query. Raise a 400 with the position of the error if it is malformed."""
    start = re.match(r"\s*(items|builds)\s*\.\s*find\s*\(", text)
    if start is None:
        raise _wrong("expected items.find( or builds.find(")
    arguments, position = _arguments(text, start.end())
    query = Query(start[1], arguments)
    while call := re.compile(r"\s*\.\s*(include|sort|limit|offset)\s*\(").match(text, position):
        query.calls[call[1]], position = _arguments(text, call.end())
    if text[position:].strip():
        raise _wrong(f"unexpected text at {position}: {text[position : position + 20]}")
    return query


def _arguments(text: str, position: int) -> tuple[list[Any], int]:
    """Parse JSON values up to the closing parenthesis; return them and the position after it."""
    decoder = json.JSONDecoder()
    values: list[Any] = []
    while True:
        while position < len(text) and text[position] in " \t\r\n,":
            position += 1
        if position < len(text) and text[position] == ")":
            return values, position + 1
        try:
            value, position = decoder.raw_decode(text, position)
        except ValueError:
            raise _wrong(f"it looks like there is syntax error near {position}") from None
        values.append(value)


async def search(request: Request) -> Response:
    """Handle POST /api/search/aql [W4.1, repo-17]: return the rows that match a query."""
    current = context(request)
    real = current.real(SERVICE)
    kind = request.headers.get("content-type", "text/plain")
    if real and not kind.startswith("text/plain"):
        raise ErrorResponse(PlainTextResponse("Unsupported Media Type", 415))
    text = (await request.body()).decode("utf-8")
    longest = current.settings(SERVICE)["query_characters"]
    if real and len(text) > longest:
        # server fact [repo-14]: servers limit the length of a query
        raise _wrong(f"the query is longer than {longest} characters")
    query = parse(text)
    wanted = _wanted(query)
    restricted = real and query.domain == "items" and not account(request).get("admin", False)
    if restricted and not {"repo", "path", "name"} <= set(wanted):
        raise _wrong(
            "For permissions reasons AQL demands the following fields: repo, path and name."
        )
    rows = list(_matching(current, query))
    _sort(rows, query)
    end = None if query.limit is None else query.offset + query.limit
    found = rows[query.offset : end]
    max_rows = current.settings(SERVICE)["query_limit"] if real else None
    shown = [
        _shown(row, wanted, query.domain, real)
        for row in found[:max_rows]
        # server fact [repo-14]: unreadable rows are removed after the limit is applied
        if permissions.may(request, permissions.READ, row["repo"])
    ]
    # server fact [repo-17]: `total` is the number of returned rows, not of all matches
    span: Row = {"start_pos": query.offset, "end_pos": len(shown), "total": len(shown)}
    if query.limit is not None:
        span["limit"] = query.limit
    if max_rows is not None and len(found) > max_rows:
        # server fact [repo-17]: only this notice shows that the result is truncated
        span["notification"] = _TRIMMED
    text = "\n" + json.dumps({"results": shown, "range": span})
    return Response(text, media_type="application/json")


def nodes(current: Context, text: str) -> list[Node]:
    """Return the files that a query matches, for the content of a release bundle."""
    tree, found = Tree(current), list(_matching(current, parse(text)))
    paths = [(row["repo"], f"{row['path']}/{row['name']}".removeprefix("./")) for row in found]
    items = [tree.get(repo, path) for repo, path in paths]
    return [node for node in items if node is not None and not node["folder"]]


def _wanted(query: Query) -> list[str]:
    default = _ITEM_FIELDS if query.domain == "items" else _BUILD_FIELDS
    names = [
        str(name).removeprefix(query.domain[:-1] + ".") for name in query.calls.get("include", [])
    ]
    if not names or names == ["*"]:
        return [*default, *(["property"] if "property" in names else [])]
    return [*default, *names] if set(names) <= {"property", "property.*"} else names


def _matching(current: Context, query: Query) -> Iterator[Row]:
    text = json.dumps([query.criteria, query.calls.get("include")])
    rows = _item_rows(current, text) if query.domain == "items" else _build_rows(current)
    if ".module.build." in text:
        rows = _with_builds(current, rows)
    typed = query.domain != "items" or '"type"' in text
    last: Row | None = None
    for row in rows:
        # the default type is `file`, unless the query has a criterion for the type
        if not (typed or row["type"] == "file") or not _all(current, query.criteria, row):
            continue
        if last is not None and last.get("id") is not None and row.get("id") == last["id"]:
            # an item is a single row, even if several of its builds match
            last["produced"] += row["produced"]
            continue
        if last is not None:
            yield last
        last = row
    if last is not None:
        yield last


def _with_builds(current: Context, rows: Iterator[Row]) -> Iterator[Row]:
    """Yield item rows joined with the builds whose artifacts or dependencies have the same SHA-1.

    Server fact [repo-27]: the join is by SHA-1, so every copy of a file matches. An item is yielded
    once for each of its builds and their promotions.
    """
    joined: dict[tuple[str, str], list[Row]] = {}
    for build in current.store.values(builds.KIND):
        for part in ("artifact", "dependency"):
            plural = "artifacts" if part == "artifact" else "dependencies"
            for sha1 in digests(build, plural, None):
                joined.setdefault((part, sha1), []).extend(_joined_rows(part, build))
    none = {
        f"{part}.module.build.{name}": None
        for part in ("artifact", "dependency")
        for name in ("name", "number", "promotion.status")
    }
    for row in rows:
        sha1 = str(row["actual_sha1"])
        place = (row["repo"], row["path"], row["name"])
        for produced in joined.get(("artifact", sha1), [{}]):
            for used in joined.get(("dependency", sha1), [{}]):
                listed = [produced] if produced else []
                yield {**row, **none, **produced, **used, "id": place, "produced": listed}


def _joined_rows(part: str, build: builds.Build) -> list[Row]:
    """Return the fields of a build for a query, once for each of its promotions."""
    prefix = f"{part}.module.build."
    fields = {f"{prefix}name": build["name"], f"{prefix}number": build["number"]}
    states = [entry["status"] for entry in build["info"].get("statuses", [])]
    return [{**fields, f"{prefix}promotion.status": status} for status in states or [None]]


def _item_rows(current: Context, text: str) -> Iterator[Row]:
    # server fact [repo-8]: the trash can is searched only if the query names it
    if f'"{trash.REPOSITORY}"' in text:
        for path, node in current.store.items(trash.KIND):
            yield _item_row({**_file_of(node), "repo": trash.REPOSITORY, "path": path})
    for key, doc in current.store.items(repositories.KIND):
        if doc["type"] == "LOCAL":
            for node in Tree(current).below(key, ""):
                yield _item_row(node)


def _file_of(kept: Node) -> Node:
    """Return a file in the trash can with all fields of an item; a build record is also a file."""
    times = dict.fromkeys(("created", "modified"), kept.get("started"))
    people = dict.fromkeys(("createdBy", "modifiedBy"), "")
    return {"folder": False, "properties": {}, **people, **times, **kept}


def _item_row(node: Node) -> Row:
    folder, _slash, name = node["path"].rpartition("/")
    return {
        "repo": node["repo"],
        "path": folder or ".",
        "name": name,
        "type": "folder" if node["folder"] else "file",
        "depth": node["path"].count("/") + 1,
        "size": node.get("size", 0),
        "created": iso(node["created"]),
        "created_by": node["createdBy"],
        "modified": iso(node["modified"]),
        "modified_by": node["modifiedBy"],
        "updated": iso(node["modified"]),
        "actual_sha1": node.get("sha1"),
        "actual_md5": node.get("md5"),
        "sha256": node.get("sha256"),
        "properties": node["properties"],
    }


def _build_rows(current: Context) -> Iterator[Row]:
    for build in current.store.values(builds.KIND):
        properties = build["info"].get("properties", {})
        yield {
            "repo": permissions.builds_key(current, build["project"]),
            "name": build["name"],
            "number": build["number"],
            "created": iso(build["started"]),
            "properties": {name: [value] for name, value in properties.items()},
        }


def _all(current: Context, criteria: list[Any], row: Row) -> bool:
    return all(
        _holds(current, name, value, row) for part in criteria for name, value in part.items()
    )


def _holds(current: Context, name: str, value: Any, row: Row) -> bool:
    if name == "$and":
        return _all(current, value, row)
    if name == "$or":
        return any(_all(current, [part], row) for part in value)
    tests = value if isinstance(value, dict) else {"$eq": value}
    if name.startswith("@"):
        values = row["properties"].get(name[1:], [])
        if tests == {"$eq": "*"}:
            return bool(values)
        return any(_passes(current, tests, item) for item in values)
    name = name.removeprefix("build.")
    if name not in row or name in ("properties", "id"):
        raise _wrong(f"unknown field '{name}'")
    if name == "type" and tests == {"$eq": "any"}:
        return True
    return _passes(current, tests, row[name])


def _passes(current: Context, tests: dict[str, Any], found: Any) -> bool:
    return all(_compare(current, test, found, wanted) for test, wanted in tests.items())


def _wild(found: Any, pattern: Any) -> bool:
    text = str(pattern).replace("[", "[[]")
    return fnmatch.fnmatchcase(str(found), text)


_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda found, wanted: found == wanted,
    "$ne": lambda found, wanted: found != wanted,
    "$match": _wild,
    "$nmatch": lambda found, wanted: not _wild(found, wanted),
    "$gt": lambda found, wanted: found > wanted,
    "$gte": lambda found, wanted: found >= wanted,
    "$lt": lambda found, wanted: found < wanted,
    "$lte": lambda found, wanted: found <= wanted,
}


def _compare(current: Context, test: str, found: Any, wanted: Any) -> bool:
    if test in ("$before", "$last"):
        age = _AGE.fullmatch(str(wanted))
        if age is None:
            raise _wrong(f"not an age: '{wanted}'")
        limit = iso(current.now_ms() - int(age[1]) * _UNIT_MS[age[2]])
        return bool(found < limit) if test == "$before" else bool(found >= limit)
    if test not in _TESTS:
        raise _wrong(f"unknown operator '{test}'")
    if found is None:
        return test == "$ne"
    if isinstance(found, int) and isinstance(wanted, str) and wanted.isdigit():
        wanted = int(wanted)
    try:
        return _TESTS[test](found, wanted)
    except TypeError:
        raise _wrong(f"'{wanted}' cannot be compared") from None


def _sort(rows: list[Row], query: Query) -> None:
    for order in query.calls.get("sort", []):
        for direction, names in order.items():
            keys = [str(name).removeprefix("build.") for name in names]
            unknown = [name for name in keys if rows and name not in rows[0]]
            if unknown or direction not in ("$asc", "$desc"):
                raise _wrong(f"cannot sort by {', '.join(unknown) or direction}")
            rows.sort(key=lambda row: [row[name] for name in keys], reverse=direction == "$desc")


def _shown(row: Row, wanted: list[str], domain: str, real: bool) -> Row:
    shown: Row = {}
    for name in wanted:
        if name in ("property", "property.*") or name.startswith("@"):
            shown["properties"] = [
                {"key": key, "value": value}
                for key, values in row["properties"].items()
                for value in values
                if not name.startswith("@") or name[1:] in ("*", key)
            ]
        elif name.startswith("artifact.module.build."):
            shown["artifacts"] = [_nested(fields, wanted) for fields in row["produced"]]
        elif name in row:
            # server fact [repo-17]: fields of builds have the prefix `build.`
            shown[f"build.{name}" if domain == "builds" and real else name] = row[name]
    return shown


def _nested(fields: Row, wanted: list[str]) -> Row:
    """Return the fields of a build as part of an item row.

    Server fact [repo-27]: each domain between the item and the build is a nested list.
    """
    prefix = "artifact.module.build."
    names = [name.removeprefix(prefix) for name in wanted if name.startswith(prefix)]
    build = {f"build.{name}": fields[f"{prefix}{name}"] for name in names}
    return {"modules": [{"builds": [build]}]}
