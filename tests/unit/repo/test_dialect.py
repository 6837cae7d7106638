# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the detection of the dialect of a server, if the options do not name it [C1.6]."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection.options import (
    settings_options,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.secret import Secret
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.client import (
    JFROG,
    RepoClient,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.services import SERVICES
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply, Stub, connection_to

VERSION = "GET /api/system/version"
LOGIN = '<html><input type="password"></html>'


@pytest.fixture
def unknown(server: Server) -> Server:
    """Return a server whose dialect only its responses reveal."""
    server.dialect = "auto"
    return server


def test_auto_is_the_default() -> None:
    assert settings_options(SERVICES["repo"])["dialect"]["default"] == "auto"


@pytest.mark.parametrize("status", [200, 404, 403])
@pytest.mark.parametrize(
    "header",
    [
        {"X-JFrog-Version": "Artifactory/7.77.5"},
        {"x-artifactory-id": "a"},
        {"Server": "Artifactory/6.23"},
    ],
)
def test_dialect_is_detected_from_any_response_header(
    unknown: Server, header: dict[str, str], status: int
) -> None:
    unknown.on["GET /x"] = Reply(status, "", headers=header)
    client = unknown.client()
    client.transport.read("reading", "x", expect=(status,))
    assert client.dialect is JFROG
    assert unknown.asked == ["GET /x"]


@pytest.mark.parametrize(
    ("reply", "jfrog"),
    [
        (Reply(200, {"version": "6.9.1", "addons": []}), True),
        (Reply(200, {"name": "something else"}), False),
        (Reply(404, "Not Found", headers={"Server": "nginx"}), False),
        (Reply(401, "who?", headers={"X-JFrog-Version": "Artifactory/7"}), True),
        (Reply(405), False),
    ],
)
def test_dialect_is_detected_with_one_request(
    unknown: Server, reply: Reply, *, jfrog: bool
) -> None:
    unknown.on[VERSION] = reply
    client = unknown.client()
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda _number: client.dialect.api_key_header, range(8)))
    assert found == {"X-JFrog-Art-Api" if jfrog else "X-Acme-Art-Api"}
    assert unknown.client().dialect is client.dialect or not jfrog
    assert unknown.asked == [VERSION]


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(401, "who?"), "auth"),
        (Reply(403, "no"), "permission"),
        (Reply(200, LOGIN), "auth"),
        (Reply(500, "broken"), "server"),
    ],
)
def test_undetected_dialect_is_an_error(unknown: Server, reply: Reply, kind: str) -> None:
    unknown.on[VERSION] = reply
    with pytest.raises(ToolchainError, match="the option dialect") as caught:
        unknown.client().dialect  # noqa: B018 - it asks
    assert caught.value.kind == kind
    assert unknown.asked == [VERSION]


def test_refused_connection_does_not_suggest_a_dialect() -> None:
    with Stub() as closed:
        settings = {"retries": 0, "dialect": "auto", "vendor": "Acme"}
        client = RepoClient(Task(connection_to(closed.url, settings=settings), print, False))
    with pytest.raises(ToolchainError) as caught:
        client.dialect  # noqa: B018 - it asks
    assert (caught.value.kind, "dialect to avoid" in caught.value.message) == ("network", False)


def test_headers_of_a_foreign_proxy_are_ignored(unknown: Server) -> None:
    unknown.on[VERSION] = Reply(404)
    unknown.on["GET /x"] = Reply(200, headers={"Server": "Apache", "X-JFrog-Other": "1"})
    client = unknown.client()
    client.transport.read("reading", "x")
    assert client.dialect is not JFROG


def test_api_key_is_sent_in_both_headers(unknown: Server) -> None:
    settings = {"dialect": "auto", "vendor": "Acme", "retries": 0}
    connection = connection_to(unknown.stub.url, api_key=Secret("key-12345"), settings=settings)
    client = RepoClient(Task(connection, unknown.warnings.append, False))
    client.transport.read("reading", "x", expect=(404,))
    (seen,) = unknown.stub.seen
    assert seen.headers["X-JFrog-Art-Api"] == seen.headers["X-Acme-Art-Api"] == "key-12345"
