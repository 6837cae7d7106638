# SPDX-License-Identifier: GPL-3.0-or-later
"""Test which tests `make quick` selects for a change."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import near, quick, times, tree

_CASES = times.CASE_FOLDER


def _selected(*paths: str) -> list[str]:
    return quick.tests(paths)[0]


def _names(tests: list[str]) -> set[str]:
    return {Path(test.split("::")[0]).stem for test in tests}


def test_every_file_selects_what_runs_it_within_the_budget() -> None:
    assert len(near.files()) > 1000
    wrong = []
    for path in near.files():
        chosen = set(_selected(path))
        if sum(map(times.cost, chosen)) > quick.BUDGET + 0.01:
            wrong.append(f"{path}: too expensive")
        wrong += [f"{path}: {lacks}" for lacks in _lacking(path, chosen)]
    assert wrong == []


def _lacking(path: str, chosen: set[str]) -> list[str]:
    """Return what a selection lacks."""
    lacking = []
    played = set(filter(times.exists, times.load().played.get(path, ())))
    if played and not played & chosen:
        lacking.append("no test that plays it")
    on_sandbox = [test for test in chosen if test.startswith(("tests/integration/", "molecule-"))]
    if re.match(r"(playbooks|examples/playbooks)/.*\.yml|roles/\w+/\w+/", path) and not on_sandbox:
        lacking.append("no test on the sandbox")
    if re.match(r"plugins/(plugin_utils|callback|lookup|filter)/.*\.py", path):
        nearby = {test for _distance, test in near.tests(path)}
        lacking += [] if nearby & chosen else ["no test that imports or names it"]
    if re.match(r"sandbox/\w+/.*\.py", path) and Path(path).name != "__init__.py":
        folders = {str(Path(test).parent) for test in chosen}
        wanted = {_CASES[:-1], "tests/integration/sandbox"}
        lacking += [f"no test in {folder}" for folder in wanted - folders]
    # a single test that costs more than the budget is left to `make test-all`
    parts = [f"{path}::{name}" for name in times.functions(path)] or [path]
    if near.is_test(path) and min(map(times.cost, parts)) <= quick.BUDGET:
        files = {test.partition("::")[0] for test in chosen}
        lacking += [] if path in files or path == times.CONTRACT else ["not itself"]
    return lacking


def test_module_selects_its_unit_contract_and_integration_tests() -> None:
    operation = "plugins/module_utils/_lib/tracker/projects/tracker_version.py"
    chosen, left = quick.tests({operation})
    assert f"{_CASES}tracker_version.yml" in chosen
    assert "test_tracker_version" in _names(chosen + left)
    assert not any("/wiki/" in test or "/release/" in test for test in chosen)
    # a case of another module whose name begins in the same way
    assert f"{_CASES}ci_job_build.yml" not in _selected("plugins/modules/ci_job.py")


def test_helper_selects_modules_that_import_it_indirectly() -> None:
    chosen, left = quick.tests({"plugins/module_utils/_lib/wiki/client.py"})
    cases = [test for test in chosen if test.startswith(_CASES)]
    assert cases
    assert {f"{_CASES}wiki_page.yml", f"{_CASES}wiki_tree.yml"} <= {*chosen, *left}


def test_core_selects_its_unit_tests_and_a_case_and_names_the_rest() -> None:
    chosen, left = quick.tests({"plugins/module_utils/_lib/core/http/transport.py"})
    assert any(test.startswith(_CASES) for test in chosen)
    assert "tests/unit/core/test_transport.py" in chosen
    assert len(left) > 100
    assert not {*chosen} & {*left}


def test_plugin_utils_select_the_tests_of_their_step_and_not_those_of_all_steps() -> None:
    names = _names(_selected("plugins/plugin_utils/_lib/adoption.py"))
    assert "test_adoption" in names
    assert not names & {"test_known_builds", "test_rotation", "test_new_module"}
    plays = times.load().played.get("playbooks/adopt.yml", [])
    assert not plays or names & _names(plays)


def test_file_without_a_play_selects_plays_of_its_role(monkeypatch: pytest.MonkeyPatch) -> None:
    play = f"{Path(__file__).relative_to(tree.ROOT)}::test_gone_files_select_nothing"
    known = times.Times({"roles/ci_build/tasks/main.yml": [play]}, {play: 3.0})
    monkeypatch.setattr(times, "load", lambda: known)
    assert (0, play) in near.tests("roles/ci_build/defaults/main.yml")
    assert (1, "molecule-ci_build") in near.tests("roles/ci_build/tasks/main.yml")
    assert (0, "molecule-ci_baseline") in near.tests("roles/ci_baseline/tasks/main.yml")


def test_sandbox_selects_tests_of_its_service() -> None:
    names = _names(_selected("sandbox/tracker/search/jql.py"))
    assert {"test_sandbox_tracker", "jql_search"} <= names
    assert "test_sandbox_wiki" not in names


def test_other_files_select_the_tests_that_name_them() -> None:
    assert "test_times" in _names(_selected("tools/times.json", "tools/times.py"))
    assert "tests/unit/test_documents.py" in _selected("docs/drift.md")
    assert _selected(f"{_CASES}wiki_tree_cloud.yml")[0] == f"{_CASES}wiki_tree_cloud.yml"


def test_gone_files_select_nothing() -> None:
    assert "tests/unit/test_gone.py" not in _selected("tests/unit/test_gone.py")
    assert f"{_CASES}gone.yml" not in _selected(f"{_CASES}gone.yml")
    assert quick.tests(()) == ([], [])


def test_commands_check_what_changed() -> None:
    assert quick.commands({"docs/drift.md"}, []) == []
    lines = list(map(" ".join, quick.commands({"tools/setup", "galaxy.yml"}, [])))
    assert lines == ["yamllint --strict galaxy.yml", "python -m tools.check shellcheck"]
    assert "python -m tools.check validate-modules" in map(
        " ".join, quick.commands({"plugins/modules/ci_job.py"}, [])
    )
    chosen = [f"{_CASES}ci_job.yml", "tests/unit/test_quick.py", "molecule-ci_build"]
    *_, contract, unit, molecule = quick.commands(set(), chosen)
    assert contract[-3:] == ["tests/contract", "-k", "[ci_job] or [ci_job-"]
    assert unit[-1] == "tests/unit/test_quick.py"
    assert molecule[-1] == "molecule-ci_build"
