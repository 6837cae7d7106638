# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the client of the interfaces next to the repository manager [C1.2, repo-31]."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.secret import Secret
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.client import (
    ACCESS,
    InterfaceMissing,
    PlatformClient,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.service import (
    platform_of,
)
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply

GROUP, PING = "GET /access/api/v2/groups/x", "GET /access/api/v1/system/ping"
HTML = Reply(404, "<html><h1>404 Not Found</h1></html>", headers={"Server": "nginx"})
OWN = Reply(404, {"errors": [{"code": "NOT_FOUND", "message": "no group 'x'"}]})
ARTIFACTORY = Reply(404, {"errors": [{"status": 404, "message": "File not found."}]})


def client(
    server: Server,
    *,
    check: bool = False,
    token: Secret | None = None,
    api_key: Secret | None = None,
) -> PlatformClient:
    task = server.task(check=check)
    connection = replace(task.connection, token=token, api_key=api_key)
    return PlatformClient(Task(connection, task.warn, check), ACCESS)


def read(server: Server, token: Secret | None = None, api_key: Secret | None = None) -> int:
    made = client(server, token=token, api_key=api_key)
    return made.read("reading the group 'x'", "api/v2/groups/x", expect=(200, 404)).status


@pytest.mark.parametrize(
    ("url", "given", "base"),
    [
        ("https://a.example/artifactory", None, "https://a.example"),
        ("https://a.example/tools/artifactory", None, "https://a.example/tools"),
        ("https://a.example", None, "https://a.example"),
        ("https://a.example/my-artifactory", None, "https://a.example/my-artifactory"),
        ("https://a.example/artifactory", "https://p.example/x", "https://p.example/x"),
    ],
)
def test_platform_url_is_derived(url: str, given: str | None, base: str) -> None:
    assert platform_of(url, {"platform_url": given}) == base


@pytest.mark.parametrize("status", [400, 404])
@pytest.mark.parametrize("member", ["code", "title", "detail"])
def test_absent_object_costs_one_request(server: Server, member: str, status: int) -> None:
    server.on[GROUP] = Reply(404, {"errors": [{member: "NOT_FOUND", "status": status}]})
    assert read(server) == 404
    assert server.asked == [GROUP]


def test_ambiguous_404_with_existing_interface_is_an_absent_object(server: Server) -> None:
    server.on |= {GROUP: ARTIFACTORY, PING: Reply(200, "OK")}
    assert read(server) == 404
    assert read(server) == 404
    assert server.asked == [GROUP, PING, GROUP]


@pytest.mark.parametrize(
    "probe", [ARTIFACTORY, HTML, Reply(200, "<html>the UI</html>"), Reply(404)]
)
@pytest.mark.parametrize(
    "reply", [ARTIFACTORY, HTML, Reply(404), Reply(404, {"message": "no Route"}), Reply(405)]
)
def test_missing_interface_is_not_an_absent_object(
    server: Server, reply: Reply, probe: Reply
) -> None:
    server.on |= {GROUP: reply, PING: probe}
    with pytest.raises(InterfaceMissing, match=r"requires Artifactory 7\.49\.3") as caught:
        read(server)
    assert caught.value.kind == "not_found"
    assert "platform_url" in str(caught.value)
    assert f"{server.stub.url}/access" in str(caught.value)


def test_failed_probe_is_not_cached(server: Server) -> None:
    server.on |= {GROUP: ARTIFACTORY, PING: [Reply(500), Reply(200, "OK")]}
    with pytest.raises(ToolchainError, match="500"):
        read(server)
    assert read(server) == 404


def test_missing_interface_is_reported_for_writes(server: Server) -> None:
    server.on["DELETE /access/api/v2/groups/x"] = HTML
    with pytest.raises(InterfaceMissing):
        client(server).write("deleting the group 'x'", "DELETE", "api/v2/groups/x")


def test_error_text_of_the_platform(server: Server) -> None:
    reported = {"code": "BAD", "title": "Wrong name", "detail": "x is reserved", "message": "no"}
    server.on[GROUP] = Reply(400, {"errors": [reported]})
    with pytest.raises(ToolchainError, match="no; Wrong name; x is reserved") as caught:
        read(server)
    assert caught.value.kind == "rejected"


@pytest.mark.parametrize("status", [401, 403])
def test_rejected_login_suggests_a_token(server: Server, status: int) -> None:
    server.on[GROUP] = Reply(status, OWN.body)
    with pytest.raises(ToolchainError, match="may require an access token: set token"):
        read(server, api_key=Secret("key-1234"))
    with pytest.raises(ToolchainError) as caught:
        read(server, token=Secret("token-1234"))
    assert "set token" not in str(caught.value)


def test_login_is_sent(server: Server) -> None:
    server.on[GROUP] = Reply(200, {})
    read(server, token=Secret("token-1234"))
    read(server, api_key=Secret("key-1234"))
    assert server.stub.seen[0].headers["Authorization"] == "Bearer token-1234"
    assert server.stub.seen[1].headers["X-JFrog-Art-Api"] == "key-1234"


def test_check_mode_sends_no_write(server: Server) -> None:
    with pytest.raises(ToolchainError, match="would change the server in check mode"):
        client(server, check=True).write("deleting", "DELETE", "api/v2/groups/x")
    assert server.asked == []
