# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that playbooks and roles reject variables before their first request: those that their tasks
set themselves, and values that a later role would reject.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import playbook

NOWHERE = {"ci": {"url": "http://127.0.0.1:10", "username": "x", "password": "x"}}
JOBS = [{"job": "a", "config": "<project/>"}]
ENFORCE = {"enforce_connections": NOWHERE, "desired_state_jobs": JOBS}


def role_of(name: str) -> dict[str, Any]:
    """Return a play that calls a role twice."""
    call = {"ansible.builtin.include_role": {"name": f"delivery.toolchain.{name}"}}
    return {"hosts": "localhost", "gather_facts": False, "tasks": [{**call, "loop": [1, 2]}]}


def play_of(name: str, **variables: Any) -> dict[str, Any]:
    return {"import_playbook": f"delivery.toolchain.{name}", "vars": variables}


#: The play, extra variables, variables of the inventory, and the message.
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]] = {
    "extra variable": (
        *(play_of("enforce", **ENFORCE), {"enforce_step": 1}, {}),
        "The playbook enforce, which drift also runs, sets enforce_step itself: remove it",
    ),
    "inventory": (
        *(play_of("drift", **ENFORCE), {}, {"drift_reported": {}}),
        "sets drift_reported itself",
    ),
    "import": (
        *(play_of("export", export_folder="x", export_place="/tmp/x"), {}, {}),
        "The playbook export sets export_place itself",
    ),
    "seal": (
        *(play_of("drift", **ENFORCE), {"toolchain_sealed": {"sealed": {"salt": "x"}}}, {}),
        "sets toolchain_sealed itself",
    ),
    "name without a prefix": (
        *(play_of("release", release_version_name="1"), {"checked": 1}, {}),
        "The playbook release sets checked itself",
    ),
    "number of deletions": (
        *(play_of("enforce", **ENFORCE), {"desired_state_max_deletions": "many"}, {}),
        "desired_state_max_deletions must be a whole number, such as 10, not 'many'",
    ),
    "value of a later role": (
        *(play_of("release", release_jql="x"), {"release_allow_empty": "maybe"}, {}),
        "release_allow_empty must be true or false, not 'maybe'",
    ),
    "page of drift": (
        *(play_of("drift", **ENFORCE, drift_page={"titel": "x"}), {}, {}),
        "drift_page has no titel",
    ),
    "role": (
        *(role_of("ci_build"), {"ci_build_results": [], "ci_build_jobs": [{"job": "a"}]}, {}),
        "The role ci_build sets ci_build_results itself",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_variable_is_rejected_before_any_request(case: str, tmp_path: Path) -> None:
    play, extra, inventory, message = CASES[case]
    hosts = {"localhost": {"ansible_connection": "local", **inventory}}
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts}}), "utf-8")
    arguments = ["-i", "hosts.json", *(["-e", json.dumps(extra)] if extra else [])]
    run = playbook.run(tmp_path, [play], arguments=arguments)
    assert run.code == 2, run.output
    assert message in run.output
    assert "127.0.0.1" not in run.output


def test_role_runs_twice_in_a_play(tmp_path: Path) -> None:
    """Verify that results of the first call are no variables of the user."""
    run = playbook.run(tmp_path, [role_of("desired_state")])
    assert run.code == 0, run.output
