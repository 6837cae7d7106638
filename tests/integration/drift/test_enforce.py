# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the playbooks `enforce` and `drift`. They use the same roles, but `drift` only checks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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
BUILD = ("build", "nightly/101", "delete")
ROLE = "delivery.toolchain.analysis_config : "


def _found(run: playbook.Run) -> list[tuple[str, ...]]:
    keys = ("kind", "name", "action", "text")
    found = run.event("Summarise findings, and seal the plan").result["findings"]
    return [tuple(one[key] for key in keys) for one in found]


def _run(
    sandbox: Sandbox, folder: Path, name: str, variables: dict[str, Any], *, code: int = 0
) -> playbook.Run:
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
    assert run.code == code, run.output
    secrets = [secret for login in logins.values() for secret in connections.secrets(login)]
    assert run.shows([PASSWORD, *secrets]) == []
    return run


def test_drift_predicts_the_changes_of_enforce(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    task = f"{ROLE}Apply the desired state of the code analysis server"
    before = _run(sandbox, tmp_path, "drift", CONFIG)
    assert before.event(task).result["changed"] is True
    assert before.event(task).writes == []
    assert _found(before) == [
        ("user", "eve", "create", "user eve: missing"),
        ("group", "quality", "update", "group quality: differs in users"),
        ("module", "toolchain/ui, web", "delete", "module toolchain/ui, web: not wanted"),
    ]
    enforced = _run(sandbox, tmp_path, "enforce", CONFIG).event(task)
    assert enforced.result["plan"] == before.event(task).result["plan"]
    assert len(enforced.writes) == 3


def test_every_service_with_variables_is_enforced(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    variables = {
        "ci_baseline_plugins": [{"name": "there-is-none"}],
        "ci_baseline_check_java": False,
        "repo_housekeeping_retention": [{"build_name": "nightly", "count": 3}],
    }
    drift = _run(sandbox, tmp_path, "drift", variables)
    assert _found(drift) == [
        ("plugin", "there-is-none", "create", "plugin there-is-none: missing"),
        (*BUILD, "build nightly/101: not wanted, too old or too many"),
    ]
    assert sandbox.requests("analysis") == []
    assert [write for event in drift.events for write in event.writes] == []


def test_roles_are_selected_on_the_command_line(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    chosen = {"enforce_roles": "ci_baseline, analysis_config"}
    _run(sandbox, tmp_path, "enforce", {**CONFIG, **chosen, "repo_housekeeping_rules": "left out"})
    assert sandbox.requests("repo") == []
    assert sandbox.requests("ci") != []
    assert sandbox.requests("analysis", writes=True) != []


SLIPS: dict[str, tuple[dict[str, Any], str]] = {
    "nothing is described": ({}, "There is nothing to enforce"),
    "a misspelt list": (
        {**CONFIG, "analysis_config_user": [{"name": "eve"}]},
        "analysis_config_user (did you mean analysis_config_users?)",
    ),
}


@pytest.mark.parametrize("what", SLIPS)
def test_invalid_input_fails_and_is_reported(fresh: Fresh, tmp_path: Path, what: str) -> None:
    sandbox = fresh("real")
    variables, words = SLIPS[what]
    assert words in _run(sandbox, tmp_path, "enforce", variables, code=2).output
    for service in ("repo", "ci", "analysis"):
        assert sandbox.requests(service) == []


def test_failed_role_does_not_hide_the_others(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    wrong = {**CONFIG, "analysis_config_max_deletions": 0}
    more = {"repo_housekeeping_retention": [{"build_name": "nightly", "count": 3}]}
    run = _run(sandbox, tmp_path, "drift", {**wrong, **more}, code=2)
    assert (*BUILD, "build nightly/101: not wanted, too old or too many") in _found(run)
    assert "The role analysis_config failed:" in run.output


def test_builds_of_projects_are_separate(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    retention = [
        {"build_name": "nightly", "count": 3},
        {"build_name": "nightly", "count": 3, "project": "proj", "missing_ok": True},
    ]
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "module_defaults": {
            "group/delivery.toolchain.repo": connections.connection(
                "repo", sandbox.urls["repo"], dialect="jfrog"
            )
        },
        "roles": [{"role": "delivery.toolchain.repo_housekeeping"}],
        "vars": {"repo_housekeeping_retention": retention},
    }
    run = playbook.run(tmp_path, [play])
    assert run.code == 0, run.output
    facts = run.event("delivery.toolchain.repo_housekeeping : Record results").result
    assert facts["ansible_facts"]["repo_housekeeping_discarded"] == {
        "nightly": ["101"],
        "proj:nightly": [],
    }
