# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify the number of requests of an operation in the server log; `make bench` prints the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sandbox.client import Sandbox
from tests.helpers import operations


@pytest.fixture(scope="module")
def counted(
    fresh: Callable[[str], Sandbox], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, operations.Counted]:
    return operations.count(fresh("real"), tmp_path_factory.mktemp("counted"))


@pytest.mark.parametrize("name", operations.OPERATIONS)
def test_operation_sends_the_documented_number_of_requests(
    counted: dict[str, operations.Counted], name: str
) -> None:
    one = counted[name]
    assert one.event.status == "ok", one.event.result
    assert one.event.result["changed"] is one.operation.changed
    assert one.kept, [f"{request['method']} {request['path']}" for request in one.event.requests]
    assert one.event.result["http"]["requests"] == one.requests
    assert one.event.result["http"]["writes"] == one.writes
