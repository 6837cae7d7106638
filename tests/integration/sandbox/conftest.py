# SPDX-License-Identifier: GPL-3.0-or-later
"""Provide both flavours of the repository manager by name."""

from __future__ import annotations

from collections.abc import Callable

import artifactory
import pytest

from sandbox.client import Sandbox


@pytest.fixture
def real(fresh: Callable[[str], Sandbox], monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    sandbox = fresh("real")
    # dohq-artifactory needs its configuration to find the end of a base URL other than /artifactory
    base = {"username": None, "password": None, "verify": True, "cert": None}
    monkeypatch.setattr(artifactory, "global_config", {sandbox.urls["repo"]: base})
    return sandbox


@pytest.fixture
def written(fresh: Callable[[str], Sandbox]) -> Sandbox:
    return fresh("written")
