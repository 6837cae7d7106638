# SPDX-License-Identifier: GPL-3.0-or-later
"""Isolate the tests from the environment of the user, like the tests of the core."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.pages import saving
from tests.unit.core.conftest import own_environment
from tests.unit.stub import Stub, Waits
from tests.unit.wiki.server import Wiki, page

__all__ = ["own_environment"]


@pytest.fixture
def wiki() -> Wiki:
    return Wiki(page(), page(id="8", title="Other", parent=None))


@pytest.fixture
def stub(wiki: Wiki) -> Iterator[Stub]:
    with Stub(response=wiki) as running:
        yield running


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    found = Waits()
    monkeypatch.setattr(saving, "sleep", found)
    return found
