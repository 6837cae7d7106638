# SPDX-License-Identifier: GPL-3.0-or-later
"""Test search results in files, and fields that no issue has [C4.1]."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.issues.jql_search import (
    JqlSearchOperation,
    JqlSearchOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.issues.tracker_issue_info import (
    TrackerIssueInfoOperation,
    TrackerIssueInfoOptions,
)
from sandbox.client import Sandbox
from tests.helpers.tracker import Tracker

SERVERS: dict[str, dict[str, Any]] = {"server": {}, "cloud": {"deployment": "Cloud"}}
each_server = pytest.mark.parametrize("settings", SERVERS.values(), ids=list(SERVERS))


@pytest.fixture
def tracker(fresh: Callable[[str], Sandbox]) -> Iterator[Tracker]:
    sandbox = fresh("real")
    yield Tracker(sandbox, JqlSearchOperation, JqlSearchOptions)
    sandbox.clear_faults()


@each_server
@pytest.mark.parametrize(
    "window", [{}, {"max_results": 30}, {"start_at": 100, "max_results": 20}, {"max_results": 0}]
)
def test_file_contains_the_issues_of_the_task(
    tracker: Tracker, settings: dict[str, Any], window: dict[str, int], tmp_path: Path
) -> None:
    tracker.sandbox.settings("tracker", **settings)
    given: dict[str, Any] = {
        "jql": "project = OPS",
        "fields": ["summary"],
        "page_size": 7,
        **window,
    }
    wanted = tracker(**given)
    dest = tmp_path / "made" / "issues.jsonl"
    done = tracker(**given, dest=str(dest))
    assert [json.loads(line) for line in dest.read_text("utf-8").splitlines()] == wanted.values[
        "issues"
    ]
    assert done.values == {
        "count": len(wanted.values["issues"]),
        "total": wanted.values["total"],
        "complete": wanted.values["complete"],
        "dest": str(dest),
    }
    assert done.changed
    assert not tracker(**given, dest=str(dest)).changed


def test_table_has_a_column_per_field(tracker: Tracker, tmp_path: Path) -> None:
    dest = tmp_path / "issues.csv"
    names = ["summary", "assignee", "fixVersions", "resolution", "labels"]
    given: dict[str, Any] = {"jql": "key in (REL-2, REL-24)", "fields": names, "dest": str(dest)}
    assert tracker(**given, check=True).changed
    assert list(tmp_path.iterdir()) == []
    tracker(**given)
    with dest.open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["key", *names]
    assert rows[0][0:3] == [
        "REL-2",
        "Upload breaks off when a name contains `<` or `>`",
        "Alice Example",
    ]
    assert rows[0][3:] == ["1.0.0", "Fixed", "deploy, regression"]
    assert rows[1][2:] == ["Chloé Exemple", "1.1.0, 2.0.0", "", "later"]


def test_file_is_unchanged_if_the_search_fails(tracker: Tracker, tmp_path: Path) -> None:
    dest = tmp_path / "issues.jsonl"
    dest.write_text("before", encoding="utf-8")
    tracker.sandbox.fault(service="tracker", path="/search", skip=2, status=500)
    given: dict[str, Any] = {"jql": "project = OPS", "page_size": 20, "dest": str(dest)}
    tracker.refused("server", "500", **given)
    assert [path.name for path in tmp_path.iterdir()] == ["issues.jsonl"]
    assert dest.read_text("utf-8") == "before"


@pytest.mark.parametrize(
    ("dest", "fields", "words"),
    [
        ("issues.json", ["summary"], "must end with .jsonl, .ndjson or .csv"),
        ("issues.csv", None, "fields must list each column of a CSV file"),
        ("issues.csv", ["*all"], "fields must list each column of a CSV file"),
        ("folder.csv", ["summary"], "which is not a file"),
    ],
)
def test_invalid_file_is_rejected(
    tracker: Tracker, dest: str, fields: list[str] | None, words: str, tmp_path: Path
) -> None:
    (tmp_path / "folder.csv").mkdir()
    given: dict[str, Any] = {"jql": "project = OPS", "fields": fields, "dest": str(tmp_path / dest)}
    tracker.refused("invalid", words, **given)
    assert tracker.sandbox.requests("tracker") == []


@each_server
def test_field_absent_in_all_issues_gives_a_warning(
    tracker: Tracker, settings: dict[str, Any], tmp_path: Path
) -> None:
    tracker.sandbox.settings("tracker", **settings)
    given: dict[str, Any] = {
        "jql": "project = REL",
        "fields": ["summary", "sumary", "resolution", "key"],
    }
    (warning,) = tracker(**given).warnings
    assert "fields: no issue in the result has sumary" in warning
    (warning,) = tracker(**given, dest=str(tmp_path / "a.csv")).warnings
    assert "has sumary" in warning
    for fields in (None, [], ["*all", "-comment"], ["summary"]):
        assert tracker(jql="project = REL", fields=fields).warnings == []
    assert tracker(jql="project = REL AND labels = nothing", fields=["sumary"]).warnings == []


def test_field_absent_in_named_issues_gives_a_warning(tracker: Tracker) -> None:
    info = Tracker(tracker.sandbox, TrackerIssueInfoOperation, TrackerIssueInfoOptions)
    (warning,) = info(issues="REL-1, REL-2", fields="summary, Story Points").warnings
    assert "has Story Points" in warning
    assert info(issue="REL-1", fields=["summary"]).warnings == []
