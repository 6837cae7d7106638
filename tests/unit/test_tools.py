# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner of the checks: what it counts, and that it leaves nothing running."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tools import check, tree

REPORT = '<testsuites><testsuite tests="{}" failures="{}" errors="{}" skipped="{}"/></testsuites>'


@pytest.fixture
def runner(tmp_path: Path) -> check.Runner:
    (tmp_path / "collections").mkdir()
    return check.Runner(tmp_path)


def job(program: str, *arguments: str) -> check.Job:
    return check.Job("job", (sys.executable, "-c", program, *arguments), folder=Path())


def test_a_job_that_ends_well_counts_as_one_passed(runner: check.Runner) -> None:
    outcome = runner.run(job("print('said')"))
    assert (outcome.passed, outcome.failed, outcome.output) == (1, 0, "said\n")


def test_a_job_that_ends_badly_counts_as_one_failed_and_keeps_its_words(
    runner: check.Runner,
) -> None:
    outcome = runner.run(job("raise SystemExit('went wrong')"))
    assert (outcome.passed, outcome.failed, outcome.output) == (0, 1, "went wrong\n")


def test_a_program_that_is_missing_is_a_failure(runner: check.Runner) -> None:
    outcome = runner.run(check.Job("job", ("no-such-program",), folder=Path()))
    assert (outcome.passed, outcome.failed) == (0, 1)
    assert "no-such-program" in outcome.output


@pytest.mark.parametrize(
    ("counts", "status", "expected"),
    [
        ((7, 0, 0, 0), 0, (7, 0)),
        ((7, 2, 1, 0), 1, (4, 3)),
        ((7, 0, 0, 2), 0, (5, 0)),
        # no test found, or pytest itself went wrong
        ((0, 0, 0, 0), 5, (0, 1)),
    ],
)
def test_tests_count_one_by_one(
    runner: check.Runner,
    counts: tuple[int, int, int, int],
    status: int,
    expected: tuple[int, int],
) -> None:
    write = "import sys; open(sys.argv[1], 'w').write(sys.argv[2]); sys.exit(int(sys.argv[3]))"
    outcome = runner.run(job(write, "{report}", REPORT.format(*counts), str(status)))
    assert (outcome.passed, outcome.failed) == expected


def test_a_job_sees_no_setting_of_its_caller(
    runner: check.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLCHAIN_REPO_TOKEN", "a-token")
    monkeypatch.setenv("ANSIBLE_STRATEGY", "debug")
    program = "import os, sys; print([name for name in sys.argv if name in os.environ])"
    outcome = runner.run(job(program, "TOOLCHAIN_REPO_TOKEN", "ANSIBLE_STRATEGY"))
    assert outcome.output == "[]\n"


def test_stop_ends_a_job_and_starts_no_other(runner: check.Runner) -> None:
    outcomes: list[check.Outcome] = []
    waiting = job("import threading; threading.Event().wait(600)")
    thread = threading.Thread(target=lambda: outcomes.append(runner.run(waiting)))
    thread.start()
    for _attempt in range(3000):
        if runner.running:
            break
        time.sleep(0.01)
    runner.stop()
    thread.join(30)
    assert [outcome.failed for outcome in outcomes] == [1]
    assert runner.run(job("print('started')")).output == ""


def test_an_unknown_job_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["check", "unit", "units"])
    with pytest.raises(SystemExit, match="No such job: units"):
        check.main()


def test_a_linked_tree_shows_the_checkout(tmp_path: Path) -> None:
    link = tree.link_tree(tmp_path / "tree")
    assert link.resolve() == tree.ROOT
    assert (link / "galaxy.yml").is_file()


def test_a_benchmark_starts_in_a_checkout_that_no_variable_points_to() -> None:
    unset = ("ANSIBLE_COLLECTIONS_PATH", "PYTHONPATH")
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", "--smallest", "analysis_search"],
        cwd=tree.ROOT,
        env={name: value for name, value in os.environ.items() if name not in unset},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "1,000 issues" in done.stdout
