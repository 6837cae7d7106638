# SPDX-License-Identifier: GPL-3.0-or-later
"""What is written and read by us and not by the HTTP library, held against what the library does."""

from __future__ import annotations

import io
from http.client import HTTPException, HTTPResponse
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from requests import PreparedRequest, RequestException
from urllib3.exceptions import ProtocolError

from ansible_collections.delivery.toolchain.plugins.module_utils.core.address import (
    UnfitRequest,
    request_target,
)
from ansible_collections.delivery.toolchain.plugins.module_utils.core.errors import ToolchainError
from ansible_collections.delivery.toolchain.plugins.module_utils.core.http.connections import (
    Incoming,
    Load,
    on_kept_connection,
)
from ansible_collections.delivery.toolchain.plugins.module_utils.core.http.messages import Headers
from tests.unit.stub import Reply, Stub, transport_to

HOME = "http://home:8080"
_PART = st.sampled_from(
    [
        *"ab/?#.~-_:@!$&'()*+,;=%[]|^`{}\"<>\\ é",
        *("%20", "%2F", "%2f", "%7E", "%41", "%3A", "%zz", "..", "/./", "/../", "//", "%25"),
    ]
)


@given(rest=st.lists(_PART, max_size=8).map("".join))
@example(rest="/a%20b/c.bin?list&deep=1")
@example(rest="/../x")
@example(rest="//other/x")
@example(rest="?q=/a/../b")
def test_a_target_is_what_the_library_asks_for(rest: str) -> None:
    address = f"{HOME}/{rest}" if rest[:1] not in ("/", "?", "#") else HOME + rest
    prepared = PreparedRequest()
    try:
        prepared.prepare_url(address, None)
    except RequestException:
        with pytest.raises(UnfitRequest):
            request_target(address)
        return
    assert request_target(address) == prepared.path_url


class Wire:
    """A socket that brings so many bytes at a time."""

    def __init__(self, data: bytes, step: int) -> None:
        self._data, self._step = io.BytesIO(data), step

    def gettimeout(self) -> None:
        """There is none."""

    def settimeout(self, value: float | None) -> None:
        raise AssertionError("there is no limit")

    def makefile(self, _mode: str) -> io.BufferedReader:
        wire = self

        class Raw(io.RawIOBase):
            def readable(self) -> bool:
                return True

            def readinto(self, buffer: Any, /) -> int:
                return wire._data.readinto(memoryview(buffer)[: wire._step])

        return io.BufferedReader(Raw())


def _by_library(data: bytes, step: int, method: str) -> Any:
    return _read(HTTPResponse(Wire(data, step), method=method))  # type: ignore[arg-type]


def _by_us(data: bytes, step: int, method: str, first: bytes | None = None) -> Any:
    """:param first: what came before anybody has looked at it"""
    begun = None if first is None else (0.0, first)
    return _read(Incoming(Wire(data, step), method=method, begun=begun))


def _read(found: HTTPResponse) -> Any:
    """What is read of an answer."""
    try:
        found.begin()
    except (HTTPException, OSError, ValueError) as error:
        return type(error).__name__
    told = _told(found)
    try:
        return *told, found.read()
    except HTTPException as error:
        return *told, type(error).__name__


def _told(found: HTTPResponse) -> tuple[Any, ...]:
    headers = Headers(found.headers.items())
    plain = {name: value.strip() for name, value in headers.items()}
    return found.status, found.reason, found.version, plain, found.will_close


_FIRST = st.sampled_from(
    [
        *("HTTP/1.1 200 OK", "HTTP/1.1 404", "HTTP/1.1 201 ", "HTTP/1.1 204 No Content"),
        *("HTTP/1.0 200 OK", "HTTP/1.1 99 x", "HTTP/2 200", "HTTP/1.1 200x", "", "ICY 200 OK"),
        *("HTTP/1.1 304 \xe9", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK", "HTTP/1.1 600 ?"),
    ]
)
_LINE = st.sampled_from(
    [
        *("Content-Length: 4", "content-length:3", "Content-Length: x", "Content-Length: -1"),
        *("Transfer-Encoding: chunked", "Connection: close", "Connection: Keep-Alive", "X-A: 1"),
        *(
            "X-a:  2 \t",
            " folded",
            "no colon",
            "X B: 1",
            "Empty:",
            "\xe9: \xe9",
            "X:\tv",
            "a: b: c",
        ),
        *(": nameless", "X-CR: a\rb"),
    ]
)


_HEAD = st.builds(
    lambda first, lines, end: "".join(f"{line}{end}" for line in [first, *lines]) + end,
    _FIRST,
    st.lists(_LINE, max_size=5, unique=True).filter(
        # several lengths are refused here, as they are by the library above
        lambda lines: sum(line.lower().startswith("content-length") for line in lines) < 2
    ),
    st.sampled_from(["\r\n", "\n", "\r\n\n"]),
)
_BODY = st.sampled_from([b"", b"abc", b"abcd", b"abcdef", b"2\r\nab\r\n0\r\n\r\n"])


@given(
    head=_HEAD,
    body=_BODY,
    step=st.sampled_from([1, 7, 100, 10_000]),
    method=st.sampled_from(["GET", "HEAD", "PUT"]),
)
def test_an_answer_is_read_as_the_standard_library_reads_it(
    head: str, body: bytes, step: int, method: str
) -> None:
    data = head.encode("latin-1") + body
    assert _by_us(data, step, method) == _by_library(data, step, method)


@given(
    head=_HEAD,
    body=_BODY,
    cut=st.integers(0, 300),
    method=st.sampled_from(["GET", "HEAD", "PUT"]),
)
def test_it_is_the_same_answer_whatever_the_first_wait_brings(
    head: str, body: bytes, cut: int, method: str
) -> None:
    data = head.encode("latin-1") + body
    expected = _by_library(data, 10_000, method)
    assert _by_us(data[cut:], 7, method, first=data[:cut]) == expected


@given(head=_HEAD, body=_BODY, method=st.sampled_from(["GET", "HEAD", "PUT"]))
@example(head="HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n", body=b"abcd", method="PUT")
@example(head="HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n", body=b"", method="HEAD")
def test_what_came_at_once_is_the_same_answer_and_all_of_it(
    head: str, body: bytes, method: str
) -> None:
    data = head.encode("latin-1") + body
    found = Incoming.at_once(data, method)
    if found is None:  # another one than servers write, not whole, or with bytes behind it
        usual = head.startswith("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
        assert not usual or len(body) != (0 if method == "HEAD" else 4)
        return
    rest = b"".join(found.as_sent())
    assert (*_told(found), rest) == _by_library(data, 10_000, method)
    assert len(data) == len(head) + len(rest)
    found.close()


def test_an_answer_with_several_lengths_is_refused() -> None:
    data = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"
    assert _by_us(data, 1000, "GET") == "HTTPException"


def test_headers_are_found_however_they_are_written() -> None:
    found = Headers([("Set-Cookie", "a=1, x"), ("ETag", "e"), ("set-cookie", "b=2")])
    assert (found["etag"], found.get("SET-COOKIE"), found.get("other")) == (
        "e",
        "a=1, x, b=2",
        None,
    )
    assert found.get_all("Set-Cookie") == ["a=1, x", "b=2"]
    assert found.get_all("other", []) == []
    assert ("etag" in found, len(found), [name.lower() for name in found]) == (
        *(True, 2),
        ["set-cookie", "etag"],
    )


@pytest.mark.parametrize("value", [" s3cret", "s3c\r\nret", "s3c\0ret", "s3cret\u20ac", "\ns3cret"])
def test_a_value_that_no_header_can_have_is_refused_and_not_shown(value: str) -> None:
    with Stub() as stub, pytest.raises(ToolchainError) as caught:
        transport_to(stub.url).write("writing", "PUT", "x", headers={"X-Key": value})
    assert (caught.value.kind, caught.value.outcome_unknown, stub.seen) == ("invalid", False, [])
    assert "the header 'X-Key' has a character" in str(caught.value)
    assert "s3c" not in str(caught.value)


@pytest.mark.parametrize(
    ("taken", "connections"), [(True, 1), (False, 2)], ids=["to its end", "not to its end"]
)
def test_the_rest_of_a_stream_is_never_the_next_answer(*, taken: bool, connections: int) -> None:
    with Stub(Reply(body=b"x" * 3_000_000), Reply(body=b"next")) as stub:
        transport = transport_to(stub.url)
        with transport.stream("reading", "x") as response:
            pieces = response.iter_content()
            next(pieces)
            if taken:
                assert sum(map(len, pieces)) > 0
        assert transport.read("reading", "y").text == "next"
        assert stub.connections == connections


def test_connections_that_streams_had_come_back() -> None:
    """More streams one after the other than there are connections."""
    with Stub(
        answer=lambda seen: Reply(404 if seen.target.endswith("/no") else 200, "words")
    ) as stub:
        transport = transport_to(stub.url)
        for _number in range(12):
            with transport.stream("reading", "x") as response:
                assert b"".join(response.iter_content()) == b"words"
            with pytest.raises(ToolchainError, match="404"), transport.stream("reading", "no"):
                raise AssertionError("there is nothing to take")
        assert stub.connections == 1


def test_bodies_arrive_whole_whatever_their_size() -> None:
    with Stub(answer=lambda seen: Reply()) as stub:
        transport = transport_to(stub.url)
        sizes = [0, 1, 65_536, 65_537, 3_000_000]
        for size in sizes:
            transport.write("writing", "PUT", "x", body=b"x" * size)
        transport.write("deleting", "DELETE", "x")
        transport.read("reading", "x")
    assert [len(seen.body) for seen in stub.seen] == [*sizes, 0, 0]
    lengths = [seen.headers.get("Content-Length") for seen in stub.seen]
    assert lengths == [*map(str, sizes), "0", None]


TROUBLE = {
    "no answer": Reply(cut=True),
    "part of an answer": Reply(body=b"x" * 100, truncate=10),
    "no HTTP": Reply(protocol="ICY"),
    "two lengths": Reply(body=b"x" * 100, headers={"Content-Length": "1, 100"}),
    "late": Reply(hold=True),
}


def _trouble(reply: Reply, method: str, *before: Reply) -> tuple[object, ...]:
    """What is told of an answer, behind good ones on its connection."""
    with Stub(*before, reply, answer=lambda seen: Reply()) as stub:
        transport = transport_to(stub.url, retries=0, timeout=0.2)
        for _number in before:
            transport.read("reading", "before")
        with pytest.raises(ToolchainError) as caught:
            transport.send("asking", method, "x", reads=method == "GET", headers={"X-Y": "z"})
        assert transport.read("reading", "after").status == 200
        assert stub.connections == 2  # what may still come on the first is not the next answer
        error = caught.value
        said = error.message.replace(stub.url, "")
    return error.kind, error.outcome_unknown, said


@pytest.mark.parametrize("reply", TROUBLE.values(), ids=TROUBLE)
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_trouble_on_a_connection_that_is_kept_is_told_as_on_a_new_one(
    reply: Reply, method: str
) -> None:
    assert _trouble(reply, method, Reply(), Reply()) == _trouble(reply, method)


def test_a_connection_with_trouble_leaves_its_place_to_another() -> None:
    """More troubles than there are connections."""
    replies = [Reply(cut=number % 2 == 1) for number in range(24)]
    with Stub(*replies) as stub:
        transport = transport_to(stub.url, retries=0)
        for number in range(24):
            if number % 2 == 0:
                assert transport.read("reading", "x").status == 200
                continue
            with pytest.raises(ToolchainError, match="the connection broke"):
                transport.read("reading", "x")


@pytest.mark.parametrize(
    ("trouble", "heard"),
    [(BrokenPipeError(32, "x"), True), (ConnectionResetError(104, "x"), True), (OSError(5), False)],
)
def test_a_server_may_answer_before_it_has_the_whole_body(*, trouble: OSError, heard: bool) -> None:
    class Ended:
        """A connection that the server has ended behind its answer."""

        sock = timeout = None

        def request(self, *_request: object) -> None:
            raise trouble

        def getresponse(self) -> Incoming | None:
            return Incoming.at_once(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n", "PUT")

    def exchanged() -> int:
        load = Load(b"x", "home", streamed=False)
        return on_kept_connection(Ended(), "PUT", "/x", load, {}).status

    if heard:
        assert exchanged() == 413
        return
    with pytest.raises(ProtocolError, match="aborted"):
        exchanged()
