# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import builtins
import json
from base64 import b64decode
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import oauthlib.oauth1
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection.auth import (
    hide,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection.connection import (
    Connection,
    OAuth,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.transport import (
    Transport,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.secret import (
    Secret,
    hidden,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.services import SERVICES
from tests.unit.stub import Reply, Seen, Stub, connection_to

CONSUMER, TOKEN, TOKEN_SECRET = "toolchain", "access-token", "access-token-secret"


def pem(key: Any, password: bytes | None = None) -> str:
    protection: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if password is not None:
        protection = serialization.BestAvailableEncryption(password)
    encoded: bytes = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection
    )
    return encoded.decode()


@pytest.fixture(scope="module")
def rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@pytest.fixture(scope="module")
def other_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def oauth_with(key: str, method: str = "RSA-SHA1") -> OAuth:
    return OAuth(CONSUMER, Secret(key), Secret(TOKEN), Secret(TOKEN_SECRET), method)


def ask(stub: Stub, service: str = "repo", header: str = "X-Api-Key", **fields: Any) -> Seen:
    """Send a read and a write of a form with these credentials; return the write as received."""
    connection = connection_to(stub.url, service, **fields)
    transport = Transport(connection, connection.service.login(connection, header), read_only=False)
    transport.read("reading", "x", query={"q": "ü +"})
    transport.write("writing", "POST", "x", form={"a": "b c"})
    return stub.seen[-1]


def replies() -> tuple[Reply, Reply]:
    return Reply(), Reply()


@pytest.mark.parametrize(
    ("username", "password"), [("u", "p"), ("jürgen", "pä:ss wörd€"), ("u", ""), ("a@b.c", "%2F")]
)
def test_basic_login_is_utf8_and_sent_with_first_request(username: str, password: str) -> None:
    with Stub(*replies()) as stub:
        ask(stub, username=username, password=Secret(password))
    for seen in stub.seen:
        kind, _ignored, text = seen.headers["Authorization"].partition(" ")
        assert kind == "Basic"
        assert b64decode(text).decode() == f"{username}:{password}"


def test_bearer_token_is_sent() -> None:
    with Stub(*replies()) as stub:
        assert ask(stub, token=Secret("abc")).headers["Authorization"] == "Bearer abc"


@pytest.mark.parametrize("header", ["X-Api-Key", "X-Vendor-Art-Api"])
def test_api_key_is_sent_in_header_of_dialect(header: str) -> None:
    with Stub(*replies()) as stub:
        seen = ask(stub, header=header, api_key=Secret("abc"))
    assert seen.headers[header] == "abc"
    assert "Authorization" not in seen.headers


def test_no_credentials_send_no_authorization() -> None:
    with Stub(*replies()) as stub:
        assert "Authorization" not in ask(stub).headers


def test_default_netrc_file_is_never_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / ".netrc"
    netrc.write_text("machine 127.0.0.1 login u password p\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    with Stub(*replies(), *replies()) as stub:
        assert "Authorization" not in ask(stub).headers
        assert ask(stub, token=Secret("abc")).headers["Authorization"] == "Bearer abc"


@pytest.mark.parametrize("ltoken", ["0123", "ö&=+ "])
def test_form_token_is_sent_in_body(ltoken: str) -> None:
    with Stub(*replies()) as stub:
        seen = ask(stub, "analysis", username="jürgen", password=Secret(ltoken))
    assert seen.form == {"a": "b c", "user": "jürgen", "ltoken": ltoken}
    assert seen.headers["Content-Length"] == str(len(seen.body))
    assert "Authorization" not in seen.headers


def test_server_without_access_control_gets_only_the_user() -> None:
    with Stub(*replies()) as stub:
        assert ask(stub, "analysis", username="me").form == {"a": "b c", "user": "me"}


def test_form_token_is_added_once_per_attempt() -> None:
    with Stub(Reply(503), Reply()) as stub:
        connection = connection_to(stub.url, "analysis", username="me", password=Secret("t"))
        transport = Transport(
            connection,
            connection.service.login(connection),
            read_only=False,
            sleep=lambda seconds: None,
        )
        transport.read("reading", "x", method="POST", form={"action": "roles"})
    assert [seen.form for seen in stub.seen] == [
        {"action": "roles", "user": "me", "ltoken": "t"}
    ] * 2


def test_empty_password_is_not_masked() -> None:
    connection = connection_to("http://host", username="u", password=Secret(""))
    hide(connection)
    assert hidden.mask("Basic dTo=, u") == "Basic ***, u"


@pytest.mark.parametrize(
    ("service", "fields"),
    [
        ("repo", {"token": Secret("bearer-token")}),
        ("repo", {"username": "jürgen", "password": Secret("pä:ss wörd/")}),
        ("analysis", {"username": "me", "password": Secret("ö&=+ /token")}),
    ],
)
def test_secret_echoed_by_server_is_masked(service: str, fields: dict[str, Any]) -> None:
    def echo(seen: Seen) -> Reply:
        return Reply(400, f"{seen.headers.get('Authorization')} {seen.body.decode()}")

    with Stub(response=echo) as stub:
        task = Task(connection_to(stub.url, service, **fields), lambda text: None, False)
        with pytest.raises(ToolchainError) as caught:
            task.transport().read("reading", "x", method="POST", form={"a": "b"})
        (seen,) = stub.seen
    failure = task.failure(caught.value)
    assert "a=b" in failure["msg"]
    assert "***" in failure["msg"]
    sent = seen.form.get("ltoken") or seen.headers["Authorization"].partition(" ")[2]
    for text in (sent, quote(sent, safe="")):
        assert text not in str(caught.value)
        assert text not in json.dumps(failure, ensure_ascii=False)


# OAuth 1.0a


class Consumers(oauthlib.oauth1.RequestValidator):
    """Accept the requests of this consumer and this access token, as a server does."""

    def __init__(self, key: rsa.RSAPrivateKey) -> None:
        super().__init__()
        self._key = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    enforce_ssl = False
    allowed_signature_methods = ("RSA-SHA1", "RSA-SHA256", "RSA-SHA512")
    client_key_length = access_token_length = (1, 100)
    dummy_client = dummy_access_token = "nobody"

    def check_client_key(self, client_key: str) -> bool:
        return True

    def check_access_token(self, request_token: str) -> bool:
        return True

    def validate_client_key(self, client_key: str, request: Any) -> bool:
        return client_key == CONSUMER

    def validate_access_token(self, client_key: str, token: str, request: Any) -> bool:
        return token == TOKEN

    def validate_timestamp_and_nonce(self, *args: Any, **kwargs: Any) -> bool:
        return True

    def validate_realms(self, *args: Any, **kwargs: Any) -> bool:
        return True

    def get_rsa_key(self, client_key: str, request: Any) -> str:
        return self._key.decode()


def accepted(seen: Seen, base: str, key: rsa.RSAPrivateKey) -> bool:
    endpoint = oauthlib.oauth1.ResourceEndpoint(Consumers(key))
    origin = base.removesuffix("/base")
    valid, _ignored = endpoint.validate_protected_resource_request(
        f"{origin}{seen.target}", seen.method, seen.body.decode(), dict(seen.headers)
    )
    return bool(valid)


@pytest.mark.parametrize("method", ["RSA-SHA1", "RSA-SHA256", "RSA-SHA512"])
def test_oauth_signatures_are_valid(
    method: str, rsa_key: rsa.RSAPrivateKey, other_key: rsa.RSAPrivateKey
) -> None:
    with Stub(*replies()) as stub:
        ask(stub, "tracker", oauth=oauth_with(pem(rsa_key), method))
    for seen in stub.seen:
        assert f'oauth_signature_method="{method}"' in seen.headers["Authorization"]
        assert TOKEN_SECRET not in seen.headers["Authorization"]
        assert accepted(seen, stub.url, rsa_key)
        assert not accepted(replace(seen, target=f"{seen.target}&x=1"), stub.url, rsa_key)
        assert not accepted(seen, stub.url, other_key)


@pytest.mark.parametrize("what", ["nonsense", "elliptic", "protected"])
def test_unusable_oauth_key_is_rejected_before_first_request(
    what: str, rsa_key: rsa.RSAPrivateKey
) -> None:
    key = {
        "nonsense": "-----BEGIN PRIVATE KEY-----\nabcd\n-----END PRIVATE KEY-----",
        "elliptic": pem(ec.generate_private_key(ec.SECP256R1())),
        "protected": pem(rsa_key, b"password"),
    }[what]
    with pytest.raises(ToolchainError) as caught:
        SERVICES["wiki"].login(Connection(SERVICES["wiki"], "http://host", oauth=oauth_with(key)))
    assert caught.value.kind == "invalid"
    assert "oauth_private_key" in str(caught.value)
    assert key not in str(caught.value)


@pytest.mark.parametrize("missing", ["requests_oauthlib", "cryptography"])
def test_missing_library_is_named(
    missing: str, monkeypatch: pytest.MonkeyPatch, rsa_key: rsa.RSAPrivateKey
) -> None:
    import_module = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".", maxsplit=1)[0] == missing:
            raise ImportError(name)
        return import_module(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ToolchainError, match=r"requests-oauthlib and oauthlib\[signedtoken\]"):
        SERVICES["wiki"].login(
            Connection(SERVICES["wiki"], "http://host", oauth=oauth_with(pem(rsa_key)))
        )
