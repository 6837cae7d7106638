# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a sample of the matrix of secrets and sinks; `make secrets` runs the whole matrix."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection import options
from sandbox.client import Sandbox
from tests.faults import canaries
from tests.helpers.cases import MODULES

Sampled = dict[canaries.Cell, list[str]]


@pytest.fixture(scope="session")
def sampled(fresh: Callable[[str], Sandbox], tmp_path_factory: pytest.TempPathFactory) -> Sampled:
    """Return the sinks in which each cell of the sample shows a secret; run once per session."""
    folder = tmp_path_factory.mktemp("canaries")
    return dict(canaries.run(folder, fresh(canaries.FLAVOUR), canaries.sample()))


@pytest.mark.parametrize("cell", canaries.sample(), ids=str)
def test_no_output_contains_a_secret(sampled: Sampled, cell: canaries.Cell) -> None:
    assert sampled[cell] == []


def test_sample_has_every_module_place_and_outcome() -> None:
    sample = canaries.sample()
    assert {cell.module for cell in sample} == set(MODULES)
    assert {cell.place for cell in sample} == set(canaries.PLACES)
    assert {cell.outcome for cell in sample} == set(canaries.OUTCOMES)


@pytest.mark.parametrize("service", options.SERVICES)
def test_every_secret_of_a_connection_has_cells(service: str) -> None:
    secrets = {name for name, one in options.argument_spec(service).items() if one.get("no_log")}
    files = {name for name in options.credential_options(service) if name.endswith("_file")}
    kinds = canaries.kinds_of(service)
    covered = {*kinds, *(name for name in secrets if "oauth" in kinds and "oauth" in name)}
    assert secrets | files <= covered


def test_truncated_or_encoded_secret_is_detected() -> None:
    for shown in ("Canary%22%3C7", "anary&quot;&lt;7/%&amp;\\9&gt;Tail", "<7/%&\\9>Tail"):
        assert any(
            trace in f"x{shown}y" or shown in trace for trace in canaries.traces(canaries.TOKEN)
        )
