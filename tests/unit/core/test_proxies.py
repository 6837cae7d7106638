# SPDX-License-Identifier: GPL-3.0-or-later
"""Test proxies from the environment: used and ignored as the library `requests` does."""

from __future__ import annotations

import base64
import io
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
import trustme
from urllib3 import HTTPConnectionPool, PoolManager
from urllib3.connection import HTTPConnection

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.transport import (
    Transport,
)
from tests.unit.stub import Reply, Seen, Stub, transport_to

OK = Reply(body=b"ok")
#: A host that no name server can resolve: only a proxy can reach it.
AWAY = "http://server.invalid/base"


def through(proxy: str, *, user: str = "") -> str:
    """Return the address of a stub as a proxy setting."""
    host = proxy.removeprefix("http://").partition("/")[0]
    return f"http://{user}{host}"


def upload(transport: Transport, size: int) -> int:
    """Send a body from a file; return the bytes that the task counts as sent."""
    parts: dict[str, Any] = {"open_body": lambda: io.BytesIO(b"x" * size), "size": size}
    transport.write("deploying 'x'", "PUT", "x", **parts)
    return transport.accounting.bytes_sent


@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])
def test_http_request_is_sent_through_proxy(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    with Stub(OK, OK) as proxy:
        monkeypatch.setenv(variable, through(proxy.url))
        transport = transport_to(AWAY)
        assert transport.read("reading", "x").text == "ok"
        assert upload(transport, 3_000_000) == 3_000_000
    assert [(seen.method, seen.target) for seen in proxy.seen] == [
        ("GET", f"{AWAY}/x"),
        ("PUT", f"{AWAY}/x"),
    ]
    assert len(proxy.seen[1].body) == 3_000_000
    assert proxy.connections == 1
    assert {seen.headers["Host"] for seen in proxy.seen} == {"server.invalid"}


def test_proxy_gets_its_own_credential(monkeypatch: pytest.MonkeyPatch) -> None:
    with Stub(OK, OK) as proxy:
        monkeypatch.setenv("HTTP_PROXY", through(proxy.url, user="me:s3cret@"))
        transport = transport_to(AWAY)
        for _number in range(2):  # on a reused connection, too
            transport.read("reading", "x")
    basic = base64.b64encode(b"me:s3cret").decode()
    reported = [seen.headers.get("Proxy-Authorization") for seen in proxy.seen]
    assert reported == [f"Basic {basic}"] * 2
    assert not any("Authorization" in seen.headers for seen in proxy.seen)
    assert proxy.connections == 1


class SocksConnection(HTTPConnection):
    """Simulate the SOCKS connection of urllib3, which needs an additional library.

    It takes the same options, and connects to an existing server.
    """

    leads_to = 0

    def __init__(self, _socks_options: Mapping[str, str], *arguments: Any, **options: Any) -> None:
        assert _socks_options == {"proxy": "socks5h://proxy:1080"}
        super().__init__(*arguments, **options)

    def _new_conn(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.leads_to))


def test_socks_proxy_is_connected_with_its_own_class(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class SocksPool(HTTPConnectionPool):
        ConnectionCls = SocksConnection

    class SocksManager(PoolManager):
        def __init__(self, proxy: str, *, username: str, password: str, **options: Any) -> None:
            super().__init__(**options, _socks_options={"proxy": proxy})
            self.pool_classes_by_scheme = {"http": SocksPool}

    monkeypatch.setattr(requests.adapters, "SOCKSProxyManager", SocksManager)
    monkeypatch.setenv("ALL_PROXY", "socks5h://proxy:1080")
    with Stub(OK, OK) as server:
        monkeypatch.setattr(SocksConnection, "leads_to", urlsplit(server.url).port)
        transport = transport_to(AWAY)
        assert [transport.read("reading", "x").text for _number in range(2)] == ["ok", "ok"]
    assert [seen.target for seen in server.seen] == ["/base/x", "/base/x"]
    assert server.connections == 1


def test_missing_socks_library_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
    with pytest.raises(ToolchainError, match="Missing dependencies for SOCKS support") as caught:
        transport_to(AWAY).write("creating x", "POST", "x")
    assert caught.value.kind == "invalid"
    assert not caught.value.outcome_unknown


@pytest.mark.parametrize("value", ["127.0.0.1", "localhost,127.0.0.0/8", "*", "localhost:{port}"])
def test_no_proxy_excludes_the_server(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    with Stub(OK) as server, Stub() as proxy:
        port = server.url.rpartition(":")[2].partition("/")[0]
        monkeypatch.setenv("HTTP_PROXY", through(proxy.url))
        monkeypatch.setenv("NO_PROXY", value.format(port=port))
        host = "localhost" if ":" in value else "127.0.0.1"
        url = server.url.replace("127.0.0.1", host)
        assert transport_to(url).read("reading", "x").text == "ok"
    assert proxy.seen == []


def test_no_proxy_with_another_port_does_not_match(monkeypatch: pytest.MonkeyPatch) -> None:
    with Stub(OK) as proxy:
        monkeypatch.setenv("HTTP_PROXY", through(proxy.url))
        monkeypatch.setenv("NO_PROXY", "server.invalid:8081")
        transport_to(AWAY).read("reading", "x")
    assert len(proxy.seen) == 1


def test_unreachable_proxy_is_named_without_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Stub() as closed:
        address = through(closed.url, user="me:s3cret@")
    monkeypatch.setenv("HTTP_PROXY", address)
    with pytest.raises(ToolchainError) as caught:
        transport_to(AWAY, retries=0).read("reading 'x'", "x")
    assert caught.value.kind == "network"
    assert "proxy" in caught.value.message
    assert "s3cret" not in f"{caught.value.message} {caught.value.as_dict()}"


# --- TLS


class _Tunnels(ThreadingTCPServer):
    """A proxy that supports `CONNECT` alone, leads all tunnels to one port, and logs requests."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, port: int, refusal: bytes = b"") -> None:
        self.port, self.refusal, self.asked = port, refusal, list[str]()
        self.pause = 0.0  # seconds between the bytes of the response to CONNECT
        super().__init__(("127.0.0.1", 0), _Tunnel)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class _Tunnel(StreamRequestHandler):
    server: _Tunnels

    def handle(self) -> None:
        lines = list(iter(lambda: self.rfile.readline().strip().decode(), ""))
        self.server.asked.append(lines[0])
        if self.server.refusal:
            self.wfile.write(self.server.refusal)
            return
        with socket.create_connection(("127.0.0.1", self.server.port)) as there:
            head = b"HTTP/1.1 200 Connection established\r\n\r\n"
            # few pauses, because each takes longer on a busy machine
            for block in [head[place : place + 10] for place in range(0, len(head), 10)]:
                time.sleep(self.server.pause)
                self.wfile.write(block)
            back = threading.Thread(target=_pour, args=(there, self.connection), daemon=True)
            back.start()
            _pour(self.connection, there)
            back.join(30)


def _pour(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return  # the other side disconnected first


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def bundle(authority: trustme.CA, tmp_path: Path) -> str:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


@pytest.fixture
def secure(authority: trustme.CA) -> Iterator[Stub]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("server.invalid").configure_cert(context)
    with Stub(response=lambda seen: OK, tls=context) as stub:
        yield stub


@pytest.fixture
def tunnels(secure: Stub, monkeypatch: pytest.MonkeyPatch) -> Iterator[_Tunnels]:
    """Start a proxy before the server, named in the environment."""
    with _Tunnels(int(secure.url.rpartition(":")[2].partition("/")[0])) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:s3cret@{proxy.address}")
        yield proxy
        proxy.shutdown()
        thread.join()


@pytest.mark.parametrize("how", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "ca_path"])
def test_tunnel_verifies_the_server_certificate(
    secure: Stub, tunnels: _Tunnels, bundle: str, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    settings: dict[str, Any] = {"ca_path": bundle} if how == "ca_path" else {}
    if not settings:
        monkeypatch.setenv(how, bundle)
    transport = transport_to("https://server.invalid/base", **settings)
    assert transport.read("reading", "x").text == "ok"
    assert upload(transport, 3_000_000) == 3_000_000
    assert [line.split()[:2] for line in tunnels.asked] == [["CONNECT", "server.invalid:443"]]
    assert [(seen.method, seen.target) for seen in secure.seen] == [
        ("GET", "/base/x"),
        ("PUT", "/base/x"),
    ]
    assert not any("Proxy-Authorization" in seen.headers for seen in secure.seen)


def test_untrusted_server_behind_tunnel_is_an_error(secure: Stub, tunnels: _Tunnels) -> None:
    with pytest.raises(ToolchainError) as caught:
        transport_to("https://server.invalid/base").write("creating 'x'", "POST", "x")
    assert caught.value.kind == "network"
    assert "certificate is not trusted" in caught.value.message
    assert secure.seen == []


def test_rejecting_proxy_is_named_without_password(tunnels: _Tunnels) -> None:
    tunnels.refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n"
    with pytest.raises(ToolchainError) as caught:
        transport_to("https://server.invalid/base", retries=0).write("creating 'x'", "POST", "x")
    assert caught.value.kind == "network"
    assert not caught.value.outcome_unknown
    assert "407" in caught.value.message
    assert "s3cret" not in f"{caught.value.message} {caught.value.as_dict()}"


@pytest.mark.parametrize("reads", [True, False])
def test_deadline_includes_the_tunnel(secure: Stub, tunnels: _Tunnels, *, reads: bool) -> None:
    tunnels.pause = 0.3  # each pause alone is short enough
    transport = transport_to("https://server.invalid/base", retries=0, timeout=0.4)
    with pytest.raises(ToolchainError) as caught:
        transport.send("asking", "POST", "x", reads=reads)
    assert (caught.value.kind, caught.value.outcome_unknown) == ("timeout", False)
    assert secure.seen == []


def test_slow_tunnel_does_not_shorten_the_request_timeout(
    secure: Stub, tunnels: _Tunnels, bundle: str
) -> None:
    def late(_seen: Seen) -> Reply:
        time.sleep(1.4)
        return OK

    tunnels.pause, secure.response = 0.35, late  # about 1.4 s for the tunnel
    transport = transport_to("https://server.invalid/base", ca_path=bundle, timeout=2.5, retries=0)
    assert transport.read("reading", "x").text == "ok"


def test_truncated_tunnel_response_is_a_network_error(tunnels: _Tunnels) -> None:
    tunnels.refusal = b"HTTP/1.1 200 Connection established\r\n"
    with pytest.raises(ToolchainError) as caught:
        transport_to("https://server.invalid/base", retries=0).read("reading", "x")
    assert caught.value.kind == "network"
    assert "inside its head" in caught.value.message


@pytest.mark.parametrize(
    "address", ["http://[x", "http://x:port", "http://x:99999", "http://", "//"]
)
def test_invalid_address_of_a_proxy_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("http_proxy", address)
    with pytest.raises(
        ToolchainError, match="address of the proxy in the environment is"
    ) as caught:
        transport_to(AWAY).read("reading", "x")
    assert caught.value.kind == "invalid"


@pytest.mark.parametrize("sign", ["#", "?", "/", "\\"])
@pytest.mark.parametrize("scheme", ["http://", ""])
def test_login_of_proxy_that_is_not_encoded_is_not_printed(
    monkeypatch: pytest.MonkeyPatch, scheme: str, sign: str
) -> None:
    monkeypatch.setenv("http_proxy", f"{scheme}me:abcx{sign}yzq@127.0.0.1:1")
    with pytest.raises(ToolchainError, match="percent-encode its user name") as caught:
        transport_to(AWAY).read("reading", "x")
    assert caught.value.kind == "invalid"
    assert not re.search("abcx|yzq", f"{caught.value} {caught.value.as_dict()}")
