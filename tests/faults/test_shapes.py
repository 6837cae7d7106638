# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a sample of the matrix of response shapes; `make faults` runs the whole matrix."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sandbox.client import Sandbox
from tests.faults import cell_runs, shapes
from tests.helpers.cases import FAULT_CASES

Sampled = dict[shapes.Cell, str | None]


@pytest.fixture(scope="session")
def sampled(fresh: Callable[[str], Sandbox], tmp_path_factory: pytest.TempPathFactory) -> Sampled:
    """Return the reason why a cell of the sample is wrong, or None; run once per session."""
    folder = tmp_path_factory.mktemp("shapes")
    sandbox = fresh(cell_runs.FLAVOUR)
    return dict(cell_runs.run(folder, sandbox, shapes.sample(), shapes.PATIENCE))


@pytest.mark.parametrize("cell", shapes.sample(), ids=str)
def test_any_response_ends_in_one_sentence(sampled: Sampled, cell: shapes.Cell) -> None:
    assert sampled[cell] is None


def test_sample_has_every_module_and_every_shape() -> None:
    sample = shapes.sample()
    assert {cell.module for cell in sample} == set(FAULT_CASES)
    assert {cell.shape for cell in sample} == set(shapes.ALL)
