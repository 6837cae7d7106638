# SPDX-License-Identifier: GPL-3.0-or-later
"""How a run is dealt out to slices, and what each of them is sent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.delivery.toolchain.plugins.plugin_utils.slices.units import (
    Description,
    Unit,
    deal,
    is_sent,
)

ROOT = Path(__file__).resolve().parents[3]
ROLES = ["analysis_config", "ci_baseline", "desired_state", "repo_housekeeping"]
VARIABLES: dict[str, Any] = {
    "analysis_config_users": [{"name": "eve"}],
    "analysis_config_modules": [{"project": "a", "name": "x"}, {"project": "b", "name": "y"}],
    "analysis_config_parallel": 2,
    "ci_baseline_plugins": [{"name": "git"}],
    "desired_state_jobs": [{"job": "one"}],
    "desired_state_versions": [{"project": "A", "name": "1"}, {"project": "B", "name": "2"}],
    "desired_state_pages": [{"page_id": "7", "body": "x"}, {"space": "S", "title": "T"}],
    "desired_state_trees": [{"space": "S", "src": "tree"}],
    "repo_housekeeping_rules": [{"repo": "libs"}],
    "enforce_connections": {"ci": {"url": "c"}, "wiki": {"url": "w"}, "repo": {"url": "r"}},
    "toolchain_ci_token": "t",
    "toolchain_tracker_token": "t",
    "toolchain_in_process": False,
}
WHOLE = Description(ROLES, VARIABLES)


def short(units: Sequence[Unit]) -> list[str]:
    return [f"{unit.service}:{unit.project}" for unit in units]


def test_a_host_has_a_part_for_each_service_and_project() -> None:
    parts = ["analysis:", "analysis:a", "analysis:b", "ci:", "repo:"]
    parts += ["tracker:A", "tracker:B", "wiki:", "wiki:S"]
    assert short(WHOLE.units("h")) == parts


def test_no_list_of_the_role_is_left_out() -> None:
    specs = yaml.safe_load((ROOT / "roles/desired_state/meta/argument_specs.yml").read_text())
    options = specs["argument_specs"]["main"]["options"]
    lists = [name for name, option in options.items() if option["type"] == "list"]
    assert len(lists) >= 4
    for name in lists:
        part = Description(["desired_state"], {name: [{"name": "x"}]})
        assert part.part(part.units("h")) == part


def test_all_parts_together_are_the_whole() -> None:
    for name in sorted(name for name in VARIABLES if name.startswith("desired_state_")):
        found = [WHOLE.part([unit]).variables.get(name, []) for unit in WHOLE.units("h")]
        assert sorted(str(one) for entries in found for one in entries) == sorted(
            map(str, VARIABLES[name])
        )
    assert WHOLE.part(WHOLE.units("h")) == WHOLE


def test_a_part_has_what_it_needs_and_no_login_of_another_service() -> None:
    tracker = WHOLE.part([Unit("h", "tracker", "B")])
    assert tracker == Description(
        ["desired_state"],
        {
            "desired_state_versions": [{"project": "B", "name": "2"}],
            "enforce_connections": {},
            "toolchain_tracker_token": "t",
            "toolchain_in_process": False,
        },
    )
    ci = WHOLE.part([Unit("h", "ci")])
    assert ci.roles == ["ci_baseline", "desired_state"]
    assert ci.variables["enforce_connections"] == {"ci": {"url": "c"}}
    modules = WHOLE.part([Unit("h", "analysis", "a")])
    assert modules.variables["analysis_config_modules"] == [{"project": "a", "name": "x"}]
    assert "analysis_config_users" not in modules.variables
    assert modules.variables["analysis_config_parallel"] == 2


def test_what_depends_on_one_another_stays_together() -> None:
    made = {**VARIABLES, "analysis_config_projects": [{"name": "old", "new_name": "a"}]}
    units = Description(["analysis_config"], made).units("h")
    assert short(units) == ["analysis:", "analysis:b"]
    # a limit of deletions counts all of them
    purged = Description(["analysis_config"], {**VARIABLES, "analysis_config_purge": ["modules"]})
    assert short(purged.units("h")) == ["analysis:"]
    assert purged.part(purged.units("h")).variables["analysis_config_modules"] == [
        {"project": "a", "name": "x"},
        {"project": "b", "name": "y"},
    ]


def test_an_empty_list_stays_one() -> None:
    empty = Description(["analysis_config"], {"analysis_config_modules": []})
    assert short(empty.units("h")) == ["analysis:"]
    assert empty.part(empty.units("h")) == empty


def test_a_role_that_is_named_is_run_without_variables() -> None:
    assert short(Description(["ci_baseline"], {}).units("h")) == ["ci:"]
    assert Description(["desired_state"], {}).units("h") == []


def test_hosts_stay_whole_where_there_are_enough() -> None:
    units = [
        Unit(host, service, project)
        for host in "abc"
        for service, project in (("ci", ""), ("wiki", "S"), ("wiki", "T"))
    ]
    assert [sorted({unit.host for unit in part}) for part in deal(units, 2)] == [["a", "c"], ["b"]]
    services = deal(units, 4)
    assert len(services) == 4
    assert all(
        part.count(Unit(u.host, "wiki", "S")) == part.count(Unit(u.host, "wiki", "T"))
        for part in services
        for u in part
    )
    projects = deal(units, 100)
    assert [len(part) for part in projects] == [1] * 9
    assert sorted(unit for part in projects for unit in part) == sorted(units)


def test_what_a_role_leaves_behind_is_not_sent_and_a_slip_is() -> None:
    sent = [
        "ci_baseline_plugns",
        "toolchain_in_process",
        "enforce_connections",
        "ci_baseline_plugins",
    ]
    assert [name for name in sent if not is_sent(name)] == []
    kept = [
        "ci_baseline_drift",
        "analysis_config_drift",
        "drift_page",
        "desired_state_folder",
        "other",
    ]
    assert [name for name in kept if is_sent(name)] == []
