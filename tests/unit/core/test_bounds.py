# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the limits of a response: time, bytes, levels [C1.4]."""

from __future__ import annotations

import gzip
import io
import json
import time
import zlib
from collections.abc import Callable
from typing import Any

import pytest
import urllib3
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core import errors, json_text
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http import bodies
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.connections import (
    DeadlineStream,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.messages import (
    Accounting,
)
from tests.unit.stub import Reply, Stub, transport_to

BIG = b"x" * 100_000
GZIP = {"Content-Encoding": "gzip"}


def failed(reply: Reply, *, streamed: bool = False, **settings: Any) -> ToolchainError:
    """Return the error of a read from a server that always sends this reply."""
    with Stub(response=lambda seen: reply) as stub:
        transport = transport_to(stub.url, retries=0, **settings)

        def read() -> None:
            if streamed:
                with transport.stream("reading", "x") as response:
                    list(response.iter_content())
            else:
                transport.read("reading", "x")

        with pytest.raises(ToolchainError) as caught:
            read()
    return caught.value


@pytest.mark.parametrize("part", ["head", "body"])
@pytest.mark.parametrize("streamed", [False, True])
def test_slow_response_times_out(part: Any, streamed: bool) -> None:
    reply = Reply(body=BIG, trickle=part, headers={"X-Long": "y" * 10_000})
    # on a busy machine a complete head may take 0.2 s, too
    timeout = {"head": 0.2, "body": 1.0}[part]
    error = failed(reply, streamed=streamed, timeout=timeout)
    words = {"head": "no response within 0.2 s", "body": "slower than 1 KiB/s for 1 s"}
    assert error.kind == "timeout"
    assert words[part] in str(error)


def test_outcome_of_slow_write_is_unknown() -> None:
    with Stub(response=lambda seen: Reply(body=BIG, trickle="body")) as stub:
        transport = transport_to(stub.url, timeout=0.2)
        with pytest.raises(ToolchainError) as caught:
            transport.write("writing", "PUT", "x")
        assert (caught.value.kind, caught.value.outcome_unknown) == ("timeout", True)
        stub.wait_for(1)


class Clock:
    """A clock that advances only while the client waits for bytes, and their socket."""

    def __init__(self) -> None:
        self.time = 0.0
        self.timeouts: list[float | None] = []

    def gettimeout(self) -> float | None:
        return 10.0

    def settimeout(self, value: float | None, /) -> None:
        self.timeouts.append(value)


class Source(io.RawIOBase):
    """Provide the given number of bytes after each wait of the given seconds."""

    def __init__(self, clock: Clock, waits: list[tuple[float, int]]) -> None:
        self._clock, self._waits = clock, waits

    def readinto(self, buffer: Any, /) -> int:
        seconds, count = self._waits.pop(0) if self._waits else (0.0, 0)
        self._clock.time += seconds
        return count


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", lambda: clock.time)
    return clock


def test_head_gets_the_remaining_time(clock: Clock) -> None:
    source = DeadlineStream(Source(clock, [(4.0, 100), (5.0, 100), (2.0, 100)]), clock)
    buffer = bytearray(1000)
    assert [source.readinto(buffer), source.readinto(buffer)] == [100, 100]
    assert clock.timeouts == [6.0]
    with pytest.raises(TimeoutError, match="head"):
        source.readinto(buffer)


@pytest.mark.parametrize(
    ("waits", "slow"),
    [
        ([(5.0, 5000), (5.0, 6000), (5.0, 20_000), (5.0, 1000)], False),
        ([(5.0, 5000), (5.0, 5000)], True),
        ([(1.0, 50_000), (9.0, 1), (9.9, 10_000)], False),
        ([(1.0, 50_000), (9.0, 1), (9.9, 10_000), (0.1, 1)], True),
        ([(9.9, 1)], False),
        ([(10.0, 0)], False),
    ],
)
def test_body_has_a_minimum_rate(
    waits: list[tuple[float, int]], clock: Clock, *, slow: bool
) -> None:
    source = DeadlineStream(Source(clock, list(waits)), clock)
    source.end_head()
    assert clock.timeouts == []

    def take() -> None:
        for _wait in list(waits):
            clock.time += 1000  # the consumer may take its time
            source.readinto(bytearray(10))

    if slow:
        with pytest.raises(bodies.SlowBody):
            take()
    else:
        take()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MAX_BODY", 1024 * 1024)


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (bytes(2 * 1024 * 1024), {}),
        (gzip.compress(bytes(100 * 1024 * 1024)), GZIP),
        (zlib.compress(bytes(2 * 1024 * 1024)), {"Content-Encoding": "deflate"}),
        (gzip.compress(bytes(600 * 1024)) * 2, GZIP),
    ],
    ids=["plain", "a bomb", "deflate", "two parts"],
)
@pytest.mark.usefixtures("small")
def test_too_large_response_is_rejected(body: bytes, headers: dict[str, str]) -> None:
    error = failed(Reply(200, body, headers=headers))
    assert error.kind == "protocol"
    assert "the response has more than 1 MiB" in str(error)
    assert failed(Reply(500, body, headers=headers)).kind == "protocol"


@pytest.mark.usefixtures("small")
def test_connection_survives_a_too_large_response() -> None:
    replies = [Reply(200, bytes(9_000_000)), Reply(200, gzip.compress(bytes(9_000_000)), GZIP)]
    with Stub(*replies * 2, response=lambda seen: Reply(body="fine")) as stub:
        transport = transport_to(stub.url, connections=1)
        for _reply in stub.replies.copy():
            with pytest.raises(ToolchainError, match="more than"):
                transport.read("reading", "x")
        assert transport.read("reading", "x").text == "fine"


def test_stream_is_decoded_in_small_chunks() -> None:
    size = 50 * 1024 * 1024
    with Stub(Reply(200, gzip.compress(bytes(size)), GZIP)) as stub:
        transport = transport_to(stub.url)
        with transport.stream("reading", "x") as response:
            sizes = [len(chunk) for chunk in response.iter_content()]
    assert sum(sizes) == transport.accounting.as_dict()["bytes_received"] == size
    assert max(sizes) <= 1024 * 1024


def _bare(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


PACKINGS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip in capitals": ("X-GZIP", gzip.compress),
    "parts": ("gzip", lambda data: gzip.compress(data[:3]) + gzip.compress(data[3:])),
    "padded": ("gzip", lambda data: gzip.compress(data) + bytes(9)),
    "zlib": ("deflate", zlib.compress),
    "bare": ("deflate", _bare),
    "identity": ("identity", lambda data: data),
}


def in_chunks(body: bytes, encoding: str, step: int) -> bodies.Incoming:
    """Return a response with a body in chunks of `step` bytes."""

    class Raw(io.BytesIO):
        def read(self, _size: int | None = -1, /) -> bytes:
            return super().read(step)

    raw = urllib3.HTTPResponse(
        Raw(body), {"Content-Encoding": encoding}, status=200, preload_content=False
    )
    return bodies.Incoming(raw, "http://host/", Accounting())


@given(st.binary(max_size=3000), st.integers(12, 500), st.sampled_from(sorted(PACKINGS)))
def test_every_content_encoding_is_decoded(data: bytes, step: int, name: str) -> None:
    packing, pack = PACKINGS[name]
    body = pack(data)
    assert b"".join(in_chunks(body, packing, step).iter_content()) == data
    response = in_chunks(body, packing, step)
    response.read()
    assert response.content == data


@pytest.mark.parametrize("body", [b"plain text", b"", gzip.compress(b"cut off", mtime=0)[:-9]])
@pytest.mark.parametrize("packing", ["gzip", "deflate", "br", "gzip, gzip"])
def test_error_with_wrong_content_encoding_keeps_its_kind(body: bytes, packing: str) -> None:
    headers = {"Content-Encoding": packing}
    error = failed(Reply(500, body, headers=headers))
    assert (error.kind, error.status) == ("server", 500)
    if body:
        assert failed(Reply(200, body, headers=headers)).kind == "protocol"
    assert ("plain text" in str(error)) == (body == b"plain text")


def test_accept_encoding_names_only_supported_encodings() -> None:
    with Stub(Reply()) as stub:
        transport_to(stub.url).read("reading", "x")
    assert stub.seen[0].headers["Accept-Encoding"] == "gzip, deflate"


@pytest.mark.parametrize(("levels", "read"), [(200, True), (201, False), (900, False)])
@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_json_nesting_is_limited(levels: int, opening: str, *, read: bool) -> None:
    closing = {"[": "]"}.get(opening, "}")
    text = opening * levels + ("1" if opening != "[" else "") + closing * levels
    wide = f"[{','.join(['[]'] * 300)}]"
    assert len(json_text.loads(wide)) == 300
    if read:
        assert json.dumps(json_text.loads(text.encode()), separators=(",", ":")) == text
    else:
        with pytest.raises(json_text.TooDeep, match="200 levels"):
            json_text.loads(text)


@pytest.mark.parametrize("levels", [300, 900, 50_000])
def test_deeply_nested_error_body_is_shown_unparsed(levels: int) -> None:
    body = "[" * levels + '"deep"' + "]" * levels
    assert errors.error_text(body).startswith("[[[")


def test_lines_have_a_maximum_length() -> None:
    assert list(bodies.lines([b"a\r\nb", b"c", b"\n\nd"], 9)) == [b"a", b"bc", b"", b"d"]
    assert list(bodies.lines([], 9)) == []
    with pytest.raises(bodies.BodyError):
        list(bodies.lines([b"12345", b"67890"], 9))


def test_body_of_lines_with_endless_trailers_ends() -> None:
    endless = b"5\r\nhello\r\n0\r\n" + b"X-Trailer: 1\r\n" * 200_000
    error = failed(
        Reply(body=endless, headers={"Transfer-Encoding": "chunked", "X-Y": "z"}), timeout=5
    )
    assert error.kind == "network"


@pytest.mark.parametrize("protocol", ["HTTP/1.1", "x\x1b[31m" * 3000])
def test_long_status_line_is_not_shown(protocol: str) -> None:
    error = failed(Reply(500, reason="\x1b[31mred" * 4000, protocol=protocol))
    assert len(str(error)) < 600
    assert "\x1b" not in str(error)
    assert error.kind == ("server" if protocol == "HTTP/1.1" else "network")


@pytest.mark.parametrize("text", ["\ud83d", "a\udc00b", "\ud83d\ud83d"])
def test_unpaired_surrogate_is_replaced_in_output(text: str) -> None:
    body = json.dumps({"message": text})
    for found in (errors.error_text(body), errors.printable(text), errors.error_text(text)):
        assert found.encode()
        assert "\ufffd" in found
    assert json_text.loads(body)["message"].encode()
    assert json_text.loads('["\\ud83d\\ude00"]') == ["\U0001f600"]
    assert errors.escape_controls(text).encode()
