# SPDX-License-Identifier: GPL-3.0-or-later
"""Test how the reports of a run change the times of tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import times
from tools.times import Times

_FILE = "tests/unit/test_times.py"
_PLAYBOOK = "playbooks/drift.yml"
_FUNCTIONS = times.functions(_FILE)


def _report(folder: Path, *cases: str) -> Path:
    text = f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>"
    (folder / "unit.xml").write_text(text, encoding="utf-8")
    return folder


def _case(name: str, seconds: float, *, file: str = _FILE, inner: str = "") -> str:
    return (
        f'<testcase classname="{file.removesuffix(".py").replace("/", ".")}" name="{name}" time="9">'
        f'<properties><property name="processor" value="{seconds}"/>'
        f'<property name="played" value="{_PLAYBOOK} gone.yml"/></properties>{inner}</testcase>'
    )


def test_file_is_the_sum_of_its_tests_and_the_cheapest_that_play_stay(tmp_path: Path) -> None:
    cases = [_case(f"{name}[one-two]", 9 - place) for place, name in enumerate(_FUNCTIONS)]
    new = times.merged(Times({}, {}), _report(tmp_path, *cases))
    assert new.seconds[_FILE] == float(f"{sum(9 - place for place, _ in enumerate(cases)):.2g}")
    assert new.played == {_PLAYBOOK: [f"{_FILE}::{name}" for name in reversed(_FUNCTIONS[-3:])]}


def test_part_of_a_file_keeps_its_seconds_and_the_rest_is_dropped(tmp_path: Path) -> None:
    first, second, *_ = _FUNCTIONS
    old = Times({_PLAYBOOK: [f"{_FILE}::test_gone"]}, {_FILE: 30.0, "tests/unit/test_gone.py": 1.0})
    cases = _case(first, 2), _case(second, 1, inner="<failure/>")
    new = times.merged(old, _report(tmp_path, *cases))
    assert new.seconds == {_FILE: 30.0, f"{_FILE}::{first}": 2.0}
    assert new.played == {_PLAYBOOK: [f"{_FILE}::{first}"]}


def test_contract_case_is_the_sum_of_its_tests(tmp_path: Path) -> None:
    cases = [
        _case(f"test_x[{name}]", 1.5, file=times.CONTRACT) for name in ("ci_job-real", "ci_job")
    ]
    new = times.merged(Times({}, {}), _report(tmp_path, *cases))
    assert new.seconds[f"{times.CASE_FOLDER}ci_job.yml"] == 3


def test_unknown_test_costs_an_average(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Times({}, {f"{_FILE}::{_FUNCTIONS[0]}": 4.0, "tests/unit/test_quick.py": 12.0})
    monkeypatch.setattr(times, "load", lambda: known)
    times.cost.cache_clear()
    assert times.cost(_FILE) == 4 * len(_FUNCTIONS)
    assert times.cost("tests/unit/test_quick.py::test_new") < 12
    assert times.cost("tests/faults/test_new.py") == times.cost("tests/unit/test_new.py")
    times.cost.cache_clear()
