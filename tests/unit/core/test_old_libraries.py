# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the differences of urllib3 before 2, simulated on the installed version: `requests` accepts
both; and of `requests` before 2.32, which finds pools by another method.

The old version lacks newer names of errors, accepts a truncated body as complete, and compares the
host of a certificate itself.
"""

from __future__ import annotations

import socket
from typing import Any

import pytest
import requests
import urllib3
from urllib3.util.ssl_match_hostname import CertificateError

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from tests.unit.stub import Reply, Stub, transport_to


@pytest.fixture(autouse=True)
def old_urllib3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(urllib3.exceptions, "NameResolutionError", raising=False)


@pytest.mark.filterwarnings("ignore:.*get_connection:DeprecationWarning")
def test_old_requests_finds_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = requests.adapters.HTTPAdapter
    monkeypatch.delattr(adapter, "get_connection_with_tls_context", raising=False)
    with Stub(Reply(body=b"x")) as stub:
        assert transport_to(stub.url).read("reading", "x").text == "x"


def test_refused_connection_is_a_network_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ToolchainError) as caught:
        transport_to(f"http://127.0.0.1:{port}", retries=0).write("creating 'x'", "POST", "x")
    assert (caught.value.kind, caught.value.outcome_unknown) == ("network", False)
    assert "the connection was refused" in caught.value.message


def test_truncated_body_is_an_error() -> None:
    with Stub(Reply(body=b"x" * 100, truncate=10)) as stub:
        transport = transport_to(stub.url)
        with pytest.raises(ToolchainError) as caught:
            transport.write("creating 'x'", "POST", "x")
    assert (caught.value.kind, caught.value.outcome_unknown) == ("network", True)


def test_truncated_stream_is_an_error() -> None:
    with Stub(Reply(body=b"x" * 100, truncate=10)) as stub:
        transport = transport_to(stub.url)
        with (
            pytest.raises(ToolchainError) as caught,
            transport.stream("downloading 'x'", "x") as response,
        ):
            list(response.iter_content())
    assert caught.value.kind == "network"


def test_certificate_of_another_host_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def urlopen(self: urllib3.HTTPConnectionPool, *args: Any, **kwargs: Any) -> None:
        error = urllib3.exceptions.SSLError(CertificateError("hostname 'a' doesn't match 'b'"))
        raise urllib3.exceptions.MaxRetryError(self, "/x", error)

    monkeypatch.setattr(urllib3.HTTPConnectionPool, "urlopen", urlopen)
    with pytest.raises(ToolchainError) as caught:
        transport_to("https://a.invalid").write("creating 'x'", "POST", "x")
    assert (caught.value.kind, caught.value.outcome_unknown) == ("network", False)
    assert "hostname 'a' doesn't match 'b'): check the host of url" in caught.value.message
