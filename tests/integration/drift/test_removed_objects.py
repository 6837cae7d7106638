# SPDX-License-Identifier: GPL-3.0-or-later
"""Test objects that were removed from the folder: `desired_state_previous`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import kinds
from sandbox.client import Sandbox
from tests.helpers import connections, in_process, playbook

Fresh = Callable[[str], Sandbox]

ANALYSIS = """
groups: [{name: quality, users: []}, {name: kept, users: [eve]}]
users: [{name: eve, password: {from: eve_password}}]
modules:
  - {project: toolchain, name: core, paths: [a]}
  - {project: toolchain, name: guarded, paths: [b]}
"""
CI = """
jobs:
  - {job: team, folder: true}
  - {job: team/inner, folder: true}
  - {job: team/inner/one, src: job.xml}
  - {job: shared, folder: true}
  - {job: shared/ours, src: job.xml}
  - {job: shared/stays, src: job.xml}
views: [{folder: team, name: Team, regex: one}]
credentials:
  - {folder: team, id: login, kind: secret_text, secret: {from: ci_secret}}
"""
REPO = """
repositories:
  - {key: gone-local, rclass: local, package_type: generic}
groups: [{name: gone-group}, {name: kept-group}]
users:
  - {name: gone-user, email: u@example.org, user_password: {from: user_password},
     groups: [gone-group, kept-group]}
"""
PERMISSIONS = """
permissions:
  - name: gone-permission
    resources:
      artifact: {targets: [{repo: gone-local}], users: {gone-user: [read]}, groups: {gone-group: [read]}}
"""
TRACKER = """
versions: [{project: REL, name: '9.9'}, {project: REL, name: 1.0.0}]
components: [{project: REL, name: gone}, {project: REL, name: old}]
project_roles: [{project: REL, role: Developers, users: [boris], mode: add}]
"""
WIKI = """
spaces: [{key: OURS, name: Ours}]
pages:
  - {space: OURS, title: Inside, body: <p>x</p>}
  - {space: REL, title: Above, body: <p>x</p>}
  - {space: REL, title: Below, parent_title: Above, body: <p>x</p>}
  - {space: REL, title: Moves, body: <p>x</p>}
restrictions: [{space: REL, title: Above, update: {groups: [writers]}}]
"""
BEFORE = {
    "analysis": ANALYSIS,
    "ci": CI,
    "repo": REPO + PERMISSIONS,
    "tracker": TRACKER,
    "wiki": WIKI,
}
#: Objects of others, which the folder also named.
OTHERS = {
    "repo": "repositories: [{key: generic-snapshot-local}]\nusers: [{name: admin}]\n",
    "ci": "views: [{name: all}]\n",
}
AFTER = {
    "analysis": "groups: [{name: kept, users: []}]\nprotect: ['toolchain/guarded']\n",
    "ci": "jobs: [{job: shared/stays, src: job.xml}]\n",
    "repo": "groups: [{name: kept-group, members: []}]\n",
    "tracker": "components: [{project: REL, name: old, new_name: new}]\n",
    "wiki": "pages: [{space: REL, title: Moves, body: <p>x</p>}]\n",
}
SECRETS: dict[str, Any] = {
    name: f"{name}-12345" for name in ("eve_password", "ci_secret", "user_password")
}
XML = "<project><description>ours</description><builders/></project>"


def _describe(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir()
    (folder / "job.xml").write_text(XML, encoding="utf-8")
    for name, text in files.items():
        (folder / f"{name}.yml").write_text(text, encoding="utf-8")


def _logins(sandbox: Sandbox) -> dict[str, dict[str, Any]]:
    logins = {name: connections.connection(name, url) for name, url in sandbox.urls.items()}
    logins["repo"]["token"] = "repo-admin-token-1234567890"
    return logins


def _run(
    sandbox: Sandbox, folder: Path, name: str, code: int = 0, **variables: Any
) -> playbook.Run:
    play = {
        "import_playbook": f"delivery.toolchain.{name}",
        "vars": {
            **variables,
            "enforce_connections": _logins(sandbox),
            "drift_report": "report",
        },
    }
    run = playbook.run(folder, [play], controls={"localhost": sandbox.control}, arguments=["-v"])
    assert run.code == code, run.output
    return run


def _apply(sandbox: Sandbox, folder: Path) -> None:
    """Create what a folder describes, in this process: the modules in the order of the role."""
    tasks = [("analysis_config", [_described(folder, "analysis")])]
    for kind, folders in kinds.stages():
        entries = _described(folder, kind.service).get(kind.list, [])
        if folders is not None:
            entries = [one for one in entries if one.get("folder", False) is folders]
        at_once = kind.at_once and entries
        tasks.append((kind.module, [{"entries": entries}] if at_once else entries))
    for module, runs in tasks:
        login = _logins(sandbox)[module.split("_")[0]]
        for options in runs:
            result = in_process.run(module, {**options, **login})
            assert not result.get("failed"), result


def _described(folder: Path, service: str) -> dict[str, Any]:
    """Return the lists of a service, with the values of secrets and the paths of files."""
    text = (folder / f"{service}.yml").read_text("utf-8").replace("job.xml", f"{folder}/job.xml")
    for name, value in SECRETS.items():
        text = text.replace(f"{{from: {name}}}", value)
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def _report(folder: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((folder / "report/report.json").read_text("utf-8"))
    return report


def _changes(folder: Path) -> list[str]:
    return sorted(
        f"{one['action']} {one['service']} {one['kind']} {one['name']}"
        for one in _report(folder)["findings"]
    )


def _writes(run: playbook.Run) -> list[str]:
    return [f"{one['method']} {one['path']}" for event in run.events for one in event.writes]


CHANGES = sorted(
    [
        "update analysis group kept",
        "update repo group kept-group",
        "update tracker component REL/old",
        *(
            f"delete {name}"
            for name in (
                "analysis group quality",
                "analysis module toolchain/core",
                "analysis user eve",
                "ci credential team/login",
                "ci job shared/ours",
                "ci job team",
                "ci job team/inner",
                "ci job team/inner/one",
                "ci view team/Team",
                "repo group gone-group",
                "repo permission gone-permission",
                "repo repository gone-local",
                "repo user gone-user",
                "tracker component REL/gone",
                "tracker version REL/9.9",
                "wiki page OURS/Inside",
                "wiki page REL/Above",
                "wiki page REL/Below",
                "wiki space OURS",
            )
        ),
    ]
)
STAYS = {
    "job shared": "the folder describes objects in it",
    "module toolchain/guarded": "because protect contains it",
    "version REL/1.0.0": "it has issues",
    "user admin": "requires force=true",
    "view all": "view",
    "repository generic-snapshot-local": "file",
}


def test_removed_objects_are_deleted_and_no_others(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    _describe(tmp_path / "before", BEFORE)
    _describe(tmp_path / "after", AFTER)
    _apply(sandbox, tmp_path / "before")
    for service, text in OTHERS.items():
        (tmp_path / f"before/{service}").mkdir()
        (tmp_path / f"before/{service}/others.yml").write_text(text, encoding="utf-8")
    both: dict[str, Any] = {"desired_state_folder": "after", "desired_state_previous": "before"}

    both["desired_state_max_deletions"] = "19"
    drift = _run(sandbox, tmp_path, "drift", **both)
    assert _writes(drift) == []
    assert _changes(tmp_path) == CHANGES
    for title, reason in STAYS.items():
        (line,) = {
            line
            for line in drift.output.splitlines()
            if f"The {title} is not in the folder any more, but stays" in line and "WARNING" in line
        }
        assert reason in line, line

    # test_plan_is_applied_with_a_list_of_unmanaged_objects has such a deletion in a sealed plan
    enforced = _run(sandbox, tmp_path, "enforce", **both)
    assert _changes(tmp_path) == CHANGES
    assert "3 updated, 19 deleted; failed: 0" in enforced.output


def test_object_that_moves_to_another_host_stays(fresh: Fresh, tmp_path: Path) -> None:
    """Verify that hosts of one server, also outside of a limit, delete nothing of each other."""
    sandbox = fresh("real")
    groups = {"one": "{name: moves}, {name: gone}", "two": "{name: stays}"}
    after = {"one": "", "two": "{name: stays}, {name: moves}"}
    for folder, lists in (("before", groups), ("after", after)):
        for host, entries in lists.items():
            (tmp_path / folder / host).mkdir(parents=True)
            file = tmp_path / folder / host / "analysis.yml"
            file.write_text(f"groups: [{entries}]\n", encoding="utf-8")
    hosts = {name: {"part": name, "ansible_connection": "local"} for name in groups}
    inventory = json.dumps({"all": {"hosts": hosts}})
    (tmp_path / "hosts.json").write_text(inventory, encoding="utf-8")
    logins = {"analysis": connections.connection("analysis", sandbox.urls["analysis"])}

    def enforce(*arguments: str, code: int = 0, **variables: str) -> playbook.Run:
        given = {**variables, "enforce_hosts": "all", "enforce_connections": logins}
        play = {"import_playbook": "delivery.toolchain.enforce", "vars": given}
        run = playbook.run(
            tmp_path,
            [play],
            controls=dict.fromkeys(groups, sandbox.control),
            arguments=["-i", "hosts.json", "-f", "1", *arguments],
        )
        assert run.code == code, run.output
        return run

    for name in ("moves", "gone", "stays"):
        group = {"name": name, **logins["analysis"]}
        assert in_process.run("analysis_group", group)["changed"]
    both: dict[str, Any] = {
        "desired_state_folder": "after/{{ part }}",
        "desired_state_previous": "before/{{ part }}",
    }
    begin = sandbox.mark()
    refused = enforce("--limit", "one", **both, desired_state_max_deletions="0", code=2)
    assert "not in the folder any more would be deleted" in " ".join(refused.output.split())
    assert sandbox.requests(since=begin, writes=True) == []
    limited = enforce("--limit", "one", **both)
    assert _deleted(limited) == ["gone"], limited.output
    run = enforce(**both)
    assert _deleted(run) == [], run.output


def _deleted(run: playbook.Run) -> list[str]:
    return re.findall(r"^- group (.*): deleted$", run.output, re.MULTILINE)
