# SPDX-License-Identifier: GPL-3.0-or-later
"""Test how the reports of a run change the times of tests."""

from __future__ import annotations

from pathlib import Path

from tools import times
from tools.times import Measure, Times

_FILE = "tests/unit/test_times.py"
_PLAYBOOK = "playbooks/drift.yml"
_FUNCTIONS = times.functions(_FILE)
_REPORT = f"""<testsuites><testsuite>
<testcase classname="tests.unit.test_times" name="{_FUNCTIONS[0]}[one-two]" time="9">
<properties><property name="processor" value="2.5"/>
<property name="played" value="playbooks/drift.yml roles/ci_build/tasks/main.yml"/></properties>
</testcase>
<testcase classname="tests.unit.test_times" name="{_FUNCTIONS[1]}" time="9"><failure/></testcase>
</testsuite></testsuites>"""


def _run(*seconds: float, played: frozenset[str] = frozenset({_PLAYBOOK})) -> list[Measure]:
    return [
        Measure(_FILE, function, "", cost, played)
        for function, cost in zip(_FUNCTIONS, seconds, strict=False)
    ]


def test_reports_have_times_and_played_files_of_passed_tests(tmp_path: Path) -> None:
    (tmp_path / "unit.xml").write_text(_REPORT, encoding="utf-8")
    played = frozenset({_PLAYBOOK, "roles/ci_build/tasks/main.yml"})
    assert list(times.measures(tmp_path)) == [
        Measure(_FILE, _FUNCTIONS[0], "one-two", 2.5, played),
    ]


def test_only_significant_changes_are_written() -> None:
    everything = [4.0] * len(_FUNCTIONS)
    first = times.merged(Times(), _run(*everything))
    assert first.seconds[_FILE] == 4 * len(_FUNCTIONS)
    assert times.merged(first, _run(*(4.8 for _ in _FUNCTIONS))) == first
    changed = times.merged(first, _run(*(8.0 for _ in _FUNCTIONS)))
    assert changed.seconds[_FILE] == 8 * len(_FUNCTIONS)


def test_part_of_a_file_keeps_its_seconds_and_the_rest_is_dropped() -> None:
    old = Times({_FILE: 30.0, "tests/unit/test_gone.py": 1.0}, {_PLAYBOOK: [f"{_FILE}::test_gone"]})
    new = times.merged(old, _run(2.0))
    assert new.seconds == {_FILE: 30.0, f"{_FILE}::{_FUNCTIONS[0]}": 2.0}
    assert new.played == {_PLAYBOOK: [f"{_FILE}::{_FUNCTIONS[0]}"]}


def test_cheapest_tests_of_a_played_file_stay() -> None:
    first = times.merged(Times(), _run(9, 2, 3, 4))
    assert first.played[_PLAYBOOK] == sorted(f"{_FILE}::{name}" for name in _FUNCTIONS[1:4])
    assert times.merged(first, _run(*[5.0] * 4)).played == first.played
    assert times.merged(first, _run(*[5.0] * 4, played=frozenset())).played == {}


def test_contract_case_is_the_sum_of_its_tests() -> None:
    run = [Measure("tests/contract/test_contract.py", "test_x", "ci_job-real", 1.5)] * 2
    assert times.merged(Times(), run).seconds["tests/contract/cases/ci_job.yml"] == 3


def test_unknown_test_costs_the_average_of_its_file_or_folder() -> None:
    known = Times({_FILE: 12.0, "tests/unit/test_other.py": 2.0})
    assert known.of("tests/unit/test_new.py") == 7
    assert known.of(f"{_FILE}::{_FUNCTIONS[0]}") == 12 / len(_FUNCTIONS)
    assert known.of("tests/faults/test_new.py") == 7
    assert Times().of("tests/faults/test_new.py") == 1
