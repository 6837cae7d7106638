# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the actions of the playbooks enforce and drift on a host, depending on its variables."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.plugin_utils import enforcement

MODULES: dict[str, Any] = {"analysis_config_modules": []}


def template(value: Any) -> Any:
    """Simulate the templating of Ansible: a string in braces is the name of a variable."""
    known = {"{{ two }}": "ci_baseline, desired_state", "{{ logins }}": {"wiki": {}, "wikki": {}}}
    return known.get(value, value) if isinstance(value, str) else value


def steps(variables: dict[str, Any], playbook: str = "drift", **more: bool) -> list[list[str]]:
    return enforcement.steps(variables, template, playbook, **{"folder": False, **more})


def test_a_role_is_run_where_one_of_its_variables_is_set() -> None:
    given = {"repo_housekeeping_rules": [], "desired_state_jobs": [], **MODULES}
    assert steps(given, "enforce") == [
        ["hold_role.yml", "analysis_config"],
        ["hold_role.yml", "desired_state"],
        ["hold_role.yml", "repo_housekeeping"],
    ]


def test_what_a_playbook_sets_itself_describes_nothing() -> None:
    ((file, why),) = steps({"ci_baseline_in_check_mode": True, "desired_state_drift": []})
    assert file == "hold_refused.yml"
    assert why.startswith("Nothing is described")


@pytest.mark.parametrize(
    "named", [["ci_baseline", "desired_state"], "ci_baseline , desired_state", "{{ two }}"]
)
def test_named_roles_are_run_and_no_others(named: Any) -> None:
    roles = [role for _file, role in steps({"enforce_roles": named, **MODULES}, "enforce")]
    assert roles == ["ci_baseline", "desired_state"]


def test_the_sum_is_told_by_drift_alone() -> None:
    assert steps(MODULES)[-1] == ["sum_up.yml", "sum"]
    role = ["hold_role.yml", "analysis_config"]
    assert steps(MODULES, "enforce") == [role]


def test_a_folder_comes_before_roles() -> None:
    variables = {"desired_state_folder": "desired", **MODULES}
    assert steps(variables, folder=True) == [["hold_folder.yml", ""]]
    assert ["hold_folder.yml", ""] not in steps(variables)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"enforce_rolse": []}, "does not know enforce_rolse (is enforce_roles meant?)"),
        ({"drift_fial": True}, "does not know drift_fial (is drift_fail meant?)"),
        ({"drift_workers": "local"}, "does not know drift_workers"),
        ({"drift_slices": 2}, "does not know drift_slices"),
        ({"enforce_connections": {"wikki": {}}}, "has no service wikki: it takes analysis, ci,"),
        ({"enforce_connections": "{{ logins }}"}, "has no service wikki: it takes analysis, ci,"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_sent(
    given: dict[str, Any], told: str
) -> None:
    ((file, why),) = steps({**given, **MODULES})
    assert file == "hold_refused.yml"
    assert told in why
