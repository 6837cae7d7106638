# SPDX-License-Identifier: GPL-3.0-or-later
"""Test sites and the gateway of the cloud."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.atlassian.service import (
    is_cloud,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection import options
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection.connection import (
    Connection,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.secret import Secret
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker import (
    client as tracker_client,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.client import (
    TrackerClient,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.client import WikiClient
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.exchange import scopes_of
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.services import SERVICES
from tests.unit.stub import Reply, Stub, connection_to

PAGE = {"id": "7", "title": "Notes", "version": {"number": 3}}
TENANT = "/_edge/tenant_info"
SCOPE_BODY = {"code": 401, "message": "Unauthorized; scope does not match"}


def resolved(service: str, url: str, **given: Any) -> Connection:
    return options.resolve(SERVICES[service], {"url": url, **given}.get, {})


def task_at(stub: Stub, service: str = "wiki", **settings: Any) -> Task:
    settings = {"cloud_id": "auto", "cloud_gateway": stub.url, "retries": 0, **settings}
    url = stub.url.removesuffix("/base")
    login = {"username": "bot@example.org", "password": Secret("bot-token")}
    connection = connection_to(url, service, settings=settings, **login)
    return Task(connection, pytest.fail, read_only=True)


@pytest.mark.parametrize(
    ("url", "cloud"),
    [
        ("https://example.atlassian.net/wiki", True),
        ("https://api.atlassian.com/ex/confluence/1-2/wiki", True),
        ("https://EXAMPLE.Atlassian.NET/wiki", True),
        ("https://atlassian.net.example.org/wiki", False),
        ("https://notatlassian.net/wiki", False),
        ("https://wiki.example.org/wiki", False),
    ],
)
def test_cloud_is_recognized_by_host(url: str, cloud: bool) -> None:
    assert is_cloud(resolved("wiki", url)) is cloud


def test_connection_with_cloud_id_is_cloud() -> None:
    assert is_cloud(resolved("tracker", "https://jira.example.org", cloud_id="1-2"))


@pytest.mark.parametrize(
    ("url", "given"),
    [
        ("https://example.atlassian.net", {}),
        ("https://example.atlassian.net/", {}),
        ("https://api.atlassian.com/ex/confluence/1-2", {}),
        ("https://wiki.example.org", {"dialect": "cloud_v2"}),
    ],
)
def test_address_above_the_wiki_is_rejected(url: str, given: dict[str, str]) -> None:
    with pytest.raises(ToolchainError) as caught:
        resolved("wiki", url, **given)
    assert caught.value.kind == "invalid"
    assert f"set url to {url.rstrip('/')}/wiki" in str(caught.value)


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"cloud_id": "a/../b"}, "cloud_id"),
        ({"cloud_id": "1-2", "dialect": "server"}, "cloud_id"),
        ({"cloud_gateway": "gateway.example.org"}, "cloud_gateway"),
        ({"cloud_gateway": "https://user:pw-x@gateway.example.org"}, "user info"),
    ],
)
def test_invalid_cloud_options_are_rejected(given: dict[str, str], word: str) -> None:
    with pytest.raises(ToolchainError, match=word) as caught:
        resolved("wiki", "https://wiki.example.org/wiki", **given)
    assert caught.value.kind == "invalid"
    assert "pw-x" not in str(caught.value)


def test_cloud_id_is_read_once_without_login() -> None:
    found = Reply(body={"cloudId": "1-2"})
    with Stub(found, Reply(body=PAGE), Reply(body=PAGE)) as stub:
        for _again in range(2):
            client = WikiClient(task_at(stub, dialect="cloud_v1"))
            page = client.require("reading", "7", "REL")
    tenant, first, _second = stub.seen
    assert tenant.target == TENANT
    assert "Authorization" not in tenant.headers
    assert first.path == "/base/ex/confluence/1-2/wiki/rest/api/content/7"
    assert first.headers["Authorization"].startswith("Basic ")
    site = stub.url.removesuffix("/base")
    assert page.url == f"{site}/wiki/pages/viewpage.action?pageId=7"


def test_tracker_is_read_at_the_gateway() -> None:
    with Stub(Reply(body={"key": "REL-1"})) as stub:
        client = TrackerClient(task_at(stub, "tracker", cloud_id="1-2"))
        client.read("reading", "rest/api/2/issue/REL-1")
    assert stub.seen[0].path == "/base/ex/jira/1-2/rest/api/2/issue/REL-1"
    assert client.site == stub.url.removesuffix("/base")


@pytest.mark.parametrize(
    "reply",
    [
        Reply(404),
        Reply(body="[]"),
        Reply(body={}),
        Reply(body="<!DOCTYPE html><html><body>Site</body></html>"),
        *(
            Reply(body={"cloudId": odd})
            for odd in ("", " ", "../../x", "1-2/../3", 12, "1\n", ["1"])
        ),
    ],
)
def test_site_without_readable_cloud_id_is_an_error(reply: Reply) -> None:
    with Stub(reply) as stub:
        client = WikiClient(task_at(stub))
        with pytest.raises(ToolchainError, match="id of") as caught:
            client.require("reading", "7", "REL")
        assert [seen.target for seen in stub.seen] == [TENANT]
    assert "set cloud_id to the id instead of auto" in str(caught.value)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(401, SCOPE_BODY),
        Reply(401, b"", {"X-Failure-Category": "FAILURE_CLIENT_SCOPE_CHECK"}),
        Reply(403, SCOPE_BODY),
    ],
)
def test_missing_scope_is_a_permission_error(reply: Reply) -> None:
    with Stub(reply) as stub:
        task = task_at(stub, "tracker", cloud_id="1-2")
        with pytest.raises(ToolchainError) as caught:
            TrackerClient(task).read("reading the issue REL-1", "rest/api/2/issue/REL-1")
    assert caught.value.kind == "permission"
    message = task.failure(caught.value)["msg"]
    assert "scope" in message
    assert "read:jira-work" in message
    assert "password" not in message


def test_other_401_is_an_auth_error() -> None:
    with Stub(Reply(401, {"message": "Unauthorized"})) as stub:
        task = task_at(stub, "tracker", cloud_id="1-2")
        with pytest.raises(ToolchainError) as caught:
            TrackerClient(task).read("reading", "rest/api/2/issue/REL-1")
    assert caught.value.kind == "auth"


@pytest.mark.parametrize("status", [401, 403, 404])
def test_missing_scope_of_a_secondary_request_is_reported(status: int) -> None:
    with Stub(Reply(status, SCOPE_BODY)) as stub:
        client = TrackerClient(task_at(stub, "tracker", cloud_id="1-2"))
        assert client.read_optional("asking", "rest/api/2/serverInfo") is None


def test_failure_of_a_secondary_request_is_reported() -> None:
    with Stub(Reply(500)) as stub:
        client = TrackerClient(task_at(stub, "tracker", cloud_id="1-2"))
        with pytest.raises(ToolchainError, match="500"):
            client.read_optional("asking", "rest/api/2/serverInfo")


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("GET", "/wiki/api/v2/pages/7", "read:page:confluence"),
        ("DELETE", "/wiki/api/v2/pages/7", "delete:page:confluence"),
        ("GET", "/wiki/api/v2/spaces", "read:space:confluence"),
        ("GET", "/wiki/rest/api/space/REL", "read:space:confluence"),
        ("GET", "/wiki/api/v2/spaces/9/pages", "read:page:confluence"),
        ("PUT", "/wiki/api/v2/pages/7/properties/3", "write:page:confluence"),
        ("GET", "/wiki/api/v2/pages/7/descendants", "read:hierarchical-content:confluence"),
        ("GET", "/wiki/api/v2/pages/7/ancestors", "read:content.metadata:confluence"),
        ("GET", "/wiki/api/v2/folders/7", "read:folder:confluence"),
        ("DELETE", "/wiki/rest/api/space/REL", "delete:space:confluence"),
        (
            "GET",
            "/wiki/rest/api/content/7/restriction/byOperation",
            "read:content-details:confluence",
        ),
        ("PUT", "/wiki/rest/api/content/7/restriction", "write:content.restriction:confluence"),
        ("GET", "/wiki/rest/api/user/current", "read:content-details:confluence"),
        ("GET", "/wiki/rest/api/group/picker", "read:group:confluence"),
        ("POST", "/wiki/rest/api/content/7/label", "write:label:confluence"),
        ("POST", "/wiki/rest/api/content/7/child/attachment", "write:attachment:confluence"),
        ("GET", "/wiki/rest/api/content/7", "read:content-details:confluence"),
        ("PUT", "/wiki/rest/api/content/7", "write:content:confluence"),
    ],
)
def test_scope_of_wiki_requests(method: str, path: str, scope: str) -> None:
    assert scopes_of(method, path)[0] == scope


@pytest.mark.parametrize(
    ("method", "path", "reads", "scope"),
    [
        ("POST", "/rest/api/2/search/jql", True, "read:jira-work"),
        ("PUT", "/rest/api/2/issue/REL-1", False, "write:jira-work"),
        ("POST", "/rest/api/2/version", False, "manage:jira-project"),
        ("GET", "/rest/api/2/user/search", True, "read:jira-user"),
        ("PUT", "/rest/api/2/project/REL/role/10002", False, "manage:jira-project"),
        ("POST", "/rest/api/2/project/REL/role/10002", False, "manage:jira-configuration"),
    ],
)
def test_scope_of_tracker_requests(method: str, path: str, reads: bool, scope: str) -> None:
    assert tracker_client.scope_of(method, path, reads=reads) == scope
