# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify for every module that untrusted certificates are rejected, and that their servers receive
nothing.

All modules share the transport that rejects certificates. A module therefore meets one kind of
certificate, and the modules of a service together meet all kinds.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme

from tests.faults.turns import in_turn, of_every_service
from tests.helpers import connections, forked, playbook
from tests.helpers.cases import MODULES, first_arguments
from tests.helpers.sentences import assert_one_sentence

NOW = datetime.now(timezone.utc)


class _Server(ThreadingHTTPServer):
    """Responds to every request with 404. `received` lists the requested paths."""

    daemon_threads = True

    def __init__(self, certificate: trustme.LeafCert | None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[str] = []
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            certificate.configure_cert(context)
            self.socket = context.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )
        self.scheme = "http" if certificate is None else "https"
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05})
        self.thread.start()

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that abort the handshake, because the tests expect this."""

    def stop(self) -> None:
        self.shutdown()
        self.thread.join()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    timeout = 5
    server: _Server

    def do_GET(self) -> None:
        self.server.received.append(self.path)
        body = b"nothing here"
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Suppress the request log."""


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def servers(authority: trustme.CA) -> Iterator[dict[str, _Server]]:
    """Run the servers `good`, `expired`, `another host`, `another authority`, and
    `plain` (HTTP).
    """
    day = timedelta(days=1)
    started = {
        "good": _Server(authority.issue_cert("127.0.0.1")),
        "expired": _Server(
            authority.issue_cert("127.0.0.1", not_before=NOW - 9 * day, not_after=NOW - day)
        ),
        "another host": _Server(authority.issue_cert("127.0.0.2")),
        "another authority": _Server(trustme.CA().issue_cert("127.0.0.1")),
        "plain": _Server(None),
    }
    yield started
    for server in started.values():
        server.stop()


TRUSTLESS = in_turn(("expired", "another host", "another authority"), 1, MODULES)


@pytest.fixture(scope="module")
def tried(
    authority: trustme.CA,
    servers: dict[str, _Server],
    tmp_path_factory: pytest.TempPathFactory,
) -> playbook.Run:
    """Run all modules against the good server and one of the others."""
    folder: Path = tmp_path_factory.mktemp("tls")
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    trust = {"retries": 1, "timeout": 5, "ca_path": str(folder / "ca.pem")}
    tasks = [
        playbook.task(
            module, {**first_arguments(module), **trust, "url": server.url}, f"{module}: {name}"
        )
        for module, name in [*TRUSTLESS, *((module, "good") for module in MODULES)]
        for server in [servers[name]]
    ]
    role = {"name": "Developer", **trust}
    plain, good = servers["plain"].url, servers["good"].url
    tasks += [
        playbook.task(
            "analysis_role", {**role, "url": plain.replace("http:", "https:")}, "TLS to plain"
        ),
        playbook.task(
            "analysis_role", {**role, "url": good.replace("https:", "http:")}, "plain to TLS"
        ),
        playbook.task(
            "analysis_role",
            {**role, "url": servers["expired"].url, "validate_certs": False},
            "unchecked",
        ),
        playbook.task(
            "analysis_role", {**role, "url": good, "ca_path": "/nowhere/ca.pem"}, "no such file"
        ),
    ]
    urls = dict.fromkeys(connections.LOGINS, "https://127.0.0.1:1")
    play = playbook.play(tasks, module_defaults=connections.module_defaults(urls))
    return forked.run(folder, play)


@pytest.mark.parametrize(("module", "name"), TRUSTLESS)
def test_untrusted_certificate_is_an_error(tried: playbook.Run, module: str, name: str) -> None:
    event = tried.event(f"{module}: {name}")
    assert event.status == "failed", tried.output[-3000:]
    assert event.result["error"]["kind"] == "network", event.result["msg"]
    assert "certificate" in event.result["msg"]
    assert event.result["http"]["retries"] == 0
    assert_one_sentence(event.result, event.task)


def test_expired_certificate_is_reported(tried: playbook.Run) -> None:
    for module in [module for module, name in TRUSTLESS if name == "expired"]:
        assert "expired" in tried.event(f"{module}: expired").result["msg"]


def test_every_service_meets_every_certificate() -> None:
    assert of_every_service(TRUSTLESS, {name for _module, name in TRUSTLESS}, MODULES)


def test_untrusted_server_receives_nothing(
    tried: playbook.Run, servers: dict[str, _Server]
) -> None:
    assert tried.event("unchecked").result["error"]["kind"] != "network"
    assert servers["another host"].received == []
    assert servers["another authority"].received == []
    # Only the task with `validate_certs: false` sent requests.
    assert len(servers["expired"].received) == tried.event("unchecked").result["http"]["requests"]


@pytest.mark.parametrize("module", MODULES)
def test_valid_certificate_is_trusted_by_its_authority(tried: playbook.Run, module: str) -> None:
    """Verify that the server's 404 is reported. A server without a list of repositories counts as a
    plain store, which has no properties.
    """
    event = tried.event(f"{module}: good")
    kind = "rejected" if module == "artifact_properties" else "not_found"
    assert event.result["error"]["kind"] == kind, event.result["msg"]


def test_wrong_scheme_is_reported(tried: playbook.Run) -> None:
    for task in ("TLS to plain", "plain to TLS"):
        assert tried.event(task).result["error"]["kind"] == "network", task
        assert_one_sentence(tried.event(task).result, task)
    assert "scheme" in tried.event("TLS to plain").result["msg"]


def test_missing_authority_file_is_reported(tried: playbook.Run) -> None:
    result = tried.event("no such file").result
    assert "/nowhere/ca.pem" in result["msg"]
    assert result["error"]["kind"] in ("invalid", "network")
    assert_one_sentence(result, "no such file")
