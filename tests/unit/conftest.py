# SPDX-License-Identifier: GPL-3.0-or-later
"""Isolate the tests from the environment of the user who runs them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def own_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Remove the user's proxies, certificates and connections, and use an empty home.

    Once for a file, because this takes longer than many of its tests.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("TOOLCHAIN_", "KLOCWORK_")) or name.lower().endswith("_proxy"):
                patch.delenv(name)
        for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NETRC"):
            patch.delenv(name, raising=False)
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        yield
