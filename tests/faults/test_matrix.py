# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a sample of the matrix of writes and faults; `make faults` runs the whole matrix."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sandbox.client import Sandbox
from tests.faults import cell_runs, matrix
from tests.faults.writes import WRITERS

Sampled = dict[matrix.Cell, str | None]


@pytest.fixture(scope="session")
def sampled(fresh: Callable[[str], Sandbox], tmp_path_factory: pytest.TempPathFactory) -> Sampled:
    """Return the reason why a cell of the sample is wrong, or None; run once per session."""
    folder = tmp_path_factory.mktemp("matrix")
    sandbox = fresh(cell_runs.FLAVOUR)
    return dict(cell_runs.run(folder, sandbox, matrix.sample(), matrix.PATIENCE))


@pytest.mark.parametrize("cell", matrix.sample(), ids=str)
def test_write_has_one_effect_and_a_true_result(sampled: Sampled, cell: matrix.Cell) -> None:
    assert sampled[cell] is None


def test_sample_has_every_module_and_every_fault() -> None:
    sample = matrix.sample()
    assert {cell.module for cell in sample} == set(WRITERS)
    assert {(cell.fault, cell.acted) for cell in sample} == {
        (cell.fault, cell.acted) for cell in matrix.cells()
    }
