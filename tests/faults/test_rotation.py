# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a sample of the faults of a rotation; `make faults` runs all of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sandbox.client import Sandbox
from tests.faults import cell_runs, rotation
from tests.helpers import issuers


@pytest.fixture(scope="module", params=rotation.ISSUERS)
def servers(fresh: Callable[[str], Sandbox], request: pytest.FixtureRequest) -> rotation.Servers:
    return rotation.Servers(fresh(cell_runs.FLAVOUR), request.param)


only_repo = pytest.mark.parametrize("servers", ["repo"], indirect=True, scope="module")


def test_a_rotation_that_a_fault_ends_is_continued(servers: rotation.Servers) -> None:
    reasons = {str(cell): cell.wrong(servers) for cell in rotation.sample(servers)}
    assert {cell: reason for cell, reason in reasons.items() if reason is not None} == {}


@only_repo
def test_the_sample_has_every_request_and_every_kind(servers: rotation.Servers) -> None:
    sample = [cell for cell in rotation.sample(servers) if isinstance(cell, rotation.Fault)]
    every = [*rotation.faults(servers, rotation.FIRST), *rotation.faults(servers, rotation.RENEWAL)]
    assert {cell.request for cell in sample} == {cell.request for cell in every}
    assert {cell.kind for cell in sample} == set(rotation.KINDS)


def test_the_secret_of_a_new_token_is_recognized(servers: rotation.Servers) -> None:
    servers.start(rotation.RENEWAL)
    assert issuers.SECRETS.search(servers.issuer.add()["value"])


@only_repo
def test_two_runs_replace_a_token_that_somebody_has_revoked(servers: rotation.Servers) -> None:
    servers.start(rotation.RENEWAL)
    servers.issuer.revoke()
    runs = [servers.run(), servers.run()]
    while not servers.issuer.tokens():
        assert runs[0].advance()
    assert [run.finish() for run in reversed(runs)] == ["", ""]
    assert servers.unsound() is None
