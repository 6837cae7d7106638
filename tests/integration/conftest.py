# SPDX-License-Identifier: GPL-3.0-or-later
"""A test that is named as a witness does what it is said to confirm."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox.client import Sandbox
from tests.helpers import witnessed


@pytest.fixture(autouse=True)
def done_as_claimed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Of clients, by the log of the sandbox that they ask."""
    claimed = witnessed.claims(request.path.name, request.node.originalname)
    names = [name for name in request.fixturenames if name not in ("request", "done_as_claimed")]
    values = [request.getfixturevalue(name) for name in names] if claimed else []
    sandboxes = [value for value in values if isinstance(value, Sandbox)]
    yield
    if sandboxes:
        log = sandboxes[-1].requests()
        left = list(witnessed.unasked(log, claimed))
        assert not left, f"{left}: {[witnessed.line_of(entry)[:200] for entry in log]}"
