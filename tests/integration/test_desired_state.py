# SPDX-License-Identifier: GPL-3.0-or-later
"""One folder for all services: drift and enforce read it, and export writes it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

Fresh = Callable[[str], Sandbox]

ANALYSIS = "groups:\n  - name: quality\n    users: []\nusers:\n  - name: eve\n    password: pass-word-12345\n"
CI = "plugins:\n  - name: git\ncheck_java: false\njobs:\n  - job: desired\n    src: desired.xml\n"
TRACKER = "versions:\n  - project: REL\n    name: '9.9'\n"
WIKI = "pages:\n  - space: REL\n    title: Desired\n    body: <p>{{ not a template }}</p>\n"
WIKI += "trees:\n  - {src: team, space: REL, mark: false}\n"
XML = "<project><description>desired</description><builders/></project>"


def _logins(sandbox: Sandbox) -> dict[str, Any]:
    return {name: connections.connection(name, url) for name, url in sandbox.urls.items()}


def _run(folder: Path, name: str, variables: dict[str, Any], code: int = 0) -> playbook.Run:
    play = {"import_playbook": f"delivery.toolchain.{name}", "vars": variables}
    run = playbook.run(folder, [play], arguments=["-vv"])
    assert run.code == code, run.output
    return run


def _report(folder: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((folder / "report/report.json").read_text("utf-8"))
    return report


def _describe(folder: Path, **files: str) -> None:
    (folder / "desired").mkdir()
    for name, text in files.items():
        (folder / "desired" / f"{name}.yml").write_text(text, encoding="utf-8")


def test_one_variable_holds_all_services(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    _describe(tmp_path, analysis=ANALYSIS, ci=CI, tracker=TRACKER, wiki=WIKI)
    (tmp_path / "desired/desired.xml").write_text(XML, encoding="utf-8")
    (tmp_path / "desired/team").mkdir()
    (tmp_path / "desired/team/index.xml").write_text("<h1>Team</h1>", encoding="utf-8")
    variables = {
        "desired_state_folder": "desired",
        "enforce_connections": _logins(sandbox),
        "drift_report": "report",
    }
    run = _run(tmp_path, "drift", variables)
    assert run.shows(["pass-word-12345"]) == []
    report = _report(tmp_path)
    assert sorted((one["service"], one["kind"], one["name"]) for one in report["findings"]) == [
        ("analysis", "groups", "quality"),
        ("analysis", "users", "eve"),
        ("ci", "job", "desired"),
        ("tracker", "version", "REL/9.9"),
        ("wiki", "page", "REL/Desired"),
        ("wiki", "page", "REL/Team"),
    ]
    stats = run.event("Add up what differs").result["ansible_facts"]["drift_found"]
    assert len(stats) == len(report["findings"])
    # in slices, each of which has some of the services
    sliced = _run(
        tmp_path, "enforce", {**variables, "drift_slices": 2, "drift_workers": "local,local"}
    )
    assert sliced.shows(["pass-word-12345"]) == []
    assert _report(tmp_path)["counts"] == report["counts"]
    _run(tmp_path, "drift", variables)
    assert _report(tmp_path)["findings"] == []


def test_a_slip_is_told_before_anything_is_sent(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    _describe(tmp_path, analysis="groups:\n  - nam: quality\n", ci=CI)
    variables = {"desired_state_folder": "desired", "enforce_connections": _logins(sandbox)}
    run = _run(tmp_path, "enforce", variables, code=2)
    assert "analysis.yml:2: groups[0].nam is not known (is name meant?)" in run.output
    assert [sandbox.requests(service) for service in sandbox.urls] == [[]] * len(sandbox.urls)


def test_what_is_exported_does_not_drift(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    logins = _logins(sandbox)
    chosen = {name: logins[name] for name in ("analysis", "ci")}
    exporting = {"export_folder": str(tmp_path / "exported"), "export_connections": chosen}
    _run(tmp_path, "export", exporting)
    written = yaml.safe_load((tmp_path / "exported/analysis.yml").read_text("utf-8"))
    assert len(written["roles"]) > 0
    variables = {
        "desired_state_folder": str(tmp_path / "exported"),
        "enforce_connections": logins,
        "drift_report": "report",
        "drift_fail": True,
    }
    _run(tmp_path, "drift", variables)
    report = _report(tmp_path)
    assert report["findings"] == []
    assert report["counts"]["ok"] > 10
    assert [each for each in sandbox.urls if sandbox.requests(each, writes=True)] == []
