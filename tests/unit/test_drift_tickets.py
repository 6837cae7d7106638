# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the plan of the issues of a drift report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.bookkeeping import (
    StepError,
    perform,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report import tickets
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report.since import finding_id
from tests.unit.arguments import run_of

SERVER = "https://ci.example.com"


def one(name: str, status: str = "drift", **values: Any) -> dict[str, Any]:
    place = {"host": "h", "service": "ci", "server": SERVER, "kind": "job", "name": name}
    more = {"action": "update", "first_seen": "2026-11-24T05:00:00Z", "before": None, "after": None}
    return {**place, **more, "text": f"job {name}: differs", "status": status, **values}


def report(*findings: dict[str, Any], **more: Any) -> dict[str, Any]:
    row = {"service": "ci", "server": SERVER, "host": "", "failed": 0}
    return {"findings": list(findings), "resolved": [], "unread": [], "servers": [row], **more}


def issue(ticket: dict[str, Any], key: str = "OPS-1") -> dict[str, Any]:
    text = ticket["description"].replace("\n", "\r\n") + "\r\n"
    return {"key": key, "fields": {"labels": ["drift", ticket["label"]], "description": text}}


def planned(told: dict[str, Any], issues: list[Any], per: str = "finding") -> dict[str, Any]:
    return tickets.plan(told, issues, per, 20)


@pytest.mark.parametrize("per", tickets.PER)
def test_unchanged_finding_changes_no_issue(per: str) -> None:
    reported = report(one("a", before={"x": "{noformat}"}), one("b", "failed"), one("c", "ignored"))
    (first, *rest) = planned(reported, [], per)["new"]
    assert len(rest) == (1 if per == "finding" else 0)
    there = [issue(ticket, key) for key, ticket in zip("AB", (first, *rest), strict=False)]
    assert planned(reported, there, per) == {"new": [], "left": 0, "changed": [], "ended": []}
    changed = report(one("a", text="job a: other"), one("b", "failed"))
    assert [each["key"] for each in planned(changed, there, per)["changed"]] == ["A"]


def test_issue_is_closed_only_with_evidence() -> None:
    (ticket,) = planned(report(one("a")), [])["new"]
    there = [issue(ticket)]
    assert planned(report(), there)["ended"] == []
    assert planned(report(unread=[one("a")]), there)["ended"] == []
    (ended,) = planned(report(resolved=[one("a")]), there)["ended"]
    assert (ended["key"], ended["comment"]) == ("OPS-1", "resolved: job a: differs")
    assert planned(report(resolved_earlier=[finding_id(one("a"))]), there)["ended"] != []
    assert planned(report(one("a"), resolved_earlier=[finding_id(one("a"))]), there)["ended"] == []


@pytest.mark.parametrize("per", tickets.PER)
def test_comment_names_the_reason_of_enforce(per: str) -> None:
    (ticket,) = planned(report(one("a")), [], per)["new"]
    there = [issue(ticket)]
    by_drift = report(resolved=[one("a", reason="OPS-7 [x]")])
    by_enforce = report(one("a"), one("b"), check=False, reason="OPS-7 [x]")
    for told in (by_drift, by_enforce):
        found = planned(told, there, per)
        assert found["new"] == found["changed"] == []
        (ended,) = found["ended"]
        assert ended["comment"].startswith("resolved: ")
        assert ended["comment"].endswith(r". Reason: OPS-7 \[x\]")
    failed = report(one("a", "failed"), check=False, reason="OPS-7")
    assert planned(failed, there, per)["ended"] == []


def test_issue_of_a_server_is_closed_if_it_was_read_completely() -> None:
    (ticket,) = planned(report(one("a")), [], "server")["new"]
    there = [issue(ticket)]
    row = {"service": "ci", "server": SERVER, "host": "", "failed": 1}
    assert planned(report(servers=[row]), there, "server")["ended"] == []
    assert planned(report(unread=[one("a")]), there, "server")["ended"] == []
    assert planned(report(servers=[]), there, "server")["ended"] == []
    assert len(planned(report(), there, "server")["ended"]) == 1


def test_issue_of_a_server_is_closed_from_the_facts_of_drift() -> None:
    (ticket,) = planned(report(one("a")), [], "server")["new"]
    values = {"issues": [issue(ticket)]}

    def ended(**facts: Any) -> list[str]:
        run = run_of(tickets_per="server", drift_findings=[], **facts)
        return [each["key"] for each in perform("plan_issues", run, values)["plan"]["ended"]]

    row = {"service": "ci", "server": SERVER, "host": "", "failed": 0}
    assert ended(drift_servers=[row]) == ["OPS-1"]
    assert ended(drift_resolved=[one("a")]) == ["OPS-1"]
    assert ended(drift_servers=[row], drift_unread=[one("b")]) == []
    assert ended() == []


def test_names_are_quoted_without_markup() -> None:
    evil = "[~admin] !x.png! {include:x} a|b \\[link]"
    reported = report(
        one("a", text=evil, before={"x": "{noformat:a=b}*bold*"}), resolved=[one("b")]
    )
    (ticket,) = planned(reported, [])["new"]
    quoted = r"\[~admin\] \!x.png\! \{include:x\} a\|b &#92;\[link\]"
    assert ticket["description"].startswith(f"* update: {quoted} (host h)\n")
    assert ticket["description"].count("{noformat") == 2
    assert "\n* on the server:\n{noformat}" in ticket["description"]
    closing = issue({**ticket, "label": f"drift-{finding_id(one('b'))}"})
    resolved = report(resolved=[one("b", text=evil)])
    assert planned(resolved, [closing])["ended"][0]["comment"] == f"resolved: {quoted}"


def test_finding_without_server_belongs_to_its_host() -> None:
    reported = report(one("a", "failed", server="", host="web1", text="x" * 500))
    (ticket,) = planned(reported, [], "server")["new"]
    assert ticket["summary"] == "drift on host web1"
    (ticket,) = planned(reported, [])["new"]
    assert len(ticket["summary"]) == 200


@pytest.mark.parametrize("wrong", [{}, [], {"findings": [{}], "resolved": []}, "none"])
def test_invalid_report_is_rejected(wrong: Any, tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(json.dumps(wrong), encoding="utf-8")
    with pytest.raises(StepError, match="no readable drift report was found"):
        perform("plan_issues", run_of(drift_report=str(tmp_path)), {"issues": []})


@pytest.mark.parametrize("text", ["job {}: differs in description", "job {}: \U0001f600 differs"])
def test_description_of_a_server_fits_into_the_tracker(text: str) -> None:
    found = [one(str(number), text=text.format(number) * 3) for number in range(2_000)]
    (ticket,) = planned(report(*found), [], "server")["new"]
    shown = ticket["description"].replace("\n", "\r\n")
    comment = f"drift: the finding has changed.\r\n\r\n{shown}"
    assert len(comment.encode("utf-16-le")) // 2 <= 32_767
    *_before, rest, _empty, label = ticket["description"].splitlines()
    assert ticket["label"] in label
    left = int(rest.split()[1].replace(",", ""))
    listed = [line for line in ticket["description"].splitlines() if line.startswith("* update")]
    assert len(listed) + left == 2_000
    assert len(listed) > 100


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, [{"status": "Done"}]),
        ("Close", [{"status": "Done", "transition": "Close"}]),
        (41, [{"status": "Done", "transition": "41"}]),
        (["Close"], [{"status": "Done", "transition": "Close"}]),
        (
            ["In Progress", {"status": "Review", "transition": 7}, " 41 "],
            [
                {"status": "In Progress"},
                {"status": "Review", "transition": "7"},
                {"status": "Done", "transition": "41"},
            ],
        ),
    ],
)
def test_steps_that_close_an_issue(given: Any, expected: list[dict[str, str]]) -> None:
    assert tickets.steps_of(given, "Done") == expected


@pytest.mark.parametrize(
    "given", [True, 1.5, {"status": "x"}, [{"transition": "x"}, "y"], [" ", "y"], ["x", ["y"]]]
)
def test_invalid_steps_are_rejected(given: Any) -> None:
    run = run_of(tickets_close_transition=given, drift_findings=[])
    with pytest.raises(StepError, match=r"^tickets_close_transition must be "):
        perform("plan_issues", run, {"issues": []})
