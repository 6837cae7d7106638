# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a sample of the matrix of expired logins; `make faults` runs the whole matrix."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sandbox.client import Sandbox
from tests.faults import expiry


def test_login_that_expires_in_the_middle_is_renewed(
    fresh: Callable[[str], Sandbox], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("expiry")
    results = dict(expiry.run(folder, fresh("real"), expiry.sample()))
    assert {str(cell): reason for cell, reason in results.items() if reason is not None} == {}
    assert {cell.kind for cell in results} == set(expiry.KINDS)
    assert {cell.module for cell in results} == set(expiry.MODULES)
