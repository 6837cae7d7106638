# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a sample of the matrix of cut heads; `make faults` runs the whole matrix."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sandbox.client import Sandbox
from tests.faults import cell_runs, heads
from tests.helpers.cases import MODULES

Sampled = dict[str, list[tuple[str, str | None]]]


@pytest.fixture(scope="session")
def sampled(fresh: Callable[[str], Sandbox], tmp_path_factory: pytest.TempPathFactory) -> Sampled:
    """Run a sample of the cells. Return each cell and its failure, or None, by module."""
    folder = tmp_path_factory.mktemp("heads")
    found: Sampled = {module: [] for module in MODULES}
    for cell, wrong in heads.run(folder, fresh(cell_runs.FLAVOUR), MODULES, sampled=True):
        found[cell.module].append((str(cell), wrong))
    return found


@pytest.mark.parametrize("module", MODULES)
def test_response_with_truncated_head_is_not_empty(sampled: Sampled, module: str) -> None:
    assert len(sampled[module]) > 1
    assert [cell for cell in sampled[module] if cell[1] is not None] == []
