# SPDX-License-Identifier: GPL-3.0-or-later
"""Test searches in the query language, by pattern and by listing, and incomplete responses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo import aql
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.items.artifact_info import (
    ArtifactInfoOperation,
    option_of,
)
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply

QUERY = "POST /api/search/aql"
TEXT = 'items.find({"repo": "r"}).include("repo", "path", "name")'
ROWS = [{"repo": "r", "path": "a", "name": "1"}, {"repo": "r", "path": ".", "name": "ü"}]


def listing(**given: Any) -> dict[str, Any]:
    return {"list": {"repo": "r", **given}}


def found(**span: Any) -> Reply:
    return Reply(body="\n" + json.dumps({"results": ROWS, "range": span}))


def test_rows_are_returned_unchanged(server: Server, tmp_path: Path) -> None:
    server.on[QUERY] = found(total=2)
    _plan, values = server.run(ArtifactInfoOperation, {"aql": TEXT})
    assert values == {"results": ROWS, "total": 2, "complete": True}
    file = tmp_path / "query.aql"
    file.write_text(TEXT, encoding="utf-8")
    assert server.run(ArtifactInfoOperation, {"aql_file": str(file)})[1] == values
    assert [seen.body for seen in server.stub.seen] == [TEXT.encode()] * 2
    assert {seen.headers["Content-Type"] for seen in server.stub.seen} == {"text/plain"}
    assert server.warnings == []


@pytest.mark.parametrize(
    ("text", "span", "complete"),
    [
        (TEXT, {"notification": "results are trimmed"}, False),
        (TEXT, {"limit": 2}, False),
        (TEXT, {"limit": 3}, True),
        (f"{TEXT}.limit(2)", {"limit": 2}, True),
        (f"{TEXT}.limit(2)", {"limit": 2, "notification": "results are trimmed"}, False),
    ],
)
def test_trimmed_result_is_marked_incomplete(
    server: Server, text: str, span: dict[str, Any], complete: bool
) -> None:
    server.on[QUERY] = found(**span)
    _plan, values = server.run(ArtifactInfoOperation, {"aql": text})
    assert values["complete"] is complete
    assert len(server.warnings) == int(not complete)
    assert all("the result is incomplete" in warning for warning in server.warnings)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, "rejected"), (403, "permission"), (404, "not_found"), (408, "timeout"), (500, "server")],
)
def test_rejected_query_has_the_error_of_the_server(server: Server, status: int, kind: str) -> None:
    server.on[QUERY] = Reply(status, "Failed to parse query: here")
    error = server.fails(ArtifactInfoOperation, {"aql": TEXT})
    assert (error.kind, error.status) == (kind, status)
    assert "Failed to parse query: here" in error.message


def test_too_long_query_is_rejected(server: Server) -> None:
    long = TEXT + " " * 6000
    server.on[QUERY] = Reply(400, "Failed to parse query")
    error = server.fails(ArtifactInfoOperation, {"aql": f"{long}.limit(1)"})
    assert error.kind == "rejected"
    assert "newer servers accept at most 6,000" in error.message
    server.on[QUERY] = Reply(500)
    assert "6,000" not in server.fails(ArtifactInfoOperation, {"aql": f"{long}.limit(1)"}).message


def test_query_is_retried_if_too_many_run(server: Server) -> None:
    server.retries = 2
    server.on[QUERY] = [Reply(429, "Too many concurrent queries"), found()]
    _plan, values = server.run(ArtifactInfoOperation, {"aql": TEXT})
    assert values["complete"] is True
    assert server.asked == [QUERY, QUERY]


def test_hard_limit_is_marked_incomplete(server: Server) -> None:
    message = "AQL query reached the search hard limit, results are trimmed."
    server.on[QUERY] = found(notification=message)
    _plan, values = server.run(ArtifactInfoOperation, {"aql": TEXT})
    assert values["complete"] is False
    assert message in server.warnings[0]


def test_query_with_maximum_digests_fits_into_a_request() -> None:
    some = [{"actual_sha1": "a" * 40}] * aql.DIGESTS_AT_ONCE
    repos = [{"repo": "a-repository-with-a-long-name"}] * 10
    criteria = {"type": "file", "$or": some, "$and": [{"$or": repos}]}
    assert len(aql.items(criteria, ["size", "sha256", "actual_sha1", "property"])) < 6000


@pytest.mark.parametrize(
    ("dialect", "path"), [("jfrog", "api/search/pattern"), ("generic", "search/pattern")]
)
@pytest.mark.parametrize(
    "body",
    [
        {"files": ["b/1.jar", "a/ü.jar"]},
        {"files": [{"uri": "/b/1.jar"}, {"path": "a/ü.jar"}]},
        ["b/1.jar", "a/ü.jar"],
    ],
)
def test_pattern_is_searched(server: Server, dialect: str, path: str, body: Any) -> None:
    server.dialect = dialect
    server.on[f"GET /{path}?pattern=r:*/*.jar"] = Reply(body=json.dumps(body))
    _plan, values = server.run(ArtifactInfoOperation, {"pattern": "r:*/*.jar"})
    assert values["results"] == [{"path": "a/ü.jar"}, {"path": "b/1.jar"}]
    assert values["total"] == 2


@pytest.mark.parametrize("odd", [{"files": None}, {"files": [3]}, {"files": [{}]}, {}, "x"])
def test_malformed_pattern_match_is_a_protocol_error(server: Server, odd: Any) -> None:
    server.on["GET /api/search/pattern?pattern=r:a"] = Reply(body=json.dumps(odd))
    assert server.fails(ArtifactInfoOperation, {"pattern": "r:a"}).kind == "protocol"


def test_all_flags_of_listing_are_sent(server: Server) -> None:
    flags = "deep=1&listFolders=1&mdTimestamps=1&includeRootPath=1&depth=2"
    entries = [
        {"uri": "/", "folder": "true", "size": "-1"},
        {"uri": "/a b/c.txt", "folder": "false", "size": "12"},
        {"uri": "/d.txt", "folder": False, "size": 3, "sha1": "x"},
        {"uri": "/e.txt"},
    ]
    server.on[f"GET /api/storage/r/x/y?list&{flags}"] = Reply(body={"files": entries})
    flags_given = ("deep", "list_folders", "md_timestamps", "include_root_path")
    given = listing(path="/x/y/", depth=2, **dict.fromkeys(flags_given, True))
    _plan, values = server.run(ArtifactInfoOperation, given)
    assert values["results"] == [
        {"uri": "/", "folder": True, "size": -1, "name": ""},
        {"uri": "/a b/c.txt", "folder": False, "size": 12, "name": "a b"},
        {"uri": "/d.txt", "folder": False, "size": 3, "sha1": "x", "name": "d.txt"},
        {"uri": "/e.txt", "name": "e.txt"},
    ]


def test_flat_listing_of_the_root_uses_a_slash(server: Server) -> None:
    server.on["GET /api/storage/r/?list"] = Reply(body={"files": [{"uri": "/a"}]})
    _plan, values = server.run(ArtifactInfoOperation, listing())
    assert values["results"] == [{"uri": "/a", "name": "a"}]
    assert server.fails(ArtifactInfoOperation, listing(path="missing")).kind == "not_found"


@pytest.mark.parametrize(
    "given",
    [
        {"aql": "  "},
        {"aql_file": "/nowhere/query.aql"},
        {"pattern": "no-colon/*.jar"},
        {"pattern": "r:"},
        {"pattern": ":a"},
        listing(path="a/../b"),
        listing(repo="a/b"),
        listing(depth=0),
    ],
)
def test_invalid_query_is_rejected_before_any_request(
    server: Server, given: dict[str, Any]
) -> None:
    assert server.fails(ArtifactInfoOperation, given).kind == "invalid"
    assert server.asked == []


def test_depth_of_zero_is_rejected(server: Server) -> None:
    error = server.fails(ArtifactInfoOperation, listing(depth=0))
    assert error.message == "list: depth is 0: set it to 1 or more"


@pytest.mark.parametrize(
    "text", [TEXT, f"\n  {TEXT}", 'builds . find({"name": "a"})', "archive.entries.find({})"]
)
def test_lookup_recognizes_queries(server: Server, text: str) -> None:
    server.on[QUERY] = found()
    assert option_of(text) == "aql"
    assert server.run(ArtifactInfoOperation, {option_of(text): text})[1]["results"] == ROWS
    assert option_of("r:a") == "pattern"
