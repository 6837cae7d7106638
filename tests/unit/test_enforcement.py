# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the actions of the playbooks enforce and drift on a host, depending on its variables."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import bookkeeping
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.role_variables import Origins

MODULES: dict[str, Any] = {"analysis_config_modules": []}


def template(value: Any) -> Any:
    """Simulate the templating of Ansible: a string in braces is the name of a variable."""
    known = {"{{ two }}": "ci_baseline, desired_state", "{{ logins }}": {"wiki": {}, "wikki": {}}}
    known["{{ blank }}"] = ""
    return known.get(value, value) if isinstance(value, str) else value


def steps(variables: dict[str, Any], **more: bool) -> list[list[str]]:
    run = bookkeeping.Run(variables, template, template)
    found: list[list[str]] = bookkeeping.perform("roles", run, more)["steps"]
    return found


def problem(variables: dict[str, Any]) -> str:
    with pytest.raises(bookkeeping.StepError) as caught:
        steps(variables)
    return str(caught.value)


def test_role_runs_if_one_of_its_variables_is_set() -> None:
    given = {"repo_housekeeping_rules": [], "desired_state_jobs": [], **MODULES}
    roles = ("analysis_config", "desired_state", "repo_housekeeping")
    assert steps(given, folder=True) == [["hold_role.yml", role, "main"] for role in roles]


def test_deletions_are_counted_before_the_roles_of_a_folder() -> None:
    given = {"desired_state_folder": "new", "desired_state_previous": "old", **MODULES}
    assert steps(given) == [
        ["hold_deletions.yml", "number of deletions", ""],
        ["hold_role.yml", "analysis_config", "apply"],
        ["hold_role.yml", "desired_state", "apply"],
    ]
    assert len(steps({**given, "desired_state_previous": ""})) == 2


@pytest.mark.parametrize("folder", [True, False])
def test_values_of_the_folder_of_an_earlier_play_are_rejected(*, folder: bool) -> None:
    earlier = ["repo_housekeeping_trash", "desired_state_jobs"]
    read = {"variables": [] if not folder else earlier, "earlier": [] if folder else earlier}
    given = {"repo_housekeeping_trash": [], "ci_baseline_plugins": [], "desired_state_read": read}

    def chosen(**extra: Any) -> list[list[str]]:
        run = bookkeeping.Run(
            {**given, **extra}, template, template, origins=lambda: Origins(extra, given)
        )
        found: list[list[str]] = bookkeeping.perform("roles", run, {"folder": folder})["steps"]
        return found

    with pytest.raises(
        bookkeeping.StepError, match=r"earlier play .* set repo_housekeeping_trash,"
    ):
        chosen()
    assert [role for _file, role, _tasks in chosen(enforce_roles="ci_baseline")] == ["ci_baseline"]
    assert len(chosen(repo_housekeeping_trash=[])) == 2
    read["variables"] = [] if folder else earlier  # the present folder sets it, too
    assert len(chosen()) == 2


def test_variables_of_the_playbook_do_not_select_a_role() -> None:
    given = {"ci_baseline_in_check_mode": True, "desired_state_drift": []}
    assert problem(given).startswith("There is nothing to enforce")


@pytest.mark.parametrize(
    "named", [["ci_baseline", "desired_state"], "ci_baseline , desired_state", "{{ two }}"]
)
def test_only_named_roles_run(named: Any) -> None:
    roles = [role for _file, role, _entry in steps({"enforce_roles": named, **MODULES})]
    assert roles == ["ci_baseline", "desired_state"]


@pytest.mark.parametrize("named", ["", "{{ blank }}", [], None])
def test_unset_names_select_all_roles(named: Any) -> None:
    """An unanswered question of a survey sets an empty string."""
    assert steps({"enforce_roles": named, **MODULES}) == steps(MODULES)


@pytest.mark.parametrize("purge", [[], ["modules", "views"], "modules, views", None])
def test_choices_of_a_list_are_those_of_its_entries(purge: Any) -> None:
    assert steps({"analysis_config_purge": purge, **MODULES}) == steps(MODULES)


def test_folder_is_applied_before_roles() -> None:
    variables = {"desired_state_folder": "desired", **MODULES}
    assert steps(variables, folder=True) == [["hold_folder.yml", "", ""]]
    assert ["hold_folder.yml", "", ""] not in steps(variables)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"enforce_rolse": []}, "does not know enforce_rolse (did you mean enforce_roles?)"),
        ({"drift_fial": True}, "does not know drift_fial (did you mean drift_fail?)"),
        ({"toolchain_ci_ulr": "x"}, "toolchain_ci_ulr is unknown: did you mean toolchain_ci_url?"),
        ({"drift_workers": "local"}, "does not know drift_workers"),
        ({"drift_slices": 2}, "does not know drift_slices"),
        ({"enforce_roles": "ci_baseline, analysis"}, "enforce_roles has no role analysis: the"),
        ({"enforce_roles": ["desired_state", 5]}, "enforce_roles has no role 5: the roles are"),
        ({"enforce_roles": 1.5}, "enforce_roles has no role 1.5: the roles are analysis_config,"),
        ({"enforce_roles": ["ci_baseline", ""]}, "enforce_roles has no role '': the roles are"),
        ({"enforce_roles": {"ci": 1}}, "enforce_roles has no role {'ci': 1}: the roles are"),
        (
            {"enforce_connections": {"wikki": {}}},
            "has no service wikki: the services are analysis, ci,",
        ),
        (
            {"enforce_connections": "{{ logins }}"},
            "has no service wikki: the services are analysis, ci,",
        ),
        ({"desired_state_unmanaged": "fial"}, "must be one of ignore, report, fail, not 'fial'."),
        ({"analysis_config_purge": ["modules", "view"]}, "views, not ['modules', 'view']."),
        ({"desired_state_unmanaged": "fail"}, "compares the servers with a folder: set desired_s"),
        ({"enforce_connections": "wiki"}, "enforce_connections is not a mapping"),
        ({"enforce_connections": {"wiki": 1.5}}, "connections.wiki is not a mapping"),
        ({"enforce_connections": {"wiki": "https://w"}}, "connections.wiki is not a mapping"),
        ({"enforce_connections": {"wiki": "{{ two }}"}}, "connections.wiki is not a mapping"),
    ],
)
def test_invalid_selection_is_rejected_before_any_request(given: dict[str, Any], told: str) -> None:
    assert told in problem({**given, **MODULES})


#: Values that a role would reject after the roles before it have sent their requests.
WRONG: list[tuple[str, Any, str]] = [
    ("desired_state_max_deletions", "many", "must be a whole number, such as 10, not 'many'"),
    ("desired_state_max_deletions", 1.5, "must be a whole number, such as 10, not '1.5'"),
    ("desired_state_max_deletions", True, "must be a whole number, such as 10, not 'True'"),
    ("analysis_config_max_deletions", "\u0663", "must be a whole number, such as 10, not '\u0663'"),
    ("repo_housekeeping_max_deletions", [3], "must be a whole number, such as 10, not '[3]'"),
    ("ci_baseline_restart", "maybe", "must be true or false, not 'maybe'"),
    ("ci_baseline_check_java", "{{ two }}", "must be true or false, not 'ci_baseline, desired"),
    ("ci_baseline_lock_file", ["x"], "must be a path, not"),
    ("desired_state_unmanaged", "delete", "must be one of ignore, report, fail, not 'delete'"),
    ("desired_state_jobs", "job", "must be a list of mappings, but is a text"),
    (
        "desired_state_users",
        {"user_password": "s3cret-12345"},
        "must be a list of mappings, but is a mapping",
    ),
    ("desired_state_users", [{}, "s3cret-12345"], "must be a list of mappings, but its entry 1"),
    ("desired_state_users", [{}, "{{ two }}"], "must be a list of mappings, but its entry 1"),
    ("desired_state_users", "{{ two }}", "must be a list of mappings, but is a text"),
    ("desired_state_users", "{{ logins }}", "must be a list of mappings, but is a mapping"),
    ("ci_baseline_java_versions", "{{ two }}", "must be a list of whole numbers, but has 'ci_ba"),
    ("ci_baseline_java_versions", [17, "x"], "must be a list of whole numbers, but has 'x'"),
    ("ci_baseline_java_versions", {"a": 1}, "must be a list of whole numbers, but has '{'a': 1}'"),
    ("desired_state_jobs", 5, "must be a list of mappings, but is a single value"),
    # a name with the rest of the message
    ("desired_state_components[0].proj", [{"proj": "s3cret-12345"}], "is unknown (did you mean p"),
    ("desired_state_components[1]", [{"project": "A", "name": "b"}, {"name": "c"}], "lacks proj"),
    (
        "desired_state_components[0].archived",
        [{"project": "A", "name": "b", "archived": "maybe"}],
        "must be true or false, not 'maybe'",
    ),
    (
        "desired_state_components[0].state",
        [{"project": "A", "name": "b", "state": "gone"}],
        "must be one of present, absent, not 'gone'",
    ),
    (
        "desired_state_trees[0].restrictions.read.user",
        [{"src": "x", "space": "A", "restrictions": {"read": {"user": ["s3cret-12345"]}}}],
        "is unknown (did you mean users?)",
    ),
]


@pytest.mark.parametrize(("name", "value", "message"), WRONG)
@pytest.mark.parametrize("folder", [{}, {"desired_state_folder": "desired"}])
def test_wrong_value_is_rejected_before_any_request(
    name: str, value: Any, message: str, folder: dict[str, str]
) -> None:
    with pytest.raises(bookkeeping.StepError) as caught:
        steps({**folder, name.partition("[")[0]: value}, folder=True)
    assert f"{name} {message}" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_values_of_other_spellings_and_templates_are_accepted() -> None:
    given = {
        "desired_state_max_deletions": " 3 ",
        "ci_baseline_restart": "yes",
        "ci_baseline_check_java": "",
        "desired_state_jobs": "{{ jobs }}",
        "desired_state_views": [{"name": "{{ name }}"}, "{{ view }}"],
        "desired_state_nodes": '[{"name": "x"}]',
    }
    assert steps({**given, "desired_state_folder": "x"}, folder=True) == [
        ["hold_folder.yml", "", ""]
    ]
    roles = [role for _file, role, _entry in steps(given)]
    assert roles == ["ci_baseline", "desired_state"]


def test_misspelt_role_and_variable_are_rejected_before_the_folder_is_read() -> None:
    cases: tuple[dict[str, Any], ...] = (
        {"enforce_roles": "ci_basline"},
        {"enforce_conections": {}},
        {"desired_state_verions": []},
        {"ci_baseline_plugin": [], "enforce_roles": ["ci_baseline"]},
    )
    for given in cases:
        with pytest.raises(bookkeeping.StepError):
            steps({**given, "desired_state_folder": "desired"}, folder=True)


@pytest.mark.parametrize(
    ("of", "given", "message"),
    [
        (
            "housekeeping",
            {"repo_housekeeping_max_deletions": "x"},
            "repo_housekeeping_max_deletions",
        ),
        ("release", {"wiki_docs_max_deletions": "x"}, "wiki_docs_max_deletions must be a whole"),
        ("release", {"release_allow_empty": "x"}, "release_allow_empty must be true or false"),
        ("export", {"export_wiki_spaces": "maybe"}, "export_wiki_spaces must be true or false"),
        ("adopt", {"adopt_force": "x"}, "adopt_force must be true or false, not 'x'"),
    ],
)
def test_playbook_checks_the_values_of_its_roles_at_once(
    of: str, given: dict[str, Any], message: str
) -> None:
    values: dict[str, Any] = {"of": of}
    if of in ("export", "adopt"):
        values["switches"] = [*given]

    def evaluated(value: Any) -> Any:
        filled = "{{ release_allow_empty | default(false, true) }}"
        return given.get("release_allow_empty") if value == filled else value

    run = bookkeeping.Run(given, evaluated, template)
    with pytest.raises(bookkeeping.StepError) as caught:
        bookkeeping.perform("check", run, values)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"drift_page": "REL"}, "drift_page must be a mapping"),
        ({"drift_page": {"titel": "x", "space": "S"}}, "drift_page has no titel: its keys are"),
        ({"drift_table": "x"}, "drift_table must be true or false, not 'x'"),
    ],
)
def test_settings_of_drift_are_checked_at_its_beginning(
    given: dict[str, Any], message: str
) -> None:
    run = bookkeeping.Run(given, template, template)
    with pytest.raises(bookkeeping.StepError, match=message):
        bookkeeping.perform("begin", run, {"seals": True})
