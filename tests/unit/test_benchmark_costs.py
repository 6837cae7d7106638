# SPDX-License-Identifier: GPL-3.0-or-later
"""Test how the benchmarks measure costs and judge promises by them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.benchmarks import costs
from tests.benchmarks.costs import Cost
from tests.benchmarks.promises import PROMISES, Promise

_BURN = "import time\nwhile time.process_time() < 0.2: pass"


@pytest.mark.parametrize(
    ("promise", "found", "kept"),
    [
        (Promise(2.0, 3.0), Cost(2.0, 3.0), True),
        (Promise(2.0, 3.0), Cost(2.1, 3.0), False),
        (Promise(2.0, 3.0), Cost(2.0, 3.1), False),
        (Promise(2.0), Cost(2.0, 9.0), True),
        (Promise(None, 3.0), Cost(9.0, 3.0), True),
        (Promise(2.0, 3.0, at_least=True), Cost(2.0, 3.0), True),
        (Promise(2.0, 3.0, at_least=True), Cost(1.9, 3.0), False),
        (Promise(2.0, 3.0, at_least=True), Cost(2.0, 2.9), False),
    ],
)
def test_both_limits_are_judged(
    promise: Promise, found: Cost, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PROMISES, "work", promise)
    assert costs.judge("work", found) is kept


def test_every_verdict_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(PROMISES, "work", Promise(1.0, 2.0))
    costs.judge("work", Cost(4.0, 6.0) / Cost(2.0, 4.0))
    assert capsys.readouterr().out.splitlines() == [
        "work, wall ratio: 2.00, promised at most 1: NO",
        "work, processor ratio: 1.50, promised at most 2: yes",
    ]


def test_median_is_that_of_each_kind() -> None:
    rounds = [Cost(1.0, 9.0), Cost(2.0, 7.0), Cost(3.0, 8.0)]
    assert costs.median(rounds) == Cost(2.0, 8.0)


def test_processor_seconds_of_processes_are_those_of_children() -> None:
    found = costs.of_processes(lambda: subprocess.run([sys.executable, "-c", _BURN], check=True))
    assert found.processor >= 0.2
    assert costs.of_work(lambda: None).processor < 0.2
