# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that responses without a definite end of the body are rejected, and none is returned with
its framing.
"""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trustme

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.transport import (
    Transport,
)
from tests.unit.raw_server import raw_server
from tests.unit.stub import transport_to

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
SIZES = [b"-5", b"-1", b"+5", b"0x5", b"5_0", b" 5", b"5 5", b"x", b"", b"f" * 17, b"5\t;\x00\n"]
ENCODINGS = {
    "two values": b"Transfer-Encoding: gzip, chunked\r\n",
    "chunked twice": b"Transfer-Encoding: chunked, chunked\r\n",
    "two lines": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
    "two lines, the other way": b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n",
    "two equal lines": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    "a different encoding": b"Transfer-Encoding: gzip\r\n",
    "with a length": b"Content-Length: 0\r\nTransfer-Encoding: gzip, chunked\r\n",
}


def send(transport: Transport, how: str) -> None:
    if how == "read":
        transport.read("reading", "x")
    elif how == "write":
        transport.write("creating 'x'", "POST", "x")
    else:
        with transport.stream("fetching", "x") as body:
            b"".join(body.iter_content())


def rejected(response: bytes, *, how: str) -> ToolchainError:
    with raw_server(response) as server:
        with pytest.raises(ToolchainError) as caught:
            send(transport_to(server.url), how)
        assert len(server.requests) == 1
    return caught.value


@pytest.mark.parametrize("how", ["read", "stream", "write"])
@pytest.mark.parametrize("size", SIZES)
def test_invalid_chunk_size_is_an_error(size: bytes, how: str) -> None:
    body = b"3\r\nabc\r\n" + size + b"\r\nhello\r\n0\r\n\r\n"
    error = rejected(CHUNKED + body, how=how)
    assert error.kind == "protocol"
    assert "a chunk of the response has an invalid size" in error.message
    assert error.outcome_unknown is (how == "write")


@pytest.mark.parametrize("how", ["read", "stream", "write"])
@pytest.mark.parametrize("header", ENCODINGS.values(), ids=ENCODINGS)
def test_chunked_body_is_never_returned_with_its_framing(header: bytes, how: str) -> None:
    head = b"HTTP/1.1 200 OK\r\n" + header + b"\r\n"
    error = rejected(head + b"5\r\nhello\r\n0\r\n\r\n", how=how)
    assert error.kind == "protocol"
    assert "a Transfer-Encoding other than 'chunked'" in error.message
    assert error.outcome_unknown is (how == "write")


@pytest.mark.parametrize("lengths", [b"1, 5", b"5\r\nContent-Length: 1"])
def test_conflicting_lengths_are_an_error(lengths: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: " + lengths + b"\r\n\r\n"
    error = rejected(head + b"hello", how="read")
    assert error.kind == "protocol"
    assert "the response has conflicting lengths" in error.message


@pytest.mark.parametrize(
    "body",
    [
        b"5\r\nhello\r\n0\r\n\r\n",
        b"005 ;name=value\r\nhello\r\n000\r\nX-Trailer: -1\r\n-Y: 2\r\n\r\n",
        b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
    ],
)
def test_chunk_syntax_of_servers_is_accepted(body: bytes) -> None:
    with raw_server(CHUNKED + body) as server:
        assert transport_to(server.url).read("reading", "x").text == "hello"
        with transport_to(server.url).stream("fetching", "x") as response:
            assert b"".join(response.iter_content()) == b"hello"


# --- bodies that end with the connection


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def tls(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


@pytest.fixture
def ca_path(authority: trustme.CA, tmp_path: Path) -> str:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


UNTIL_CLOSED = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhello"


@pytest.mark.parametrize("how", ["read", "stream", "write"])
def test_tls_body_without_length_and_close_notify_is_truncated(
    tls: ssl.SSLContext, ca_path: str, how: str
) -> None:
    with raw_server(UNTIL_CLOSED, tls=tls) as server:
        transport = transport_to(server.url, ca_path=ca_path, retries=0)
        with pytest.raises(ToolchainError) as caught:
            send(transport, how)
    assert (caught.value.kind, caught.value.outcome_unknown) == ("network", how == "write")
    assert "the TLS connection ended without close_notify" in caught.value.message
    assert "client_cert" not in caught.value.message


def test_tls_body_with_close_notify_is_complete(tls: ssl.SSLContext, ca_path: str) -> None:
    with raw_server(UNTIL_CLOSED, tls=tls, close_notify=True) as server:
        transport = transport_to(server.url, ca_path=ca_path)
        assert transport.read("reading", "x").text == "hello"


def test_tls_body_with_length_needs_no_close_notify(tls: ssl.SSLContext, ca_path: str) -> None:
    response = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
    with raw_server(response, tls=tls) as server:
        transport = transport_to(server.url, ca_path=ca_path)
        assert transport.read("reading", "x").text == "hello"


def test_plain_body_may_end_with_the_connection() -> None:
    with raw_server(UNTIL_CLOSED) as server:
        assert transport_to(server.url).read("reading", "x").text == "hello"
