# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the selection of tests by `make quick` for a change."""

from __future__ import annotations

from tools import quick


def test_module_selects_its_unit_contract_and_integration_tests() -> None:
    files, cases = quick.tests({"plugins/module_utils/_lib/tracker/projects/tracker_version.py"})
    assert "tracker_version" in cases
    assert "tests/integration/tracker/test_tracker_version.py" in files
    assert not any("/wiki/" in file or "/release/" in file for file in files)


def test_helper_selects_modules_that_import_it_indirectly() -> None:
    files, cases = quick.tests({"plugins/module_utils/_lib/wiki/client.py"})
    assert {"wiki_page", "wiki_tree"} <= set(cases)
    assert "tests/unit/wiki/test_wiki_page.py" in files


def test_core_selects_its_unit_tests_and_a_sample_of_the_contract() -> None:
    files, cases = quick.tests({"plugins/module_utils/_lib/core/module/input_check.py"})
    assert cases == ["tracker_version"]
    assert {"tests/unit/core/test_runner.py", "tests/unit/test_slips.py"} <= set(files)
    assert all(file.startswith(("tests/unit/core/", "tests/unit/test_")) for file in files)
    assert "tests/unit/test_new_module.py" not in files


def test_case_of_another_module_with_the_same_beginning_is_not_selected() -> None:
    _files, cases = quick.tests({"plugins/modules/ci_job.py"})
    assert cases == ["ci_job", "ci_job_copy"]


def test_sandbox_selects_tests_of_its_service() -> None:
    files, _modules = quick.tests({"sandbox/tracker/search/jql.py"})
    assert "tests/integration/sandbox/test_sandbox_tracker.py" in files
    assert "tests/integration/sandbox/test_sandbox_wiki.py" not in files


def test_changed_test_is_selected_and_deleted_file_is_not() -> None:
    files, cases = quick.tests({"tests/unit/test_quick.py", "tests/unit/test_gone.py"})
    assert "tests/unit/test_quick.py" in files
    assert "tests/unit/test_gone.py" not in files
    assert cases == []


def test_changed_case_is_selected() -> None:
    paths = {"tests/contract/cases/wiki_tree_cloud.yml", "tests/contract/cases/gone.yml"}
    assert quick.tests(paths)[1] == ["wiki_tree_cloud"]


def test_role_selects_its_scenario_and_the_tests_named_after_it() -> None:
    paths = {"roles/ci_baseline/tasks/main.yml"}
    assert quick.roles(paths) == ["ci_baseline"]
    files, _modules = quick.tests(paths)
    assert {"tests/integration/ci/test_ci_baseline_role.py", "tests/unit/test_roles.py"} <= set(
        files
    )


def test_duration_is_estimated_from_the_selection() -> None:
    assert quick.estimate([], [], []) == 30
    files = ["tests/unit/test_tools.py", *["tests/integration/ci/test_ci_jobs.py"] * 10]
    assert quick.estimate(files, ["ci_job"] * 5, ["molecule-release_promote"]) == 100
