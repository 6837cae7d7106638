# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import io
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
import requests.utils

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.analysis.service import (
    FormToken,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection.auth import (
    Basic,
    Header,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
    shorten,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.messages import (
    Response,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.transport import (
    Transport,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.secret import Secret
from tests.unit.stub import Reply, Stub, Waits, connection_to, transport_to

OK = Reply(body={"ok": True})
NOW = 1_700_000_000.0


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def fails(call: Any, *args: Any, **kwargs: Any) -> ToolchainError:
    with pytest.raises(ToolchainError) as caught:
        call(*args, **kwargs)
    return caught.value


# Requests and responses


def test_read_returns_the_complete_response() -> None:
    with Stub(OK) as stub:
        response = transport_to(stub.url).read("reading x", "a/b", query={"q": "x y"})
    (seen,) = stub.seen
    assert (seen.method, seen.target) == ("GET", "/base/a/b?q=x%20y")
    assert (response.status, response.json()) == (200, {"ok": True})
    assert response.url == f"{stub.url}/a/b?q=x%20y"
    assert seen.headers["User-Agent"] == "delivery.toolchain"
    assert "Authorization" not in seen.headers


@pytest.mark.parametrize(
    ("parts", "body", "content_type"),
    [
        ({"json": {"ü": [1, None]}}, '{"ü": [1, null]}'.encode(), "application/json"),
        ({"json": None}, b"null", "application/json"),
        (
            {"form": {"a": "ü &", "b": True}},
            b"a=%C3%BC%20%26&b=true",
            "application/x-www-form-urlencoded;charset=UTF-8",
        ),
        ({"body": b"\x00\xff"}, b"\x00\xff", None),
        ({}, b"", None),
        ({"open_body": lambda: io.BytesIO(b"x" * 70000), "size": 70000}, b"x" * 70000, None),
        ({"open_body": lambda: io.BytesIO(b"longer by now"), "size": 6}, b"longer", None),
        ({"open_body": lambda: io.BytesIO(b""), "size": 0}, b"", None),
    ],
)
def test_body_is_encoded(parts: dict[str, Any], body: bytes, content_type: str | None) -> None:
    with Stub(Reply(201)) as stub:
        transport = transport_to(stub.url)
        transport.write("writing x", "PUT", "x", **parts)
    (seen,) = stub.seen
    assert seen.body == body
    assert seen.headers.get("Content-Type") == content_type
    assert seen.headers.get("Content-Length") == str(len(body))
    assert "Transfer-Encoding" not in seen.headers
    assert transport.accounting.bytes_sent == len(body)


def test_explicit_headers_win() -> None:
    with Stub(OK) as stub:
        transport_to(stub.url).read("reading", "x", headers={"Accept": "text/plain"})
    assert stub.seen[0].headers["Accept"] == "text/plain"


@pytest.mark.parametrize(
    ("path", "query", "expected"),
    [
        ("a", None, "http://host/base/a"),
        ("/a", {"b": 1}, "http://host/base/a?b=1"),
        ("a?x=1", {"b": 1}, "http://host/base/a?x=1&b=1"),
        ("", {}, "http://host/base/"),
        ("http://host/other/c", {"b": None}, "http://host/other/c"),
    ],
)
def test_url_of_path_and_query(path: str, query: Any, expected: str) -> None:
    assert transport_to("http://host/base").url(path, query) == expected


def test_foreign_url_is_not_requested_with_credentials() -> None:
    transport = transport_to("http://127.0.0.1:1/base", login=Basic("u", Secret("p")))
    error = fails(transport.read, "reading", "http://127.0.0.2:1/x")
    assert error.kind == "protocol"
    assert transport.accounting.requests == 0


def test_expected_status_is_returned() -> None:
    with Stub(Reply(404), Reply(302, headers={"Location": "/x"})) as stub:
        transport = transport_to(stub.url)
        assert transport.read("reading", "x", expect=(200, 404)).status == 404
        assert transport.accounting.acknowledged == 0
        assert transport.write("starting", "POST", "x", expect=(201, 302)).status == 302
        assert transport.accounting.acknowledged == 1


def test_unexpected_status_raises_the_error_of_the_server() -> None:
    with Stub(Reply(409, {"errors": [{"message": "It is locked"}]})) as stub:
        error = fails(transport_to(stub.url).write, "moving 'x'", "POST", "x?token=abc")
    assert error.kind == "conflict"
    assert str(error) == "moving 'x': the server returned 409: It is locked"
    assert error.as_dict() == {
        "kind": "conflict",
        "status": 409,
        "method": "POST",
        "url": f"{stub.url}/x?token=***",
        "detail": "It is locked",
    }


def test_service_describes_its_own_errors() -> None:
    with Stub(Reply(400, "code 17")) as stub:
        transport = Transport(
            connection_to(stub.url),
            Basic("u", Secret("p")),
            read_only=False,
            describe=lambda response: f"said {response.text}",
        )
        assert "said code 17" in str(fails(transport.read, "reading", "x"))


def test_error_without_message_is_reported() -> None:
    with Stub(Reply(500)) as stub:
        assert "returned 500 without an error message" in str(
            fails(transport_to(stub.url).read, "r", "x")
        )


def test_secret_repeated_by_server_is_masked() -> None:
    secret = Secret("pass-word-1")
    with Stub(
        Reply(400, f"wrong {secret.reveal()}"), Reply(503, secret.reveal(), {"Retry-After": "999"})
    ) as stub:
        connection = connection_to(stub.url, username="u", password=secret)
        transport = Transport(connection, Basic("u", secret), read_only=False, sleep=Waits())
        for error in (fails(transport.read, "r", "x"), fails(transport.read, "r", "x")):
            assert secret.reveal() not in str(error) + str(error.detail)
            assert "***" in str(error.detail)


def test_long_error_page_is_cut() -> None:
    with Stub(Reply(500, "<html><p>" + "x" * 100_000 + "</p></html>")) as stub:
        error = fails(transport_to(stub.url).read, "reading", "x")
    assert len(str(error)) < 1100
    assert error.detail == shorten("x" * 100_000)


# Retries


@pytest.mark.parametrize("status", [408, 429, 502, 503, 504])
def test_read_is_retried_with_growing_waits(status: int) -> None:
    waits = Waits()
    with Stub(*[Reply(status)] * 3, OK) as stub:
        transport = transport_to(stub.url, sleep=waits)
        assert transport.read("reading", "x").status == 200
    assert len(stub.seen) == 4
    assert transport.accounting.retries == 3
    assert [0.25 * 2**n <= wait <= 0.5 * 2**n for n, wait in enumerate(waits)] == [True] * 3


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_every_read_is_retried_with_its_body(method: str) -> None:
    with Stub(Reply(503), OK) as stub:
        transport_to(stub.url).read("searching", "x", method=method, json={"a": 1})
    assert [seen.body for seen in stub.seen] == [b'{"a": 1}'] * 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 500, 501, 505])
def test_other_statuses_are_final(status: int) -> None:
    with Stub(Reply(status)) as stub:
        error = fails(transport_to(stub.url).read, "reading", "x")
    assert error.status == status
    assert len(stub.seen) == 1


def test_retries_are_limited() -> None:
    with Stub(*[Reply(503, "busy")] * 3) as stub:
        error = fails(transport_to(stub.url, retries=2).read, "reading", "x")
    assert (error.kind, len(stub.seen)) == ("server", 3)
    with Stub(Reply(429)) as stub:
        assert fails(transport_to(stub.url, retries=0).read, "r", "x").kind == "rate_limited"


@pytest.mark.parametrize(
    ("value", "least"),
    [("7", 7.0), (formatdate(NOW + 30, usegmt=True), 30.0), ("0", 0.25), ("soon", 0.25)],
)
def test_retry_after_is_the_minimum_wait(
    value: str, least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: NOW)
    waits = Waits()
    with Stub(Reply(429, headers={"Retry-After": value}), OK) as stub:
        transport_to(stub.url, sleep=waits).read("reading", "x")
    (wait,) = waits
    assert least <= wait <= max(least, 0.5)


@pytest.mark.parametrize("reads", [True, False])
@pytest.mark.parametrize("value", ["61", formatdate(NOW + 61, usegmt=True)])
@pytest.mark.parametrize("status", [429, 503])
def test_too_long_retry_after_fails_immediately(
    reads: bool, value: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: NOW)
    waits = Waits()
    with Stub(Reply(status, "slow down", {"Retry-After": value})) as stub:
        transport = transport_to(stub.url, sleep=waits)
        error = fails(transport.send, "asking", "POST", "x", reads=reads, expect=(200,))
    assert (error.kind, error.status, waits) == ("rate_limited", status, [])
    assert f"the server returned {status} and requests a wait of 61 s" in str(error)
    assert ": slow down" in str(error)
    assert "retry_max_wait (60 s)" in str(error)
    assert error.detail == "slow down"


def test_waits_have_a_maximum() -> None:
    waits = Waits()
    with Stub(*[Reply(503)] * 8, OK) as stub:
        transport_to(stub.url, sleep=waits, retries=9, retry_max_wait=1).read("reading", "x")
    assert max(waits) <= 1


@pytest.mark.parametrize(
    "broken",
    [
        Reply(cut=True),
        Reply(body=b"x" * 100, truncate=10),
        Reply(body=b"x" * 100, truncate=0),
        Reply(
            body=b"5\r\nhello\r\n",
            headers={"Transfer-Encoding": "chunked", "Content-Length": "11"},
            truncate=11,
        ),
    ],
)
def test_broken_read_is_retried(broken: Reply) -> None:
    with Stub(broken, broken, OK) as stub:
        transport = transport_to(stub.url)
        assert transport.read("reading", "x").json() == {"ok": True}
    assert transport.accounting.as_dict()["retries"] == 2


@pytest.mark.parametrize("broken", [Reply(cut=True), Reply(body=b"x" * 100, truncate=10)])
def test_broken_write_is_not_retried(broken: Reply) -> None:
    with Stub(broken) as stub:
        transport = transport_to(stub.url)
        error = fails(transport.write, "creating x", "POST", "x")
    assert len(stub.seen) == 1
    assert (error.kind, error.outcome_unknown) == ("network", True)
    assert str(error).endswith("; whether it was done is not known")
    assert (error.method, error.url) == ("POST", f"{stub.url}/x")
    assert transport.accounting.writes == 1


def test_timeout_is_retried_only_for_reads() -> None:
    with Stub(Reply(hold=True), Reply(hold=True), Reply(hold=True)) as stub:
        transport = transport_to(stub.url, timeout=0.1, retries=1)
        error = fails(transport.read, "reading x", "x")
        assert (error.kind, error.outcome_unknown) == ("timeout", False)
        assert str(error) == f"reading x: no response within 0.1 s ({stub.url}/x)"
        stub.wait_for(2)
        error = fails(transport.write, "writing x", "PUT", "x")
        assert (error.kind, error.outcome_unknown) == ("timeout", True)
        stub.wait_for(3)


@pytest.mark.parametrize("reads", [True, False])
def test_refused_connection_is_retried(reads: bool) -> None:
    transport = transport_to(f"http://127.0.0.1:{closed_port()}")
    error = fails(transport.send, "asking", "POST", "x", reads=reads, expect=(200,))
    assert (error.kind, error.outcome_unknown) == ("network", False)
    assert "check host and port of url" in str(error)
    assert transport.accounting.retries == 3


def test_unknown_host_is_a_network_error() -> None:
    error = fails(transport_to("http://no-such-host.invalid", retries=0).read, "reading", "x")
    assert error.kind == "network"
    assert "cannot resolve the host name" in str(error)


def test_file_is_read_again_for_every_attempt() -> None:
    opened: list[io.BytesIO] = []

    def open_body() -> io.BytesIO:
        opened.append(io.BytesIO(b"x" * 1000))
        return opened[-1]

    with Stub(Reply(429), Reply(201)) as stub:
        transport = transport_to(stub.url)
        parts: dict[str, Any] = {"open_body": open_body, "size": 1000}
        transport.write("deploying", "PUT", "x", repeatable=True, **parts)
    assert [len(seen.body) for seen in stub.seen] == [1000, 1000]
    assert [file.closed for file in opened] == [True, True]
    assert transport.accounting.bytes_sent == 2000


def test_check_of_availability_is_not_retried() -> None:
    """Verify this for a server that is watched while down: the first failure is the result."""
    waits = Waits()
    with Stub(Reply(503, headers={"Retry-After": "0"}), Reply(cut=True)) as stub:
        transport = transport_to(stub.url, sleep=waits)
        assert fails(transport.read, "looking", "x", once=True).status == 503
        assert fails(transport.read, "looking", "x", once=True).kind == "network"
    assert waits == []
    assert transport.accounting.retries == 0


#: Size of a file that is read whole before it is sent, and of a file that is read while it is sent.
SIZES = [11, 100_000]


@pytest.mark.parametrize("size", SIZES)
def test_shrinking_file_is_an_error(size: int) -> None:
    with Stub(response=lambda seen: Reply(cut=True)) as stub:
        transport = transport_to(stub.url)
        parts = {"open_body": lambda: io.BytesIO(b"x" * 10), "size": size}
        error = fails(transport.write, "deploying 'x'", "PUT", "x", **parts)
    assert error.message == "deploying 'x': the file was truncated while it was sent"
    assert not error.outcome_unknown


@pytest.mark.parametrize("size", SIZES)
def test_missing_file_is_an_error(size: int) -> None:
    def open_body() -> io.BufferedReader:
        return Path("/nowhere/x").open("rb")

    with Stub() as stub:
        transport = transport_to(stub.url)
        parts: dict[str, Any] = {"open_body": open_body, "size": size}
        error = fails(transport.write, "deploying 'x'", "PUT", "x", **parts)
    assert error.message == "deploying 'x': the file cannot be read: No such file or directory"
    assert (error.kind, error.outcome_unknown) == ("failed", False)


@pytest.mark.parametrize("size", SIZES)
def test_unreadable_file_is_an_error(size: int) -> None:
    class Bad(io.BytesIO):
        def read(self, amount: int | None = -1) -> bytes:
            raise OSError(errno.EIO, "Input/output error")

    with Stub(response=lambda seen: OK) as stub:
        transport = transport_to(stub.url)
        parts = {"open_body": lambda: Bad(b"x" * 11), "size": size}
        error = fails(transport.write, "deploying 'x'", "PUT", "x", **parts)
    assert error.message == "deploying 'x': the file cannot be read: Input/output error"
    assert not error.outcome_unknown


def test_proxy_variables_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def proxies(url: str) -> dict[str, str]:
        asked.append(url)
        return {}

    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    monkeypatch.setattr(requests.utils, "get_environ_proxies", proxies)
    with Stub(response=lambda seen: OK) as stub:
        transport = transport_to(stub.url)
        for number in range(3):
            transport.read("reading", f"x/{number}")
        transport_to(stub.url).read("reading", "x")
        assert len(asked) == 1
        monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:2")
        transport_to(stub.url).read("reading", "x")
        assert len(asked) == 2


# Redirects


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_read_follows_redirect_on_same_server(status: int) -> None:
    with Stub(Reply(status, b"moved", {"Location": "/other?x=1"}), OK) as stub:
        transport = transport_to(stub.url, login=Basic("u", Secret("p")))
        response = transport.read("reading", "x")
    assert [seen.target for seen in stub.seen] == ["/base/x", "/other?x=1"]
    assert stub.seen[1].headers["Authorization"] == stub.seen[0].headers["Authorization"]
    assert response.url.endswith("/other?x=1")
    assert transport.accounting.requests == 2


def test_redirect_to_another_server_is_not_followed() -> None:
    with Stub() as other, Stub(Reply(302, headers={"Location": f"{other.url}/x"})) as stub:
        error = fails(transport_to(stub.url).read, "reading", "x")
        assert error.kind == "protocol"
        assert f"redirects to {other.url}/x" in str(error)
        assert "check url" in str(error)
    assert other.seen == []


def test_allowed_foreign_redirect_is_followed_without_credentials() -> None:
    with Stub(OK) as other, Stub(Reply(302, headers={"Location": f"{other.url}/x"})) as stub:
        transport = transport_to(
            stub.url, login=Header("Authorization", secret=Secret("t"), prefix="Bearer ")
        )
        transport.read("downloading", "x", foreign_hosts=True)
    assert "Authorization" in stub.seen[0].headers
    assert "Authorization" not in other.seen[0].headers


@pytest.mark.parametrize("foreign", [True, False])
def test_redirect_to_login_page_is_an_auth_error(foreign: bool) -> None:
    location = "http://sso.invalid/login?next=%2Fx&token=abc" if foreign else "/base/login.jsp?a=b"
    with Stub(Reply(302, headers={"Location": location})) as stub:
        error = fails(transport_to(stub.url).read, "reading", "x")
    assert error.kind == "auth"
    assert "the server returned 302 and redirects to its login page" in str(error)
    assert "check the credentials" in str(error)
    assert "abc" not in str(error)


@pytest.mark.parametrize(
    "location",
    [
        "https://idp.invalid/sso/saml?SAMLRequest=fZ&RelayState=x",
        "https://idp.invalid/authorize?client_id=a&redirect_uri=b&response_type=code",
    ],
)
def test_redirect_to_an_identity_provider_is_an_auth_error(location: str) -> None:
    with Stub(Reply(302, headers={"Location": location})) as stub:
        error = fails(transport_to(stub.url).read, "reading", "x")
    assert (error.kind, "redirects to its login page" in str(error)) == ("auth", True)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_write_follows_no_redirect(status: int) -> None:
    with Stub(Reply(status, headers={"Location": "/base/y"})) as stub:
        transport = transport_to(stub.url)
        error = fails(transport.write, "creating", "POST", "x", body=b"1")
    assert len(stub.seen) == 1
    assert (error.kind, error.status) == ("protocol", status)
    assert f"redirects to {stub.url}/y" in str(error)
    assert transport.accounting.acknowledged == 0


def test_write_redirected_to_login_page_is_an_auth_error() -> None:
    with Stub(Reply(302, headers={"Location": "/base/login"})) as stub:
        assert fails(transport_to(stub.url).write, "creating", "POST", "x").kind == "auth"


@pytest.mark.parametrize("status", [307, 308])
def test_redirected_read_keeps_its_body(status: int) -> None:
    with Stub(Reply(status, headers={"Location": "y"}), OK) as stub:
        transport_to(stub.url).read("searching", "x", method="POST", json={"a": 1})
    assert [(seen.method, seen.body) for seen in stub.seen] == [("POST", b'{"a": 1}')] * 2


@pytest.mark.parametrize("status", [301, 302, 303])
def test_redirect_that_would_drop_the_body_is_not_followed(status: int) -> None:
    with Stub(Reply(status, headers={"Location": "y"})) as stub:
        error = fails(transport_to(stub.url).read, "searching", "x", method="POST", json={})
    assert (error.kind, len(stub.seen)) == ("protocol", 1)


def test_redirect_loop_is_an_error() -> None:
    with Stub(response=lambda seen: Reply(302, headers={"Location": "/base/x"})) as stub:
        error = fails(transport_to(stub.url).read, "reading", "x")
    assert error.kind == "protocol"
    assert "redirected 5 times" in str(error)
    assert len(stub.seen) == 5


@pytest.mark.parametrize("foreign", [False, True])
@pytest.mark.parametrize("before", ["\\@", "%5C@", "\t@", " @", "#@", "?@", "/@", ":80\\@", "@"])
def test_credential_is_sent_only_to_its_origin(before: str, *, foreign: bool) -> None:
    """Verify that a foreign host does not get the token, however an address combines hosts."""
    with Stub(response=lambda seen: Reply(body="other")) as other:
        there = other.url.removesuffix("/base")
        with Stub(response=lambda seen: Reply(body="home")) as home:
            host = home.url.removeprefix("http://")
            location = {"Location": f"{there}{before}{host}/y"}
            home.replies = [Reply(302, headers=location)]
            login = Header("Authorization", secret=Secret("token-1"), prefix="Bearer ")
            transport = transport_to(home.url, login=login, retries=0)
            with suppress(ToolchainError), transport.stream("reading", "x", foreign_hosts=foreign):
                pass
            direct = f"{there}{before}{host}/y"
            with suppress(ToolchainError), transport.stream("reading", direct, foreign_hosts=True):
                pass
    assert not [seen for seen in other.seen if "Authorization" in seen.headers]
    assert foreign or not other.seen[1:]


def test_token_at_the_cut_of_a_long_response_is_masked() -> None:
    token = "token-abcdefghijklmnop"
    for before in range(870, 905):
        message = f"{'.' * before}{token} and more {'x' * 5000}"
        with Stub(
            Reply(400, f"<html><pre>{message}</pre></html>" if before % 2 else message)
        ) as stub:
            login = Header("Authorization", secret=Secret(token), prefix="Bearer ")
            connection = connection_to(stub.url, token=Secret(token))
            transport = Transport(connection, login, read_only=False)
            error = fails(transport.write, "creating", "POST", "x")
        assert "token" not in f"{error} {error.detail}"


def test_long_status_line_is_not_shown() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def respond() -> None:
            connection, _address = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/9.9 \x1b[31m" + b"x" * 30_000 + b"\r\n\r\n")

        thread = threading.Thread(target=respond)
        thread.start()
        error = fails(transport_to(f"http://127.0.0.1:{port}", retries=0).read, "reading", "x")
        thread.join()
    assert len(str(error)) < 1000
    assert "\x1b" not in str(error)


@pytest.mark.parametrize(
    "location",
    [
        "http://host:port/x",
        "http://[host/x",
        "mailto:a@b",
        "/\\other/x",
        "/a b",
        "/a\x0bb",
        "/a\x85b",
    ],
)
def test_redirect_to_invalid_address_is_reported(location: str) -> None:
    with Stub(Reply(302, headers={"Location": location})) as stub:
        assert fails(transport_to(stub.url).read, "reading", "x").kind == "protocol"


def test_redirect_without_target_is_returned() -> None:
    with Stub(Reply(302, "nowhere")) as stub:
        assert fails(transport_to(stub.url).read, "reading", "x").status == 302


@pytest.mark.parametrize("streamed", [False, True])
def test_wrong_content_encoding_is_a_protocol_error(streamed: bool) -> None:
    gzip = {"Content-Encoding": "gzip"}
    with Stub(response=lambda seen: Reply(body=b"not packed", headers=gzip)) as stub:
        transport = transport_to(stub.url)
        if streamed:
            with pytest.raises(ToolchainError) as caught, transport.stream("reading", "x") as body:
                list(body.iter_content())
            error = caught.value
        else:
            error = fails(transport.read, "reading", "x")
        assert len(stub.seen) == 1
        outcome_unknown = fails(transport.write, "writing", "PUT", "x").outcome_unknown
    assert (error.kind, outcome_unknown) == ("protocol", True)
    assert str(error) == f"reading: the body of the response cannot be decompressed ({stub.url}/x)"


def test_invalid_header_is_never_sent() -> None:
    with Stub() as stub:
        sending = transport_to(stub.url).write
        error = fails(sending, "writing", "PUT", "x", headers={"A": "two\nlines"})
    assert (error.kind, error.outcome_unknown, stub.seen) == ("invalid", False, [])
    assert "is not known" not in str(error)


# Check mode


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_check_mode_sends_no_write(method: str) -> None:
    with Stub() as stub:
        transport = transport_to(stub.url, read_only=True)
        error = fails(transport.write, "changing x", method, "x")
    assert (error.kind, stub.seen, stub.connections) == ("invalid", [], 0)
    assert "check mode" in str(error)
    assert transport.accounting.requests == 0


def test_check_mode_sends_reads() -> None:
    with Stub(OK, OK) as stub:
        transport = transport_to(stub.url, read_only=True)
        transport.read("reading", "x")
        transport.read("searching", "x", method="POST", json={})
    assert transport.accounting.writes == 0


# Accounting


def test_accounting_counts_requests_and_bytes() -> None:
    with Stub(
        Reply(body=b"x" * 10), Reply(201, b"y"), Reply(500, b"z" * 5), Reply(503), OK
    ) as stub:
        transport = transport_to(stub.url)
        transport.read("reading", "a")
        transport.write("writing", "PUT", "b", body=b"12345")
        fails(transport.write, "writing", "PUT", "b", body=b"12")
        transport.read("reading", "c")
    found = transport.accounting.as_dict()
    seconds = found.pop("seconds")
    assert seconds >= 0
    assert found == {
        "requests": 5,
        "writes": 2,
        "retries": 1,
        "bytes_sent": 7,
        "bytes_received": 10 + 1 + 5 + len(json.dumps({"ok": True})),
    }
    assert transport.accounting.acknowledged == 1


def test_login_in_body_is_counted() -> None:
    with Stub(OK) as stub:
        login = FormToken("me", Secret("the-token"))
        transport = transport_to(stub.url, login=login)
        transport.read("reading", "a", method="POST", form={"b": "c"})
    assert transport.accounting.bytes_sent == len(stub.seen[0].body) > len("b=c")


@pytest.mark.parametrize(("status", "changed"), [(200, True), (500, False)])
def test_failed_task_is_changed_if_a_write_was_acknowledged(status: int, changed: bool) -> None:
    with Stub(Reply(status), Reply(400, "no")) as stub:
        task = Task(connection_to(stub.url), lambda text: None, read_only=False)
        transport = task.transport()
        if status == 200:
            transport.write("creating", "PUT", "a")
        else:
            fails(transport.write, "creating", "PUT", "a")
        values = task.failure(fails(transport.write, "changing", "PUT", "a"))
    assert values["changed"] is changed
    assert values["msg"] == "changing: the server returned 400: no"
    assert values["error"]["kind"] == "rejected"
    assert values["http"]["writes"] == 2


# Connections


def test_transports_of_a_connection_share_its_socket() -> None:
    with Stub(response=lambda seen: OK) as stub:
        for number in range(5):
            transport = transport_to(stub.url)
            transport.read("reading", str(number))
            transport.write("writing", "PUT", str(number), body=b"x")
    assert len(stub.seen) == 10
    assert stub.connections == 1


def test_socket_is_reused_after_errors_and_redirects() -> None:
    replies = [Reply(404, "no"), Reply(302, b"to", {"Location": "/base/y"}), OK, Reply(503), OK]
    with Stub(*replies) as stub:
        transport = transport_to(stub.url)
        fails(transport.read, "reading", "x")
        transport.read("reading", "x")
        transport.read("reading", "x")
    assert stub.connections == 1


def test_different_credentials_do_not_share_a_session() -> None:
    with Stub(response=lambda seen: OK) as stub:
        for password in ("one", "two", "one"):
            connection = connection_to(stub.url, username="u", password=Secret(password))
            login = Basic("u", Secret(password))
            Transport(connection, login, read_only=False).read("reading", "x")
    first, second, third = stub.seen
    assert first.connection == third.connection != second.connection
    assert first.headers["Authorization"] != second.headers["Authorization"]


def test_cookies_are_not_kept() -> None:
    with Stub(Reply(headers={"Set-Cookie": "session=1; Path=/"}), OK) as stub:
        transport = transport_to(stub.url)
        transport.read("reading", "x")
        transport.read("reading", "x")
    assert "Cookie" not in stub.seen[1].headers


def test_connections_match_the_number_of_workers() -> None:
    with Stub(response=lambda seen: OK) as stub:
        transport = transport_to(stub.url, connections=3)
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda n: transport.read("reading", str(n)), range(30)))
    assert len(stub.seen) == transport.accounting.requests == 30
    assert stub.connections <= 3


# Streams


def test_stream_is_read_in_chunks() -> None:
    with Stub(Reply(body=b"a\nb\nc\n")) as stub:
        transport = transport_to(stub.url)
        with transport.stream("downloading", "x") as response:
            assert b"".join(response.iter_content()) == b"a\nb\nc\n"
    assert transport.accounting.bytes_received == 6


def test_chunked_stream_is_counted() -> None:
    chunks = b"3\r\na\nb\r\n3\r\n\nc\n\r\n0\r\n\r\n"
    head = {"Transfer-Encoding": "chunked"}
    with Stub(Reply(body=chunks, headers=head), Reply(404, chunks, head)) as stub:
        transport = transport_to(stub.url)
        with transport.stream("downloading", "x") as response:
            assert b"".join(response.iter_content()) == b"a\nb\nc\n"
        assert transport.accounting.bytes_received == 6
        opening = transport.stream("downloading", "x")
        fails(opening.__enter__)
    assert transport.accounting.bytes_received == 12


def test_stream_with_unexpected_status_raises_the_error_of_the_server() -> None:
    with Stub(Reply(404, {"errors": [{"message": "gone"}]})) as stub:
        transport = transport_to(stub.url)
        opening = transport.stream("downloading", "x")
        with pytest.raises(ToolchainError, match="returned 404: gone"):
            opening.__enter__()


def test_stream_with_unexpected_status_is_checked_first() -> None:
    def judge(refused: Response) -> None:
        raise refused.error("conflict", f"judged {refused.status} {refused.text}")

    with Stub(Reply(400, "no"), Reply(body="fine")) as stub:
        transport = transport_to(stub.url)
        opening = transport.stream("downloading", "x", validate=judge)
        with pytest.raises(ToolchainError, match="downloading: judged 400 no"):
            opening.__enter__()
        with transport.stream("downloading", "x", validate=judge) as response:
            assert b"".join(response.iter_content()) == b"fine"


def test_truncated_stream_is_an_error() -> None:
    with Stub(Reply(body=b"x" * 1000, truncate=100)) as stub:
        transport = transport_to(stub.url)
        with (
            pytest.raises(ToolchainError) as caught,
            transport.stream("downloading", "x") as response,
        ):
            list(response.iter_content())
    assert caught.value.kind == "network"


def test_stream_releases_its_connection_before_a_retry() -> None:
    body = b"x" * 100_000
    replies = [
        Reply(503, body),
        Reply(302, body, {"Location": "/base/y"}),
        Reply(body=b"one"),
        Reply(302, body, {"Location": "http://other.invalid/y"}),
        Reply(body=b"two"),
    ]

    def work() -> list[bytes]:
        transport = transport_to(stub.url, connections=1)
        found = []
        with transport.stream("downloading", "x") as response:
            found.append(b"".join(response.iter_content()))
        opening = transport.stream("downloading", "x")
        with pytest.raises(ToolchainError, match=r"other\.invalid"):
            opening.__enter__()
        with transport.stream("downloading", "x") as response:
            next(response.iter_content())
        return found

    with Stub(*replies) as stub:
        pool = ThreadPoolExecutor(1)
        try:
            assert pool.submit(work).result(20) == [b"one"]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


# The crumb of the CI server


CRUMB = Reply(
    body={"crumb": "abc", "crumbRequestField": "Jenkins-Crumb"},
    headers={"Set-Cookie": "JSESSIONID.1=s1; Path=/base"},
)
NO_CRUMB = Reply(
    403, "<html><title>Error 403 No valid crumb was included in the request</title></html>"
)


def test_crumb_is_read_once_and_sent_with_every_write() -> None:
    with Stub(CRUMB, Reply(), Reply(), OK, Reply()) as stub:
        transport = transport_to(stub.url, crumbs=True, login=Basic("u", Secret("p")))
        transport.write("starting", "POST", "job/x/build")
        transport.write("deleting", "DELETE", "job/y/config.xml")
        transport.read("reading", "job/x/api/json")
        again = transport_to(stub.url, crumbs=True, login=Basic("u", Secret("p")))
        again.read("searching", "x", method="POST")
    assert [seen.path for seen in stub.seen][:2] == [
        "/base/crumbIssuer/api/json",
        "/base/job/x/build",
    ]
    assert [seen.headers.get("Jenkins-Crumb") for seen in stub.seen] == [
        None,
        "abc",
        "abc",
        None,
        "abc",
    ]
    assert [seen.headers.get("Cookie") for seen in stub.seen] == [None] + ["JSESSIONID.1=s1"] * 4
    assert stub.seen[0].headers["Authorization"] == stub.seen[1].headers["Authorization"]
    assert transport.accounting.writes == 2


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_rejected_crumb_is_renewed_once(method: str) -> None:
    fresh = Reply(
        body={"crumb": "new", "crumbRequestField": "Jenkins-Crumb"},
        headers={"Set-Cookie": "JSESSIONID.1=s2; Path=/base"},
    )
    with Stub(CRUMB, NO_CRUMB, fresh, Reply(201)) as stub:
        transport = transport_to(stub.url, crumbs=True)
        transport.write("starting", method, "build", body=b"1")
    assert [seen.headers.get("Jenkins-Crumb") for seen in stub.seen] == [None, "abc", None, "new"]
    assert [seen.headers.get("Cookie") for seen in stub.seen] == [
        None,
        "JSESSIONID.1=s1",
        None,
        "JSESSIONID.1=s2",
    ]
    assert transport.accounting.retries == 0


def test_second_crumb_rejection_is_a_permission_error() -> None:
    with Stub(CRUMB, NO_CRUMB, CRUMB, NO_CRUMB) as stub:
        error = fails(transport_to(stub.url, crumbs=True).write, "starting", "POST", "build")
    assert (error.kind, error.status) == ("permission", 403)
    assert "No valid crumb" in str(error)
    assert len(stub.seen) == 4


def test_other_403_does_not_renew_the_crumb() -> None:
    with Stub(CRUMB, Reply(403, "missing the Job/Build permission")) as stub:
        error = fails(transport_to(stub.url, crumbs=True).write, "starting", "POST", "build")
    assert error.kind == "permission"
    assert len(stub.seen) == 2


def test_server_without_crumbs_is_asked_once() -> None:
    with Stub(Reply(404, "<html></html>"), Reply(), Reply()) as stub:
        transport = transport_to(stub.url, crumbs=True)
        transport.write("starting", "POST", "build")
        transport.write("starting", "POST", "build")
    assert [seen.path for seen in stub.seen] == ["/base/crumbIssuer/api/json"] + ["/base/build"] * 2


@pytest.mark.parametrize(
    ("xml", "asked"),
    [
        ([Reply(body="Jenkins-Crumb:abc")], 1),
        (
            [
                Reply(403, "<html>primitive XPath result sets forbidden</html>"),
                Reply(body=".crumb=a:b=\n"),
            ],
            2,
        ),
    ],
)
def test_crumb_is_read_as_xml_if_json_fails(xml: list[Reply], asked: int) -> None:
    with Stub(Reply(body="<html>other</html>"), *xml, Reply()) as stub:
        transport_to(stub.url, crumbs=True).write("starting", "POST", "build")
    paths = [seen.path for seen in stub.seen]
    assert paths[1:-1] == ["/base/crumbIssuer/api/xml"] * asked
    expected = ("Jenkins-Crumb", "abc") if asked == 1 else (".crumb", "a:b=")
    assert stub.seen[-1].headers.get(expected[0]) == expected[1]


@pytest.mark.parametrize("status", [400, 405, 406])
def test_rejected_json_crumb_falls_back_to_xml(status: int) -> None:
    with Stub(Reply(status), Reply(body="Jenkins-Crumb:abc"), Reply(201)) as stub:
        transport_to(stub.url, crumbs=True).write("starting", "POST", "build")
    assert stub.seen[-1].headers["Jenkins-Crumb"] == "abc"


@pytest.mark.parametrize(
    "body",
    [
        "<html>:=</html>",
        {"crumb": None, "field": ["a=b"]},
        {"crumb": "two\nlines", "crumbRequestField": "Crumb"},
        {"crumb": "abc", "crumbRequestField": "no name"},
    ],
)
def test_unreadable_crumb_is_a_protocol_error(body: Any) -> None:
    with Stub(*[Reply(body=body)] * 3) as stub:
        error = fails(transport_to(stub.url, crumbs=True).write, "starting", "POST", "build")
    assert error.kind == "protocol"
    assert "invalid CSRF crumb" in str(error)


@pytest.mark.parametrize(("status", "kind"), [(401, "auth"), (403, "permission"), (500, "server")])
def test_rejecting_crumb_issuer_is_final(status: int, kind: str) -> None:
    with Stub(Reply(status, "no")) as stub:
        error = fails(transport_to(stub.url, crumbs=True).write, "starting", "POST", "build")
    assert (error.kind, len(stub.seen)) == (kind, 1)


def test_crumb_is_read_again_after_a_restart() -> None:
    with Stub(CRUMB, Reply(), CRUMB, Reply()) as stub:
        transport = transport_to(stub.url, crumbs=True)
        transport.write("starting", "POST", "build")
        transport.forget_login()
        transport.write("starting", "POST", "build")
    assert "Cookie" not in stub.seen[2].headers


@pytest.mark.parametrize(
    "refusal",
    [
        Reply(403, "Invalid crumb"),
        Reply(403, '{"message": "the crumb has expired"}'),
        Reply(403, "<html><h1>Missing crumb</h1></html>"),
    ],
)
def test_crumb_rejection_is_recognized_by_name(refusal: Reply) -> None:
    with Stub(CRUMB, refusal, CRUMB, Reply(201)) as stub:
        transport_to(stub.url, crumbs=True).write("starting", "POST", "build")
    assert len(stub.seen) == 4


@pytest.mark.parametrize(
    "refusal",
    [
        Reply(403, "<html><head data-crumb-header='x'><h1>no</h1><p>breadcrumb</p></html>"),
        Reply(403, "a crumb will not do", {"X-Required-Permission": "hudson.model.Item.Build"}),
    ],
)
def test_permission_error_is_not_a_crumb_rejection(refusal: Reply) -> None:
    with Stub(CRUMB, refusal) as stub:
        error = fails(transport_to(stub.url, crumbs=True).write, "starting", "POST", "build")
    assert (error.kind, len(stub.seen)) == ("permission", 2)


def test_required_crumb_is_read_as_xml_if_json_is_missing() -> None:
    missing, xml = Reply(404), Reply(body="Jenkins-Crumb:abc")
    with Stub(missing, NO_CRUMB, missing, xml, Reply(201)) as stub:
        transport_to(stub.url, crumbs=True).write("starting", "POST", "build")
    assert stub.seen[-1].headers["Jenkins-Crumb"] == "abc"
    with Stub(missing, NO_CRUMB, missing, missing, missing, NO_CRUMB) as stub:
        error = fails(transport_to(stub.url, crumbs=True).write, "starting", "POST", "build")
    assert error.kind == "permission"


def test_patience_limits_retries() -> None:
    with Stub(response=lambda seen: Reply(hold=True)) as stub:
        transport = transport_to(stub.url, retries=9)
        with pytest.raises(ToolchainError, match=r"within 0\.\d+ s") as caught:
            transport.read("looking", "x", patience=0.2)
        stub.wait_for(1)
    assert caught.value.kind == "timeout"


def test_wait_longer_than_patience_is_skipped() -> None:
    waits = Waits()
    with Stub(response=lambda seen: Reply(503, headers={"Retry-After": "40"})) as stub:
        transport = transport_to(stub.url, sleep=waits)
        with pytest.raises(ToolchainError) as caught:
            transport.read("looking", "x", patience=30.0)
        assert (caught.value.status, waits, len(stub.seen)) == (503, [], 1)
        with pytest.raises(ToolchainError):
            transport.read("looking", "x", patience=90.0)
    assert len(waits) == 3
