# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that a connection that ends inside the response head is an error, and not a response without
a body.
"""

from __future__ import annotations

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from tests.unit.raw_server import raw_server
from tests.unit.stub import transport_to

WHOLE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 3\r\n\r\n[1]"
CUTS = {
    "inside the status line": b"HTTP/1.1 200 O",
    "in the status line, before its end": b"HTTP/1.1 200 OK",
    "after the status line": b"HTTP/1.1 200 OK\r\n",
    "after one header": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n",
    "inside a header": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Le",
    "before the blank line": WHOLE.partition(b"\r\n\r\n")[0] + b"\r\n",
    "inside the blank line": WHOLE.partition(b"\r\n\r\n")[0] + b"\r\n\r",
    "after a preliminary response": b"HTTP/1.1 100 Continue\r\n",
}


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_read_is_retried(cut: bytes) -> None:
    with raw_server(cut, cut, WHOLE) as server:
        transport = transport_to(server.url)
        assert transport.read("reading", "x").json() == [1]
    assert transport.accounting.retries == 2


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_read_without_retries_fails(cut: bytes, method: str) -> None:
    with raw_server(cut) as server, pytest.raises(ToolchainError) as caught:
        transport_to(server.url, retries=0).read("reading", "x", method=method)
    assert caught.value.kind == "network"
    assert "the connection was lost" in caught.value.message


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_stream_is_reopened(cut: bytes) -> None:
    with raw_server(cut, WHOLE) as server:
        with transport_to(server.url).stream("fetching", "x") as response:
            assert b"".join(response.iter_content()) == b"[1]"
        assert len(server.requests) == 2


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_outcome_of_write_is_unknown(cut: bytes) -> None:
    with raw_server(cut) as server:
        transport = transport_to(server.url)
        with pytest.raises(ToolchainError, match="whether it was done is not known") as caught:
            transport.write("creating 'x'", "POST", "x", json={})
        assert len(server.requests) == 1
    assert (caught.value.kind, caught.value.outcome_unknown) == ("network", True)
    assert transport.accounting.acknowledged == 0


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_write_is_verified(cut: bytes) -> None:
    with raw_server(cut) as server:
        transport = transport_to(server.url)
        response = transport.write("creating 'x'", "POST", "x", json={}, verify=lambda: True)
        assert len(server.requests) == 1
    assert (response.status, response.body) == (204, b"")
