# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks `enforce` and `drift`: the same roles, the second only looks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

Fresh = Callable[[str], Sandbox]

PASSWORD = "enforced-password-1234567890"
CONFIG: dict[str, Any] = {
    "analysis_config_users": [{"name": "eve", "password": PASSWORD}],
    "analysis_config_groups": [{"name": "quality", "users": ["eve"]}],
    "analysis_config_modules": [{"project": "toolchain", "name": "core"}],
    "analysis_config_purge": ["modules"],
}
ROLE = "delivery.toolchain.analysis_config : "


def _run(sandbox: Sandbox, folder: Path, name: str, variables: dict[str, Any]) -> playbook.Run:
    logins = {
        service: connections.connection(service, sandbox.urls[service])
        for service in ("repo", "ci", "analysis")
    }
    logins["repo"]["dialect"] = "jfrog"
    play = {
        "import_playbook": f"delivery.toolchain.{name}",
        "vars": {**variables, "enforce_connections": logins},
    }
    run = playbook.run(folder, [play], controls={"localhost": sandbox.control}, arguments=["-vvv"])
    assert run.code == 0, run.output
    secrets = [secret for login in logins.values() for secret in connections.secrets(login)]
    assert run.shows([PASSWORD, *secrets]) == []
    return run


def test_drift_tells_what_enforce_then_does(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    task = f"{ROLE}Bring the code analysis server into the desired state"
    before = _run(sandbox, tmp_path, "drift", CONFIG)
    assert before.event(task).result["changed"] is True
    assert before.event(task).writes == []
    (report,) = before.event("Report").items
    assert report["msg"] == [
        {"kind": "users", "name": "eve", "text": "create"},
        {"kind": "groups", "name": "quality", "text": "update users"},
        {"kind": "modules", "name": "toolchain/ui, web", "text": "delete"},
    ]
    enforced = _run(sandbox, tmp_path, "enforce", CONFIG).event(task)
    assert enforced.result["plan"] == before.event(task).result["plan"]
    assert len(enforced.writes) == 3
    after = _run(sandbox, tmp_path, "drift", CONFIG)
    assert after.event(task).result["changed"] is False
    assert after.event("Report").items[0]["msg"] == []


def test_every_service_with_variables_is_held_in_its_state(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    variables = {
        "ci_baseline_plugins": [{"name": "there-is-none"}],
        "ci_baseline_check_java": False,
        "repo_housekeeping_retention": [{"build_name": "nightly", "count": 3}],
    }
    drift = _run(sandbox, tmp_path, "drift", variables)
    assert [report["msg"] for report in drift.event("Report").items] == [
        [{"kind": "plugin", "name": "there-is-none", "text": "plugin there-is-none is missing"}],
        [{"kind": "build", "name": "nightly", "text": "too old or too many: 101"}],
    ]
    assert sandbox.requests("analysis") == []
    assert [each for event in drift.events for each in event.writes] == []


def test_roles_are_chosen_on_the_command_line(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    chosen = {"enforce_roles": "ci_baseline, analysis_config"}
    _run(sandbox, tmp_path, "enforce", {**CONFIG, **chosen, "repo_housekeeping_rules": "left out"})
    assert sandbox.requests("repo") == []
    assert sandbox.requests("ci") != []
    assert sandbox.requests("analysis", writes=True) != []


def test_a_role_without_variables_asks_the_server_for_nothing(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    _run(sandbox, tmp_path, "enforce", {})
    for service in ("repo", "ci", "analysis"):
        assert sandbox.requests(service) == []
