# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the summary of the reports of several runs."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report import summary, writing
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report.contents import (
    COUNTS,
    KEYS,
    Contents,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report.recorder import (
    Recorder,
)

AT = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)
SERVER = "https://ci.example.com"


def write(folder: Path, host: str, **changes: Any) -> Path:
    """Write a report with an unchanged and a differing job."""
    contents = Contents("delivery.toolchain.drift", check=True, hosts=[host])
    contents.finished = changes.pop("finished", "2026-11-22T11:00:00Z")
    one = {"host": host, "service": "ci", "server": SERVER, "kind": "job", "task": "Jobs"}
    contents.add(**one, name=f"{host}-ok", action="none", text="job: as wanted", status="ok")
    contents.add(
        **one,
        name=host,
        action="update",
        text=f"job {host}: differs",
        status="drift",
        after={"a": 1},
    )
    writing.write(folder, contents)
    report = json.loads((folder / "report.json").read_text("utf-8"))
    (folder / "report.json").write_text(json.dumps({**report, **changes}), encoding="utf-8")
    return folder


def texts(found: dict[str, Any], status: str) -> list[str]:
    return [finding["text"] for finding in found["findings"] if finding["status"] == status]


def test_reports_of_several_runs_are_merged(tmp_path: Path) -> None:
    places = [write(tmp_path / name, name) for name in ("two", "one")]
    found = summary.read(places, ["one", "two"], timedelta(hours=2), AT)
    assert (found["hosts"], found["check"]) == (["one", "two"], True)
    assert texts(found, "drift") == ["job two: differs", "job one: differs"]
    assert texts(found, "failed") == []
    assert found["unchanged"] == [{"service": "ci", "server": SERVER, "host": "", "ok": 1}] * 2


def test_missing_or_old_report_is_a_failure(tmp_path: Path) -> None:
    old = write(tmp_path / "old", "web1", finished="2026-11-19T11:00:00Z")
    (tmp_path / "empty").mkdir()
    found = summary.read([old, tmp_path / "empty"], ["web2", "web1"], timedelta(days=1), AT)
    assert texts(found, "failed") == [
        f"report {old}: is 3d old, the limit is 24h; run drift again",
        f"report {tmp_path}/empty: has no report.json; check that its run ended",
        "host web2: is in no report; check that its run has ended, and the folder of its report",
    ]
    assert texts(found, "drift") == ["job web1: differs"]


def test_report_before_an_interrupted_run_is_a_failure(tmp_path: Path) -> None:
    """Verify that the report is outdated until the next run has written one."""
    place = write(tmp_path / "web", "web1")
    writing.begin(place)
    for given in (place, place / "report.json"):
        found = summary.read([given], ["web1"], None, AT)
        assert texts(found, "drift") == ["job web1: differs"]
        (text,) = texts(found, "failed")
        assert f"report {given}: is of an earlier run: the last run has begun, but has not" in text
    found = summary.read([write(place, "web1")], ["web1"], None, AT)
    assert texts(found, "failed") == []


BROKEN: dict[str, tuple[str, str]] = {
    "another format": (
        '{"format": 2, "findings": 7}',
        "has format 2, but this release reads format 1; ",
    ),
    "no JSON": ("{", "cannot be read: it is not JSON"),
    "deep": ("[" * 100_000, "cannot be read: it is not JSON"),
    "a list": ("[]", "cannot be read: it is not a report"),
    "no format": ("{}", "cannot be read: it is not a report"),
    "no hosts": ('{"format": 1, "findings": [], "counts": {"ok": 1}}', "it is not a report"),
    "a strange status": (
        json.dumps(
            {
                "format": 1,
                "hosts": [],
                "counts": {"ok": 0},
                "findings": [dict.fromkeys(KEYS, "x")],
            }
        ),
        "it is not a report",
    ),
    "no time": (
        '{"format": 1, "hosts": [], "findings": [], "counts": {"ok": 1}, "finished": "now"}',
        "'finished' is not a time",
    ),
}


def test_invalid_path_is_a_failure(tmp_path: Path) -> None:
    (text,) = texts(summary.read([tmp_path / ("x" * 300)], [], None, AT), "failed")
    assert text.endswith("xxx: cannot be read: File name too long")


@pytest.mark.parametrize("what", BROKEN)
def test_unusable_report_is_a_failure(tmp_path: Path, what: str) -> None:
    content, words = BROKEN[what]
    (tmp_path / "report.json").write_text(content, encoding="utf-8")
    found = summary.read([tmp_path], [], None, AT)
    (text,) = texts(found, "failed")
    assert text.startswith(f"report {tmp_path}: ")
    assert words in text


def test_report_of_the_first_release_is_accepted(tmp_path: Path) -> None:
    report = json.loads((write(tmp_path, "web1") / "report.json").read_text("utf-8"))
    del report["servers"]
    (tmp_path / "report.json").write_text(json.dumps(report), encoding="utf-8")
    found = summary.read([tmp_path / "report.json"], [], None, AT)
    assert found["unchanged"] == [{"service": "", "server": "", "host": "web1", "ok": 1}]


def test_folder_of_the_summary_is_not_a_report(tmp_path: Path) -> None:
    for name in ("a", ".git", "summary"):
        (tmp_path / name).mkdir()
    (tmp_path / "file").touch()
    assert summary.report_paths(tmp_path, tmp_path / "summary") == [tmp_path / "a"]
    listed = [tmp_path / "a", tmp_path / "x/../summary", tmp_path / "summary/report.json"]
    assert summary.report_paths(listed, tmp_path / "summary") == [tmp_path / "a"]
    with pytest.raises(summary.SummaryError, match=r"cannot read the folder .*: No such file"):
        summary.report_paths(tmp_path / "gone", tmp_path)
    with pytest.raises(summary.SummaryError, match="there are no reports"):
        summary.read([], [], None, AT)


def _task() -> SimpleNamespace:
    action = "delivery.toolchain.bookkeeping"
    return SimpleNamespace(action=action, get_vars=dict, get_name=lambda: "Read", check_mode=False)


def test_callback_writes_the_summary(tmp_path: Path) -> None:
    places = [write(tmp_path / name, name) for name in ("one", "two")]
    found = summary.read(places, ["three"], None, AT)
    recorder = Recorder(Contents("delivery.toolchain.drift_summary"))
    step = {"report": {"summary": {"folder": str(tmp_path / "all"), **found}}}
    recorder.result(_task(), "localhost", step, failed=False)
    recorder.end(["localhost"], check=False)
    assert recorder.folder == tmp_path / "all"
    writing.write(recorder.folder, recorder.contents)
    report = json.loads((tmp_path / "all/report.json").read_text("utf-8"))
    assert report["counts"] == dict(zip(COUNTS, (2, 2, 1, 0, 0, 0), strict=True))
    assert (report["hosts"], report["check"]) == (["one", "two"], True)
    assert [finding["task"] for finding in report["findings"]][:2] == ["Jobs", "Jobs"]
    assert [(row["server"], row["host"], row["ok"]) for row in report["servers"]] == [
        ("", "three", 0),
        (SERVER, "", 2),
    ]
    suites = ElementTree.parse(tmp_path / "all/report.xml").getroot()
    assert suites.attrib.items() >= {"tests": "4", "failures": "2", "errors": "1"}.items()


def test_servers_that_were_not_read_are_in_the_headline(tmp_path: Path) -> None:
    places = []
    for host, count in (("one", 3), ("two", 4)):
        contents = Contents("drift", check=True, hosts=[host])
        contents.add_unnamed(("ci", "", host), 2)
        contents.add_refused((host, "wiki", "https://wiki"), "connection refused", count, "Manage")
        writing.write(tmp_path / host, contents.since())
        places.append(tmp_path / host)
    merged = summary.read(places, [], None, datetime.now(timezone.utc))
    recorder = Recorder(Contents("delivery.toolchain.drift_summary"))
    step = {"report": {"summary": {"folder": str(tmp_path / "all"), **merged}}}
    recorder.result(_task(), "localhost", step, failed=False)
    recorder.end(["localhost"], check=False)
    words = "1 server not read (7 objects); all 4 objects on 2 servers are in sync."
    assert recorder.contents.sentence() == words


def test_unwritable_folder_is_reported_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert writing.problem(tmp_path / "made/here") == ""
    assert list((tmp_path / "made/here").iterdir()) == []
    (tmp_path / "file").touch()
    problem = writing.problem(tmp_path / "file")
    assert problem == (
        f"Cannot write the report to {tmp_path}/file: File exists. Use a folder that this account can write to."
    )
    assert "Not a directory" in writing.problem(tmp_path / "file/below")
    monkeypatch.chdir(tmp_path)
    ours = Path(writing.__file__).parents[4] / "playbooks"
    assert writing.resolved("report", {"playbook_dir": str(ours)}) == tmp_path / "report"
    assert writing.resolved("report", {"playbook_dir": "/plays"}) == Path("/plays/report")
