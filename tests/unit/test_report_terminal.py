# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the end of a run on the terminal and in GitHub, and the callback `plan`."""

from __future__ import annotations

import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.callback import plan, report
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import findings
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report import (
    commands,
    switch,
    terminal,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report.contents import (
    Contents,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report.since import Last

SERVER = "https://ci.example.com"
ACTION = "delivery.toolchain.ci_job_build"
EVIL = "a\nb%,::c"


def found(*statuses: str, check: bool = True) -> Contents:
    contents = Contents("drift", check=check, hosts=["h"], finished="2026-11-24T05:00:00Z")
    for number, status in enumerate(statuses):
        contents.add(
            host="h",
            service="ci",
            server=SERVER,
            kind="job",
            name=str(number),
            action=status if status in ("create", "delete") else "update",
            text=f"job {EVIL}",
            status="drift" if status in ("create", "update", "delete") else status,
        )
    return contents


def test_every_finding_has_a_sign_and_colour() -> None:
    lines = terminal.table(found("create", "update", "delete", "failed"))
    assert [line for line in lines if line.colour] == [
        (f"{sign} job a b%,::c", colour)
        for sign, colour in (("!", "red"), ("+", "green"), ("~", "yellow"), ("-", "red"))
    ]


def test_run_that_writes_says_what_it_did() -> None:
    texts = {
        "missing": "created",
        "differs in a, b": "updated a, b",
        "not wanted, old": "deleted, old",
    }
    contents = Contents("enforce", hosts=["h"])
    for text in texts:
        finding = {"kind": "job", "name": text, "text": f"job {text}: {text}", "status": "drift"}
        contents.add(host="h", service="ci", server=SERVER, action="update", **finding)
    found = contents.since(Last({}, "2026-01-01T00:00:00Z"))
    assert [one["text"] for one in found.findings] == [f"job {one}: {texts[one]}" for one in texts]
    assert found.changes() == ""


def test_values_are_below_their_finding() -> None:
    contents = Contents("drift", check=True, hosts=["h"])
    sides: tuple[tuple[Any, Any], ...] = (
        ({"a": 1, "b": "\x1b[31m"}, {"a": 2, "b": "\x1b[31m"}),
        ("<project>\n  <disabled>true</disabled>\n", "<project>\n  <disabled>false</disabled>\n"),
        (None, "".join(f"line {number}\n" for number in range(30))),
    )
    for number, (before, after) in enumerate(sides):
        finding = findings.different("job", number, "differs", before, after)
        contents.add(host="h", service="ci", server=SERVER, **finding)
    texts = [line.text for line in terminal.table(contents, values=True)]
    start = texts.index("~ job 0: differs")
    assert texts[start : start + 7] == [
        "~ job 0: differs",
        "    a: Server: 1, Git: 2",
        "~ job 1: differs in disabled",
        "    - on the server, + in Git",
        *("    -   <disabled>true</disabled>", "    +   <disabled>false</disabled>"),
        "~ job 2: differs",
    ]
    assert "    +21 more lines" in texts
    assert "    a: Server: 1, Git: 2" not in [line.text for line in terminal.table(contents)]


@pytest.mark.parametrize(
    ("check", "shown"),
    [
        (
            True,
            [
                "~ node a: differs in date (changed by bob)",
                "    date: Server: 2026-05-31 (set by bob), Git: none",
                "~ node b: differs in labels, executors, text (changed by bob)",
                "    labels: Server: [x, arm], Git: [x]",
                '    executors: Server: "2", Git: 2',
                "    text: - on the server, + in Git",
                *("    - one", "    + other"),
                "- node c: not wanted (changed by bob)",
                "    Delete on the server",
                "    - on the server",
                "    - size: 1",
                "+ node d: missing (changed by bob)",
                *("    + in Git", "    + size: 1"),
            ],
        ),
        (
            False,
            [
                "~ node a: updated date (changed by bob)",
                "    date: Before: 2026-05-31, After: none",
                "~ node b: updated labels, executors, text (changed by bob)",
                "    labels: Before: [x, arm], After: [x]",
                '    executors: Before: "2", After: 2',
                "    text: - before, + after",
                *("    - one", "    + other"),
                "- node c: deleted (changed by bob)",
                "    Deleted on the server",
                "    - before",
                "    - size: 1",
                "+ node d: created (changed by bob)",
                *("    + after", "    + size: 1"),
            ],
        ),
    ],
)
def test_values_name_their_sides(check: bool, shown: list[str]) -> None:
    contents = Contents("drift", check=check, hosts=["h"])
    one = {"text": "same\none\n", "labels": ["x", "arm"], "executors": "2"}
    two = {"text": "same\nother\n", "labels": ["x"], "executors": 2}
    for finding in (
        findings.different("node", "a", "differs in date", {"date": "2026-05-31"}, {"date": None}),
        findings.different("node", "b", "differs in labels, executors, text", one, two),
        findings.unwanted("node", "c", {"size": 1}),
        findings.missing("node", "d", {"size": 1}),
    ):
        contents.add(host="h", service="ci", server=SERVER, changed_by="bob", **finding)
    texts = [line.text for line in terminal.table(contents.since(), values=True)]
    assert texts[4:-3] == shown


@pytest.mark.parametrize(
    ("statuses", "adopted"),
    [
        (["ok"], None),
        (["failed"], None),
        (["update", "failed"], ["adopt", "-e", "adopt_findings={0}"]),
        (
            ["update", "create"],
            ["adopt", "-e", "adopt_findings={0},{1}", "-e", "adopt_deletions=true"],
        ),
        (["update"] * 6, ["adopt", "-e", '{{"adopt_findings": [{{"name": "**"}}]}}']),
    ],
)
def test_plan_ends_with_commands(statuses: list[str], adopted: list[str] | None) -> None:
    contents = found(*statuses)
    shown = {"enforce": "enforce plan", "adopt": "adopt", "secrets": ""}
    lines = commands.next_steps(contents, shown)
    assert bool(lines) == (adopted is not None)
    if adopted is not None:
        adopt, enforce = lines
        ids = [finding["id"] for finding in contents.findings]
        start = "To keep what is on the server:  "
        assert adopt.startswith(start)
        assert shlex.split(adopt[len(start) :]) == [each.format(*ids) for each in adopted]
        assert enforce == "To restore what is in Git:      enforce plan"
        # without a report there is nothing to adopt from
        assert commands.next_steps(contents, {**shown, "adopt": ""}) == [enforce]


def test_rules_cannot_be_adopted() -> None:
    contents = Contents("drift", check=True, hosts=["h"])
    finding = findings.unwanted("item", "libs/a.jar", why="too old")
    contents.add(host="h", service="repo", server=SERVER, **finding)
    shown = {"enforce": "enforce", "adopt": "adopt", "secrets": "plan_key"}
    assert commands.next_steps(contents, shown) == [
        "To restore what is in Git:      enforce",
        "Add -e with plan_key, which are not shown.",
    ]


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (True, "Plan: 2 to create, 1 to update, 1 to delete."),
        (False, "Applied: 2 created, 1 updated, 1 deleted; failed: 1, skipped: 0."),
    ],
)
def test_totals_are_one_line(check: bool, words: str) -> None:
    contents = found("create", "create", "update", "delete", "failed", check=check)
    assert words in [line.text for line in terminal.table(contents)]


@pytest.mark.parametrize(
    ("statuses", "words", "colour"),
    [
        (["ok"], "as wanted", "green"),
        (["update"], "differs", "yellow"),
        (["update", "failed"], "failed", "red"),
    ],
)
def test_last_line_is_the_result(statuses: list[str], words: str, colour: str) -> None:
    assert terminal.result(found(*statuses)) == (f"Result: {words}", colour)


def test_every_finding_becomes_a_github_annotation() -> None:
    assert [line.text for line in terminal.github(found("ok", "create", "failed"))] == [
        f"::warning title=ci https%3A//ci.example.com::{sign} job a b%25,::c"
        if sign == "+"
        else f"::error title=ci https%3A//ci.example.com::{sign} job a b%25,::c"
        for sign in "+!"
    ]


def test_step_summary_is_appended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "summary.md"
    file.write_text("before\n", encoding="utf-8")
    monkeypatch.setattr(report.CallbackModule, "_active", None)
    callback = report.CallbackModule()
    callback._recorder.contents, callback._reports = found("create"), True
    callback._settings["drift_output"] = "github"
    callback._checks.append(True)
    stats: Any = SimpleNamespace(processed={"h": 1})
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
    callback.v2_playbook_on_stats(stats)
    assert file.read_text("utf-8").startswith("before\n# drift")
    assert "::warning title=ci" in capsys.readouterr().out
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    callback._settings["drift_report"] = ["no path"]
    assert callback._report_folder() is None
    callback.v2_playbook_on_stats(stats)
    assert "step summary" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("listed", [True, False])
def test_quiet_callback_shows_otherwise_unlisted_failures(
    listed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    task = SimpleNamespace(
        get_name=lambda: "delivery.toolchain.ci_build : Do it",
        name="Do it",
        action=ACTION,
        loop=None,
        when=[],
    )
    host = SimpleNamespace(get_name=lambda: "h")
    values = {"msg": "no\nway", "warnings": ["take care"], "changed": True}
    result = SimpleNamespace(
        **{
            f"{dash}{name}": value
            for dash in ("", "_")
            for name, value in (("host", host), ("task", task), ("result", values))
        }
    )
    callback = plan.CallbackModule()
    if listed:
        switch.list_findings()
    callback.v2_runner_on_start(host, SimpleNamespace(**{**vars(task), "when": ["may be skipped"]}))
    callback.v2_runner_on_start(host, SimpleNamespace(**{**vars(task), "loop": "{{ perhaps }}"}))
    assert capsys.readouterr().out == ""
    callback.v2_runner_on_start(host, task)
    assert capsys.readouterr().out == "ci ...\n"  # before it ends, because it can take minutes
    callback.v2_runner_on_ok(result)
    callback.v2_runner_item_on_ok(result)
    callback.v2_runner_on_failed(result, ignore_errors=True)
    callback.v2_runner_on_failed(result)
    callback.v2_runner_on_unreachable(result)
    counts = {"changed": 1, "failures": 2, "unreachable": 1}
    stats: Any = SimpleNamespace(processed={"h": 1}, summarize=lambda host: counts)
    callback.v2_playbook_on_stats(stats)
    switch.turn_off()
    shown = capsys.readouterr()
    done = "~ h: Do it\n" * 2 + "! h: Do it: no way\n" * 2 + "h: 1 changed, 3 failed\n"
    done = "" if listed else done
    assert shown.out == done
    assert shown.err.count("take care") <= 1
