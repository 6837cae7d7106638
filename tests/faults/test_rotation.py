# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a sample of the faults of a rotation; `make faults` runs all of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sandbox.client import Sandbox
from tests.faults import cell_runs, rotation


@pytest.fixture
def servers(fresh: Callable[[str], Sandbox]) -> rotation.Servers:
    return rotation.Servers(fresh(cell_runs.FLAVOUR))


def test_a_rotation_that_a_fault_ends_is_continued(servers: rotation.Servers) -> None:
    reasons = {str(cell): cell.wrong(servers) for cell in rotation.sample(servers)}
    assert {cell: reason for cell, reason in reasons.items() if reason is not None} == {}


def test_the_sample_has_every_request_and_every_kind(servers: rotation.Servers) -> None:
    sample = [cell for cell in rotation.sample(servers) if isinstance(cell, rotation.Fault)]
    every = [*rotation.faults(servers, rotation.FIRST), *rotation.faults(servers, rotation.RENEWAL)]
    assert {cell.request for cell in sample} == {cell.request for cell in every}
    assert {cell.kind for cell in sample} == set(rotation.KINDS)


def test_two_runs_replace_a_token_that_somebody_has_revoked(servers: rotation.Servers) -> None:
    servers.revoke(servers.start(rotation.RENEWAL))
    runs = [servers.run(), servers.run()]
    while not servers.tokens():
        assert runs[0].advance()
    assert [run.finish() for run in reversed(runs)] == ["", ""]
    assert servers.unsound() is None
