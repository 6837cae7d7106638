# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that a response head has the meaning that the standard library gives it, however it is read."""

from __future__ import annotations

import http.client
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.bodies import (
    BodyError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.connections import (
    DeadlineResponse,
)
from tests.unit.raw_server import raw_server
from tests.unit.stub import transport_to

FIRST_LINES = [
    *(b"HTTP/1.1 %d OK" % status for status in (200, 201, 204, 304, 404, 503, 600, 99, 1000)),
    b"HTTP/1.1 200",
    b"HTTP/1.1 200 ",
    b"HTTP/1.1  200 OK",
    b"HTTP/1.1 200  Very  well ",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK",
    b"HTTP/1.0 200 OK",
    b"HTTP/2 200 OK",
    b"HTTP/1.1 200 \xfcber",
    b"HTTP/1.1 2x0 OK",
    b"ICY 200 OK",
    b"",
]
HEADERS = [
    b"Content-Length: 5",
    b"content-length: 005",
    b"Content-Length:5",
    b"Content-Length: -5",
    b"Content-Length: 5 ",
    b"Content-Length:",
    b"Content-Length: 5, 5",
    b"Transfer-Encoding: chunked",
    b"Connection: close",
    b"CONNECTION: Keep-Alive, Close",
    b"Connection: keep-alive",
    b"Keep-Alive: timeout=5",
    b"Content-Type: text/plain; charset=utf-8",
    b"Content-Type: multipart/mixed; boundary=x",
    b"Set-Cookie: a=1",
    b"Set-Cookie: b=2; Path=/",
    b"X-Empty: ",
    b"X-Folded: a\r\n b",
    b"X-Umlaut: \xc3\xbc",
    b"X-Tab:\tb\tc",
    b"X-Blank : a",
    b"no colon",
    b": no name",
    b"From me to you",
    b"X-Many: " + b"x" * 200,
    b"\r\nX-After-An-Empty-Line: a",
]


class Wire:
    """A socket from which a response arrives in parts."""

    def __init__(self, data: bytes, step: int) -> None:
        self._data, self._step = io.BytesIO(data), step

    def makefile(self, _mode: str) -> io.BufferedReader:
        data, step = self._data, self._step

        class Raw(io.RawIOBase):
            def readable(self) -> bool:
                return True

            def readinto(self, buffer: Any, /) -> int:
                return data.readinto(memoryview(buffer)[:step])

        return io.BufferedReader(Raw())

    def gettimeout(self) -> float:
        return 10.0

    def settimeout(self, _seconds: float) -> None:
        """Nothing is late here."""


def meaning(kind: Any, data: bytes, method: str, step: int = 10**6) -> Any:
    """Return what a reader finds in a response: its error, or its head and its body."""
    try:
        response = kind(Wire(data, step), method=method)
        response.begin()
        head = [response.status, response.code, response.reason, response.version]
        headers = [*response.headers.items()], response.msg.get_all("set-cookie")
        framing = [response.chunked, response.length, response.will_close]
        return *head, headers, framing, response.read()
    except (http.client.HTTPException, ConnectionError) as error:
        # a connection that ends inside the head is an error of ours, not of the library
        return type(error)


@given(
    first=st.sampled_from(FIRST_LINES),
    headers=st.lists(st.sampled_from(HEADERS), max_size=5),
    method=st.sampled_from(["GET", "HEAD", "PUT"]),
    step=st.integers(1, 400),
)
def test_head_means_what_the_library_reads(
    first: bytes, headers: list[bytes], method: str, step: int
) -> None:
    data = b"\r\n".join([first, *headers, b"", b"hello, and more"])
    expected = meaning(http.client.HTTPResponse, data, method)
    try:
        assert meaning(DeadlineResponse, data, method, step) == expected
    except BodyError:  # the library accepts the head, and may reject the body
        named = [header.lower().partition(b":") for header in headers]
        lengths = {
            each.strip()
            for name, _, value in named
            for each in value.split(b",")
            if name == b"content-length"
        }
        is_ambiguous = len(lengths) > 1 or headers.count(b"Transfer-Encoding: chunked") > 1
        assert is_ambiguous or isinstance(expected, type)


@pytest.mark.parametrize("count", [90, 110])
def test_number_of_headers_is_limited(count: int) -> None:
    lines = b"".join(b"X-%d: a\r\n" % number for number in range(count))
    data = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n" + lines + b"\r\nhello"
    expected = meaning(http.client.HTTPResponse, data, "GET")
    assert meaning(DeadlineResponse, data, "GET") == expected
    assert (expected is http.client.HTTPException) is (count > 100)


def test_usual_head_needs_no_parser_of_mails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(http.client, "parse_headers")
    with raw_server(b"HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: 5\r\n\r\nhello") as server:
        response = transport_to(server.url).read("reading", "x")
    assert (response.text, response.headers["server"]) == ("hello", "x")
