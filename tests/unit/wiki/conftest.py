# SPDX-License-Identifier: GPL-3.0-or-later
"""Provide a wiki with two pages for each test, and record the requested waits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.pages import desired_page
from tests.unit.stub import Stub, Waits
from tests.unit.wiki.server import Wiki, page


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
    monkeypatch.setattr(desired_page, "sleep", found)
    return found
