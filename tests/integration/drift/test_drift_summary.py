# SPDX-License-Identifier: GPL-3.0-or-later
"""Test `drift_summary`, which merges the reports of several runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import bookkeeping
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report import summary
from sandbox.client import Sandbox
from tests.helpers import connections, playbook
from tests.unit.arguments import run_of

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


@pytest.fixture(scope="module")
def reports(fresh: Fresh, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the reports of two hosts."""
    folder = tmp_path_factory.mktemp("hosts")
    sandbox = fresh("real")
    for host in ("web1", "web2"):
        _drift(sandbox, folder, host)
    return folder / "reports"


def test_one_report_contains_all_hosts(reports: Path, tmp_path: Path) -> None:
    shutil.copytree(reports, tmp_path / "reports")
    given = {"summary_reports": "reports", "summary_folder": "reports/all"}
    # the summary folder is below the reports; the second run must not read it as a report
    for _time in range(2):
        run = _run(tmp_path, "drift_summary", {**given, "summary_max_age": "1h"})
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
    differing = _run(tmp_path, "drift_summary", {**given, "drift_fail": True}, code=2)
    assert "2 objects differ: version REL/9.web1: missing; version" in differing.output


def test_missing_report_fails_and_the_others_count(reports: Path, tmp_path: Path) -> None:
    shutil.copytree(reports / "web1", tmp_path / "reports/web1")
    (tmp_path / "reports/cut").mkdir()
    given = {
        "summary_reports": ["reports/web1", "reports/cut"],
        "summary_folder": "all",
        "summary_expected": ["web1", "web2"],
    }
    run = _run(tmp_path, "drift_summary", given, code=2)
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
    place = str(tmp_path / "reports")
    given = {"summary_reports": place, "summary_folder": str(tmp_path / "all")}
    slips: list[tuple[dict[str, Any], str]] = [
        ({"summary_reports": place}, "Cannot summarise reports without summary_reports and"),
        ({"summary_folder": place}, "Cannot summarise reports without summary_reports and"),
        (given, f"cannot read the folder {place}: No such file or directory"),
        ({**given, "summary_folder": "/proc/all"}, "Cannot write the report to /proc/all: No such"),
        ({**given, "summary_folder": ["all"]}, "the report to '['all']': it is not a path"),
        (
            {**given, "summary_reports": [place], "summary_max_age": 0},
            "summary_max_age: '0' is not an age",
        ),
    ]
    for variables, words in slips:
        with pytest.raises((bookkeeping.StepError, summary.SummaryError)) as raised:
            bookkeeping.perform("summarise", run_of(**variables), {})
        assert words in str(raised.value)
    # the playbook shows these sentences
    misspelt = {**given, "summary_age": "1d"}
    run = _run(tmp_path, "drift_summary", misspelt, code=2)
    words = "does not know summary_age (did you mean summary_max_age?)"
    assert words in " ".join(run.output.split())
    (tmp_path / "reports").mkdir()
    assert "there are no reports" in _run(tmp_path, "drift_summary", given, code=2).output


def test_removed_lookup_is_refused_by_name(tmp_path: Path) -> None:
    message = {"msg": "{{ query('delivery.toolchain.run_slices', 2) }}"}
    run = playbook.run(tmp_path, [playbook.play([{"ansible.builtin.debug": message}])])
    assert run.code == 2
    assert "delivery.toolchain.run_slices" in run.output
