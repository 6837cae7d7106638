# SPDX-License-Identifier: GPL-3.0-or-later
"""Test a desired state folder for all services: drift and enforce read it, export writes it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from sandbox.client import Sandbox
from tests.faults.permissions import LOGINS, allow
from tests.helpers import connections, in_process, playbook
from tests.helpers.cases import CASES
from tests.helpers.edits import EMPTY
from tests.unit.stub import Reply, Stub
from tools import permissions

Fresh = Callable[[str], Sandbox]

ANALYSIS = """
groups:
  - {name: quality, users: []}
users:
  - {name: eve, password: {from: eve_password}}
"""
CI = "plugins:\n  - name: git\ncheck_java: false\njobs:\n  - job: desired\n    src: desired.xml\n"
CI_CONFIGURATION = """
configuration:
  - config:
      jenkins: {systemMessage: "{{ not a template }}"}
  - {src: casc.txt}
credentials:
  - {folder: team, domain: _, id: login, kind: username_password, login_username: team,
     login_password: {from: team_password}}
nodes:
  - {name: linux-1, remote_root: /srv, labels: [linux]}
views:
  - {name: Team, regex: team}
jobs:
  - {job: team, folder: true}
  - {job: team/desired, src: desired.xml}
"""
TRACKER = "versions:\n  - project: REL\n    name: '9.9'\n"
PARTS = (
    "components:\n  - {project: REL, name: client, lead: alice}\n  - {project: REL, name: new}\n"
)
PARTS += "project_roles:\n  - {project: REL, role: Developers, users: [boris]}\n"
ACCESS = """
repositories:
  - {key: tests-local, rclass: local, package_type: generic}
groups:
  - {name: testers, description: Test}
  - {name: developers, description: Developers}
users:
  - {name: tester, email: tester@example.org, user_password: {from: tester_password},
     groups: [testers]}
permissions:
  - name: tests
    resources:
      artifact:
        targets: [{repo: generic-staging-local}, {repo: tests-local}]
        users: {tester: [read]}
        groups: {testers: [read, write]}
"""
WIKI = "pages:\n  - space: REL\n    title: Desired\n    body: <p>{{ not a template }}</p>\n"
WIKI += "spaces:\n  - {key: DOC, name: Documentation}\n"
WIKI += "restrictions:\n  - {space: REL, title: Handbook, update: {groups: [writers]}}\n"
WIKI += "trees:\n  - {src: team, space: REL, mark: false}\n"
REPO = """
repositories:
  - {key: npm, rclass: virtual, package_type: npm, repositories: [npm-remote]}
  - key: npm-remote
    rclass: remote
    package_type: npm
    remote_url: https://registry.example.org
    remote_password: {from: npm_password}
    settings: {socketTimeoutMillis: 9000}
  - {key: generic-release-local, notes: final}
"""
SERVICES = ("analysis", "ci", "repo", "tracker", "wiki")
EXPORTED = (
    "code analysis server",
    "CI server",
    "artifact repository manager",
    "issue tracker",
    "wiki",
)
#: Files attached to a page: an image, and a file with a path traversal in its name.
ATTACHED = {"diagram.png": b"\x89PNG\r\n\x00\xff", "..%2f..%2fEVIL notes.md": b"# no page\n"}
XML = "<project><description>desired</description><builders/></project>"


def _logins(sandbox: Sandbox) -> dict[str, Any]:
    found = {name: connections.connection(name, url) for name, url in sandbox.urls.items()}
    # the configuration of repositories needs an administrator
    return {**found, "repo": {**found["repo"], "token": "repo-admin-token-1234567890"}}


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


@pytest.mark.first
def test_all_services_are_compared_adopted_and_enforced(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    _describe(tmp_path, analysis=ANALYSIS, ci=CI, repo=REPO, tracker=TRACKER + PARTS, wiki=WIKI)
    (tmp_path / "desired/desired.xml").write_text(XML, encoding="utf-8")
    (tmp_path / "desired/team").mkdir()
    (tmp_path / "desired/team/index.xml").write_text("<h1>Team</h1>", encoding="utf-8")
    # a single variable has the logins of all services
    variables = {
        "desired_state_folder": "desired",
        "enforce_connections": _logins(sandbox),
        "drift_report": "report",
        "eve_password": "{{ 'pass-word' ~ '-12345' }}",
        "npm_password": "npm-password-12345",
    }
    secrets = ["pass-word-12345", "npm-password-12345"]
    run = _run(tmp_path, "drift", variables)
    assert run.shows(secrets) == []
    report = _report(tmp_path)
    assert sorted(
        (finding["service"], finding["kind"], finding["name"]) for finding in report["findings"]
    ) == [
        ("analysis", "group", "quality"),
        ("analysis", "user", "eve"),
        ("ci", "job", "desired"),
        ("repo", "repository", "generic-release-local"),
        ("repo", "repository", "npm"),
        ("repo", "repository", "npm-remote"),
        ("tracker", "component", "REL/client"),
        ("tracker", "component", "REL/new"),
        ("tracker", "role", "REL/Developers"),
        ("tracker", "version", "REL/9.9"),
        ("wiki", "page", "REL/Desired"),
        ("wiki", "page", "REL/Team"),
        ("wiki", "restriction", "REL/Handbook"),
        ("wiki", "space", "DOC"),
    ]
    stats = run.event("Summarise findings, and seal the plan").result["findings"]
    assert len(stats) == len(report["findings"])
    chosen = {"adopt_findings": [{"name": "REL/client"}]}
    assert sandbox.requests(writes=True) == []
    _run(tmp_path, "adopt", {**variables, **chosen})
    adopted = (tmp_path / "desired/tracker.yml").read_text("utf-8")
    assert adopted != TRACKER + PARTS
    assert _run(tmp_path, "enforce", variables).shows(secrets) == []
    counts = report["counts"]
    changed = {**counts, "drift": counts["drift"] - 1, "ok": counts["ok"] + 1}
    assert _report(tmp_path)["counts"] == changed
    begin = sandbox.mark()
    run = _run(tmp_path, "enforce", variables)
    assert sandbox.requests(since=begin, writes=True) == []
    # no server returns these passwords
    assert [(one["text"], one["status"]) for one in _report(tmp_path)["findings"]] == [
        ("user eve: cannot compare password", "unknown"),
        ("repository npm-remote: cannot compare remote_password", "unknown"),
    ]


def test_objects_of_a_service_are_managed_in_order(fresh: Fresh, tmp_path: Path) -> None:
    """Verify that what others need comes before them, in check mode too.

    Groups of the repository manager come before users, and both before permissions; a folder of the
    CI server before its credentials, and views last.
    """
    sandbox = fresh("real")
    _describe(tmp_path, ci=CI_CONFIGURATION, repo=ACCESS)
    text = (
        "unclassified: {location: {adminAddress: team@example.org, url: 'https://ci.example.org/'}}"
    )
    (tmp_path / "desired/casc.txt").write_text(text, encoding="utf-8")
    (tmp_path / "desired/desired.xml").write_text(XML, encoding="utf-8")
    secrets = {"team_password": "team-password-12345", "tester_password": "pass-word-12345"}
    variables = {
        "desired_state_folder": "desired",
        "enforce_connections": _logins(sandbox),
        "drift_report": "report",
        **secrets,
    }
    run = _run(tmp_path, "drift", variables)
    assert run.shows([*secrets.values()]) == []
    report = _report(tmp_path)
    found = [(one["kind"], one["name"], one["status"]) for one in report["findings"]]
    assert sorted(found) == [
        ("configuration", "jenkins", "drift"),
        ("configuration", "unclassified", "drift"),
        ("credential", "team/login", "drift"),
        ("group", "testers", "drift"),
        ("job", "team", "drift"),
        ("job", "team/desired", "drift"),
        ("node", "linux-1", "drift"),
        ("permission", "tests", "drift"),
        ("repository", "tests-local", "drift"),
        ("user", "tester", "drift"),
        ("view", "Team", "drift"),
    ]
    counts = report["counts"]
    reporting = {**variables, "desired_state_unmanaged": "report"}
    run = _run(tmp_path, "enforce", reporting)
    assert run.shows([*secrets.values()]) == []
    written = [
        request["path"].rpartition("/")[2] for request in sandbox.requests("ci", writes=True)
    ]
    assert written == [
        *("configure", "configure", "createItem", "createCredentials", "doCreateItem"),
        *("createItem", "createView"),
    ]
    (message,) = [one for one in report["findings"] if one["name"] == "jenkins"]
    assert message["text"] == "configuration jenkins: differs in jenkins.systemMessage"
    assert message["after"] == {"jenkins.systemMessage": "{{ not a template }}"}
    report = _report(tmp_path)
    others = [one for one in report["findings"] if one["status"] != "drift"]
    texts = [finding["text"] for finding in others]
    assert "credential git-login: not managed" in texts
    assert "node (built-in): not managed" in texts
    assert [text for text in texts if text.startswith("view")] == []
    assert {(finding["status"], finding["server"]) for finding in others} == {
        ("unmanaged", sandbox.urls["ci"]),
        ("unmanaged", sandbox.urls["repo"]),
    }
    assert report["counts"] == {**counts, "unmanaged": len(others)}


def test_invalid_input_is_reported_before_any_request(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    _describe(tmp_path, analysis="groups:\n  - nam: quality\n", ci=CI)
    variables = {"desired_state_folder": "desired", "enforce_connections": _logins(sandbox)}
    run = _run(tmp_path, "enforce", variables, code=2)
    assert "analysis.yml:2: groups[0].nam is unknown (did you mean name?)" in run.output
    assert [sandbox.requests(service) for service in sandbox.urls] == [[]] * len(sandbox.urls)


def test_environment_and_unmanaged_objects_are_supported(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    _describe(tmp_path, tracker=TRACKER)
    (tmp_path / "desired/environments/test").mkdir(parents=True)
    own = "versions:\n  - {project: REL, name: '9.9', description: of the test}\n"
    (tmp_path / "desired/environments/test/tracker.yml").write_text(own, encoding="utf-8")
    variables = {
        "desired_state_folder": "desired",
        "desired_state_environment": "test",
        "desired_state_unmanaged": "report",
        "enforce_connections": {"tracker": _logins(sandbox)["tracker"]},
        "drift_report": "report",
    }
    run = _run(tmp_path, "enforce", variables)
    finding, *others = _report(tmp_path)["findings"]
    assert "of the test" in str(finding["after"])
    names = ["REL/1.0.0", "REL/1.1.0", "REL/2.0.0"]
    assert [(one["name"], one["status"]) for one in others] == [
        (name, "unmanaged") for name in names
    ]
    assert _report(tmp_path)["result"] == "changed"

    begin = sandbox.mark()
    failing = {**variables, "desired_state_unmanaged": "fail"}
    run = _run(tmp_path, "drift", failing, code=2)
    named = ", ".join(f"version {name}" for name in names)
    words = f"The role desired_state failed: Objects that are not managed (3): {named}"
    assert words in " ".join(run.output.split())
    assert "Result: unmanaged" in run.output
    assert sandbox.requests(since=begin, writes=True) == []
    report = _report(tmp_path)
    counts = [report["counts"][name] for name in ("drift", "failed", "unmanaged")]
    assert (report["result"], counts) == ("unmanaged", [0, 0, 3])
    assert {one["since"] for one in report["findings"]} == {"still"}
    stats = run.event("Set the findings as statistics").result["ansible_stats"]["data"]
    assert (stats["drift_result"], len(stats["drift_findings"])) == ("unmanaged", 3)
    # a summary of this report fails, too
    summary = {"summary_reports": ["report"], "summary_folder": "all"}
    assert "Result: unmanaged" in _run(tmp_path, "drift_summary", summary, code=2).output
    accepted = {**failing, "drift_ignore": [{"kind": "version", "name": "REL/1.*"}]}
    run = _run(tmp_path, "drift", accepted, code=2)
    assert "Objects that are not managed (1): version REL/2.0.0" in " ".join(run.output.split())


@pytest.mark.parametrize("mark", [True, False])
def test_page_whose_file_is_gone_is_not_managed(fresh: Fresh, tmp_path: Path, mark: bool) -> None:
    sandbox = fresh("real")
    tree = f"trees:\n  - {{src: docs, space: REL, mark: {str(mark).lower()}}}\n"
    _describe(tmp_path, wiki=tree)
    docs = tmp_path / "desired/docs"
    docs.mkdir()
    (docs / "index.md").write_text("# Handbook of tests\n", encoding="utf-8")
    (docs / "gone.md").write_text("# Gone\n", encoding="utf-8")
    variables = {
        "desired_state_folder": "desired",
        "enforce_connections": {"wiki": _logins(sandbox)["wiki"]},
        "drift_report": "report",
    }
    _run(tmp_path, "enforce", variables)
    shutil.copytree(tmp_path / "desired", tmp_path / "previous")
    (docs / "gone.md").unlink()
    begin = sandbox.mark()
    variables["desired_state_previous"] = "previous"
    _run(tmp_path, "drift", variables)
    (finding,) = _report(tmp_path)["findings"]
    assert (finding["name"], finding["status"], finding["action"]) == (
        *("REL/Gone", "unmanaged", "none"),
    )
    assert "no file of its tree describes it" in finding["text"]
    assert ("prune" in finding["text"]) is mark
    run = _run(tmp_path, "drift", {**variables, "desired_state_unmanaged": "fail"}, code=2)
    assert "Objects that are not managed (1): page REL/Gone" in " ".join(run.output.split())
    report = _report(tmp_path)
    assert (report["result"], report["counts"]["unmanaged"]) == ("unmanaged", 1)
    assert sandbox.requests("wiki", writes=True, since=begin) == []


def test_edited_page_differs_and_does_not_hide_the_others(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    _describe(tmp_path, wiki="trees:\n  - {src: docs, space: REL, on_edit: fail}\n")
    docs = tmp_path / "desired/docs"
    docs.mkdir()
    (docs / "index.md").write_text("# Handbook of tests\n", encoding="utf-8")
    variables = {
        "desired_state_folder": "desired",
        "enforce_connections": {"wiki": _logins(sandbox)["wiki"]},
        "drift_report": "report",
    }
    _run(tmp_path, "enforce", variables)
    address = f"{sandbox.urls['wiki']}/rest/api/content"
    login = ("reporter", "reporter-password")
    query = {"spaceKey": "REL", "title": "Handbook of tests"}
    (page,) = requests.get(address, params=query, auth=login, timeout=10).json()["results"]
    body = {"storage": {"value": "<p>by hand</p>", "representation": "storage"}}
    members = {"type": "page", "title": page["title"], "version": {"number": 2}, "body": body}
    requests.put(f"{address}/{page['id']}", json=members, auth=login, timeout=10).raise_for_status()
    (docs / "new.md").write_text("# New\n", encoding="utf-8")
    _run(tmp_path, "drift", variables)
    found = {one["name"]: one for one in _report(tmp_path)["findings"]}
    assert {name: one["status"] for name, one in found.items()} == {
        "REL/Handbook of tests": "drift",
        "REL/New": "drift",
    }
    assert "was edited by reporter at" in found["REL/Handbook of tests"]["text"]
    _run(tmp_path, "enforce", variables, code=2)
    found = {one["name"]: one for one in _report(tmp_path)["findings"]}
    assert found["REL/Handbook of tests"]["status"] == "failed"
    assert found["REL/New"]["status"] == "drift"


@pytest.mark.parametrize(
    ("result", "code"), [("as wanted", 0), ("differs", 10), ("unmanaged", 10), ("failed", 20)]
)
def test_pipeline_of_the_guide_ends_with_the_result(result: str, code: int, tmp_path: Path) -> None:
    """Verify the documented script with a program that leaves such a report."""
    guide = (Path(__file__).resolve().parents[3] / "docs/drift-operation.md").read_text("utf-8")
    (script,) = re.findall(r"```sh\n(ansible-playbook[^`]*\ncase [^`]*)```", guide)
    program = tmp_path / "ansible-playbook"
    report = json.dumps({"result": result})
    program.write_text(f"#!/bin/sh\nmkdir report\necho '{report}' >report/report.json\nexit 2\n")
    program.chmod(0o755)
    path = f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    run = subprocess.run(["sh", "-c", script], cwd=tmp_path, env={"PATH": path}, check=False)
    assert run.returncode == code


#: Objects that an export leaves out: jobs of branches, secrets, sections that another list describes.
LEFT_OUT = {
    "CI server": [
        "delivery/service/*",
        "jenkins.nodes",
        "unclassified.broken",
        "unclassified.mailer.authentication.password",
        "git-login",
    ],
    "artifact repository manager": ["admin", "deployer", "plain", "reader"],
}


def test_exported_state_has_no_drift(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    logins = _logins(sandbox)
    folder = tmp_path / "exported"
    for name, content in ATTACHED.items():
        _attach(sandbox, name, content)
    for module, options in EMPTY:
        login = logins[CASES[module]["service"]]
        assert in_process.run(module, {**options, **login})["changed"]
    begin = sandbox.mark()
    exporting = {
        "export_folder": str(folder),
        "export_connections": logins,
        "export_wiki_trees": [{"space": "REL"}],
    }
    export = {"import_playbook": "delivery.toolchain.export", "vars": exporting}
    run = playbook.run(tmp_path, [export, export])
    assert run.code == 0, run.output
    # drift logs in with the account of docs/permissions.md
    for service in sandbox.urls:
        allow(sandbox, service, list(permissions.needs("drift", service)))
    limited = {name: {"url": url, **LOGINS[name]} for name, url in sandbox.urls.items()}
    drifting = {
        "desired_state_folder": str(folder),
        "enforce_connections": limited,
        "drift_report": "report",
        "drift_fail": True,
    }
    enforcing = {**drifting, "enforce_connections": logins}
    plays = [
        {"import_playbook": "delivery.toolchain.drift", "vars": drifting},
        {"import_playbook": "delivery.toolchain.enforce", "vars": enforcing},
    ]
    checked = playbook.run(tmp_path, plays)
    assert checked.code == 0, checked.output
    for name in EXPORTED:
        runs = [event for event in run.events if event.task == f"Export the {name}"]
        assert [event.result["changed"] for event in runs] == [True, False]
        left_out = [one["name"] for one in runs[0].result["left_out"]]
        assert left_out == LEFT_OUT.get(name, [])
    written = {name: yaml.safe_load((folder / f"{name}.yml").read_text()) for name in SERVICES}
    assert [len(written["ci"]["jobs"]) > 5, len(written["analysis"]["roles"]) > 0] == [True, True]
    report = _report(tmp_path)
    assert report["findings"] == []
    pages = len(list(folder.rglob("wiki/**/*.xml")))
    lists = [entries for each in written.values() for entries in each.values()]
    assert report["counts"]["ok"] >= sum(map(len, lists)) + pages - 1
    assert [request for request in sandbox.requests(since=begin) if request["write"]] == []
    # attachments are listed with their pages, and every run downloads them for comparison
    read = [request["path"] for request in sandbox.requests("wiki", since=begin)]
    assert [path for path in read if path.endswith("/child/attachment")] == []
    assert len([path for path in read if "/download/" in path]) == 4 * len(ATTACHED)
    images = [file for file in folder.rglob("wiki/**/*") if file.suffix in (".png", ".bin")]
    assert sorted(file.read_bytes() for file in images) == sorted(ATTACHED.values())
    assert {file.name[:5] for file in images} == {"1002-"}


def test_objects_that_the_export_left_out_are_not_unmanaged(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    sandbox.seed({"tracker": {"projects": [{"key": "OTHER", "name": "Other", "lead": "reporter"}]}})
    logins = {name: _logins(sandbox)[name] for name in ("analysis", "ci", "tracker")}
    exporting = {
        "export_folder": "desired",
        "export_connections": logins,
        "export_jobs": ["delivery"],
        "export_jobs_exclude": ["delivery/package"],
        "export_tracker_projects": ["REL"],
        "export_projects": ["toolchain"],
    }
    comparing = {
        "desired_state_folder": "desired",
        "desired_state_unmanaged": "report",
        "enforce_connections": logins,
        "drift_report": "report",
    }
    plays = [
        {"import_playbook": "delivery.toolchain.export", "vars": exporting},
        {"import_playbook": "delivery.toolchain.drift", "vars": comparing},
    ]
    run = playbook.run(tmp_path, plays)
    assert run.code == 0, run.output
    assert _report(tmp_path)["findings"] == []
    _exported, compared = run.output.split("Every object of the servers is managed", 1)[0].split(
        "PLAY [Drift]", 1
    )
    assert "not exported" not in compared
    job = {**connections.connection("ci", sandbox.urls["ci"]), "job": "delivery/new"}
    config = "<project><canRoam>true</canRoam></project>"
    assert in_process.run("ci_job", {**job, "config": config})["changed"]
    drift = [{"import_playbook": "delivery.toolchain.drift", "vars": comparing}]
    assert playbook.run(tmp_path, drift).code == 0
    (finding,) = _report(tmp_path)["findings"]
    assert (finding["name"], finding["status"]) == ("delivery/new", "unmanaged")


def _attach(sandbox: Sandbox, name: str, content: bytes) -> None:
    """Attach a file to the page 1002 like a user."""
    address = f"{sandbox.urls['wiki']}/rest/api/content/1002/child/attachment"
    login = ("reporter", "reporter-password")
    header = {"X-Atlassian-Token": "no-check"}
    response = requests.post(
        address, files={"file": (name, content)}, auth=login, headers=header, timeout=10
    )
    assert response.status_code == 200, response.text


def test_folder_keeps_its_names_for_other_accounts(fresh: Fresh, tmp_path: Path) -> None:
    """Verify that export, drift and adopt agree about the accounts that names stand for."""
    sandbox = fresh("real")
    page = {"id": "1002", "space": "REL", "title": "Handbook", "parent": "1001", "version": 3}
    page["body"] = '<p>Ask <ac:link><ri:user ri:username="author" /></ac:link>.</p>'
    page["restrictions"] = {"update": ["reporter", "author"]}
    sandbox.seed({"wiki": {"pages": [page]}})
    accounts = tmp_path / "accounts.csv"
    accounts.write_text(
        "service,name,account\nall,Lead,alice\nall,Writer,author\nall,Boss,reporter\n"
        "repo,Build,deployer\nanalysis,bob,alice\nanalysis,alice,bob\nall,Team,developers\n",
        "utf-8",
    )
    logins = _logins(sandbox)
    names = [name for name in SERVICES if name != "ci"]
    exporting = {
        "desired_state_accounts": str(accounts),
        "export_folder": "desired",
        "export_services": names,
        "export_connections": {name: logins[name] for name in names},
        "export_wiki_trees": [{"page_id": "1002"}],
    }
    export = {"import_playbook": "delivery.toolchain.export", "vars": exporting}
    run = playbook.run(tmp_path, [export, export])
    assert run.code == 0, run.output
    for name in EXPORTED:
        runs = [event for event in run.events if event.task == f"Export the {name}"]
        assert name == "CI server" or [one.result["changed"] for one in runs] == [True, False]
    folder = tmp_path / "desired"
    written = {name: yaml.safe_load((folder / f"{name}.yml").read_text()) for name in names}
    roles = {each["role"]: each for each in written["tracker"]["project_roles"]}
    assert roles["Developers"]["users"] == ["Lead"]
    assert roles["Developers"]["groups"] == ["Team"]
    (restrictions,) = written["wiki"]["restrictions"]
    assert sorted(restrictions["update"]["users"]) == ["Boss", "Writer"]
    (file,) = folder.rglob("index.xml")
    assert '<ri:user ri:username="Writer" />' in file.read_text("utf-8")
    assert {"alice", "bob"} <= {user["name"] for user in written["analysis"]["users"]}

    variables = {
        "desired_state_accounts": str(accounts),
        "desired_state_folder": "desired",
        "desired_state_unmanaged": "fail",
        "enforce_connections": exporting["export_connections"],
        "drift_report": "report",
        "drift_fail": True,
    }
    begin = sandbox.mark()
    _run(tmp_path, "drift", variables)
    assert _report(tmp_path)["findings"] == []
    # without the mapping, the names are accounts that do not exist
    plain = {**variables, "drift_report": "other", "desired_state_accounts": {}}
    assert "Lead" in _run(tmp_path, "drift", plain, code=2).output

    tracker = (folder / "tracker.yml").read_text("utf-8")
    (folder / "tracker.yml").write_text(tracker.replace("- Lead\n", "- Boss\n", 1), "utf-8")
    file.write_text(file.read_text("utf-8").replace("Ask", "Call"), "utf-8")
    _run(tmp_path, "drift", variables, code=2)
    found = [(one["kind"], one["name"]) for one in _report(tmp_path)["findings"]]
    assert found == [("role", "REL/Developers"), ("page", "REL/Handbook")]
    _run(tmp_path, "adopt", {**variables, "adopt_findings": [{"name": "REL/*"}]})
    assert (folder / "tracker.yml").read_text("utf-8") == tracker
    assert '<ri:user ri:username="Writer" />' in file.read_text("utf-8")
    assert "Call" not in file.read_text("utf-8")
    _run(tmp_path, "drift", variables)
    assert sandbox.requests(since=begin, writes=True) == []


def test_uncertain_accounts_end_the_run(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    logins = {"tracker": _logins(sandbox)["tracker"]}
    _describe(tmp_path, tracker=TRACKER)
    accounts = tmp_path / "accounts.csv"
    accounts.write_text("service,name,account\nall,Lead,alice\nall,Other,alice\n", "utf-8")
    variables = {
        "desired_state_accounts": str(accounts),
        "desired_state_folder": "desired",
        "enforce_connections": logins,
        "adopt_findings": [{"name": "*"}],
        "export_folder": "exported",
        "export_connections": logins,
    }
    # two names for an account: the export cannot choose one
    run = _run(tmp_path, "export", variables, code=2)
    assert "alice has the names Lead, Other: leave one of them" in " ".join(run.output.split())
    assert not (tmp_path / "exported").exists()
    accounts.write_text("service,name,account\ntraker,Lead,alice\n", "utf-8")
    begin = sandbox.mark()
    for name in ("export", "enforce", "drift"):
        run = _run(tmp_path, name, variables, code=2)
        assert "accounts.csv:2: the service traker is unknown" in run.output
    assert sandbox.requests(since=begin) == []


def test_unreadable_service_does_not_hide_the_others(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    logins = _logins(sandbox)
    sandbox.fault(service="analysis", status=403)
    exporting = {
        "export_folder": "exported",
        "export_connections": {name: logins[name] for name in ("analysis", "tracker")},
    }
    run = _run(tmp_path, "export", exporting, code=2)
    assert "1 of 2 services were not exported: " in run.output
    assert [file.name for file in (tmp_path / "exported").glob("*.yml")] == ["tracker.yml"]


def test_wrong_login_does_not_hide_other_objects_of_the_role(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    _describe(tmp_path, tracker=TRACKER, wiki=WIKI.partition("trees:")[0])
    sandbox.fault(service="tracker", status=401, times=9)
    logins = _logins(sandbox)
    variables = {
        "desired_state_folder": "desired",
        "enforce_connections": {name: logins[name] for name in ("tracker", "wiki")},
        "drift_report": "report",
    }
    run = _run(tmp_path, "drift", variables, code=2)
    assert "The role desired_state failed: entries[0] ('REL/9.9'): reading the vers" in run.output
    assert "already in use" not in run.output
    found = {finding["service"]: finding["status"] for finding in _report(tmp_path)["findings"]}
    assert found == {"tracker": "failed", "wiki": "drift"}


def test_alert_of_the_guide_posts_the_differences_without_addresses(tmp_path: Path) -> None:
    guide = (Path(__file__).resolve().parents[3] / "docs/drift-operation.md").read_text("utf-8")
    (text,) = re.findall(r"```yaml\n(- name: Alert\n.*?)```", guide, re.DOTALL)
    (tmp_path / "report").mkdir()
    report = {"counts": {"drift": 1, "failed": 0}, "findings": [{"text": "job a: missing"}]}
    (tmp_path / "report/report.json").write_text(json.dumps(report), encoding="utf-8")
    with Stub(response=lambda seen: Reply(body="ok")) as stub:
        address = {"ALERT_WEBHOOK": f"{stub.url}/hook-secret-12345"}
        run = playbook.run(tmp_path, yaml.safe_load(text), variables=address)
        assert run.code == 0, run.output
        (sent,) = [json.loads(seen.body) for seen in stub.seen]
    assert sent == {"text": "1 different, 0 could not be read: job a: missing"}
    assert run.shows(["hook-secret-12345"]) == []


def test_each_host_applies_its_kinds_in_order(fresh: Fresh, tmp_path: Path) -> None:
    """Verify that a view waits for the folder of its host, although another host has only a view."""
    sandbox = fresh("real")
    view = "views: [{folder: team, name: Team, jobs: []}]\n"
    described = {
        "one": "views: [{name: One, jobs: []}]\n",
        "two": f"jobs: [{{job: team, folder: true}}]\n{view}",
    }
    for host, text in described.items():
        (tmp_path / "desired" / host).mkdir(parents=True)
        (tmp_path / "desired" / host / "ci.yml").write_text(text, encoding="utf-8")
    hosts = {name: {"ansible_connection": "local"} for name in described}
    inventory = json.dumps({"all": {"hosts": hosts}})
    (tmp_path / "hosts.json").write_text(inventory, encoding="utf-8")
    given = {
        "enforce_hosts": "all",
        "enforce_connections": {"ci": connections.connection("ci", sandbox.urls["ci"])},
        "desired_state_folder": "desired/{{ inventory_hostname }}",
    }
    play = {"import_playbook": "delivery.toolchain.enforce", "vars": given}
    run = playbook.run(
        tmp_path,
        [play],
        controls=dict.fromkeys(described, sandbox.control),
        arguments=["-i", "hosts.json"],
    )
    assert run.code == 0, run.output
    assert "Applied: 3 created" in run.output
