# SPDX-License-Identifier: GPL-3.0-or-later
"""Test requests on the wire, and the handling of connections and responses."""

from __future__ import annotations

import io
import os
import socket
from http.client import HTTPConnection
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from requests import PreparedRequest, RequestException

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.address import (
    UnfitRequest,
    prepared_url,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
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
def test_request_target_equals_that_of_requests(rest: str) -> None:
    address = f"{HOME}/{rest}" if rest[:1] not in ("/", "?", "#") else HOME + rest
    prepared = PreparedRequest()
    try:
        prepared.prepare_url(address, None)
    except RequestException:
        with pytest.raises(UnfitRequest):
            prepared_url(address)
        return
    sent = PreparedRequest()
    sent.url = prepared_url(address)
    assert sent.path_url == prepared.path_url


@pytest.mark.parametrize("value", [" s3cret", "s3c\r\nret", "s3c\0ret", "s3cret\u20ac", "\ns3cret"])
def test_invalid_header_value_is_rejected_and_not_shown(value: str) -> None:
    with Stub() as stub, pytest.raises(ToolchainError) as caught:
        transport_to(stub.url).write("writing", "PUT", "x", headers={"X-Key": value})
    assert (caught.value.kind, caught.value.outcome_unknown, stub.seen) == ("invalid", False, [])
    assert "the header 'X-Key' contains a character" in str(caught.value)
    assert "s3c" not in str(caught.value)


@pytest.mark.parametrize(
    ("taken", "connections"), [(True, 1), (False, 2)], ids=["to its end", "not to its end"]
)
def test_unread_stream_does_not_spoil_the_next_response(*, taken: bool, connections: int) -> None:
    with Stub(Reply(body=b"x" * 3_000_000), Reply(body=b"next")) as stub:
        transport = transport_to(stub.url)
        with transport.stream("reading", "x") as response:
            chunks = response.iter_content()
            next(chunks)
            if taken:
                assert sum(map(len, chunks)) > 0
        assert transport.read("reading", "y").text == "next"
        assert stub.connections == connections


def test_connections_of_streams_are_returned_to_the_pool() -> None:
    """Verify this with more consecutive streams than there are connections."""
    with Stub(
        response=lambda seen: Reply(404 if seen.target.endswith("/no") else 200, "words")
    ) as stub:
        transport = transport_to(stub.url)
        for _number in range(12):
            with transport.stream("reading", "x") as response:
                assert b"".join(response.iter_content()) == b"words"
            with pytest.raises(ToolchainError, match="404"), transport.stream("reading", "no"):
                raise AssertionError("there is nothing to take")
        assert stub.connections == 1


def test_bodies_of_any_size_arrive_complete() -> None:
    with Stub(response=lambda seen: Reply()) as stub:
        transport = transport_to(stub.url)
        sizes = [0, 1, 65_536, 65_537, 3_000_000]
        for size in sizes:
            transport.write("writing", "PUT", "x", body=b"x" * size)
        transport.write("deleting", "DELETE", "x")
        transport.read("reading", "x")
    assert [len(seen.body) for seen in stub.seen] == [*sizes, 0, 0]
    lengths = [seen.headers.get("Content-Length") for seen in stub.seen]
    assert lengths == [*map(str, sizes), "0", None]


@pytest.mark.parametrize(
    ("parts", "blocks"),
    [
        ({}, [0]),
        ({"body": b"x" * 65_536}, [65_536]),
        ({"body": b"x" * 65_537}, [0, 65_537]),
        ({"open_body": lambda: io.BytesIO(b"x" * 1_048_577), "size": 1_048_577}, [0, 1_048_576, 1]),
    ],
    ids=["no body", "small", "large", "streamed"],
)
def test_small_body_is_sent_together_with_head(
    monkeypatch: pytest.MonkeyPatch, parts: dict[str, Any], blocks: list[int]
) -> None:
    sent: list[bytes] = []
    send = HTTPConnection.send

    def watched(self: HTTPConnection, data: bytes) -> None:
        sent.append(data)
        send(self, data)

    monkeypatch.setattr(HTTPConnection, "send", watched)
    with Stub(response=lambda seen: Reply()) as stub:
        transport = transport_to(stub.url)
        for _number in range(2):  # on a new and on a reused connection
            transport.write("writing", "PUT", "x", **parts)
    assert [len(seen.body) for seen in stub.seen] == [sum(blocks)] * 2
    bodies = [data.partition(b"\r\n\r\n")[2] if data.startswith(b"PUT ") else data for data in sent]
    assert [len(body) for body in bodies] == blocks * 2


TROUBLE = {
    "no answer": Reply(cut=True),
    "part of an answer": Reply(body=b"x" * 100, truncate=10),
    "no HTTP": Reply(protocol="ICY"),
    "two lengths": Reply(body=b"x" * 100, headers={"Content-Length": "1, 100"}),
    "late": Reply(hold=True),
}


def _trouble(reply: Reply, method: str, *before: Reply) -> tuple[object, ...]:
    """Return the error for a response that follows successful responses on its connection."""
    with Stub(*before, reply, response=lambda seen: Reply()) as stub:
        # the other responses must be in time on a busy machine, too
        transport = transport_to(stub.url, retries=0, timeout=1 if reply.hold else 10)
        for _number in before:
            transport.read("reading", "before")
        with pytest.raises(ToolchainError) as caught:
            transport.send("asking", method, "x", reads=method == "GET", headers={"X-Y": "z"})
        assert transport.read("reading", "after").status == 200
        assert stub.connections == 2  # late data on the first connection is not the next response
        error = caught.value
        message = error.message.replace(stub.url, "")
    return error.kind, error.outcome_unknown, message


@pytest.mark.parametrize("reply", TROUBLE.values(), ids=TROUBLE)
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_error_on_reused_connection_is_reported_like_on_a_new_one(
    reply: Reply, method: str
) -> None:
    assert _trouble(reply, method, Reply(), Reply()) == _trouble(reply, method)


def test_failed_connections_free_their_place_in_the_pool() -> None:
    """Verify this with more failed connections than the pool has places."""
    replies = [Reply(cut=number % 2 == 1) for number in range(24)]
    with Stub(*replies) as stub:
        transport = transport_to(stub.url, retries=0)
        for number in range(24):
            if number % 2 == 0:
                assert transport.read("reading", "x").status == 200
                continue
            with pytest.raises(ToolchainError, match="the connection was lost"):
                transport.read("reading", "x")


def test_oldest_pools_are_closed_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verify that the oldest pools are closed, by the library or with it, and created again."""
    real = socket.getaddrinfo

    def resolve(host: Any, *arguments: Any, **options: Any) -> Any:
        return real("127.0.0.1" if str(host).endswith(".test") else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with Stub(response=lambda seen: Reply(body=b"ok")) as stub:
        transport = transport_to(stub.url)
        before = len(os.listdir("/proc/self/fd"))
        for _round in range(2):
            assert transport.read("reading", "x").text == "ok"
            for number in range(60):
                there = stub.url.replace("127.0.0.1", f"s{number}.test")
                assert transport.read("reading", there, foreign_hosts=True).text == "ok"
        assert stub.connections == 122
        assert len(os.listdir("/proc/self/fd")) < before + 60
