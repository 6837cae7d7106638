# SPDX-License-Identifier: GPL-3.0-or-later
"""Test sessions that are reused for the items of a loop."""

from __future__ import annotations

import os

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils.core.http import (
    connections,
    sessions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils.core.secret import Secret
from tests.unit.stub import Reply, Stub, connection_to


def read(url: str, token: str) -> None:
    connection = connection_to(url, token=Secret(token))
    Task(connection, print, read_only=True).transport().read("reading", "x")


def test_a_loop_over_many_logins_does_not_keep_all_their_connections() -> None:
    with Stub(answer=lambda seen: Reply()) as stub:
        read(stub.url, "token-0")
        before = len(os.listdir("/proc/self/fd"))
        for number in range(1, 100):
            read(stub.url, f"token-{number}")
        assert len(os.listdir("/proc/self/fd")) < before + 30
        read(stub.url, "token-99")
        assert stub.connections == 100
        read(stub.url, "token-0")
        assert stub.connections == 101


def test_a_session_of_the_process_before_the_fork_is_left_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed: list[object] = []

    def close(session: connections.DirectSession) -> None:
        closed.append(session)

    with Stub(answer=lambda seen: Reply()) as stub:
        read(stub.url, "token-0")
        own = os.getpid()
        monkeypatch.setattr(connections.DirectSession, "close", close)
        monkeypatch.setattr(os, "getpid", lambda: own + 1)
        for number in range(sessions.MAX_SESSIONS):
            read(stub.url, f"token-{number}")
        assert closed == []
        read(stub.url, "token-9999")
        assert len(closed) == 1


@pytest.mark.parametrize(
    ("scheme", "checked", "count"), [("https", 0, 1), ("https", 1, 0), ("http", 0, 0)]
)
def test_certificates_that_nobody_checks_are_warned_of(
    scheme: str, checked: int, count: int
) -> None:
    said: list[str] = []
    settings = {"validate_certs": bool(checked)}
    Task(connection_to(f"{scheme}://host", settings=settings), said.append, read_only=True)
    assert len(said) == count
    assert all(line.startswith("validate_certs is false") for line in said)
