# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the selection of tests by `make quick` for a change."""

from __future__ import annotations

from tools import quick


def test_module_selects_its_unit_contract_and_integration_tests() -> None:
    files, modules = quick.tests({"plugins/module_utils/tracker/projects/tracker_version.py"})
    assert "tracker_version" in modules
    assert "tests/integration/tracker/test_tracker_version.py" in files
    assert not any("/wiki/" in file or "/release/" in file for file in files)


def test_helper_selects_modules_that_import_it_indirectly() -> None:
    files, modules = quick.tests({"plugins/module_utils/wiki/client.py"})
    assert {"wiki_page", "wiki_tree"} <= set(modules)
    assert "tests/unit/wiki/test_wiki_page.py" in files


def test_core_selects_unit_tests_only() -> None:
    files, modules = quick.tests({"plugins/module_utils/core/errors.py"})
    assert modules == []
    assert files
    assert all(file.startswith("tests/unit/") for file in files)


def test_sandbox_selects_tests_of_its_service() -> None:
    files, _modules = quick.tests({"sandbox/tracker/search/jql.py"})
    assert "tests/integration/sandbox/test_sandbox_tracker.py" in files
    assert "tests/integration/sandbox/test_sandbox_wiki.py" not in files


def test_changed_test_is_selected_and_deleted_file_is_not() -> None:
    files, modules = quick.tests({"tests/unit/test_quick.py", "tests/unit/test_gone.py"})
    assert "tests/unit/test_quick.py" in files
    assert "tests/unit/test_gone.py" not in files
    assert modules == []


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
