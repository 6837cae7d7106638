# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that a run sends nothing more to a server that refused the login or the connection."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

Fresh = Callable[[str], Sandbox]
XML = "<project><description>x</description></project>"
#: 11 objects of all kinds on the CI server.
STATE: dict[str, Any] = {
    "desired_state_jobs": [
        {"job": "team", "folder": True},
        *({"job": f"team/{number}", "config": XML} for number in range(3)),
    ],
    "desired_state_credentials": [
        {"id": f"c{number}", "kind": "secret_text", "secret": "secret-12345"} for number in range(2)
    ],
    "desired_state_nodes": [{"name": f"n{number}", "remote_root": "/srv"} for number in range(2)],
    "desired_state_views": [{"name": f"v{number}", "regex": "x"} for number in range(2)],
    "desired_state_configuration": [{"config": {"jenkins": {"systemMessage": "x"}}}],
}
TRACKER = {"desired_state_versions": [{"project": "REL", "name": "9.9"}]}
DEAD = "http://127.0.0.1:9"


def _run(
    folder: Path, name: str, connected: dict[str, Any], *arguments: str, **variables: Any
) -> tuple[playbook.Run, dict[str, Any]]:
    given = {"enforce_connections": connected, "drift_report": "report", **STATE, **TRACKER}
    play = {"import_playbook": f"delivery.toolchain.{name}", "vars": {**given, **variables}}
    run = playbook.run(folder, [play], arguments=arguments)
    assert run.code == 2, run.output
    report: dict[str, Any] = json.loads((folder / "report/report.json").read_text("utf-8"))
    return run, report


def _connected(sandbox: Sandbox, **ci: Any) -> dict[str, Any]:
    tracker = connections.connection("tracker", sandbox.urls["tracker"])
    return {"tracker": tracker, "ci": {**connections.connection("ci", sandbox.urls["ci"]), **ci}}


def _refused(sandbox: Sandbox) -> int:
    return sum(request["status"] == 401 for request in sandbox.requests("ci"))


def test_wrong_password_is_sent_at_most_twice(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    run, report = _run(tmp_path, "enforce", _connected(sandbox, password="wrong-password-12345"))
    assert 1 <= _refused(sandbox) <= 2
    assert len(sandbox.requests("ci")) <= 2
    failed, other = report["findings"]
    url = sandbox.urls["ci"]
    assert failed["text"] == f"server {url}: login refused (401); 11 objects not compared"
    keys = ("status", "service", "server", "kind", "name", "action")
    assert [failed[key] for key in keys] == ["failed", "ci", url, "server", url, "none"]
    assert (other["text"], other["status"]) == ("version REL/9.9: created", "drift")
    assert report["counts"]["failed"] == 1
    assert f"! {failed['text']}" in run.output


def test_dead_server_is_one_finding(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    run, report = _run(tmp_path, "drift", _connected(sandbox, url=DEAD))
    failed = next(finding for finding in report["findings"] if finding["service"] == "ci")
    assert failed["text"] == f"server {DEAD}: connection refused; 11 objects not compared"
    assert report["counts"]["failed"] == 1
    attempts = sum((event.result.get("http") or {}).get("requests", 0) for event in run.events)
    assert attempts <= 4 + 20  # the first request with its retries, and those to the tracker
    assert "connection refused in an earlier task, so this task sent nothing" in run.output


def test_wrong_password_of_several_hosts_is_sent_at_most_twice(
    fresh: Fresh, tmp_path: Path
) -> None:
    sandbox = fresh("real")
    hosts: dict[str, Any] = {"all": {"hosts": {f"h{number}": {} for number in range(3)}}}
    (tmp_path / "hosts.json").write_text(json.dumps(hosts), encoding="utf-8")
    arguments = ("-i", "hosts.json", "-e", "enforce_hosts=all", "-f", "3")
    connected = _connected(sandbox, password="wrong-password-12345")
    kinds = ("desired_state_jobs", "desired_state_credentials", "desired_state_views")
    few = {name: STATE[name][:1] if name in kinds else [] for name in STATE}
    few["desired_state_versions"] = []
    _output, report = _run(tmp_path, "drift", connected, *arguments, **few)
    assert 1 <= _refused(sandbox) <= 2
    failed = [finding for finding in report["findings"] if finding["status"] == "failed"]
    assert [finding["text"] for finding in failed] == [
        f"server {sandbox.urls['ci']}: login refused (401); 9 objects not compared"
    ]


def test_unmanaged_objects_of_other_services_are_listed(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    (tmp_path / "desired").mkdir()
    files = {"tracker": "versions: [{project: REL, name: '9.9'}]", "ci": "jobs: [{job: a, src: a}]"}
    for service, text in files.items():
        (tmp_path / f"desired/{service}.yml").write_text(text, encoding="utf-8")
    (tmp_path / "desired/a").write_text(XML, encoding="utf-8")
    variables = {
        **{name: [] for name in STATE},
        "desired_state_versions": [],
        "desired_state_folder": "desired",
        "desired_state_unmanaged": "fail",
    }
    connected = _connected(sandbox, password="wrong-password-12345")
    _output, report = _run(tmp_path, "drift", connected, **variables)
    found = [(finding["service"], finding["status"]) for finding in report["findings"]]
    assert found.count(("ci", "failed")) == 1
    assert found.count(("tracker", "unmanaged")) == 3
    assert _refused(sandbox) <= 2
    assert report["result"] == "failed"


#: Objects of the other services, and a wrong login of each service.
OTHERS: dict[str, dict[str, Any]] = {
    "repo": {
        "desired_state_repositories": [
            {"key": f"r{number}", "rclass": "local", "package_type": "generic"}
            for number in range(3)
        ],
        "desired_state_groups": [{"name": f"g{number}"} for number in range(3)],
        "desired_state_users": [
            {"name": f"u{number}", "email": "u@example.org", "user_password": "Pass-word-1"}
            for number in range(3)
        ],
        "desired_state_permissions": [{"name": f"p{number}"} for number in range(3)],
        "repo_housekeeping_rules": [{"repo": "generic-snapshot-local", "name": "1.txt"}],
    },
    "tracker": {
        "desired_state_versions": [{"project": "REL", "name": f"9.{n}"} for n in range(3)],
        "desired_state_components": [{"project": "REL", "name": f"c{n}"} for n in range(3)],
        "desired_state_project_roles": [{"project": "REL", "role": "Developers", "users": []}],
    },
    "wiki": {
        "desired_state_spaces": [{"key": f"S{n}", "name": "x"} for n in range(3)],
        "desired_state_pages": [
            {"space": "REL", "title": f"P{n}", "body": "<p>x</p>"} for n in range(3)
        ],
        "desired_state_restrictions": [
            {"space": "REL", "title": "Handbook", "read": {"users": []}},
            {"space": "REL", "title": "Home", "read": {"users": []}},
        ],
    },
    "analysis": {
        "analysis_config_users": [{"name": f"u{n}", "password": "pass-word-123"} for n in range(3)],
        "analysis_config_groups": [{"name": f"g{n}"} for n in range(3)],
    },
}


def test_every_service_refuses_at_most_two_logins(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    connected = {
        service: {**connections.connection(service, url), **connections.WRONG_LOGINS[service]}
        for service, url in sandbox.urls.items()
    }
    variables = {name: value for each in OTHERS.values() for name, value in each.items()}
    output, report = _run(tmp_path, "drift", connected, **variables)
    found = {finding["service"]: finding["text"] for finding in report["findings"]}
    assert len(found) == len(report["findings"])
    for service, objects in {**OTHERS, "ci": STATE}.items():
        count = sum(map(len, objects.values()))
        assert found[service].endswith(f"; {count} objects not compared"), output.output
        requests = sandbox.requests(service)
        assert 1 <= len(requests) <= 2, [request["path"] for request in requests]
