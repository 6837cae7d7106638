# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that the features of Ansible give the same results in the worker and in separate processes,
on the release of ansible-core that runs the tests.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

Fresh = Callable[[str], Sandbox]
_SECONDS = 240
_HOSTS = [f"host{number}" for number in range(2)]
_UNDEFINED = "undefined name in a connection variable"
_ROLE: dict[str, Any] = {"name": "Developer"}
_MISSING: dict[str, Any] = {"name": "Nobody", "state": "absent"}
_INVALID: dict[str, Any] = {"name": "No*", "state": "present"}


def _role(options: Mapping[str, Any] = _ROLE, **keywords: Any) -> dict[str, Any]:
    return playbook.task("analysis_role", options, "Role", **keywords)


#: Plays, by the feature of Ansible that they use.
FEATURES: dict[str, dict[str, Any]] = {
    "one task": {"tasks": [_role()]},
    "loop with labels": {
        "tasks": [
            _role(
                {"name": "{{ role.name }}"},
                loop=[{"name": "Developer"}, {"name": "Project admin"}],
                loop_control={"loop_var": "role", "index_var": "number", "label": "{{ number }}"},
            )
        ]
    },
    "empty loop": {"tasks": [_role(loop=[])]},
    "loop with until": {
        "tasks": [
            _role(
                {"name": "{{ item }}"},
                loop=["Developer", "No*"],
                register="tried",
                until="tried is success",
                retries=1,
                delay=0,
            )
        ]
    },
    "condition": {"tasks": [_role(when="false"), _role(_MISSING, when="1 < 2")]},
    "registered result": {
        "tasks": [
            _role(register="role"),
            _role({"name": "{{ role.role.name }}"}, when="not role.changed"),
        ]
    },
    "own conditions of change and failure": {
        "tasks": [_role(changed_when="true"), _role(failed_when="true")]
    },
    "asynchronous": {
        "tasks": [playbook.task("analysis_role", _ROLE, "Role", **{"async": 60, "poll": 1})]
    },
    "rescue": {
        "tasks": [
            {
                "name": "Block",
                "block": [{**_role(_INVALID), "ignore_errors": False}],
                "rescue": [_role()],
                "always": [_role(_MISSING)],
            }
        ]
    },
    "strategy free": {"hosts": "many", "strategy": "free", "tasks": [_role()]},
    "run once": {"hosts": "many", "tasks": [_role(run_once=True)]},
    "throttle": {"hosts": "many", "tasks": [_role(throttle=1)]},
    "serial": {"hosts": "many", "serial": 1, "tasks": [_role()]},
    "delegation": {"tasks": [_role(delegate_to="host1")]},
    "delegation in a loop": {"tasks": [_role(loop=_HOSTS, delegate_to="{{ item }}")]},
    "diff": {"diff": True, "check_mode": True, "tasks": [_role({"name": "New"})]},
    "no log": {"tasks": [_role(no_log=True)]},
    "environment": {"environment": {"LC_ALL": "C"}, "tasks": [_role()]},
    "variables": {
        "vars": {"wanted": "Developer"},
        "tasks": [_role({"name": "{{ wanted }}", "description": "{{ nothing | default(omit) }}"})],
    },
    "lists from templates": {
        "tasks": [
            _role({"name": "New", "permissions": "{{ {'access_source_files': true} }}"}),
        ],
        "check_mode": True,
    },
    "included tasks": {"tasks": [{"name": "Include", "include_tasks": "included.json"}]},
    "handler": {
        "tasks": [_role(changed_when="true", notify="Role")],
        "handlers": [_role(_MISSING)],
    },
    "lookup": {
        "tasks": [
            {
                "name": "Role",
                "ansible.builtin.set_fact": {
                    "tags": "{{ query('delivery.toolchain.jql_search', 'project = REL') | length }}"
                },
            }
        ],
    },
    _UNDEFINED: {
        "vars": {"toolchain_analysis_ca_path": "{{ nothing_of_this_name }}"},
        "tasks": [_role()],
    },
}
#: Return values that differ between two runs.
_VARYING = ("http", "ansible_job_id", "results_file", "started", "finished", "invocation")


def _run(sandbox: Sandbox, folder: Path, *, in_process: bool) -> playbook.Run:
    folder.mkdir()
    sandbox.reset()
    (folder / "included.json").write_text(json.dumps([_role()]), encoding="utf-8")
    host = {"ansible_python_interpreter": "{{ ansible_playbook_python }}"}
    hosts = {name: {**host, "ansible_connection": "local"} for name in _HOSTS}
    inventory = {
        "all": {
            "hosts": {"localhost": {**host, "ansible_connection": "local"}},
            "children": {"many": {"hosts": hosts}},
            "vars": {"toolchain_in_process": in_process},
        }
    }
    (folder / "inventory.json").write_text(json.dumps(inventory), encoding="utf-8")
    defaults = connections.module_defaults(sandbox.urls)
    tracker = {
        f"toolchain_tracker_{name}": value
        for name, value in {"url": sandbox.urls["tracker"], **connections.LOGINS["tracker"]}.items()
    }
    plays = []
    for name, feature in FEATURES.items():
        given = {"vars": {**tracker, **feature.get("vars", {})}, "module_defaults": defaults}
        plays.append({**playbook.play([]), **feature, **given, "name": name})
    arguments = ["-i", "inventory.json", "--forks", "3"]
    return playbook.run(folder, plays, arguments=arguments, seconds=_SECONDS * 2)


@pytest.fixture(scope="module")
def runs(fresh: Fresh, tmp_path_factory: pytest.TempPathFactory) -> dict[bool, playbook.Run]:
    """Run all features in both modes."""
    folder, sandbox = tmp_path_factory.mktemp("features"), fresh("real")
    return {mode: _run(sandbox, folder / str(mode), in_process=mode) for mode in (True, False)}


def _outcomes(run: playbook.Run, feature: str) -> list[tuple[str, str, str, Any]]:
    found = [event for event in run.events if event.play == feature]
    return sorted(
        (event.host, event.task, event.status, json.dumps(_plain(event.result), sort_keys=True))
        for event in found
    )


def _plain(result: Any) -> Any:
    if isinstance(result, Mapping):
        return {
            name: _plain(value)
            for name, value in result.items()
            if name not in _VARYING and not name.startswith("_ansible")
        }
    return list(map(_plain, result)) if isinstance(result, list) else result


@pytest.mark.parametrize("feature", FEATURES)
def test_feature_works_equally_in_both_modes(runs: dict[bool, playbook.Run], feature: str) -> None:
    here, apart = (_outcomes(runs[mode], feature) for mode in (True, False))
    assert here, runs[True].output[-3000:]
    assert here == apart


def test_tasks_reach_the_server(runs: dict[bool, playbook.Run]) -> None:
    """Verify that the results are not equal only because all tasks fail."""
    for run in runs.values():
        (event,) = [event for event in run.events if event.play == "one task"]
        assert event.result["role"]["name"] == "Developer", event.result
        statuses = {event.play for event in run.events if event.status == "ok"}
        assert set(FEATURES) - statuses == {"loop with until", "empty loop", _UNDEFINED}


def test_undefined_name_is_reported_with_its_variable(runs: dict[bool, playbook.Run]) -> None:
    (event,) = [event for event in runs[True].events if event.play == _UNDEFINED]
    assert event.result["msg"].startswith("the variable toolchain_analysis_ca_path cannot be")
    assert "nothing_of_this_name" in event.result["msg"]


@pytest.mark.parametrize("in_process", [True, False])
def test_standard_output_is_that_of_the_callback(
    fresh: Fresh, tmp_path: Path, in_process: bool
) -> None:
    """Verify that progress and comparisons do not mix with JSON for a program."""
    sandbox = fresh("real")
    job = {"job": "no-parameters", "config": "<project><description>a</description></project>"}
    tasks = [
        playbook.task("ci_job_build", {"job": "no-parameters", "poll_interval": 0.1}, "Build"),
        playbook.task("ci_job", job, "Job"),
        playbook.task("ci_job", job, "Job"),
    ]
    play = playbook.play(
        tasks,
        module_defaults=connections.module_defaults(sandbox.urls),
        vars={"toolchain_in_process": in_process},
    )
    (tmp_path / "playbook.json").write_text(json.dumps([play]), encoding="utf-8")
    environment = playbook.environment(tmp_path)
    del environment["ANSIBLE_CALLBACKS_ENABLED"]
    done = subprocess.run(
        [str(Path(sys.executable).parent / "ansible-playbook"), "playbook.json", "--diff"],
        cwd=tmp_path,
        env={**environment, "ANSIBLE_STDOUT_CALLBACK": "json_lines"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == len(tasks), done.stdout
    assert ("no-parameters" in done.stderr) is in_process, done.stderr
