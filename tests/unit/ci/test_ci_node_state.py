# SPDX-License-Identifier: GPL-3.0-or-later
"""Test how `ci_node` reads the state of a node from several releases of the server."""

from __future__ import annotations

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.server.ci_node import (
    NodeStore,
)
from tests.unit.ci.tasks import Run
from tests.unit.stub import Reply, Stub


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        ("New disk : slow", "New disk : slow"),
        ("Disconnected by admin : New disk : slow", "New disk : slow"),
        ("Disconnected by admin", ""),
        ("", ""),
    ],
)
def test_reason_of_an_offline_node_is_read(shown: str, reason: str) -> None:
    """Some releases return the reason alone, others after the user."""
    node = {"displayName": "x", "temporarilyOffline": True, "offlineCauseReason": shown}
    with Stub(Reply(body=node, headers={"X-Jenkins": "2.579"})) as stub:
        state = NodeStore(Run(stub.url).task).state("x")
    assert state is not None
    assert state.offline_reason == reason
    assert stub.seen[0].headers["Accept-Language"] == "en"
