# SPDX-License-Identifier: GPL-3.0-or-later
"""Test `drift_summary`, which merges the reports of several runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

Fresh = Callable[[str], Sandbox]


def _run(folder: Path, name: str, variables: dict[str, Any], *, code: int = 0) -> playbook.Run:
    (folder / "hosts.json").write_text(
        json.dumps({"all": {"hosts": {"web1": None, "web2": None, "localhost": None}}})
    )
    values = {"ansible_connection": "local", **variables}
    values["ansible_python_interpreter"] = "{{ ansible_playbook_python }}"
    play = {"import_playbook": f"delivery.toolchain.{name}", "vars": values}
    run = playbook.run(folder, [play], arguments=["-i", "hosts.json"])
    assert run.code == code, run.output
    return run


def _drift(sandbox: Sandbox, folder: Path, host: str, **more: Any) -> None:
    variables = {
        "enforce_hosts": host,
        "enforce_connections": {
            "tracker": connections.connection("tracker", sandbox.urls["tracker"])
        },
        "desired_state_versions": [{"project": "REL", "name": f"9.{host}"}],
        "drift_report": f"reports/{host}",
        **more,
    }
    _run(folder, "drift", variables)


def test_one_report_contains_all_hosts(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    for host in ("web1", "web2"):
        _drift(sandbox, tmp_path, host)
    summary = {"summary_reports": "reports", "summary_folder": "reports/all"}
    # the summary folder is below the reports; the second run must not read it as a report
    for _time in range(2):
        run = _run(tmp_path, "drift_summary", {**summary, "summary_max_age": "1h"})
        assert "Both objects differ on 1 server." in run.output
        assert "+ version REL/9.web1: missing (host web1)" in run.output
    folder = tmp_path / "reports/all"
    report = json.loads((folder / "report.json").read_text("utf-8"))
    assert report["counts"] == {
        "ok": 0,
        "drift": 2,
        "failed": 0,
        "unmanaged": 0,
        "unknown": 0,
        "ignored": 0,
    }
    assert (report["hosts"], report["check"]) == (["web1", "web2"], True)
    assert len(json.loads((folder / "history.json").read_text("utf-8"))) == 2
    stats = run.event("Set the findings as statistics").result["ansible_stats"]["data"]
    assert [finding["host"] for finding in stats["drift_findings"]] == ["web1", "web2"]
    differing = _run(tmp_path, "drift_summary", {**summary, "drift_fail": True}, code=2)
    assert "2 objects differ: version REL/9.web1: missing; version" in differing.output


def test_missing_report_fails_and_the_others_count(fresh: Fresh, tmp_path: Path) -> None:
    _drift(fresh("real"), tmp_path, "web1")
    (tmp_path / "reports/cut").mkdir()
    summary = {
        "summary_reports": ["reports/web1", "reports/cut"],
        "summary_folder": "all",
        "summary_expected": ["web1", "web2"],
    }
    run = _run(tmp_path, "drift_summary", summary, code=2)
    report = json.loads((tmp_path / "all/report.json").read_text("utf-8"))
    assert report["counts"] == {
        "ok": 0,
        "drift": 1,
        "failed": 2,
        "unmanaged": 0,
        "unknown": 0,
        "ignored": 0,
    }
    assert "host web2: is in no report" in run.output
    assert f"report {tmp_path}/reports/cut: has no report.json" in run.output


def test_invalid_input_is_reported_in_one_sentence(tmp_path: Path) -> None:
    given = {"summary_reports": "reports", "summary_folder": "all"}
    slips: list[tuple[dict[str, Any], str]] = [
        ({"summary_reports": "reports"}, "Cannot summarise reports without summary_reports and"),
        ({"summary_folder": "all"}, "Cannot summarise reports without summary_reports and"),
        (
            {**given, "summary_age": "1d"},
            "does not know summary_age (did you mean summary_max_age?)",
        ),
        ({**given, "drift_workers": "local"}, "does not know drift_workers"),
        (given, f"cannot read the folder {tmp_path}/reports: No such file or directory."),
        ({**given, "summary_folder": "/proc/all"}, "Cannot write the report to /proc/all: No such"),
        ({**given, "summary_folder": ["all"]}, "the report to '['all']': it is not a path"),
    ]
    for variables, words in slips:
        run = _run(tmp_path, "drift_summary", variables, code=2)
        assert words in " ".join(run.output.split()), words
    (tmp_path / "reports").mkdir()
    assert "there are no reports" in _run(tmp_path, "drift_summary", given, code=2).output
    wrong = {**given, "summary_reports": ["reports"], "summary_max_age": 0}
    run = _run(tmp_path, "drift_summary", wrong, code=2)
    assert "summary_max_age: '0' is not an age" in " ".join(run.output.split())


def test_removed_lookup_is_refused_by_name(tmp_path: Path) -> None:
    message = {"msg": "{{ query('delivery.toolchain.run_slices', 2) }}"}
    run = playbook.run(tmp_path, [playbook.play([{"ansible.builtin.debug": message}])])
    assert run.code == 2
    assert "delivery.toolchain.run_slices" in run.output
