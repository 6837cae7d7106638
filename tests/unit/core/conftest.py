# SPDX-License-Identifier: GPL-3.0-or-later
"""Isolate the tests from the environment of the user who runs them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Remove the user's proxies, certificates and connections, and use an empty home."""
    for name in list(os.environ):
        if name.startswith(("TOOLCHAIN_", "KLOCWORK_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NETRC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
