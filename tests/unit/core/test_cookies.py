# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that session cookies are sent to the connection's own origin only, and accepted from there
only.
"""

from __future__ import annotations

import socket
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.transport import (
    Transport,
)
from tests.unit.stub import Reply, Stub, transport_to

SESSION = "JSESSIONID.1=session-1"


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resolve all names below `example.test` to this machine."""
    real = socket.getaddrinfo

    def resolve(host: Any, *arguments: Any, **options: Any) -> Any:
        return real("127.0.0.1" if str(host).endswith(".test") else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


def named(url: str, name: str) -> str:
    return url.replace("127.0.0.1", name)


def fetch(transport: Transport, address: str) -> None:
    with transport.stream("fetching", address, foreign_hosts=True) as response:
        b"".join(response.iter_content())


def cookies_of(stub: Stub) -> list[str | None]:
    return [seen.headers.get("Cookie") for seen in stub.seen]


@pytest.mark.parametrize("attributes", ["", "; Path=/", "; Path=/; HttpOnly"])
def test_cookie_is_sent_to_its_own_origin(attributes: str) -> None:
    redirect = Reply(302, headers={"Location": "/base/b"})
    with Stub(Reply(headers={"Set-Cookie": SESSION + attributes}), redirect, Reply()) as stub:
        transport = transport_to(stub.url, crumbs=True)
        transport.read("reading", "a")
        transport.read("reading", "b")
    assert cookies_of(stub) == [None, SESSION, SESSION]


@pytest.mark.parametrize("redirected", [True, False])
def test_cookie_is_not_sent_to_another_port(*, redirected: bool) -> None:
    with Stub(Reply(body=b"file")) as other:
        replies = [Reply(headers={"Set-Cookie": f"{SESSION}; Path=/"})]
        if redirected:
            replies.append(Reply(302, headers={"Location": f"{other.url}/file"}))
        with Stub(*replies) as home:
            transport = transport_to(home.url, crumbs=True)
            transport.read("reading", "a")
            fetch(transport, "artifact" if redirected else f"{other.url}/file")
    assert cookies_of(other) == [None]


@pytest.mark.usefixtures("names")
def test_cookie_is_not_sent_to_another_host_of_its_domain() -> None:
    cookie = f"{SESSION}; Path=/; Domain=example.test"
    with Stub(Reply(body=b"file")) as other:
        there = named(f"{other.url}/file", "files.example.test")
        first = Reply(headers={"Set-Cookie": cookie})
        with Stub(first, Reply(302, headers={"Location": there}), Reply()) as home:
            transport = transport_to(named(home.url, "ci.example.test"), crumbs=True)
            transport.read("reading", "a")
            fetch(transport, "artifact")
            transport.read("reading", "b")
    assert cookies_of(other) == [None]
    assert cookies_of(home) == [None, SESSION, SESSION]


@pytest.mark.usefixtures("names")
@pytest.mark.parametrize("domain", ["", "; Domain=example.test"])
def test_other_origin_cannot_set_a_cookie(domain: str) -> None:
    cookie = {"Set-Cookie": f"JSESSIONID.1=of-a-neighbour; Path=/{domain}"}
    with Stub(Reply(body=b"file", headers=cookie)) as other:
        there = named(f"{other.url}/file", "files.example.test" if domain else "ci.example.test")
        with Stub(Reply(302, headers={"Location": there}), Reply()) as home:
            transport = transport_to(named(home.url, "ci.example.test"), crumbs=True)
            fetch(transport, "artifact")
            transport.read("reading", "b")
    assert cookies_of(home) == [None, None]
