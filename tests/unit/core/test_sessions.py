# SPDX-License-Identifier: GPL-3.0-or-later
"""Test sessions that are reused for the items of a loop."""

from __future__ import annotations

import os

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.secret import (
    Secret,
    hidden,
)
from tests.unit.stub import Reply, Stub, connection_to, transport_to


def read(url: str, token: str) -> None:
    connection = connection_to(url, token=Secret(token))
    Task(connection, print, read_only=True).transport().read("reading", "x")


def test_loop_over_many_logins_closes_old_connections() -> None:
    with Stub(response=lambda seen: Reply()) as stub:
        read(stub.url, "token-0")
        before = len(os.listdir("/proc/self/fd"))
        for number in range(1, 100):
            read(stub.url, f"token-{number}")
        assert len(os.listdir("/proc/self/fd")) < before + 30
        read(stub.url, "token-99")
        assert stub.connections == 100
        read(stub.url, "token-0")
        assert stub.connections == 101


def test_forked_process_opens_its_own_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Stub(response=lambda seen: Reply()) as stub:
        read(stub.url, "token-0")
        with monkeypatch.context() as child:
            child.setattr(os, "getpid", lambda: -1)
            read(stub.url, "token-0")
            read(stub.url, "token-0")
            assert stub.connections == 2
        read(stub.url, "token-0")
        assert stub.connections == 2


def test_session_secrets_stay_masked_in_the_next_item(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cookie = {"Set-Cookie": "JSESSIONID.1=session-of-mine; Path=/"}
    with Stub(Reply(headers=cookie), response=lambda seen: Reply()) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.replace("//", "//me:s3cret-of-mine@"))
        for _item in range(2):
            hidden.clear()
            transport_to("http://server.invalid/base", crumbs=True).read("reading", "x")
            masked = hidden.mask("session-of-mine s3cret-of-mine")
            assert "of-mine" not in masked


@pytest.mark.parametrize(
    ("scheme", "checked", "count"), [("https", 0, 1), ("https", 1, 0), ("http", 0, 0)]
)
def test_unverified_certificates_give_a_warning(scheme: str, checked: int, count: int) -> None:
    said: list[str] = []
    settings = {"validate_certs": bool(checked)}
    Task(connection_to(f"{scheme}://host", settings=settings), said.append, read_only=True)
    assert len(said) == count
    assert all(line.startswith("validate_certs is false") for line in said)
