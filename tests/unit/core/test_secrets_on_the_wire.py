# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that secrets from addresses, proxies and servers are masked in messages, and that messages
are short.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core import secret
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
    single_line,
)
from tests.unit.stub import Reply, Stub, transport_to

TOKEN = "eyJabcdef0123456789"


@pytest.fixture(autouse=True)
def nothing_hidden() -> Iterator[None]:
    secret.hidden.clear()
    yield
    secret.hidden.clear()


@pytest.mark.parametrize(
    "rest",
    [
        "#access_token={}",
        "#a=b&access_token={}",
        "#/route?access_token={}",
        ";access_token={}",
        ";a=b;access_token={}",
        ";a=b;access_token={};c=d",
        "?a=b;access_token={}",
        "?a=b;access_token={}&c=d",
        "?access_token={};{}",
        "?x=1&amp;access_token={}",
        ";jsessionid={}",
        "?next=%2Fx#id_token={}&state=1",
    ],
)
def test_token_after_any_separator_is_masked(rest: str) -> None:
    address = "http://host:1/x" + rest.replace("{}", TOKEN)
    assert TOKEN not in secret.clean_url(address)
    assert "host:1/x" in secret.clean_url(address)
    assert secret.secrets_of_url(address) != []
    with Stub(Reply(302, headers={"Location": address})) as stub:
        with pytest.raises(ToolchainError) as caught:
            transport_to(stub.url).read("reading", "x")
        assert TOKEN not in f"{caught.value} {caught.value.as_dict()}"


@pytest.mark.parametrize("rest", ["?a=b;c=d", "#part", ";v=1;w=2", "?q=a%3Bb&x=y#z=1"])
def test_other_parts_of_the_address_are_kept(rest: str) -> None:
    assert secret.clean_url(f"http://host/x{rest}") == f"http://host/x{rest}"


def test_login_repeated_by_proxy_is_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    basic = base64.b64encode(b"agent:pr0xy-pass").decode()
    with Stub(Reply(407, f"agent:pr0xy-pass {basic} is wrong")) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.replace("://", "://agent:pr0xy-pass@"))
        with pytest.raises(ToolchainError) as caught:
            transport_to("http://server.invalid/base").read("reading", "x")
    shown = f"{caught.value} {caught.value.as_dict()}"
    assert "is wrong" in shown
    assert "pr0xy-pass" not in shown
    assert basic not in shown


def test_session_cookie_repeated_by_server_is_masked() -> None:
    cookie = Reply(headers={"Set-Cookie": "JSESSIONID.1=node0abcdef12345; Path=/; HttpOnly"})
    refusal = Reply(500, "the session node0abcdef12345 is broken")
    with Stub(cookie, refusal) as stub:
        transport = transport_to(stub.url, crumbs=True)
        transport.read("reading", "x")
        with pytest.raises(ToolchainError, match="is broken") as caught:
            transport.read("reading", "x")
    assert "node0abcdef12345" not in f"{caught.value} {caught.value.as_dict()}"


def test_session_cookie_of_same_response_is_masked() -> None:
    headers = {"Set-Cookie": "SESSION=node0abcdef12345; Path=/"}
    with (
        Stub(Reply(500, "session node0abcdef12345", headers)) as stub,
        pytest.raises(ToolchainError, match="session ") as caught,
    ):
        transport_to(stub.url).read("reading", "x")
    assert "node0abcdef12345" not in f"{caught.value} {caught.value.as_dict()}"


def test_short_cookie_value_is_not_a_secret() -> None:
    headers = {"Set-Cookie": "lang=en; Path=/"}
    with (
        Stub(Reply(500, "then it went wrong", headers)) as stub,
        pytest.raises(ToolchainError, match="then it went wrong"),
    ):
        transport_to(stub.url).read("reading", "x")


@pytest.mark.parametrize("status", [302, 307])
@pytest.mark.parametrize("host", ["", "http://elsewhere.invalid"])
def test_long_redirect_target_is_cut(status: int, host: str) -> None:
    location = f"{host}/{'x' * 30_000}"
    with (
        Stub(Reply(status, headers={"Location": location})) as stub,
        pytest.raises(ToolchainError) as caught,
    ):
        transport_to(stub.url).write("creating 'x'", "POST", "x")
    assert len(str(caught.value)) < 1000
    assert "which is not followed" in str(caught.value)


def test_long_address_is_cut() -> None:
    with Stub(Reply(cut=True)) as stub, pytest.raises(ToolchainError) as caught:
        transport_to(stub.url).write("creating 'x'", "POST", "x" * 30_000)
    assert len(str(caught.value)) < 1000
    assert str(caught.value).endswith("whether it was done is not known")


def test_messages_have_a_maximum_length() -> None:
    assert len(single_line("word " * 10_000)) <= 1400
