# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a sample of the matrix of secrets and sinks; `make secrets` runs the whole matrix.

`-m first` selects a cell of each service.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection import options
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.services import SERVICES
from sandbox.client import Sandbox
from tests.faults import canaries
from tests.helpers.cases import MODULES
from tests.helpers.selection import parameters

Sampled = dict[canaries.Cell, list[str]]
SAMPLE = canaries.sample()
FIRST = {cell.service: cell for cell in reversed(SAMPLE) if cell.place != "environment"}.values()


@pytest.fixture(scope="session")
def sampled(
    request: pytest.FixtureRequest,
    fresh: Callable[[str], Sandbox],
    tmp_path_factory: pytest.TempPathFactory,
) -> Sampled:
    """Return the sinks in which each selected cell shows a secret; run once per session."""
    names = parameters(request.session, "cell")
    chosen = [cell for cell in SAMPLE if str(cell) in names]
    folder = tmp_path_factory.mktemp("canaries")
    return dict(canaries.run(folder, fresh(canaries.FLAVOUR), chosen))


@pytest.mark.parametrize(
    "cell",
    [
        pytest.param(cell, id=str(cell), marks=[pytest.mark.first] if cell in FIRST else [])
        for cell in SAMPLE
    ],
)
def test_no_output_contains_a_secret(sampled: Sampled, cell: canaries.Cell) -> None:
    assert sampled[cell] == []


def test_sample_has_every_module_place_and_outcome() -> None:
    assert {cell.module for cell in SAMPLE} == set(MODULES)
    assert {cell.place for cell in SAMPLE} == set(canaries.PLACES)
    assert {cell.outcome for cell in SAMPLE} == set(canaries.OUTCOMES)
    assert {cell.service for cell in FIRST} == set(SERVICES)


@pytest.mark.parametrize("service", SERVICES)
def test_every_secret_of_a_connection_has_cells(service: str) -> None:
    secrets = {
        name for name, one in options.argument_spec(SERVICES[service]).items() if one.get("no_log")
    }
    files = {name for name in SERVICES[service].credentials if name.endswith("_file")}
    kinds = canaries.kinds_of(service)
    covered = {*kinds, *(name for name in secrets if "oauth" in kinds and "oauth" in name)}
    assert secrets | files <= covered


def test_truncated_or_encoded_secret_is_detected() -> None:
    for shown in ("Canary%22%3C7", "anary&quot;&lt;7/%&amp;\\9&gt;Tail", "<7/%&\\9>Tail"):
        assert any(
            trace in f"x{shown}y" or shown in trace for trace in canaries.traces(canaries.TOKEN)
        )
