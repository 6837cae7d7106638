# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
import ssl
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import trustme

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from tests.unit.stub import Reply, Stub, transport_to

OK = Reply(body=b"ok")


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca_path(authority: trustme.CA, tmp_path: Path) -> str:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


def server_context(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


def refused(stub: Stub, url: str | None = None, **settings: Any) -> ToolchainError:
    transport = transport_to(url or stub.url, **settings)
    with pytest.raises(ToolchainError) as caught:
        transport.write("creating x", "POST", "x")
    assert stub.seen == []
    assert transport.accounting.retries == 0
    return caught.value


def test_custom_authority_is_trusted(authority: trustme.CA, ca_path: str) -> None:
    with Stub(OK, tls=server_context(authority.issue_cert("127.0.0.1"))) as stub:
        assert transport_to(stub.url, ca_path=ca_path).read("reading", "x").text == "ok"


@pytest.mark.parametrize("variable", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_usual_variables_name_authorities(
    authority: trustme.CA, ca_path: str, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, ca_path)
    with Stub(OK, tls=server_context(authority.issue_cert("127.0.0.1"))) as stub:
        assert transport_to(stub.url).read("reading", "x").text == "ok"


def test_missing_authority_file_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere/ca.pem")
    with pytest.raises(ToolchainError) as caught:
        transport_to("https://a.invalid")
    assert caught.value.kind == "invalid"
    assert "REQUESTS_CA_BUNDLE" in caught.value.message
    assert "/nowhere/ca.pem" in caught.value.message


def test_unknown_authority_is_rejected(authority: trustme.CA) -> None:
    with Stub(tls=server_context(authority.issue_cert("127.0.0.1"))) as stub:
        error = refused(stub)
    assert (error.kind, error.outcome_unknown) == ("network", False)
    assert str(error).startswith("creating x: the server's certificate is not trusted (")
    assert "ca_path" in str(error)
    assert error.url == f"{stub.url}/x"


def test_certificate_check_can_be_disabled(authority: trustme.CA) -> None:
    with Stub(OK, tls=server_context(authority.issue_cert("127.0.0.1"))) as stub:
        assert transport_to(stub.url, validate_certs=False).read("reading", "x").text == "ok"


def test_expired_certificate_is_reported(authority: trustme.CA, ca_path: str) -> None:
    past = datetime(2020, 1, 2, tzinfo=timezone.utc)
    certificate = authority.issue_cert(
        "127.0.0.1", not_before=datetime(2020, 1, 1, tzinfo=timezone.utc), not_after=past
    )
    with Stub(tls=server_context(certificate)) as stub:
        error = refused(stub, ca_path=ca_path)
    assert error.kind == "network"
    assert "(certificate has expired): renew the certificate" in str(error)


def test_certificate_of_another_host_is_reported(authority: trustme.CA, ca_path: str) -> None:
    with Stub(tls=server_context(authority.issue_cert("other.example"))) as stub:
        error = refused(stub, ca_path=ca_path)
    assert error.kind == "network"
    # the error message of OpenSSL; with urllib3 before 2 the message of that library
    assert re.search(r"not trusted \(.*'127\.0\.0\.1'.*\): check the host of url", str(error))


def test_tls_to_plain_port_is_an_error(ca_path: str) -> None:
    with Stub(response=lambda seen: OK) as stub:
        error = refused(stub, stub.url.replace("http:", "https:"), ca_path=ca_path)
    assert error.kind == "network"
    assert "TLS handshake failed" in str(error)
    assert "check scheme and port of url" in str(error)
    assert "Max retries" not in str(error)


def test_client_certificate_is_sent(authority: trustme.CA, ca_path: str, tmp_path: Path) -> None:
    context = server_context(authority.issue_cert("127.0.0.1"))
    context.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(context)
    certificate = authority.issue_cert("client.example")
    both, own, key = (str(tmp_path / name) for name in ("both.pem", "own.pem", "key.pem"))
    certificate.private_key_and_cert_chain_pem.write_to_path(both)
    certificate.cert_chain_pems[0].write_to_path(own)
    certificate.private_key_pem.write_to_path(key)
    with Stub(OK, OK, tls=context) as stub:
        transport_to(stub.url, ca_path=ca_path, client_cert=both).read("reading", "x")
        transport_to(stub.url, ca_path=ca_path, client_cert=own, client_key=key).read("r", "x")
        with pytest.raises(ToolchainError) as caught:
            transport_to(stub.url, ca_path=ca_path, retries=0).read("reading", "x")
    assert caught.value.kind == "network"
    assert len(stub.seen) == 2


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("given", [False, True])
def test_invalid_client_certificate_is_reported(
    authority: trustme.CA, ca_path: str, tmp_path: Path, version: ssl.TLSVersion, *, given: bool
) -> None:
    context = server_context(authority.issue_cert("127.0.0.1"))
    context.minimum_version = context.maximum_version = version
    context.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(context)
    settings: dict[str, Any] = {"ca_path": ca_path, "retries": 0}
    if given:
        other = trustme.CA().issue_cert("client.example")
        settings["client_cert"] = str(tmp_path / "other.pem")
        other.private_key_and_cert_chain_pem.write_to_path(settings["client_cert"])
    with Stub(tls=context) as stub:
        transport = transport_to(stub.url, **settings)
        with pytest.raises(ToolchainError, match="client_cert") as caught:
            transport.read("reading", "x")
    assert caught.value.kind == "network"
    assert stub.seen == []


def test_redirect_to_plain_http_is_rejected(authority: trustme.CA, ca_path: str) -> None:
    with Stub() as plain:
        redirect = Reply(302, headers={"Location": f"{plain.url}/x"})
        with Stub(redirect, tls=server_context(authority.issue_cert("127.0.0.1"))) as stub:
            transport = transport_to(stub.url, ca_path=ca_path)
            with pytest.raises(ToolchainError) as caught:
                transport.read("downloading", "x", foreign_hosts=True)
    assert caught.value.kind == "protocol"
    assert plain.seen == []


def test_sessions_with_different_authorities_are_separate(
    authority: trustme.CA, ca_path: str
) -> None:
    with Stub(OK, tls=server_context(authority.issue_cert("127.0.0.1"))) as stub:
        transport_to(stub.url, validate_certs=False).read("reading", "x")
        with pytest.raises(ToolchainError, match="not trusted"):
            transport_to(stub.url, retries=0).read("reading", "x")
