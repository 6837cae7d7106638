# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that the files of a role agree: README, argument specs, defaults, module options."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.yaml import yaml_load

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import (
    enforcement,
    kinds,
    role_variables,
)
from tests.unit import test_slips
from tools import role_options
from tools.tree import ROOT

ROLES = sorted(path.parent.parent for path in ROOT.glob("roles/*/meta/argument_specs.yml"))
FREE_FORM = {"accounts", "arguments", "parameters", "permissions", "properties", "settings"}
#: Mappings from names to actions, in the resources of a permission.
ACTIONS_BY_NAME = {"users", "groups"}
#: Role option to the module whose options its entries contain, or to `module.option` for
#: sub-options.
MODULE_OF_LIST = {
    "analysis_config_defect_types": "analysis_config.defect_types",
    "analysis_config_groups": "analysis_config.groups",
    "analysis_config_modules": "analysis_config.modules",
    "analysis_config_projects": "analysis_config.projects",
    "analysis_config_role_assignments": "analysis_config.role_assignments",
    "analysis_config_roles": "analysis_config.roles",
    "analysis_config_users": "analysis_config.users",
    "analysis_config_views": "analysis_config.views",
    "ci_build_jobs": "ci_job_build",
    "login_rotation_credentials": "ci_credential",
    "release_promote_builds": "build_promote",
    "release_promote_images": "docker_promote",
    "repo_housekeeping_retention": "build_retention",
    "repo_housekeeping_rules": "artifact_cleanup.rules",
    "repo_housekeeping_trash": "artifact_trash",
}
DESIRED_STATE = ROOT / "roles" / "desired_state"
KINDS = [kind for kind in kinds.KINDS if kind.role == kinds.ROLE]
MODULE_OF_LIST |= {
    kind.variable: kind.module + (".entries" if kind.at_once else "") for kind in KINDS
}
#: Role to the module from which it takes every option.
MODULE_OF_ROLE = {"release_version": "tracker_version", "wiki_docs": "wiki_tree"}


def load(file: Path) -> Any:
    return yaml_load(file.read_text(encoding="utf-8"))


def flat(tasks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the tasks, and the tasks in blocks."""
    for task in tasks:
        blocks = [*task.get("block", ()), *task.get("rescue", ()), *task.get("always", ())]
        yield from flat(blocks) if blocks else [task]


def options_of(role: Path) -> dict[str, Any]:
    options: dict[str, Any] = load(role / "meta/argument_specs.yml")["argument_specs"]["main"][
        "options"
    ]
    return options


def test_every_role_has_argument_specs() -> None:
    folders = {path for path in (ROOT / "roles").iterdir() if path.is_dir()}
    assert folders == set(ROLES)
    assert len(ROLES) >= 4


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_role_rejects_misspelt_variables_first(role: Path) -> None:
    task = next(flat(load(role / "tasks" / "main.yml")))
    if "ansible.builtin.import_tasks" in task:
        task = load(role / "tasks" / task["ansible.builtin.import_tasks"])[0]
    first = task["delivery.toolchain.bookkeeping"]
    assert (first["step"], first["of"]) == ("check", role.name)
    assert set(first.get("work", ())) <= set(options_of(role))
    known = list(options_of(role))
    assert role_variables.unknown(role.name, known) == []
    for name in known:
        (reported,) = role_variables.unknown(role.name, [f"{name}x"])
        assert reported.startswith(f"{name}x (did you mean ")
    for name in role_variables.set_by(role.name):
        (reported,) = role_variables.unknown(role.name, [f"{name}x"])
        assert f"did you mean {name}?" not in reported, "nobody sets what the role sets itself"


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_defaults_equal_those_of_the_specs(role: Path) -> None:
    specified = {
        name: option["default"] for name, option in options_of(role).items() if "default" in option
    }
    assert load(role / "defaults/main.yml") == specified


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_every_option_has_a_type_and_every_dict_suboptions(role: Path) -> None:
    def check(options: dict[str, Any], prefix: str) -> None:
        for name, option in options.items():
            assert option.get("type"), f"{prefix}{name} has no type"
            assert option.get("description"), f"{prefix}{name} has no description"
            is_dict = option["type"] == "dict" or option.get("elements") == "dict"
            if option["type"] == "dict" and name in ACTIONS_BY_NAME:
                continue
            if is_dict and name.removeprefix(f"{role.name}_") not in FREE_FORM:
                assert option.get("options"), f"{prefix}{name} has no sub-options"
            check(option.get("options", {}), f"{prefix}{name}.")

    check(options_of(role), "")


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_entries_of_lists_are_module_options(role: Path) -> None:
    for name, option in options_of(role).items():
        if name not in MODULE_OF_LIST:
            continue
        module_name, _dot, parent = MODULE_OF_LIST[name].partition(".")
        known = test_slips.options_of(module_name)
        known = known[parent]["options"] if parent else known
        for entry, suboption in option["options"].items():
            expected = known[entry]
            wanted = expected.get("type", "str")  # a module that takes names or lists of them: raw
            assert suboption["type"] in {wanted, "str" if wanted == "raw" else wanted}, entry
            choices = set(suboption.get("choices", ()))
            assert choices <= set(expected.get("choices", ())), entry
            assert bool(choices) is bool(expected.get("choices")), entry


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.list)
def test_entries_have_every_option_of_their_module(kind: kinds.Kind) -> None:
    module, _dot, parent = MODULE_OF_LIST[kind.variable].partition(".")
    known = test_slips.options_of(module)
    known = known[parent]["options"] if parent else known
    taken = set(options_of(DESIRED_STATE)[kind.variable]["options"])
    assert known.keys() - taken == role_options.LEFT_OUT.get(kind.list, set())


@pytest.mark.parametrize(("name", "module"), MODULE_OF_ROLE.items())
def test_role_accepts_every_option_of_its_module(name: str, module: str) -> None:
    role = ROOT / "roles" / name
    taken = {option.removeprefix(f"{name}_"): said for option, said in options_of(role).items()}
    known = test_slips.options_of(module)
    known = known["entries"]["options"] if "entries" in known else known
    assert set(taken) == set(known)
    for option, said in taken.items():
        for word in ("type", "choices", "required"):
            assert said.get(word) == known[option].get(word), f"{option}: {word}"
    (handed_on,) = (
        task[f"delivery.toolchain.{module}"]
        for task in load(role / "tasks/main.yml")
        if f"delivery.toolchain.{module}" in task
    )
    assert set(handed_on) == set(known)


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_variables_have_the_type_of_their_module_option(role: Path) -> None:
    variables = {f"{{{{ {name} }}}}": said["type"] for name, said in options_of(role).items()}
    for task in flat([task for file in role.glob("tasks/*.yml") for task in load(file)]):
        for action in task.keys() - {"delivery.toolchain.bookkeeping"}:
            if not action.startswith("delivery.toolchain."):
                continue
            known = test_slips.options_of(action.rpartition(".")[2])
            for name, value in task[action].items():
                if isinstance(value, str) and value in variables:
                    assert variables[value] == known[name].get("type", "str"), value


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_tasks_use_only_modules_of_the_collection_and_facts(role: Path) -> None:
    for task in flat([task for file in role.glob("tasks/*.yml") for task in load(file)]):
        actions = [key for key in task if "." in key]
        assert actions, task
        for action in actions:
            allowed = (
                "delivery.toolchain.",
                "ansible.builtin.set_fact",
                "ansible.builtin.import_tasks",
                "ansible.builtin.include_tasks",
                "ansible.builtin.meta",
                *(
                    f"ansible.builtin.{each}"
                    for each in ("assert", "debug", "fail", "file", "tempfile")
                ),
            )
            assert action.startswith(allowed), action


def test_every_list_of_desired_state_is_a_kind() -> None:
    lists = {name for name, option in options_of(DESIRED_STATE).items() if option["type"] == "list"}
    assert {kind.variable for kind in KINDS} == lists
    others = role_variables.set_by("desired_state") | {"desired_state_environment"}
    assert not enforcement.roles(dict.fromkeys(others), lambda value: value)
    for kind in KINDS:
        assert enforcement.roles({kind.variable: []}, lambda value: value) == ["desired_state"]


def test_every_role_is_in_every_step_of_the_scenario_of_all() -> None:
    scenarios = ROOT / "extensions" / "molecule"
    for step in ("prepare", "converge", "verify"):
        plays = yaml_load((scenarios / "default" / f"{step}.yml").read_text("utf-8"))
        imported = [each.get("ansible.builtin.import_playbook") for each in plays]
        files = [f"../{path.parent.name}/{step}.yml" for path in scenarios.glob(f"*/{step}.yml")]
        expected = [file for file in files if not file.startswith("../default/")]
        assert sorted(filter(None, imported)) == sorted(expected)
    roles = {path.name for path in (ROOT / "roles").iterdir()}
    assert roles == {path.parent.name for path in scenarios.glob("*/converge.yml")} - {"default"}
