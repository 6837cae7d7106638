# SPDX-License-Identifier: GPL-3.0-or-later
"""Provide a sandbox, and verify that a test listed as a witness performs the operations that it
confirms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from sandbox.client import Sandbox
from tests.helpers import witnessed


@pytest.fixture
def sandbox(request: pytest.FixtureRequest, fresh: Callable[[str | None], Sandbox]) -> Sandbox:
    """Return the shared sandbox, reset to its seeds, with the `FLAVOUR` that the test file names.

    Without that name, each service has the flavour of its seeds.
    """
    return fresh(getattr(request.module, "FLAVOUR", None))


@pytest.fixture(autouse=True)
def done_as_claimed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Check the claims of client tests against the request log of their sandbox."""
    claimed = witnessed.claims(request.path.name, request.node.originalname)
    names = [name for name in request.fixturenames if name not in ("request", "done_as_claimed")]
    values = [request.getfixturevalue(name) for name in names] if claimed else []
    sandboxes = [value for value in values if isinstance(value, Sandbox)]
    yield
    if sandboxes:
        log = sandboxes[-1].requests()
        left = list(witnessed.unasked(log, claimed))
        assert not left, f"{left}: {[witnessed.line_of(entry)[:200] for entry in log]}"
