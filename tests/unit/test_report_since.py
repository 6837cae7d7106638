# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the comparison of a report with the last run, and `drift_ignore`."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import bookkeeping
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report import (
    ignored,
    since,
    terminal,
    writing,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report.contents import (
    COUNTS,
    Contents,
)
from tests.unit.arguments import run_of

SERVER = "https://ci.example.com"
TASK = "Manage the jobs"


def night(folder: Path, day: int, objects: dict[str, str], **settings: Any) -> dict[str, Any]:
    """Write the report of a run; `objects` maps names to a status, or to `delete`."""
    contents = Contents("drift", check=settings.get("check", True), hosts=["h"])
    contents.finished = f"2026-11-{day:02}T05:00:00Z"
    contents.add_task("h", TASK, whole=settings.get("whole", False), failed=False)
    for name, status in objects.items():
        action = {"drift": "update", "delete": "delete"}.get(status, "none")
        contents.add(
            host="h",
            service="ci",
            server=SERVER,
            kind="job",
            name=name,
            action=action,
            text=f"job {name}: {status}",
            task=TASK,
            status={"delete": "drift"}.get(status, status),
        )
    accepted = ignored.parse(settings.get("drift_ignore"))
    contents.reason = settings.get("reason", "")
    found = contents.since(since.last_run(folder), accepted)
    assert writing.write(folder, found) == []
    report: dict[str, Any] = json.loads((folder / "report.json").read_text("utf-8"))
    return report


def marks(report: dict[str, Any]) -> dict[str, str]:
    return {
        finding["name"]: f"{finding['since']} {finding['first_seen'][8:10]}"
        for finding in report["findings"]
    }


def names(found: list[dict[str, Any]]) -> list[str]:
    return [record["name"] for record in found]


def test_finding_is_new_then_persistent_then_resolved_then_new_again(tmp_path: Path) -> None:
    first = night(tmp_path, 1, {"a": "drift", "b": "ok"})
    second = night(tmp_path, 2, {"a": "drift", "b": "drift"})
    third = night(tmp_path, 3, {"a": "ok", "b": "failed"})
    fourth = night(tmp_path, 4, {"a": "drift", "b": "ok"})
    assert marks(first) == {"a": "new 01"}
    assert marks(second) == {"a": "still 01", "b": "new 02"}
    assert (marks(third), names(third["resolved"])) == ({"b": "still 02"}, ["a"])
    assert (marks(fourth), names(fourth["resolved"])) == ({"a": "new 04"}, ["b"])
    ids = {finding["id"] for report in (first, second, fourth) for finding in report["findings"]}
    assert len(ids) == 2
    assert [report["result"] for report in (first, third)] == ["differs", "failed"]


def test_drift_knows_what_enforce_has_resolved(tmp_path: Path) -> None:
    """Verify it for reports of both in one folder: a finding of drift is resolved, not forgotten."""
    why = {"check": False, "reason": "OPS-7"}
    night(tmp_path, 1, {"a": "drift", "b": "drift", "c": "drift", "d": "delete"})
    enforced = night(tmp_path, 2, {"a": "drift", "b": "drift", "d": "delete", "e": "drift"}, **why)
    assert (enforced["reason"], names(enforced["resolved"])) == ("OPS-7", [])
    third = night(tmp_path, 3, {"a": "ok", "b": "drift", "c": "ok", "e": "ok"}, whole=True)
    # drift has never found `e`, and `b` differs again
    assert {record["name"]: record.get("reason") for record in third["resolved"]} == {
        "a": "OPS-7",
        "c": None,
        "d": "OPS-7",
    }
    assert marks(third) == {"b": "new 03"}


def test_second_enforce_keeps_what_the_first_has_resolved(tmp_path: Path) -> None:
    night(tmp_path, 1, {"a": "drift", "b": "drift"})
    night(tmp_path, 2, {"a": "drift", "b": "drift"}, check=False)
    second = night(tmp_path, 3, {"a": "ok"}, check=False)
    last = night(tmp_path, 4, {"a": "ok", "b": "ok"})
    assert names(second["resolved"]) == ["a"]
    assert (last["resolved_earlier"], names(last["resolved"])) == (
        [second["resolved"][0]["id"]],
        ["b"],
    )


def test_approvals_and_reason_are_in_every_file(tmp_path: Path) -> None:
    contents = Contents("enforce", hosts=["h"], reason="OPS-7: <b>planned</b>.")
    contents.approvals = [{"name": "alice", "file": "a.sig"}, {"name": "bob", "file": "b.sig"}]
    found = contents.since()
    assert writing.write(tmp_path, found) == []
    sentence = "Approved by alice and bob. Reason: OPS-7: <b>planned</b>."
    assert sentence in [line.text for line in terminal.table(found)]
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert report["approvals"] == contents.approvals
    assert "Approved by alice and bob" in (tmp_path / "report.md").read_text("utf-8")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "Approved by alice and bob. Reason: OPS-7: &lt;b&gt;planned&lt;/b&gt;." in page


def test_unread_object_is_not_resolved(tmp_path: Path) -> None:
    night(tmp_path, 1, {"a": "drift"})
    second = night(tmp_path, 2, {"b": "ok"})
    assert (second["resolved"], names(second["unread"])) == ([], ["a"])
    third = night(tmp_path, 3, {"a": "drift"})
    assert (marks(third), third["unread"]) == ({"a": "still 01"}, [])


@pytest.mark.parametrize(("whole", "resolved"), [(True, ["a"]), (False, [])])
def test_unwanted_object_is_resolved_if_the_task_lists_all(
    whole: bool, resolved: list[str], tmp_path: Path
) -> None:
    night(tmp_path, 1, {"a": "delete"}, whole=whole)
    assert names(night(tmp_path, 2, {"b": "ok"}, whole=whole)["resolved"]) == resolved


def test_changing_run_keeps_failed_findings(tmp_path: Path) -> None:
    night(tmp_path, 1, {"a": "drift", "b": "failed"}, check=False)
    assert marks(night(tmp_path, 2, {"a": "drift", "b": "failed"})) == {
        "a": "new 02",
        "b": "still 01",
    }


def test_object_that_differed_and_is_unknown_now_is_resolved(tmp_path: Path) -> None:
    night(tmp_path, 1, {"a": "drift", "b": "unknown", "c": "unknown", "d": "unmanaged"})
    objects = {"a": "unknown", "b": "unknown", "c": "drift", "d": "unmanaged"}
    second = night(tmp_path, 2, objects)
    assert marks(second) == {"a": "new 02", "b": "still 01", "c": "new 02", "d": "still 01"}
    assert (names(second["resolved"]), second["unread"]) == (["a"], [])
    accept = [{"name": "[bd]"}, {"name": "b"}, {"name": "d"}]
    third = night(tmp_path, 3, objects, drift_ignore=accept)
    fourth = night(tmp_path, 4, {"b": "ok", "d": "ok"}, drift_ignore=accept)
    assert marks(third) == {**marks(second), "a": "still 02", "c": "still 02"}
    assert {one["name"]: one["status"] for one in third["findings"]}["b"] == "ignored"
    assert (names(fourth["resolved"]), names(fourth["unread"])) == (["b", "d"], ["a", "c"])


def test_run_that_writes_leaves_unmanaged_and_unknown_objects_open(tmp_path: Path) -> None:
    objects = {"a": "drift", "b": "unknown", "c": "unmanaged"}
    night(tmp_path, 1, objects, check=False)
    assert marks(night(tmp_path, 2, objects)) == {"a": "new 02", "b": "still 01", "c": "still 01"}


@pytest.mark.parametrize("text", ["[", "[]", '{"findings": 1}', '{"findings": [1]}', "{}"])
def test_unreadable_last_report_gives_a_warning(text: str, tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(text, encoding="utf-8")
    last = since.last_run(tmp_path)
    assert last.findings == {}
    assert "all findings count as new" in last.warning
    assert since.last_run(tmp_path / "none").warning == since.last_run(None).warning == ""


def test_every_file_lists_new_persistent_resolved_and_ignored_findings(tmp_path: Path) -> None:
    night(tmp_path, 1, {"a": "drift", "b": "drift", "gone": "delete"}, whole=True)
    accept = [{"name": "tried", "until": "2026-12-31", "reason": "a trial"}]
    objects = {"a": "drift", "b": "ok", "c": "drift", "tried": "drift"}
    report = night(tmp_path, 2, objects, whole=True, drift_ignore=accept)
    assert report["counts"] == dict(zip(COUNTS, (1, 2, 0, 0, 0, 1), strict=True))
    assert [finding["status"] for finding in report["findings"]] == ["drift", "drift", "ignored"]
    markdown = (tmp_path / "report.md").read_text("utf-8")
    assert "1 new, 1 still, 2 resolved" in markdown
    for words in ("| still, since 2026-11-01 |", "## Resolved", "## Ignored", "a trial"):
        assert words in markdown
    suites = ElementTree.parse(tmp_path / "report.xml").getroot()
    assert (suites.get("tests"), suites.get("failures"), suites.get("skipped")) == ("5", "2", "1")
    assert [element.text for element in suites.iter("system-out")] == [
        "resolved: job b: drift",
        "resolved: job gone: delete",
    ]
    assert [element.get("message") for element in suites.iter("skipped")] == [
        "ignored until 2026-12-31: a trial"
    ]
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "a trial" in page
    (embedded,) = re.findall(r'<script[^>]* id="data"[^>]*>(.*?)</script>', page, re.DOTALL)
    data = json.loads(embedded)
    assert (data["resolved_count"], names(data["report"]["resolved"])) == (2, ["b", "gone"])


def test_terminal_separates_ignored_findings() -> None:
    contents = Contents(check=True)
    for name in ("a", "b"):
        values = {"host": "h", "service": "ci", "server": SERVER, "kind": "job", "name": name}
        contents.add(**values, action="update", text=f"job {name}: differs", status="drift")
    found = contents.since(accepted=ignored.parse([{"name": "a"}]))
    lines = [line.text for line in terminal.table(found)]
    assert lines[1].split() == ["ci", SERVER, "0", "1", "0", "1"]
    assert "~ job b: differs" in lines
    assert "~ job a: differs" not in lines
    assert "1 of 2 objects differs on 1 server; 1 ignored." in lines


def test_failure_cannot_be_ignored() -> None:
    contents = Contents(check=True)
    values = {"host": "h", "service": "ci", "server": SERVER, "kind": "job", "name": "a"}
    contents.add(**values, action="none", text="job a: no", status="failed")
    found = contents.since(accepted=ignored.parse([{"name": "a"}]))
    assert found.counts["failed"] == 1


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("team/*", "team/app", True),
        ("team/*", "team/app/main", False),
        ("team/**", "team/app/main", True),
        ("**/main", "team/app/main", True),
        ("**/main", "main", True),
        ("app?", "app1", True),
        ("a.p", "axp", False),
    ],
)
def test_patterns_are_globs(pattern: str, name: str, fits: bool) -> None:
    (entry,) = ignored.parse([{"kind": "job", "name": pattern}])
    assert entry.matches({"kind": "job", "name": name}) is fits


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("name", "drift_ignore must be a list"),
        ([1], r"drift_ignore\[0\] is not a mapping"),
        (
            [{"name": "a"}, {"nam": "b"}],
            r"drift_ignore\[1\] has the unknown key nam \(did you mean name\?\)",
        ),
        ([{"name": "a", "zzz": 1}], "its keys are id, service, server, kind, name, until, reason"),
        ([{"reason": "x"}], "has no pattern: set at least one of id"),
        (
            [{"name": "a", "until": "soon"}],
            "until is not a date: 'soon'; write the last day as 2026",
        ),
    ],
)
def test_invalid_entry_is_reported(given: Any, words: str) -> None:
    with pytest.raises(ignored.IgnoreError, match=words):
        ignored.parse(given)
    assert problem_of(drift_ignore=given).startswith("drift_ignore")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"drift_output": ["github"]},
            "drift_output must be one of text, github, not '['github']'.",
        ),
        ({"drift_fail": "ture"}, "drift_fail must be true or false, not 'ture'."),
        ({"drift_fail": 1.5}, "drift_fail must be true or false, not '1.5'."),
        ({"drift_fail": "yes"}, ""),
    ],
)
def test_invalid_settings_are_reported(given: dict[str, Any], words: str) -> None:
    assert problem_of(**given) == words


def test_expired_or_too_broad_entries_give_a_warning() -> None:
    today = date(2026, 11, 24)
    entries = ignored.parse(
        [
            {"name": "a", "until": "2026-11-23"},
            {"name": "b", "until": "2026-11-24"},
            {"name": "*"},
            {"name": "**", "kind": "job"},
        ]
    )
    assert list(ignored.warnings(entries, today)) == [
        "drift_ignore: the entry with name: a expired on 2026-11-23: remove or renew it",
        "drift_ignore: the entry with name: * is too broad: it can hide every finding",
    ]
    assert names_of(ignored.active(entries, today)) == ["b", "*", "**"]


def problem_of(**variables: Any) -> str:
    """Return the error message for settings of the report, or ""."""
    try:
        bookkeeping.perform("begin", run_of(**variables), {})
    except bookkeeping.StepError as error:
        return str(error)
    return ""


def names_of(entries: list[ignored.Ignored]) -> list[str]:
    return [entry.patterns["name"] for entry in entries]
